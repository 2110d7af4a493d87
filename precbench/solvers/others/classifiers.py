"""Classifiers of other libraries whose scores rank the rows: linear ones, trees, or any other.

`FOREIGN` is the table of those that have a name here. One wrapper fits all; its subclasses hold
what a library does in its own way. LightGBM, XGBoost and CatBoost are optional packages.
"""

import inspect
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from inspect import Parameter
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import ThreadpoolController

from precbench.core.errors import MissingPackageError
from precbench.ranking.metrics import as_scores
from precbench.ranking.topk import TopK
from precbench.solvers.common.base import (
    LinearRanker,
    NonlinearRanker,
    Ranker,
    Trace,
    require_memory,
    top_of_training,
)
from precbench.solvers.common.parameters import (
    CLASS_WEIGHT,
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Allowed,
    K,
    at_least,
    one_of,
    real,
    signed_weights,
)
from precbench.solvers.common.rows import STORED, as_rows, linear_scores, with_short_indices
from precbench.solvers.common.weights import WeightedRanker
from precbench.solvers.others.trees import (
    Trees,
    forest_trees,
    histogram_trees,
    in_single_precision,
    lightgbm_trees,
)

UNDERSAMPLED: Final = "undersampled"
_MOST_BINS = 255  # that scikit-learn allows
_LONGEST_LIST = 10_000  # LightGBM refuses longer ones
_QUIET = {"num_threads": 1, "verbosity": -1}


@dataclass(frozen=True)
class Foreign:
    """How a solver uses an estimator, or module, of another library."""

    factory: str  # "module:estimator" or "module", imported by the first fit
    parameters: dict[str, tuple[Any, Any]]  # of the solver: name to (default, constraints)
    own: frozenset[str] = frozenset()  # parameters that are not passed to the library
    renamed: dict[str, str] = field(default_factory=dict)  # to the library's names
    fixed: dict[str, Any] = field(default_factory=dict)  # arguments that are always passed
    packages: tuple[str, ...] = ("scikit-learn",)  # distributions, of which one is installed
    extra: str = ""  # the extra of precbench that installs the library
    n_positional: int = 0  # parameters that may be given without their name
    trees: Callable[[Any, int], Trees] | None = None  # from a fitted estimator and n_features

    def load(self) -> Any:
        """Import and return the estimator class, or the module if no estimator is named."""
        module, _, name = self.factory.partition(":")
        try:
            package = import_module(module)
        except ImportError as error:
            raise MissingPackageError(
                f"{module} cannot be imported ({error}); install it with "
                f"pip install 'precbench[{self.extra}]'"
            ) from error
        return getattr(package, name) if name else package

    @property
    def signature(self) -> inspect.Signature:  # of the solver's __init__, self included
        positional, keyword = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
        parameters = [Parameter("self", positional)]
        for i, (name, (default, _constraints)) in enumerate(self.parameters.items()):
            kind = positional if i < self.n_positional else keyword
            parameters.append(Parameter(name, kind, default=default))
        return inspect.Signature(parameters)


_Task = tuple[Any, dict[str, Any], dict[str, Any]]  # see `BoostedTrees._task`
_SEED = (None, ["random_state"])
_WEIGHTS = (None, CLASS_WEIGHT)
_LINEAR = {
    "C": (1.0, real(1e-30, 1e30, "both")),  # liblinear does not end at 1e200
    "class_weight": _WEIGHTS,
    "tol": (1e-4, POSITIVE),
    "max_iter": (1000, COUNT),
}
_FOREST = {
    "n_estimators": (300, COUNT),
    "max_features": ("sqrt", [*one_of("sqrt"), *SHARE]),
    "min_samples_leaf": (1, COUNT),
    "class_weight": (None, [*CLASS_WEIGHT, *one_of(UNDERSAMPLED)]),
    "random_state": _SEED,
}
_LEAFWISE = {
    "n_estimators": (100, COUNT),
    "learning_rate": (0.1, POSITIVE),
    "num_leaves": (31, COUNT),
    "min_child_samples": (20, COUNT),
    "reg_lambda": (0.0, NOT_NEGATIVE),
    "colsample_bytree": (1.0, SHARE),
}
_LISTS = {"k": (1.0, K), "beyond_k": (0, at_least(0)), "list_length": (_LONGEST_LIST, COUNT)}
_NOT_PASSED = frozenset({*_LISTS, "objective", "n_estimators", "class_weight", "random_state"})
_LIGHTGBM: dict[str, Any] = {
    "own": _NOT_PASSED,
    # Without "force_row_wise" LightGBM times both ways and takes the faster.
    "fixed": {"deterministic": True, "force_row_wise": True, **_QUIET},
    "packages": ("lightgbm",),
    "extra": "trees",
    "trees": lightgbm_trees,
}

# By the names of the solvers.
FOREIGN = {
    "logistic-regression": Foreign("sklearn.linear_model:LogisticRegression", _LINEAR),
    "linear-svm": Foreign("sklearn.svm:LinearSVC", {**_LINEAR, "random_state": _SEED}),
    "hist-gradient-boosting": Foreign(
        "sklearn.ensemble:HistGradientBoostingClassifier",
        {
            "learning_rate": (0.1, POSITIVE),
            "max_iter": (100, COUNT),
            "max_leaf_nodes": (31, COUNT),
            "min_samples_leaf": (20, COUNT),
            "l2_regularization": (0.0, NOT_NEGATIVE),
            "max_features": (1.0, SHARE),
            "class_weight": _WEIGHTS,
            "random_state": _SEED,
        },
        fixed={"early_stopping": False},
        trees=histogram_trees,
    ),
    "random-forest": Foreign(
        "sklearn.ensemble:RandomForestClassifier", _FOREST, trees=forest_trees
    ),
    "extra-trees": Foreign("sklearn.ensemble:ExtraTreesClassifier", _FOREST, trees=forest_trees),
    "lightgbm": Foreign(
        "lightgbm", {**_LEAFWISE, "class_weight": _WEIGHTS, "random_state": _SEED}, **_LIGHTGBM
    ),
    "lightgbm-lambdarank": Foreign(
        "lightgbm", {**_LISTS, **_LEAFWISE, "random_state": _SEED}, **_LIGHTGBM
    ),
    "xgboost": Foreign(
        "xgboost",
        {
            "objective": ("logistic", one_of("logistic", "rank:ndcg", "rank:map")),
            **_LISTS,
            "beyond_k": (3, at_least(0)),
            "n_estimators": (100, COUNT),
            "learning_rate": (0.3, POSITIVE),
            "max_depth": (6, at_least(0)),
            "max_leaves": (0, at_least(0)),
            "min_child_weight": (1.0, NOT_NEGATIVE),
            "reg_lambda": (1.0, NOT_NEGATIVE),
            "colsample_bytree": (1.0, SHARE),
            "class_weight": _WEIGHTS,
            "random_state": _SEED,
        },
        own=_NOT_PASSED,
        fixed={"nthread": 1, "verbosity": 0},
        packages=("xgboost", "xgboost-cpu"),
        extra="rivals",
        n_positional=1,
    ),
    "catboost": Foreign(
        "catboost:CatBoostClassifier",
        {
            "n_estimators": (1000, COUNT),
            "learning_rate": (None, [None, *POSITIVE]),
            "depth": (6, at_least(1)),
            "l2_leaf_reg": (None, [None, *NOT_NEGATIVE]),
            "class_weight": _WEIGHTS,
            "random_state": _SEED,
        },
        own=frozenset({"class_weight", "random_state"}),
        fixed={"thread_count": 1, "allow_writing_files": False, "logging_level": "Silent"},
        packages=("catboost",),
        extra="rivals",
    ),
    "mlp": Foreign(
        "sklearn.neural_network:MLPClassifier",
        {
            "hidden_layer_size": (100, COUNT),
            "alpha": (1e-4, NOT_NEGATIVE),
            "learning_rate_init": (0.001, POSITIVE),
            "max_iter": (200, COUNT),
            "random_state": _SEED,
        },
        renamed={"hidden_layer_size": "hidden_layer_sizes"},
    ),
    "no-skill": Foreign("sklearn.dummy:DummyClassifier", {}),
}


@cache
def _version(packages: tuple[str, ...]) -> int | str:
    """Return an `algorithm_version` such as "1, lightgbm 4.6", or 1 if no package is given."""
    for name in packages:  # distributions of one library, called by the first name
        try:
            return f"1, {packages[0]} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return f"1, {packages[0]} is not installed" if packages else 1


def _initialiser(signature: inspect.Signature) -> Callable[..., None]:
    """Return an ``__init__`` with this signature that keeps its arguments as attributes."""
    names = [*signature.parameters][1:]  # without self

    def set_parameters(self: Any, *args: Any, **params: Any) -> None:
        # Set each parameter of `signature` as an attribute, to the argument or its default.
        try:
            bound = signature.bind(self, *args, **params)
        except TypeError as error:
            raise TypeError(
                f"{type(self).__name__}(): {error}; its parameters are {', '.join(names) or 'none'}"
            ) from None
        bound.apply_defaults()
        vars(self).update({name: bound.arguments[name] for name in names})

    set_parameters.__signature__ = signature  # type: ignore[attr-defined]
    return set_parameters


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()  # inspects all loaded libraries


class Wrapper(Ranker):
    """Base of the solvers that another library fits, with the parameters of a row of `FOREIGN`."""

    foreign = Foreign(factory="", parameters={}, packages=())  # subclasses have a row of `FOREIGN`

    _weights: Any = None  # of rows, set by `WeightedRanker`
    class_weight: Any
    random_state: Any

    def __init_subclass__(cls, **options: Any):
        """Give a class that sets `foreign` the ``__init__`` and constraints of its parameters."""
        if "foreign" in vars(cls):
            cls.__init__ = _initialiser(cls.foreign.signature)  # type: ignore[method-assign]
            parameters = cls.foreign.parameters.items()
            cls.allowed = Allowed({name: allowed for name, (_default, allowed) in parameters})
        super().__init_subclass__(**options)

    @property
    def algorithm_version(self) -> int | str:  # type: ignore[override]
        return _version(self.foreign.packages)

    def _classifier(self) -> Any:
        """Return the unfitted classifier, or the module of a library without classifier classes."""
        factory = self.foreign.load()
        return factory(**self._settings()) if callable(factory) else factory

    def _settings(self) -> dict[str, Any]:
        """Return the arguments for the library's classifier, by their names in the library."""
        params, foreign = self.get_params(deep=False), self.foreign
        if self._weights is not None:
            params["class_weight"] = None  # the row weights include the class weights
        elif isinstance(getattr(self, "class_weight", None), dict):
            signed: Any = signed_weights(self.class_weight, self.classes_)
            params["class_weight"] = signed | {0: signed[-1]}  # 0: -1 for HistGradientBoosting
        passed = {n: v for n, v in params.items() if n not in foreign.own}  # `own`: not passed on
        renamed = {foreign.renamed.get(name, name): value for name, value in passed.items()}
        return renamed | foreign.fixed

    def _weight_argument(self, labels: NDArray[np.int8]) -> dict[str, Any]:
        """Return a dict with `sample_weight` for the library's fit, empty if there is no weight."""
        weights: Any = None
        if isinstance(self, WeightedRanker):
            weights = self._row_weights(labels, getattr(self, "class_weight", None))
        # Class weights become row weights if `own` withholds `class_weight` from the library.
        if weights is None and "class_weight" in self.foreign.own & self.foreign.parameters.keys():
            signed = signed_weights(self.class_weight, self.classes_)
            weights = compute_sample_weight(signed, labels)
        return {} if weights is None else {"sample_weight": weights}

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Train by `_steps`; after each, call the trace, which may end the fit."""
        self._start(X.shape[1])
        for n_iter in self._steps(X, labels, trace):
            self.n_iter_, self.n_rows_seen_ = n_iter, n_iter * X.shape[0]  # each visits all rows
            if trace(self):
                break

    @abstractmethod
    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Prepare and yield 0, then train and yield the number of iterations so far."""


class LinearClassifier(WeightedRanker, Wrapper, LinearRanker):
    """Base of the linear classifiers of scikit-learn.

    Attributes
    ----------
    offset_ : float
        Intercept of the classifier: added to the classifier's scores, not to the solver's.
    """

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        # Yield the iterations so far: 0 before the library's training, all of them after it.
        X, classifier = with_short_indices(X), self._classifier()
        yield 0
        classifier.fit(X, labels, **self._weight_argument(labels))
        self.coef_ = classifier.coef_.ravel()
        self.offset_ = float(np.sum(classifier.intercept_))  # one value, not in the scores
        yield int(np.max(classifier.n_iter_))  # a number, or an array of one


class LogisticRegressionRanker(LinearClassifier):
    """Logistic regression with an L2 penalty (scikit-learn, L-BFGS).

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    class_weight : {"balanced"}, dict or None, default=None
        "balanced" weighs the losses of each class by ``n_samples / (2 * n_class)``, a dict by its
        weight for the label.
    tol : float, default=1e-4
    max_iter : int, default=1000

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from precbench import LogisticRegressionRanker
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> ranker = LogisticRegressionRanker().fit(X, y)
    >>> ranker.coef_.round(2).tolist(), LogisticRegression().fit(X, y).coef_.round(2).tolist()
    ([0.96], [[0.96]])
    >>> ranker.predict(X).tolist()  # as many positives as in y: there is no intercept
    [0, 0, 1, 1]
    """

    foreign = FOREIGN["logistic-regression"]


class LinearSVMRanker(LinearClassifier):
    """Linear support vector machine with the squared hinge loss (scikit-learn, LIBLINEAR).

    LIBLINEAR makes a copy of the rows, of 16 bytes a value.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    class_weight, tol, max_iter
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None
        Used by the dual solver, that is when there are fewer rows than features.

    Examples
    --------
    >>> from precbench import LinearSVMRanker
    >>> ranker = LinearSVMRanker(C=0.25).fit([[1.0], [-1.0]], [1, 0])
    >>> ranker.coef_.round(3).tolist()  # the minimiser of w**2 / 2 + 2 C (1 - w)**2
    [0.5]
    """

    foreign = FOREIGN["linear-svm"]


class ScoringClassifier(Wrapper, NonlinearRanker):
    """Base of the solvers that wrap scikit-learn-compatible classifiers.

    Rows are ranked by `decision_function` of the classifier, else by its probability of the
    positive class, less 1/2. The classifier has one thread; `classifier_` is set at the end.

    Attributes
    ----------
    classifier_ : estimator
        Fitted to labels -1 and +1.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from precbench.solvers import ScoringClassifier
    >>> class TwoNeighbours(ScoringClassifier):
    ...     def _classifier(self):
    ...         return KNeighborsClassifier(2)
    >>> ranker = TwoNeighbours().fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    >>> ranker.decision_function([[0.4], [2.5], [4.6]]).tolist()  # shares of positives, less 1/2
    [-0.5, 0.0, 0.5]
    """

    needs_dense_rows = False
    ranks_lists: Any = False  # learns from pairs of rows at the top k of lists

    classifier_: Any
    k: TopK
    beyond_k: int  # rows by which the top of each list is longer
    list_length: int

    @property
    def _cuts_at_0(self) -> bool:
        return not self.ranks_lists

    @property
    def _judged_at(self) -> TopK:  # a wrapped classifier may have another `k`, as of neighbours
        return self.k if self.ranks_lists else 1.0

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        # Yield the iterations so far: 0 before the training and 1 after it: there is one step.
        classifier, X = self._classifier(), self._rows(X)
        yield 0
        with _thread_pools().limit(limits=1):  # a trial has one thread
            self.classifier_ = self._train(classifier, X, labels)
        yield 1

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        return classifier.fit(X, labels, **self._weight_argument(labels))  # the `classifier_`

    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Score rows by the classifier; before its last iteration, by the first `n_iter` trees."""
        if n_iter == 0:
            return np.zeros(X.shape[0])
        X = self._rows(X)
        with _thread_pools().limit(limits=1):
            if n_iter == self.n_iter_:  # after the last iteration
                return self._final_scores(X)
        return self.to_trees().first(n_iter).scores(X)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:  # after the last iteration
        if hasattr(self.classifier_, "decision_function"):
            return as_scores(self.classifier_.decision_function(X), X.shape[0])
        return as_scores(self.classifier_.predict_proba(X)[:, 1], X.shape[0]) - 0.5

    @available_if(lambda self: self.foreign.trees)
    def to_trees(self) -> Trees:
        """Return trees that score bitwise as the classifier; none before the first iteration."""
        if not self.n_iter_:
            return Trees.of([], self._width)
        assert self.foreign.trees is not None  # the condition of `available_if`, for mypy
        return self.foreign.trees(self.classifier_, self._width)

    def _lists(
        self, labels: NDArray[np.int8], rng: np.random.Generator, longest: int = sys.maxsize
    ) -> tuple[Any, NDArray[np.intp], int]:
        # Divide the rows at random into as few lists as possible, none longer than `list_length` or
        # `longest`; lengths differ by 1 at most. Return an index that puts the rows list after list
        # (an array or a slice), the lengths, and the number of top rows of a list.
        n_rows = len(labels)
        n_lists = ceil(n_rows / min(self.list_length, longest))
        lengths = np.diff(np.linspace(0, n_rows, n_lists + 1).astype(int))
        top = ceil(top_of_training(self.k, labels) / n_lists) + self.beyond_k  # a list's share of k
        order = slice(None) if n_lists == 1 else rng.permutation(n_rows)  # one list keeps the order
        return order, lengths, top

    def _rows(self, X: Any) -> Any:
        """Return rows in the type and format that the library takes: dense, or a CSR matrix."""
        X = with_short_indices(X)
        if X.dtype not in self.dtypes:
            X = X.astype(self.dtypes[0])
        if not sparse.issparse(X):
            return X
        if not self.needs_dense_rows:
            return sparse.csr_matrix(X)  # LightGBM knows no sparse arrays
        require_memory(X.shape[0] * X.shape[1], X.shape[1], "the rows as a dense array")
        return X.toarray()


class GrowingEnsemble(ScoringClassifier):
    """Base of ensembles of scikit-learn that can continue with more trees.

    The trace is called at its ``next_rows``, without ``next_rows`` at the end.
    """

    size: str  # name of the parameter for the number of trees

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Add trees up to each checkpoint of the trace; yield the number of trees so far."""
        X = self._rows(X)
        ensemble = self._classifier().set_params(warm_start=True, **self._suited_to(X))
        n_trees, n_wanted = 0, getattr(self, self.size)
        yield 0
        while n_trees < n_wanted:
            # Each tree visits all rows. The trace is due at its `next_rows`, or after all trees.
            n_due = ceil(getattr(trace, "next_rows", sys.maxsize) / X.shape[0])
            n_trees = min(n_wanted, max(n_due, n_trees + 1))
            with _thread_pools().limit(limits=1):
                self._grow(ensemble, X, labels, n_trees)
            self.classifier_ = ensemble
            yield n_trees

    def _suited_to(self, X: Any) -> dict[str, Any]:
        """Return parameters that save time with these rows and change no score."""
        return {}

    def _grow(self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int) -> None:
        # Add trees until there are `n_trees`: `warm_start` keeps the earlier ones.
        ensemble.set_params(**{self.size: n_trees}).fit(X, labels, **self._weight_argument(labels))


class HistGradientBoosting(WeightedRanker, GrowingEnsemble):
    """Gradient-boosted trees on binned features (scikit-learn), with the logistic loss.

    All training rows are used: there is no early stopping. Sparse rows are made dense.

    Parameters
    ----------
    learning_rate : float, default=0.1
    max_iter : int, default=100
        Number of trees.
    max_leaf_nodes : int, default=31
    min_samples_leaf : int, default=20
    l2_regularization : float, default=0.0
        Weight of the L2 penalty. With few positives among many rows a leaf without a penalty may
        take a step of any length: take 0.1 or more there.
    max_features : float, default=1.0
        Fraction of the features that each split chooses among.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", Ann. Statist. 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import HistGradientBoosting
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which no line separates
    >>> ranker = HistGradientBoosting(max_iter=20, random_state=0).fit(X, y)
    >>> ranker.predict([[-2.0], [0.0], [2.0]]).tolist()
    [True, False, True]
    """

    foreign = FOREIGN["hist-gradient-boosting"]
    size = "max_iter"
    needs_dense_rows = True

    def _suited_to(self, X: Any) -> dict[str, Any]:
        # Return as `max_bins` how many distinct values a column has at most: more only cost time.
        n_bins = 2  # the fewest that scikit-learn allows
        for column in X.T:
            n_bins = max(n_bins, len(np.unique(column)))
            if n_bins >= _MOST_BINS:
                break
        return {"max_bins": min(n_bins, _MOST_BINS)}


class Forest(GrowingEnsemble):
    """Base of the forests of scikit-learn."""

    dtypes = STORED
    size = "n_estimators"

    def _settings(self) -> dict[str, Any]:
        if self.class_weight != UNDERSAMPLED:
            return super()._settings()
        # `_grow` draws the rows of each tree, by this seed, in place of a bootstrap.
        self._seed = int(np.random.default_rng(self.random_state).integers(2**31))
        return super()._settings() | {"class_weight": None, "bootstrap": False}

    def _grow(self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int) -> None:
        # Add trees until there are `n_trees`. With "undersampled" each new tree learns from as many
        # rows of either class as the rarer class has, drawn with replacement.
        if self.class_weight != UNDERSAMPLED:
            return super()._grow(ensemble, X, labels, n_trees)
        row_sets = [np.flatnonzero(labels == sign) for sign in (-1, 1)]  # of each class
        n_rarer, n_before = min(map(len, row_sets)), len(getattr(ensemble, "estimators_", ()))
        for number in range(n_before, n_trees):  # of the tree, part of the seed
            rng = np.random.default_rng([number, self._seed])
            drawn = np.concatenate([rng.choice(rows, n_rarer) for rows in row_sets])
            counts = np.bincount(drawn, minlength=len(labels))  # how often each row was drawn
            ensemble.set_params(n_estimators=number + 1).fit(X, labels, sample_weight=counts)
        return None


class RandomForest(Forest):
    """Random forest (scikit-learn): the mean of the trees' probabilities ranks the rows.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_features : {"sqrt"} or float, default="sqrt"
        Number, or share, of the features that each split chooses among.
    min_samples_leaf : int, default=1
    class_weight : {"balanced", "undersampled"}, dict or None, default=None
        As of `LogisticRegressionRanker`; "undersampled" draws for each tree as many rows of each
        class as the rarer has, with replacement.
    random_state : int or None, default=None

    References
    ----------
    Breiman, "Random forests", Machine Learning 2001; Chen, Liaw & Breiman, "Using random forest to
    learn imbalanced data", report 666, Berkeley 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import RandomForest
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = RandomForest(n_estimators=20, random_state=0).fit(X, y)
    >>> ranker.decision_function([[-2.0], [0.0], [2.0]]).round(2).tolist()  # probabilities less 1/2
    [0.5, -0.5, 0.5]
    """

    foreign = FOREIGN["random-forest"]


class ExtraTrees(Forest):
    """Extremely randomised trees (scikit-learn): splits at random places, all rows in each tree.

    Parameters
    ----------
    n_estimators, max_features, min_samples_leaf, class_weight, random_state
        As of `RandomForest`.

    References
    ----------
    Geurts, Ernst & Wehenkel, "Extremely randomized trees", Machine Learning 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import ExtraTrees
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = ExtraTrees(n_estimators=20, random_state=0).fit(X, y)
    >>> set(ranker.decision_function(X).round(2).tolist()) == {-0.5, 0.5}  # each tree has all rows
    True
    """

    foreign = FOREIGN["extra-trees"]


class BoostedTrees(ScoringClassifier):
    """Base of the objectives of LightGBM, which runs in one thread."""

    n_estimators: int

    @abstractmethod
    def _task(self, labels: NDArray[np.int8], rng: np.random.Generator) -> _Task:
        """Return the index of the rows, arguments of `lightgbm.Dataset`, parameters of the task."""

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Train a LightGBM booster tree by tree; yield the number of trees so far."""
        lightgbm, X = self._classifier(), self._rows(X)  # the module; rows that LightGBM takes
        rng = np.random.default_rng(self.random_state)
        params = self._settings() | {"seed": int(rng.integers(2**31))}
        yield 0
        order, fields, objective = self._task(labels, rng)  # fields: weights or lists of the rows
        params |= objective
        relevances = (labels[order] > 0).astype(np.float32)  # 1 for a positive, else 0
        data = lightgbm.Dataset(X[order], relevances, params=params, **fields)
        self.classifier_ = lightgbm.Booster(params, data)
        is_done = False
        try:
            while not is_done and self.n_iter_ < self.n_estimators:  # n_iter_: kept by `_fit`
                is_done = self.classifier_.update()  # adds a tree; True if no leaf can be split
                yield self.classifier_.current_iteration()
        finally:
            self.classifier_.free_dataset()  # else the booster keeps a copy of the rows

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        scores = self.classifier_.predict(X, raw_score=True, num_iteration=self.n_iter_, **_QUIET)
        return np.asarray(scores, dtype=np.float64)


class LightGBM(WeightedRanker, BoostedTrees):
    """Gradient-boosted trees on binned features (LightGBM), with the logistic loss.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.1
    num_leaves : int, default=31
    min_child_samples : int, default=20
    reg_lambda : float, default=0.0
        As `l2_regularization` of `HistGradientBoosting`.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import LightGBM
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = LightGBM(n_estimators=1, num_leaves=3, random_state=0).fit(X, y)
    >>> len(set(ranker.decision_function(X)))  # one for each leaf of the tree
    3
    """

    foreign = FOREIGN["lightgbm"]

    def _task(self, labels: NDArray[np.int8], rng: np.random.Generator) -> _Task:
        weights = self._weight_argument(labels)["sample_weight"]  # given: `own` has class_weight
        return slice(None), {"weight": weights}, {"objective": "binary"}


class LambdaRank(BoostedTrees):
    """Gradient-boosted trees with the LambdaRank objective (LightGBM), truncated near the top.

    The pairs of rows that are learnt from have at least one row in the top k of a list. A pair
    weighs as much as swapping its rows changes the discounted cumulative gain. More rows than a
    list may hold are divided at random into lists of equal length. Time grows with k times length.

    Parameters
    ----------
    k : float, int or str, default=1.0
        Fraction of the positives in (0, 1], count of rows, or fraction of the rows ("1 %") that is
        the top, at most as many rows as there are positives; each list has its share of k.
    beyond_k : int, default=0
        Rows by which the top of each list is longer; LightGBM advises a few, such as 3.
    list_length : int, default=10000
        Most rows of a list; LightGBM takes no more than 10,000.
    n_estimators, learning_rate, num_leaves, min_child_samples, reg_lambda, colsample_bytree
        As of `LightGBM`.
    random_state : int or None, default=None

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import LambdaRank
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = LambdaRank(k=10, n_estimators=20, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=10)
    1.0
    """

    foreign = FOREIGN["lightgbm-lambdarank"]
    ranks_lists = True

    def _task(self, labels: NDArray[np.int8], rng: np.random.Generator) -> _Task:
        order, lengths, top = self._lists(labels, rng, longest=_LONGEST_LIST)
        objective = {"objective": "lambdarank", "lambdarank_truncation_level": top}
        return order, {"group": lengths}, objective


class SingleBoosting(ScoringClassifier):
    """Base of boosting by XGBoost and CatBoost, which make float32 of dense rows."""

    needs_dense_rows = True  # XGBoost takes what is not stored in sparse rows as missing, not as 0
    dtypes = STORED

    def _rows(self, X: Any) -> Any:
        return in_single_precision(super()._rows(X))

    def _settings(self) -> dict[str, Any]:
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        return super()._settings() | {"random_state": seed}


class XGBoost(SingleBoosting):
    """Gradient-boosted trees of XGBoost, with the logistic loss or the lists of LambdaMART.

    To rank lists, all training rows are one list, or are divided at random into equally long lists.
    The pairs that are learnt from have a row in the top k of a list. Sparse rows are made dense.

    Parameters
    ----------
    objective : {"logistic", "rank:ndcg", "rank:map"}, default="logistic"
    k : float, int or str, default=1.0
    beyond_k : int, default=3
    list_length : int, default=10000
        To rank lists: all as of `LambdaRank`.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.3
    max_depth : int, default=6
        0 for no limit.
    max_leaves : int, default=0
        Most leaves of a tree, which then grows where it gains most; 0 for no limit.
    min_child_weight : float, default=1.0
        Least sum of second derivatives in a leaf; lists have small ones: with few positives take 0.
    reg_lambda : float, default=1.0
        Weight of the L2 penalty.
    colsample_bytree : float, default=1.0
        Fraction of the features that each tree is made of.
    class_weight : {"balanced"}, dict or None, default=None
        For the logistic loss, as of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Chen & Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import XGBoost
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> ranker = XGBoost("rank:map", k=10, n_estimators=20, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=10)
    1.0
    """

    foreign = FOREIGN["xgboost"]

    objective: str
    n_estimators: int
    max_leaves: int

    @property
    def ranks_lists(self) -> bool:
        return self.objective != "logistic"

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        """Train XGBoost's booster with the logistic loss, or on lists of rows in random order."""
        # `classifier` is the module of XGBoost, as `_classifier` returns it.
        params = self._settings() | {"objective": self.objective}
        params["grow_policy"] = "lossguide" if self.max_leaves else "depthwise"
        if self.ranks_lists:
            order, lengths, top = self._lists(labels, np.random.default_rng(self.random_state))
            rows = classifier.DMatrix(X[order], labels[order] > 0, group=lengths, nthread=1)
            params["lambdarank_pair_method"] = "topk"
            params["lambdarank_num_pair_per_sample"] = top  # pairs have a row in the first `top`
        else:
            weights = self._weight_argument(labels)["sample_weight"]  # as in `LightGBM._task`
            rows = classifier.DMatrix(X, labels > 0, weight=weights, nthread=1)
            params["objective"] = "binary:logistic"
        return classifier.train(params, rows, self.n_estimators)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        scores = self.classifier_.inplace_predict(X, predict_type="margin")
        return np.asarray(scores, dtype=np.float64)


class CatBoost(SingleBoosting):
    """Boosted symmetric trees of CatBoost, with the logistic loss. Sparse rows are made dense.

    Parameters
    ----------
    n_estimators : int, default=1000
        Number of trees.
    learning_rate : float or None, default=None
        None for what CatBoost derives from the numbers of rows and trees; with `l2_leaf_reg` 0.03.
    depth : int, default=6
        Of each tree, at most 16.
    l2_leaf_reg : float or None, default=None
        Weight of the L2 penalty; None for 3.
    class_weight : {"balanced"}, dict or None, default=None
        As of `LogisticRegressionRanker`.
    random_state : int or None, default=None

    References
    ----------
    Prokhorenkova et al., "CatBoost: unbiased boosting with categorical features", NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import CatBoost
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends
    >>> for depth in (1, 2):  # a symmetric tree divides at one place more, on both sides
    ...     ranker = CatBoost(n_estimators=1, depth=depth, random_state=0).fit(X, y)
    ...     print(len(set(ranker.decision_function(X))))
    2
    3
    """

    foreign = FOREIGN["catboost"]

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        if not np.ptp(X, axis=0).any():  # CatBoost refuses rows that are all equal
            classifier = DummyClassifier()
        return super()._train(classifier, X, labels)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        if isinstance(self.classifier_, DummyClassifier):  # all training rows were equal
            return super()._final_scores(X)
        return self.classifier_.predict(X, prediction_type="RawFormulaVal", thread_count=1)


class MLP(ScoringClassifier):
    """A neural network with one hidden layer (scikit-learn, Adam), for scaled features.

    Parameters
    ----------
    hidden_layer_size : int, default=100
        Number of rectified units.
    alpha : float, default=1e-4
        Weight of the L2 penalty.
    learning_rate_init : float, default=0.001
    max_iter : int, default=200
        Most passes over all training rows; the training ends before if the loss falls no more.
    random_state : int or None, default=None

    References
    ----------
    Kingma & Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import MLP
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X = np.linspace(-2, 2, 80).reshape(-1, 1)
    >>> y = abs(X[:, 0]) > 1  # both ends, which hidden units can rank first
    >>> ranker = MLP(hidden_layer_size=20, learning_rate_init=0.01, random_state=0).fit(X, y)
    >>> precision_at_k(y, ranker.decision_function(X), k=20)
    1.0
    """

    foreign = FOREIGN["mlp"]

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the passes are a parameter
            return super()._train(classifier, X, labels)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        # Compute the output of the network before its logistic function. `linear_scores` gives
        # equal rows equal scores, bitwise identical on every machine.
        (hidden, outer), (offsets, offset) = self.classifier_.coefs_, self.classifier_.intercepts_
        rows, scores = as_rows(X), np.full(X.shape[0], offset)  # offset: of the output unit
        units = zip(np.ascontiguousarray(hidden.T), offsets, outer, strict=True)  # hidden units
        for w, unit_offset, weight in units:
            scores += weight * np.maximum(linear_scores(rows, w) + unit_offset, 0)
        return scores


class NoSkill(ScoringClassifier):
    """The same score for all rows (scikit-learn): what any method should exceed.

    Metrics count ties by their expected value: precision is the share of positives, AUC is 1/2.

    Examples
    --------
    >>> from precbench import NoSkill
    >>> from precbench.ranking.metrics import precision_at_k
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [1, 0, 0, 0]
    >>> precision_at_k(y, NoSkill().fit(X, y).decision_function(X), k=2)  # the share of positives
    0.25
    """

    foreign = FOREIGN["no-skill"]


def ranker_of(classifier: type) -> type[ScoringClassifier]:
    """Return a solver class that wraps a scikit-learn-compatible classifier, with its parameters.

    The version of its library becomes part of the keys of trials.
    """
    init = inspect.signature(classifier.__init__)  # type: ignore[misc]
    parameters = [p for p in init.parameters.values() if p.kind is not p.VAR_KEYWORD]  # no **names
    constraints = getattr(classifier, "_parameter_constraints", {})
    library = sys.modules[classifier.__module__.partition(".")[0]]  # "sklearn" of "sklearn.svm"

    def make(self: Any) -> Any:  # `_classifier` of the new class
        return classifier(**self.get_params(deep=False))

    members = {
        "__init__": _initialiser(init.replace(parameters=parameters)),
        "__doc__": classifier.__doc__,
        "__module__": classifier.__module__,  # records store a hash of the code of its package
        "_classifier": make,
        "allowed": Allowed(
            {p.name: constraints.get(p.name, "no_validation") for p in parameters[1:]}  # not self
        ),
        "algorithm_version": f"1, {library.__name__} {getattr(library, '__version__', '')}",
    }
    weighted = (WeightedRanker,) if has_fit_parameter(classifier, "sample_weight") else ()
    return type(classifier.__name__, (*weighted, ScoringClassifier), members)  # a new class
