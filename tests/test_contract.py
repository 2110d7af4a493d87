"""What `help` says of each public estimator and function: all of it, and nothing else.

Parameters are those of the signature, with the types that are checked and the defaults;
attributes are those that fits leave. So no docstring can fall behind.
"""

import ast
import functools
import inspect
import re
import warnings
from numbers import Integral

import docstring_parser
import numpy as np
import pytest
from docstring_parser.common import DocstringStyle
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

import precbench
from precbench.core.errors import MissingPackageError

ESTIMATORS = [
    getattr(precbench, name)
    for name in precbench.__all__
    if inspect.isclass(getattr(precbench, name)) and name != "Model"
]
FUNCTIONS = [
    getattr(precbench, name)
    for name in precbench.__all__
    if inspect.isfunction(getattr(precbench, name))
]
FOUR_KINDS_OF_K = (
    "number of rows",
    "fraction of the positives",
    "fraction of the rows",
    "1.0",
)
ELSEWHERE = re.compile(r"\b(as (in|of|for)|like) `[A-Z]|^see `", re.IGNORECASE)
LONGEST_LINE = 88 - 4  # columns of a docstring, without its indentation

each_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda cls: cls.__name__
)
each_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


def parsed(member):
    return docstring_parser.parse(inspect.getdoc(member), DocstringStyle.NUMPYDOC)


def entries(member, kind):
    """Return the entries of a section by name; `kind` is param or attribute."""
    return {
        name.strip(): entry
        for entry in parsed(member).params
        if entry.args[0] == kind
        for name in entry.arg_name.split(",")
    }


def words_for(constraint):
    """Return the words by which a docstring says that a constraint allows a value."""
    if constraint is None:
        return {"None"}
    if type(constraint) is StrOptions:
        return {f'"{option}"' for option in constraint.options}
    if isinstance(constraint, StrOptions):  # text of some form
        return {"str"}
    if isinstance(constraint, Interval | Options):
        return {"int"} if constraint.type is Integral else {"float"}
    if constraint == "boolean":
        return {"bool"}
    if constraint == "random_state":
        return {"int", "RandomState", "None"}
    return {constraint.__name__}


def type_and_default(entry):
    """Return what an entry says of the type of a parameter, and of its default."""
    kind, _comma, default = entry.type_name.partition(", default=")
    return kind, default or entry.default  # which newer parsers split


# What `help` says of parameters.


@each_estimator
def test_every_parameter_is_described_where_it_is_used(estimator):
    described = entries(estimator, "param")
    assert [*described] == [*inspect.signature(estimator).parameters]
    assert described.keys() == estimator().get_params(deep=False).keys()
    for name, entry in described.items():
        assert entry.arg_name == name, f"{entry.arg_name} are described together"
        assert len(entry.description or "") > 10, f"{name} has no description"
        assert not ELSEWHERE.search(entry.description), f"{name} is described elsewhere"


@each_estimator
def test_the_type_of_a_parameter_is_what_is_checked(estimator):
    for name, entry in entries(estimator, "param").items():
        constraints = estimator._parameter_constraints[name]
        allowed = set().union(*map(words_for, constraints))
        kind, _default = type_and_default(entry)
        words = {*re.findall(r'"[^"]+"|\w+', kind)} - {"or"}
        assert words == allowed, name


@each_estimator
def test_the_default_of_a_parameter_is_that_of_the_signature(estimator):
    described = entries(estimator, "param")
    for name, parameter in inspect.signature(estimator).parameters.items():
        _kind, default = type_and_default(described[name])
        assert default, f"the default of {name} is not stated"
        assert ast.literal_eval(default) == parameter.default, name


@each_estimator
def test_the_four_meanings_of_k_are_explained(estimator):
    described = entries(estimator, "param")
    if "k" in described:
        for kind in FOUR_KINDS_OF_K:
            assert kind in " ".join(described["k"].description.split())


# What `help` says of attributes.


def variations(estimator):
    """Yield the parameters of fits: the defaults, then each option of a parameter."""
    yield {}
    for name, constraints in estimator._parameter_constraints.items():
        for constraint in constraints:
            if type(constraint) is StrOptions:
                for option in sorted(constraint.options):
                    yield {name: option}
            elif constraint == "boolean":
                yield {name: False}
                yield {name: True}


def public_attributes(fitted):
    """Return the public attributes that a fit has left."""
    names = {name for name in dir(fitted) if re.fullmatch(r"[a-zA-Z]\w*_", name)}
    return {name: getattr(fitted, name) for name in names if hasattr(fitted, name)}


@functools.cache
def fitted_attributes(estimator):
    """Return what fits leave, one dict of attributes a fit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60) > 1
    attributes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for params in variations(estimator):
            fitted = estimator(**params).fit(X, y)
            check_is_fitted(fitted)
            attributes.append(public_attributes(fitted))
        traced = estimator().fit(X, y, trace=lambda solver: False)
        attributes.append(public_attributes(traced))
    return attributes


@pytest.fixture
def fits(estimator):
    """Return the attributes that each of some fits has left."""
    try:
        return fitted_attributes(estimator)
    except MissingPackageError as error:
        pytest.skip(str(error))


@each_estimator
def test_every_attribute_of_a_fit_is_described(estimator, fits):
    described = entries(estimator, "attribute")
    assert described.keys() == set().union(*fits)
    for name, entry in described.items():
        assert entry.arg_name == name, f"{entry.arg_name} are described together"
        assert len(entry.description or "") > 10, f"{name} has no description"
        assert not ELSEWHERE.search(entry.description), f"{name} is described elsewhere"


@each_estimator
def test_an_attribute_of_some_fits_says_of_which(estimator, fits):
    described = entries(estimator, "attribute")
    left_by_all = set.intersection(*map(set, fits))
    for name in described.keys() - left_by_all:
        text = described[name].description
        assert re.search(r"\bonly\s+(if|after)\b", text, re.IGNORECASE), name


@each_estimator
def test_the_type_of_an_attribute_is_that_of_its_value(estimator, fits):
    described = entries(estimator, "attribute")
    for attributes in fits:
        for name, value in attributes.items():
            type_name = described[name].type_name
            if isinstance(value, np.ndarray):
                assert value.ndim == described_dimensions(type_name), name
            elif isinstance(value, bool | int | float | list):
                # The bases of a float64 are named, too, among them float.
                classes = {base.__name__ for base in type(value).mro()}
                plain = classes & {"bool", "int", "float", "list"}
                assert type_name.split()[0] in plain, name


def described_dimensions(type_name):
    """Return 1 for "ndarray of shape (n_features,)", 2 for two lengths, and so on."""
    shape = re.search(r"^ndarray of shape \(([^)]*)\)", type_name)[1]
    lengths = [length for length in shape.split(",") if length]
    return len(lengths)


# What `help` says of a class as a whole, and of methods.


@each_estimator
def test_the_source_is_named(estimator):
    sections = {meta.args[0] for meta in parsed(estimator).meta}
    assert "references" in sections
    assert "examples" in sections


@each_estimator
def test_lines_are_short_and_the_summary_is_a_sentence(estimator):
    lines = inspect.getdoc(estimator).splitlines()
    assert len(lines[0]) <= LONGEST_LINE - 3  # less the quotes
    assert max(map(len, lines)) <= LONGEST_LINE
    assert lines[0].endswith(".")
    assert not lines[1]


def public_methods(estimator):
    """Yield the public methods of a class that this package defines."""
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("precbench."):
            yield method


@each_estimator
def test_every_argument_of_a_method_is_described(estimator):
    for method in public_methods(estimator):
        described = entries(method, "param")
        arguments = inspect.signature(method).parameters.keys() - {"self"}
        assert described.keys() == arguments, method.__name__
        for name, entry in described.items():
            argument = f"{name} of {method.__name__}"
            description = entry.description or ""
            assert entry.type_name, f"{argument} has no type"
            assert len(description) > 10, f"{argument} has no description"
            assert not ELSEWHERE.search(description), (
                f"{argument} is described elsewhere"
            )


# What `help` says of functions.


@each_function
def test_every_argument_of_a_function_is_described(function):
    described = entries(function, "param")
    arguments = {
        f"**{name}" if argument.kind is argument.VAR_KEYWORD else name
        for name, argument in inspect.signature(function).parameters.items()
    }
    assert described.keys() == arguments
    for name, entry in described.items():
        assert entry.type_name or entry.description, name
    sections = parsed(function)
    assert sections.returns is not None
    assert sections.raises, "no error is described"
    assert "Examples" in inspect.getdoc(function)


@each_function
def test_the_four_meanings_of_k_are_explained_by_a_function(function):
    described = entries(function, "param")
    if "k" in described:
        for kind in FOUR_KINDS_OF_K:
            assert kind in " ".join(described["k"].description.split())
