"""One law over everything public: a function never writes into what it is given.

A call gets arguments that may be written, then the same arguments as read-only memory.
Both give the same result, also when called twice, and afterwards every argument is what
it was. The members come from the registries and from the modules of the reference, so
that a new member is subject to the law.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import precbench
from precbench import solvers
from precbench.core.kinds import Scaling
from precbench.data import Dataset, stream_dataset
from precbench.data.dataset import Imputed, ImputedColumn
from precbench.data.preprocess import Scaler
from precbench.data.splits import (
    Kind,
    split_rows,
    stratified_group_folds,
    validation_split,
)
from precbench.model.model import Model
from precbench.ranking.losses import OBJECTIVES, SURROGATES
from precbench.ranking.metrics import METRICS, Metric
from precbench.ranking.topk import HeldOut
from precbench.solvers import SOLVERS
from precbench.solvers.common.base import untraced
from precbench.solvers.common.driver import Fit
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_amounts, read_labels, read_own_file
from precbench.tables.own_table import open_table, table_of
from tests import laws
from tests.helpers import ROOT, succeed

pytestmark = [
    pytest.mark.frames,
    pytest.mark.filterwarnings("ignore"),  # of small data: the results count here
    pytest.mark.usefixtures("few_members"),
]

N_ROWS = 60


@pytest.fixture(scope="module")
def few_members():
    """Stack one member of each kind in an ensemble."""
    all_recipes = solvers.Ensemble._recipes

    def few_recipes(*arguments):
        recipes = [*all_recipes(*arguments)]
        return [recipes[1], recipes[3]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers.Ensemble, "_recipes", few_recipes)
        yield


# --- what a value holds ---


def state(value):
    """Return what a value holds, down to the bits of arrays, to be compared."""
    if isinstance(value, np.ndarray):
        return _state_of_array(value)
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return _state_of_frame(value)
    if sparse.issparse(value) and value.format == "csr":
        parts = [state(part) for part in (value.data, value.indices, value.indptr)]
        return type(value).__name__, value.shape, parts
    if isinstance(value, dict):
        return {key: state(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [state(entry) for entry in value]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return state({name: getattr(value, name) for name in names})
    return repr(value)  # NaN and NaN are alike


def _state_of_array(array):
    if array.dtype == object:
        return array.shape, [state(entry) for entry in array.ravel().tolist()]
    return array.dtype.str, array.shape, array.tobytes()


def _state_of_frame(frame):
    """Return index, columns, types and values; of text the type of each gap as well."""
    if isinstance(frame, pd.DataFrame):
        columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
        return state(frame.columns), [state(column) for column in columns]
    index = state(frame.index) if isinstance(frame, pd.Series) else None
    values = [repr(value) for value in frame.astype(object)]
    return str(frame.dtype), frame.name, index, values


# --- read-only memory ---


def frozen(value):
    """Return a value whose arrays are read-only; the value is not used again."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, pd.DataFrame | pd.Series):
        for block in value._mgr.blocks:
            _freeze_block(block.values)
    elif sparse.issparse(value):
        for part in (value.data, value.indices, value.indptr):
            part.flags.writeable = False
    elif isinstance(value, dict):
        for entry in value.values():
            frozen(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            frozen(entry)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            frozen(getattr(value, field.name))
    return value


def _freeze_block(values):
    """Make the arrays of a column of any type read-only; those of Arrow always are."""
    inner = [getattr(values, name, None) for name in ("_ndarray", "_data", "_mask")]
    for array in [values, *inner]:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


# --- the law ---


@dataclass(frozen=True)
class Call:
    """A function, and a function that makes its arguments anew for each call."""

    function: Callable[..., Any]
    arguments: Callable[[], dict[str, Any]]


def require_unchanged_arguments(call):
    """Call a function twice with one set of arguments, then with read-only ones."""
    arguments = call.arguments()
    content = state(arguments)
    result = state(call.function(**arguments))
    assert state(arguments) == content
    second_result = state(call.function(**arguments))
    assert second_result == result
    assert state(arguments) == content
    read_only = frozen(call.arguments())
    assert state(call.function(**read_only)) == result


# --- arrays ---


def rows():
    return laws.problem(n=N_ROWS, d=4, share=0.3)[0]


def labels():
    return laws.problem(n=N_ROWS, d=4, share=0.3)[1]


def scores():
    return rows() @ np.arange(1.0, 5.0)


def weights():
    return np.random.default_rng(3).uniform(0.5, 2.0, N_ROWS)


def groups():
    return np.arange(N_ROWS) // 3


def times():
    return np.arange(N_ROWS)[::-1].copy()


def few_zeros():
    return sparse.csr_matrix(np.where(np.abs(rows()) > 0.5, rows(), 0.0))


def unsorted_rows():
    """Return rows of float32 whose entries lie from the last column to the first."""
    X = few_zeros().astype(np.float32)
    spans = itertools.pairwise(X.indptr)
    order = np.concatenate([np.arange(start, stop)[::-1] for start, stop in spans])
    return sparse.csr_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def duplicated_entries():
    """Return rows in which each entry is the sum of two halves."""
    X = few_zeros()
    halves = np.repeat(X.data / 2, 2)
    indices = np.repeat(X.indices, 2)
    return sparse.csr_matrix((halves, indices, 2 * X.indptr), shape=X.shape)


def spare_memory():
    """Return rows with int64 indices, and with room behind the last entry."""
    X = few_zeros()
    X.data = np.append(X.data, [7.0, 7.0])
    X.indices = np.append(X.indices, [0, 0]).astype(np.int64)
    X.indptr = X.indptr.astype(np.int64)
    return X


MATRICES = {
    "c-order": rows,
    "f-order": lambda: np.asfortranarray(rows()),
    "float32": lambda: np.asfortranarray(rows(), np.float32),
    "strided": lambda: np.repeat(rows(), 2, axis=1)[:, ::2],
    "frame": lambda: pd.DataFrame(rows()),
    "csr": few_zeros,
    "csr-unsorted": unsorted_rows,
    "csr-duplicates": duplicated_entries,
    "csr-spare": spare_memory,
}
LABELS = {
    "integers": labels,
    "booleans": lambda: labels() > 0,
    "text": lambda: np.where(labels() > 0, "yes", "no"),
    "objects": lambda: np.where(labels() > 0, "yes", "no").astype(object),
    "series": lambda: pd.Series(np.where(labels() > 0, "yes", "no")),
    "floats": lambda: labels().astype(np.float64),
}
SCORES = {
    "float64": scores,
    "float32": lambda: scores().astype(np.float32),
    "integers": lambda: (100 * scores()).astype(np.int64),
    "strided": lambda: np.repeat(scores(), 2)[::2],
    "series": lambda: pd.Series(scores()),
}


# --- frames ---

TEXT_TYPES = ["default", "python", "nullable", "object", "category"]


@pytest.fixture(params=TEXT_TYPES)
def text_type(request):
    """Return the type of columns of text; "python" as where pandas has no pyarrow."""
    name = request.param
    storage = pd.get_option("mode.string_storage")
    text_type = name
    if name == "default":
        text_type = "str"
    elif name == "python":
        text_type = "str"
        storage = "python"
    elif name == "nullable":
        text_type = pd.StringDtype("python")
    with pd.option_context("mode.string_storage", storage):
        yield text_type


def _days():
    return pd.Series(pd.date_range("2024-05-01", periods=N_ROWS))


def texts(text_type):
    """Return columns of text of a type, some with gaps, beside numbers."""
    is_gap = np.arange(N_ROWS) % 7 == 0
    cities = np.random.default_rng(5).choice(["north", "south", "west"], N_ROWS)
    columns = {
        "city": pd.Series(cities, dtype=object).mask(is_gap, None),
        "street": pd.Series(cities, dtype=object),
        "day": _days().dt.strftime("%Y-%m-%d").astype(object),
        "amount": pd.Series([f"$ {n % 9}.50" for n in range(N_ROWS)], dtype=object),
    }
    return _frame({name: values.astype(text_type) for name, values in columns.items()})


def numbers():
    """Return columns of all other types, each with gaps where its type has gaps."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, N_ROWS))
    is_gap = np.arange(N_ROWS) % 7 == 0
    counts = rng.integers(0, 9, N_ROWS)
    columns = {
        "plain": x[0],
        "gaps": np.where(is_gap, np.nan, x[1]),
        "single": x[0].astype(np.float32),
        "count": counts,
        "nullable": pd.array(x[1], dtype="Float64"),
        "nullable_gaps": pd.Series(counts).mask(is_gap).astype("Int64"),
        "size": pd.Series(pd.Categorical(rng.choice(["S", "M"], N_ROWS))).mask(is_gap),
        "day": _days().mask(is_gap),
        "flag": x[0] > 0,
        "nullable_flag": pd.array(np.where(is_gap, None, x[1] > 0), dtype="boolean"),
        "mixed": pd.Series([3 if gap else "many" for gap in is_gap], dtype=object),
    }
    return _frame(columns)


def _frame(columns):
    index = pd.RangeIndex(100, 100 + N_ROWS, name="row")
    return pd.DataFrame(columns).set_axis(index)


def labelled(frame):
    """Return a table with a label, a group, a time, and amounts of the rows."""
    roles = {"label": labels() > 0, "house": groups(), "when": times()}
    return frame.assign(**roles, worth=weights())


READING = {"categorical": "one-hot", "missing": "median"}
ROLES = {"label": "label", "groups": "house", "time": "when", "drop": ["worth"]}


def _learn_and_encode(table):
    encoding = Encoding.learn(table_of(table), **READING)
    return encoding.encode(table), encoding


def _read_weights(table):
    return read_amounts(open_table(table, {}), "worth", "weight")


READERS = {
    "read_own_file": lambda table: read_own_file(table, **ROLES, **READING),
    "read_labels": lambda table: read_labels(table, "label"),
    "read_amounts": _read_weights,
    "profile": lambda table: precbench.profile(table, **ROLES, **READING),
    "Encoding": _learn_and_encode,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_readers_change_no_table_of_text(read, text_type):
    call = Call(read, lambda: {"table": labelled(texts(text_type))})
    require_unchanged_arguments(call)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_readers_change_no_table_of_numbers(read):
    call = Call(read, lambda: {"table": labelled(numbers())})
    require_unchanged_arguments(call)


# --- solvers ---

FEW_STEPS = {"max_iter": 3, "epochs": 1, "batch_size": 20, "n_estimators": 2}
# What the methods of solvers take beside rows
BESIDE_ROWS = {
    "y": labels,
    "sample_weight": weights,
    "classes": lambda: np.array([-1, 1]),
    "order": lambda: np.arange(N_ROWS)[::-1].copy(),
    "n_iter": lambda: 1,
    "pairs": lambda: np.tril(np.ones((N_ROWS, N_ROWS)), -1),
}
OPTIONAL = {"trace"}  # a function


def _quick(name):
    return laws.quick(SOLVERS[name], **FEW_STEPS)


def _parameters(function):
    """Return the names of a function's parameters."""
    return [*inspect.signature(function).parameters]


def _methods_of_rows(solver):
    """Return the public methods that take rows, by name."""
    return {
        name: method
        for name, method in inspect.getmembers(solver, inspect.ismethod)
        if not name.startswith("_") and "X" in _parameters(method)
    }


def _call_method(method, arguments):
    """Call a method of a solver; of one that learns return the scores of its rows."""
    names = [name for name in _parameters(method) if name not in OPTIONAL]
    result = method(**{name: arguments[name] for name in names})
    if isinstance(result, solvers.Ranker):
        return result.decision_function(arguments["X"])
    return result


def _call_methods_of_solver(name, **arguments):
    """Fit a solver, and call its methods; those that learn, on an unfitted solver."""
    fitted = _quick(name).fit(arguments["X"], arguments["y"])
    results = {}
    for method_name, method in _methods_of_rows(fitted).items():
        if "fit" in method_name:
            method = getattr(_quick(name), method_name)
        results[method_name] = _call_method(method, arguments)
    return results


SIMPLE_FORMS = ["c-order", "csr"]  # which all methods take
OTHER_FORMS = ["float32", "frame", "csr-unsorted", "csr-spare"]


@pytest.mark.parametrize("form", SIMPLE_FORMS)
@pytest.mark.parametrize("name", SOLVERS)
def test_methods_of_solvers_change_no_argument(name, form):
    arguments = functools.partial(_arguments, X=MATRICES[form], **BESIDE_ROWS)
    call = functools.partial(_call_methods_of_solver, name)
    require_unchanged_arguments(Call(call, arguments))


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_change_no_rows_in_any_form(name):
    def call(X, y):
        solver = _quick(name).fit(X, y)
        return solver.decision_function(X), solver.predict(X)

    for form, y in zip(OTHER_FORMS, itertools.cycle(LABELS.values()), strict=False):
        arguments = functools.partial(_arguments, X=MATRICES[form], y=y)
        require_unchanged_arguments(Call(call, arguments))


# --- models ---


def lists():
    """Return two held-out lists."""
    return [HeldOut(labels().astype(float), part * scores()) for part in (1.0, 0.5)]


# Methods of a model that take more than rows
WITH_LISTS = {"calibrated", "profiled"}
WITH_LABELS = {"fit", "score"}


def _call_methods_of_model(fit, X, lists):
    """Fit a model to rows, and call all that takes rows."""
    model = fit(X).calibrated(lists, 0.3)
    results = {
        "rows": _call_methods_of_rows(model, X),
        "blocks": _rank_blocks(model, X),
    }
    if model.encoding is not None:
        results["drift"] = _drift(model, X, lists)
    return results


def _call_methods_of_rows(model, X):
    """Call each method that takes rows alone, twice."""
    methods = _methods_of_rows(model)
    assert methods.keys() >= {"decision_function", "explain", "rank", *WITH_LISTS}
    results = {}
    for name in methods.keys() - WITH_LISTS - WITH_LABELS:
        results[name] = state(methods[name](X))
        assert state(methods[name](X)) == results[name]
    return results


def _rank_blocks(model, X):
    """Return the ranked rows, and those listed, which `rank_blocks` fills in."""
    names = pd.DataFrame({"name": [f"row {i}" for i in range(N_ROWS)]})
    listed = {}
    ranked = model.rank_blocks([(X, names)], top=5, listed=listed)
    return ranked, list(listed.values())


def _drift(model, X, lists):
    encoded = model.encoding.encode(table_of(X).frame)
    drift = model.profiled(encoded, lists).drift()
    drift.add(encoded, model.decision_function(X))
    return drift.summary()


@dataclass(frozen=True)
class Fitting:
    """How a model is fitted, and the forms of rows that it is fitted to."""

    solver: str
    options: dict[str, Any]
    forms: list[str]

    def fit(self, X):
        return Model.fit(X, labels(), self.solver, random_state=0, **self.options)


FEW_FORMS = ["float32", "csr-spare"]
MODELS = {
    "weights": Fitting("sgd-avg", {"epochs": 1}, forms=[*MATRICES]),
    "unit-norm": Fitting(
        "sgd-avg", {"epochs": 1, "scaling": "unit-norm"}, forms=FEW_FORMS
    ),
    "fourier": Fitting(
        "sgd-avg", {"epochs": 1, "fourier": {"n_components": 5}}, forms=FEW_FORMS
    ),
    "trees": Fitting("extra-trees", {"n_estimators": 2}, forms=FEW_FORMS),
    "members": Fitting("ensemble", {"folds": 2}, forms=["f-order"]),
}
OF_TABLES = Fitting(
    "sgd-avg", {"epochs": 1, "scaling": "standardise", **READING}, forms=[]
)


def require_unchanged_rows(fitting, make_rows):
    """See that a model and its methods change neither rows nor lists."""
    call = functools.partial(_call_methods_of_model, fitting.fit)
    arguments = functools.partial(_arguments, X=make_rows, lists=lists)
    require_unchanged_arguments(Call(call, arguments))


@pytest.mark.parametrize(
    ("fitting", "form"),
    [
        pytest.param(fitting, form, id=f"{name}-{form}")
        for name, fitting in MODELS.items()
        for form in fitting.forms
    ],
)
def test_models_change_no_array(fitting, form):
    require_unchanged_rows(fitting, MATRICES[form])


def test_models_change_no_table_of_text(text_type):
    require_unchanged_rows(OF_TABLES, functools.partial(texts, text_type))


def test_models_change_no_table_of_numbers():
    require_unchanged_rows(OF_TABLES, numbers)


# --- fit and compare ---


@pytest.mark.parametrize("text_type", ["python", "category"], indirect=True)
def test_fit_changes_no_argument(text_type):
    def call(table, params):
        model = precbench.fit(
            table,
            label="label",
            k=5,
            solver="logistic-regression",
            params=params,
            weight="worth",
            gain="worth",
            groups="house",
            drop=["when"],
            n_splits=1,
            **READING,
        )
        facts = {name: fact for name, fact in model.about.items() if name != "fitted"}
        return facts, model.coef, model.rank(table)

    def arguments():
        return {"table": labelled(texts(text_type)), "params": {"C": 0.5}}

    require_unchanged_arguments(Call(call, arguments))


@pytest.mark.parametrize("text_type", ["python", "category"], indirect=True)
def test_score_and_evaluate_change_neither_new_rows_nor_an_earlier_list(text_type):
    model = precbench.fit(
        labelled(texts(text_type)),
        k=5,
        solver="logistic-regression",
        n_splits=1,
        **ROLES,
        **READING,
    )

    def call(rows, last):
        listed = precbench.score(
            model, rows, top=9, keep=["all"], drift=True, last=last, explain=1
        )
        evaluation = precbench.evaluate(model, rows)
        return listed.rows, listed.to_dict(), evaluation.to_dict()

    def arguments():
        rows = labelled(texts(text_type))
        return {"rows": rows, "last": pd.DataFrame({"row": [1, 2, 3]})}

    require_unchanged_arguments(Call(call, arguments))


@pytest.mark.parametrize("text_type", ["python", "category"], indirect=True)
def test_a_refit_changes_neither_the_model_nor_the_new_rows(text_type):
    def call(model, rows):
        refitted = precbench.refit(model, rows).model
        return refitted.coef, refitted.rank(rows)

    def arguments():
        model = precbench.fit(
            labelled(texts(text_type)),
            k=5,
            solver="logistic-regression",
            n_splits=1,
            **ROLES,
            **READING,
        )
        return {"model": model, "rows": labelled(texts(text_type))}

    require_unchanged_arguments(Call(call, arguments))


def _compared(X, y, **options):
    choice = precbench.compare(
        X, y, k=5, solvers=["logistic-regression"], n_splits=1, n_jobs=1, **options
    )
    return choice.table.drop(columns="seconds"), choice.recipe.how, choice.recipe.lists


COMPARED = {
    "arrays": {
        "X": MATRICES["float32"],
        "y": LABELS["objects"],
        "positive": lambda: ["yes"],
        "groups": groups,
        "gain": weights,
    },
    "csr": {"X": spare_memory, "y": LABELS["booleans"]},
}


@pytest.mark.parametrize("makers", COMPARED.values(), ids=COMPARED)
def test_compare_changes_no_array(makers, in_this_process):
    arguments = functools.partial(_arguments, **makers)
    require_unchanged_arguments(Call(_compared, arguments))


@pytest.mark.parametrize("text_type", ["python"], indirect=True)
def test_compare_changes_no_frame(text_type, in_this_process):
    call = functools.partial(_compared, **READING)

    def arguments():
        table = texts(text_type).join(numbers(), rsuffix="_number")
        y = pd.Series(labels(), table.index)
        return {"X": table, "y": y, "time": pd.Series(times(), table.index)}

    require_unchanged_arguments(Call(call, arguments))


@pytest.mark.parametrize("storage", [pd.get_option("mode.string_storage"), "python"])
def test_the_training_file_has_not_drifted(storage, work_folder):
    """Gaps of text count as gaps, whatever memory pandas stores text in."""
    labelled(texts("str")).to_csv("train.csv", index=False)
    columns = ["--label", "label", "--drop", "house,when,worth"]
    gaps = ["--categorical", "one-hot", "--missing", "median"]
    with pd.option_context("mode.string_storage", storage):
        succeed("fit", "train.csv", *columns, *gaps, "--k", 5, "--save", "m.npz")
        succeed("score", "m.npz", "train.csv", "--drift", "drift.json")
    columns = json.loads(Path("drift.json").read_text())["columns"]
    [city] = [column for column in columns if column["name"] == "city"]
    assert city["psi"] == 0


# --- functions of arrays ---


def _arguments(**makers):
    """Return arguments by name, each made anew by its function."""
    return {name: make() for name, make in makers.items()}


def dataset():
    """Return a data set with groups, times and gaps."""
    imputed = Imputed("median", (ImputedColumn(1, 2, np.array([3, 4])),))
    return Dataset(
        name="small",
        title="Small",
        X=rows(),
        y=labels().astype(float),
        sha256="",
        groups=groups(),
        n_train=30,
        time=times(),
        imputed=imputed,
    )


def _pieces():
    return [(rows(), labels().astype(np.float64), np.arange(N_ROWS, dtype=np.int32))]


# The arguments of functions, by their names
PARAMETERS = {
    "X": spare_memory,
    "beta": lambda: 0.5,
    "coef": weights,
    "dataset": dataset,
    "epoch": lambda: _pieces,
    "first": weights,
    "fits": lambda: [Fit(_quick("sgd-avg"), untraced)],
    "k": lambda: 3,
    "means": lambda: np.array([0.5, 0.25, 0.5]),
    "n": lambda: 10,
    "n_features": lambda: 4,
    "neg": lambda: np.flatnonzero(labels() < 0),
    "p": lambda: 2.0,
    "pos": lambda: np.flatnonzero(labels() > 0),
    "positive": lambda: labels() > 0,
    "precisions": lambda: np.array([0.5, 0.25, 0.5]),
    "rope": lambda: 0.01,
    "rows": lambda: solvers.as_rows(few_zeros()),
    "scores": scores,
    "second": lambda: weights()[::-1].copy(),
    "share": lambda: 0.5,
    "spread": lambda: 0.5,
    "test_share": lambda: 0.3,
    "tested": lambda: 10,
    "values": lambda: np.random.default_rng(4).standard_normal((12, 4)),
    "w": lambda: np.arange(4.0),
    "y": labels,
    "y_score": scores,
    "y_true": labels,
}
# Where a name stands for something else
PARAMETERS_OF = {
    "levels": {"values": weights},
    "resampled_interval": {"values": weights},
    "auc_interval": {
        "values": lambda: np.array([0.5, 0.25, 0.5]),
        "test_share": lambda: 0.3,
        "n_pos": lambda: 5,
        "n_neg": lambda: 9,
    },
    "share_interval": {"values": lambda: np.array([0.5, 0.25, 0.5])},
}
# Functions of the reference that take names, files or a generator of random numbers
WITHOUT_ARRAYS = {
    "check_solver",
    "find_card",
    "load_dataset",
    "open_stream",
    "precision_at_k_scorer",
    "read_svmlight",
    "run",
    "solver_version",
    "visiting_order",
}
CALLED_ABOVE = {"compare", "evaluate", "fit", "profile", "refit", "score"}
REFERENCE = (ROOT / "docs/reference.md").read_text()


def public_functions():
    """Return the functions of the reference and of ``precbench`` itself, by name."""
    modules = [precbench]
    for name in re.findall(r"^   (precbench\.[\w.]+)$", REFERENCE, re.MULTILINE):
        with contextlib.suppress(ImportError):  # else the name of a function or class
            modules.append(importlib.import_module(name))
    functions = {}
    for module in modules:
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isfunction(member):
                functions[name] = member
    return functions


FUNCTIONS = public_functions()


def _required(function):
    """Return functions that make the arguments without a default, by name."""
    makers = PARAMETERS | PARAMETERS_OF.get(function.__name__, {})
    return {
        parameter.name: makers[parameter.name]
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    }


OF_ARRAYS = sorted(FUNCTIONS.keys() - WITHOUT_ARRAYS - CALLED_ABOVE)


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_functions_change_no_array(name):
    function = FUNCTIONS[name]
    call = Call(function, functools.partial(_arguments, **_required(function)))
    require_unchanged_arguments(call)


class Ranking(NamedTuple):
    """Functions that make labels and scores."""

    labels: Callable[[], Any]
    scores: Callable[[], Any]


# All forms of labels and of scores
RANKINGS = [
    *itertools.starmap(
        Ranking, zip(LABELS.values(), itertools.cycle(SCORES.values()), strict=False)
    ),
    Ranking(labels, SCORES["float32"]),
]


@pytest.mark.parametrize("name", METRICS)
def test_metrics_change_no_argument(name):
    parameters = {
        parameter: PARAMETERS[parameter]()
        for parameter, default in METRICS[name].parameters.items()
        if default is inspect.Parameter.empty
    }
    metric = Metric(name, parameters)
    for ranking in RANKINGS:
        arguments = functools.partial(
            _arguments, y_true=ranking.labels, y_score=ranking.scores
        )
        require_unchanged_arguments(Call(metric, arguments))


LOSSES = {**SURROGATES, **{name: objective() for name, objective in OBJECTIVES.items()}}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_losses_change_no_argument(loss):
    def call(**arguments):
        return loss.value(**arguments), loss.subgradient(**arguments)

    for ranking in RANKINGS:
        makers = {"scores": ranking.scores, "y": ranking.labels}
        if hasattr(loss, "k"):
            makers["k"] = PARAMETERS["k"]
        arguments = functools.partial(_arguments, **makers)
        require_unchanged_arguments(Call(call, arguments))


# --- splits, scaling, scorers, streams ---


@pytest.mark.parametrize("kind", get_args(Kind))
def test_splits_change_no_data_set(kind):
    def call(dataset):
        split = split_rows(dataset, kind, 0, n_splits=3)
        filled = dataset.gathered(split.test, split.train)
        return split, filled, dataset.imputed.select(split.test)

    require_unchanged_arguments(Call(call, lambda: {"dataset": dataset()}))


def test_validation_splits_change_no_argument():
    def call(y, groups, time):
        return [
            validation_split(y, 0.3, ("seed",)),
            validation_split(y, 0.3, ("seed",), groups=groups),
            validation_split(y, 0.3, ("seed",), time=time),
            stratified_group_folds(y > 0, groups, 3, np.random.RandomState(0)),
        ]

    arguments = functools.partial(_arguments, y=labels, groups=groups, time=times)
    require_unchanged_arguments(Call(call, arguments))


def _forms_to_scale(kind):
    """Return the forms of rows that a kind of scaling takes."""
    dense_forms = ["c-order", "f-order", "float32", "strided"]
    if kind.startswith("standardise"):
        return dense_forms
    return [*dense_forms, "csr", "csr-unsorted", "csr-duplicates", "csr-spare"]


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, form) for kind in get_args(Scaling) for form in _forms_to_scale(kind)],
)
def test_a_scaler_changes_no_rows_but_those_scaled_in_place(kind, form):
    def call(X):
        scaler = Scaler(kind).fit(X)
        rebuilt = Scaler.from_arrays(kind, scaler.to_arrays())
        return scaler.transform_in_place(X.copy()), rebuilt.transform_in_place(X.copy())

    arguments = functools.partial(_arguments, X=MATRICES[form])
    require_unchanged_arguments(Call(call, arguments))


def test_all_forms_of_rows_are_scaled_but_frames():
    assert {*_forms_to_scale("unit"), "frame"} == MATRICES.keys()


def test_scorers_change_no_argument():
    scorer = precbench.precision_at_k_scorer(5)

    def call(X, y):
        return scorer(_quick("sgd-avg").fit(X, y), X, y)

    for X, y in zip(MATRICES.values(), itertools.cycle(LABELS.values()), strict=False):
        arguments = functools.partial(_arguments, X=X, y=y)
        require_unchanged_arguments(Call(call, arguments))


def _batches(stream):
    """Return copies of the batches of a stream, in stored and in random order."""
    batches = []
    for rng in (None, np.random.default_rng(0)):
        for X, y in stream.batches(10, rng):
            batches.append((X.copy(), y.copy()))  # valid until the next batch
    return batches


@pytest.mark.parametrize(
    ("form", "scaling"), [("c-order", "standardise"), ("csr", "unit")]
)
def test_streams_change_no_data_set(form, scaling):
    def call(data):
        stream = stream_dataset(data, block_bytes=200, buffer_bytes=600).X
        scaled = stream.scaled(scaling, fitted_on=stream)
        return _batches(stream), _batches(scaled)

    def arguments():
        return {"data": dataclasses.replace(dataset(), X=MATRICES[form]())}

    require_unchanged_arguments(Call(call, arguments))
