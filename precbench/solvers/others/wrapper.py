"""Solvers that another library fits: what they share, whatever the library.

`Wrapper` asks the library for an estimator and gives it rows, labels and weights. A
linear classifier (linear.py) leaves weights; `ScoringClassifier` ranks by the scores of
any other. `ranker_of` wraps a classifier that has no file here, such as one of
scikit-learn.
"""

import inspect
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from math import ceil
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import ThreadpoolController

from precbench.core.errors import MissingPackageError
from precbench.ranking.metrics import as_scores
from precbench.ranking.topk import TopK
from precbench.solvers.common.base import NonlinearRanker, Ranker, Trace, require_memory
from precbench.solvers.common.parameters import Allowed, signed_weights
from precbench.solvers.common.rows import with_short_indices
from precbench.solvers.common.weights import WeightedRanker
from precbench.solvers.others.trees import Trees


@dataclass(frozen=True)
class Library:
    """The library that fits a solver."""

    packages: tuple[str, ...] = ()  # distributions, of which one is installed
    extra: str = ""  # the extra of precbench that installs one

    def load(self, module: str) -> Any:
        """Import and return a module of the library."""
        try:
            return import_module(module)
        except ImportError as error:
            raise MissingPackageError(
                f"{module} cannot be imported ({error}); install it with "
                f"pip install 'precbench[{self.extra}]'"
            ) from error


SCIKIT_LEARN = Library(("scikit-learn",))


@cache
def version_with(packages: tuple[str, ...]) -> int | str:
    """Return a version such as "1, lightgbm 4.6", or 1 without a package."""
    if not packages:
        return 1
    for name in packages:  # distributions of one library, called by the first name
        try:
            return f"1, {packages[0]} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return f"1, {packages[0]} is not installed"


@cache
def thread_pools() -> ThreadpoolController:
    """Inspect all loaded libraries, once, for the threads that they use."""
    return ThreadpoolController()


def n_threads(n_jobs: int) -> int:
    """Return the number of threads that a parameter `n_jobs` asks for."""
    return joblib.cpu_count() if n_jobs == -1 else n_jobs


class Wrapper(Ranker):
    """Base of the solvers that another library fits."""

    library: ClassVar[Library] = Library()

    _weights: Any = None  # of rows, set by `WeightedRanker`
    class_weight: Any
    random_state: Any

    @property
    def algorithm_version(self) -> int | str:  # type: ignore[override]
        return version_with(self.library.packages)

    @abstractmethod
    def _classifier(self) -> Any:
        """Return the unfitted classifier of the library."""

    def _class_weight_argument(self) -> Any:
        """Return the `class_weight` for a classifier fitted to -1 and +1."""
        if self._weights is not None:
            return None  # the weights of the rows include those of the classes
        if not isinstance(self.class_weight, dict):
            return self.class_weight
        signed: Any = signed_weights(self.class_weight, self.classes_)
        # HistGradientBoosting looks the class -1 up by the number 0.
        return signed | {0: signed[-1]}

    def _weight_argument(self, labels: NDArray[np.int8]) -> dict[str, Any]:
        """Return the `sample_weight` of the library's fit, or no argument."""
        if not isinstance(self, WeightedRanker):
            return {}
        weights = self._row_weights(labels, getattr(self, "class_weight", None))
        return {} if weights is None else {"sample_weight": weights}

    def _weights_with_classes(self, labels: NDArray[np.int8]) -> Any:
        """Return weights of the rows for a library that has no weights of classes."""
        given = self._weight_argument(labels)
        if given:
            return given["sample_weight"]
        return compute_sample_weight(
            signed_weights(self.class_weight, self.classes_), labels
        )

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Train by `_steps`; after each, call the trace, which may end the fit."""
        self._start(X.shape[1])
        for n_iter in self._steps(X, labels, trace):
            self.n_iter_ = n_iter
            self.n_rows_seen_ = n_iter * X.shape[0]  # each iteration visits all rows
            if trace(self):
                break

    @abstractmethod
    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Prepare and yield 0, then train and yield the number of iterations so far."""


class ScoringClassifier(Wrapper, NonlinearRanker):
    """Base of the solvers that wrap scikit-learn-compatible classifiers.

    Rows are ranked by `decision_function` of the classifier, else by its probability of
    the positive class, less 1/2. The classifier has one thread unless a parameter
    `n_jobs` says otherwise; `classifier_` is set at the end.

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
    >>> # shares of positives, less 1/2
    >>> ranker.decision_function([[0.4], [2.5], [4.6]]).tolist()
    [-0.5, 0.0, 0.5]
    """

    needs_dense_rows = False
    ranks_lists: Any = False  # learns from pairs of rows at the top k of lists
    has_trees: ClassVar[bool] = False  # which `_read_trees` returns

    classifier_: Any
    k: TopK

    @property
    def _cuts_at_0(self) -> bool:
        return not self.ranks_lists

    @property
    def _judged_at(self) -> TopK:
        # The `k` of a wrapped classifier may be something else, as of neighbours.
        return self.k if self.ranks_lists else 1.0

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Yield the iterations so far: 0 before the training, and 1 after it."""
        classifier = self._classifier()
        X = self._rows(X)
        yield 0
        with thread_pools().limit(limits=1):
            self.classifier_ = self._train(classifier, X, labels)
        yield 1

    def _train(self, classifier: Any, X: Any, labels: NDArray[np.int8]) -> Any:
        """Fit the classifier; return the `classifier_`."""
        return classifier.fit(X, labels, **self._weight_argument(labels))

    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Score rows by the classifier, or by the first of its trees.

        Before the last iteration these are the first `n_iter` trees.

        Parameters
        ----------
        X : ndarray in C order, or CSR matrix, of shape (n_samples, n_features)
            The rows to score, of float64 or float32.
        n_iter : int
            A value of `n_iter_` at a call of the trace; after 0 iterations all scores
            are 0.

        Returns
        -------
        ndarray of shape (n_samples,)
            Larger is more likely positive.
        """
        if n_iter == 0:
            return np.zeros(X.shape[0])
        X = self._rows(X)
        with thread_pools().limit(limits=1):
            if n_iter == self.n_iter_:  # after the last iteration
                return self._final_scores(X)
        return self.to_trees().first(n_iter).scores(X)

    def _final_scores(self, X: Any) -> NDArray[np.float64]:
        """Score rows after the last iteration."""
        if hasattr(self.classifier_, "decision_function"):
            return as_scores(self.classifier_.decision_function(X), X.shape[0])
        probabilities = self.classifier_.predict_proba(X)[:, 1]  # of the positive class
        return as_scores(probabilities, X.shape[0]) - 0.5

    @available_if(lambda self: self.has_trees)
    def to_trees(self) -> Trees:
        """Return trees that score bitwise as the classifier.

        There are no trees before the first iteration.
        """
        return self._read_trees() if self.n_iter_ else Trees.of([], self._width)

    def _read_trees(self) -> Trees:
        """Return the trees of the fitted classifier."""
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        """Return rows as the library takes them: its type, dense or a CSR matrix."""
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

    A trace is called when its ``next_rows`` are reached, or at the end if it has none.
    """

    library = SCIKIT_LEARN

    size: ClassVar[str]  # name of the parameter for the number of trees

    def _steps(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> Iterator[int]:
        """Add trees up to each call of the trace; yield the number of trees so far."""
        X = self._rows(X)
        ensemble = self._classifier().set_params(warm_start=True, **self._suited_to(X))
        n_trees = 0
        n_wanted = getattr(self, self.size)
        yield 0
        while n_trees < n_wanted:
            # Each tree visits all rows. The trace is due at its `next_rows`, or after
            # all trees.
            n_due = ceil(getattr(trace, "next_rows", sys.maxsize) / X.shape[0])
            n_trees = min(n_wanted, max(n_due, n_trees + 1))
            self._grow(ensemble, X, labels, n_trees)
            self.classifier_ = ensemble
            yield n_trees

    def _suited_to(self, X: Any) -> dict[str, Any]:
        """Return parameters that save time with these rows and change no score."""
        return {}

    @abstractmethod
    def _grow(
        self, ensemble: Any, X: Any, labels: NDArray[np.int8], n_trees: int
    ) -> None:
        """Add trees until there are `n_trees`: `warm_start` keeps the earlier ones."""


def grow_to(
    n_trees: int, ensemble: GrowingEnsemble, X: Any, labels: NDArray[np.int8]
) -> None:
    """Add trees to an ensemble, fitted to the same rows, until it has `n_trees`."""
    ensemble._grow(ensemble.classifier_, ensemble._rows(X), labels, n_trees)
    ensemble.n_iter_ = n_trees
    ensemble.n_rows_seen_ = n_trees * X.shape[0]


def ranker_of(classifier: type) -> type[ScoringClassifier]:
    """Return a solver class that wraps a scikit-learn-compatible classifier.

    The version of its library becomes part of the keys of trials.
    """
    init = inspect.signature(classifier.__init__)  # type: ignore[misc]
    # A solver has named parameters only, and so lacks any ``**params`` of a classifier.
    parameters = [p for p in init.parameters.values() if p.kind is not p.VAR_KEYWORD]
    _self, *own_parameters = parameters
    constraints = getattr(classifier, "_parameter_constraints", {})
    allowed = Allowed()
    for parameter in own_parameters:
        allowed[parameter.name] = constraints.get(parameter.name, "no_validation")
    package, _, _submodule = classifier.__module__.partition(".")
    library = sys.modules[package]
    library_version = getattr(library, "__version__", "")

    def make_classifier(self: Any) -> Any:
        return classifier(**self.get_params(deep=False))

    attributes = {
        "__init__": _initialiser(init.replace(parameters=parameters)),
        "__doc__": classifier.__doc__,
        # Records store a hash of the code of the package that this names.
        "__module__": classifier.__module__,
        "_classifier": make_classifier,
        "allowed": allowed,
        "algorithm_version": f"1, {library.__name__} {library_version}",
    }
    bases: tuple[type, ...] = (ScoringClassifier,)
    if has_fit_parameter(classifier, "sample_weight"):
        bases = (WeightedRanker, ScoringClassifier)
    return type(classifier.__name__, bases, attributes)


def _initialiser(signature: inspect.Signature) -> Callable[..., None]:
    """Return an ``__init__`` that keeps its arguments as attributes."""
    _self, *names = signature.parameters

    def set_parameters(self: Any, *args: Any, **params: Any) -> None:
        """Set each parameter as an attribute, to the argument or its default."""
        try:
            bound = signature.bind(self, *args, **params)
        except TypeError as error:
            raise TypeError(
                f"{type(self).__name__}(): {error}; its parameters are"
                f" {', '.join(names) or 'none'}"
            ) from None
        bound.apply_defaults()
        for name in names:
            setattr(self, name, bound.arguments[name])

    set_parameters.__signature__ = signature  # type: ignore[attr-defined]
    return set_parameters
