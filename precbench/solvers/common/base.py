"""The base classes of solvers: input checks, the trace of a fit, scores of rows."""

import functools
import inspect
import os
import resource
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from precbench.core.errors import InputError
from precbench.ranking.metrics import as_scores
from precbench.ranking.scorers import precision_at_k_scorer
from precbench.ranking.topk import TopK, cut_below, training_k
from precbench.solvers.common.parameters import Allowed
from precbench.solvers.common.rows import (
    STORED,
    as_rows,
    canonical,
    check_form,
    linear_scores,
)

if TYPE_CHECKING:

    class BaseEstimator:
        """What type checkers know of scikit-learn's class.

        scikit-learn has no types: with its own class as a base, checkers would accept
        any argument of a solver.
        """

        _parameter_constraints: dict[str, Any]
        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def _validate_params(self) -> None: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """The mixin, which adds nothing that type checkers need."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin

# Matrices of n_features x n_features in memory at once: five in `numpy.linalg.eigh`,
# four outside.
MATRICES = 9
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
_VECTORS = 8  # weights, gradients and the like that every solver holds, roughly

# Called with the solver at the start of training and between slices of work. A trace
# may call ``catch_up``, read ``coef_``, ``n_iter_`` and ``n_rows_seen_``, and must
# change nothing else; a true return value ends the fit. A trace with an attribute
# ``next_rows`` is called at the latest after that number of rows in all, except by
# solvers that have no result before the end, as `BBR`.
Trace = Callable[[Any], bool | None]


def memory_limit(container_limit: Path = _CONTAINER_LIMIT) -> int:
    """Return the least limit of machine, process and container, in bytes."""
    machine_limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [machine_limit]
    process_limit, _hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    if process_limit != resource.RLIM_INFINITY:
        limits.append(process_limit)
    # There may be no control group, or its text may be "max", which is no number.
    with suppress(OSError, ValueError):
        limits.append(int(container_limit.read_text()))
    return min(limits)


def require_memory(n_values: int, n_features: int, what: str) -> None:
    """Raise an error if `n_values` float64 values exceed the memory limit."""
    needed = 8 * n_values  # bytes
    limit = memory_limit()
    if needed > limit:
        raise InputError(
            f"X has {n_features:,} features, for which {what} take"
            f" {needed / 2**30:,.1f} GiB, but this process may use {limit / 2**30:,.1f}"
            " GiB; select or project the features"
        )


def refuses_weights(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method that takes rows: it refuses ``sample_weight`` with a reason.

    The signature stays as it is, so that scikit-learn sees no such parameter.
    """

    @functools.wraps(method)
    def unweighted(
        self: Any, *args: Any, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        if sample_weight is not None:
            option = " or set class_weight" if hasattr(self, "class_weight") else ""
            raise InputError(
                f"{type(self).__name__} does not support sample_weight, because each"
                " row at the top of the list counts as one; to give a row more weight,"
                f" repeat it{option}"
            )
        return method(self, *args, **kwargs)

    return unweighted


def checks_parameters(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method: it refuses `sample_weight`, then checks the parameters.

    The parameters are checked against `allowed`.
    """
    return refuses_weights(_fit_context(prefer_skip_nested_validation=True)(method))


def untraced(solver: "Ranker") -> bool:
    return False  # a trace that never ends the fit


def warn(message: str) -> None:
    """Issue a `ConvergenceWarning` that points to the user's line of code."""
    frame = inspect.currentframe()
    level = 1  # how many callers up the user's line is
    internal = ("precbench.solvers.", "sklearn.")
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(internal):
            break
        frame = frame.f_back
        level += 1
    warnings.warn(message, ConvergenceWarning, stacklevel=level)


def top_of_training(k: TopK, labels: NDArray[Any]) -> int:
    """Return `k` as a number of training rows; warn if it exceeds the positives."""
    n_pos = int(np.count_nonzero(labels > 0))
    top = training_k(k, n_pos, len(labels))
    if top.uncapped > n_pos:
        warn(
            f"k = {k} ({top.uncapped:,} rows) exceeds the number of positives,"
            f" {n_pos:,}; training uses k = {n_pos:,}; to avoid this warning give a k"
            f" of at most {n_pos:,} rows"
        )
    return top.capped


class Ranker(ClassifierMixin, BaseEstimator, ABC):
    """Base of all solvers: rows are ranked by a score, highest first.

    A solver is a subclass of `LinearRanker` or `NonlinearRanker` that defines `_fit`,
    and ``__init__`` as scikit-learn asks, or its parameters as the fields of a
    dataclass. It names the allowed values of its parameters in `allowed`, or as
    scikit-learn does in ``_parameter_constraints``; the constraints of base classes are
    inherited.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels; the second is the positive class.
    n_iter_ : int
        Passes over the training rows; for batch solvers, iterations; for ensembles,
        trees.
    n_rows_seen_ : int
        Rows visited so far, repeated visits included: the common unit of work.
    threshold_ : float
        Subtracted by `decision_function`, see `predict`; only after a `fit` without a
        trace.

    Notes
    -----
    For authors of a solver, a class says with attributes of its own:

    - ``algorithm_version``: part of the key of a trial; raise it when results change.
    - ``allowed``: the values that each parameter may take.
    - ``dtypes``: types of rows that `_fit` takes as they are; others become the first.
    - ``row_cost``: about the time for a row of `n_rows_seen_`, as a multiple of the
      time in an online method, by which the time of a run is estimated.

    Examples
    --------
    >>> from precbench import SOLVERS
    >>> from precbench.solvers import Ranker
    >>> isinstance(SOLVERS["sgd-avg"](), Ranker)
    True
    """

    algorithm_version: int | str = 1
    allowed = Allowed()
    dtypes: tuple[type, ...] = (np.float64,)
    row_cost: float = 1.0

    _fitted = "n_iter_"  # what a fit that has succeeded leaves

    classes_: NDArray[Any]
    n_iter_: int
    n_rows_seen_: int
    threshold_: float
    _width: int  # number of features of the fit that has left the weights

    def __init_subclass__(cls, **options: Any):
        """Merge the constraints of a class and its bases, for scikit-learn's checks."""
        super().__init_subclass__(**options)
        constraints = Allowed()
        # Bases come first, so that the class overrides them.
        for base in reversed(cls.__mro__):
            constraints.update(vars(base).get("_parameter_constraints", {}))
            constraints.update(vars(base).get("allowed", {}))
        cls._parameter_constraints = constraints

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        """Return the names once and for all: scikit-learn reads them each time."""
        return super()._get_param_names()

    @checks_parameters
    def fit(self, X: Any, y: ArrayLike, trace: Trace | None = None) -> Self:
        """Learn from rows and labels, forgetting any earlier fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows. They are converted to float64, C order or CSR, if they
            are not, and never changed. Values of float32 stay as they are if `dtypes`
            has this type: half the memory, and the result is bitwise identical to that
            of the same values as float64.
        y : array-like of shape (n_samples,)
            Their labels, of two values: the greater is the positive class.
        trace : callable, optional
            Observer of the training, see `precbench.solvers.common.base.Trace`. A
            traced fit ends with its last trace: it ranks no training rows, so that
            there is no `threshold_`.

        Returns
        -------
        self
            The fitted solver.

        Raises
        ------
        InputError
            If labels or a parameter are invalid, the values of X are so large that
            products overflow, the weights overflow (without a trace), the memory is too
            small, or there are weights of rows (``sample_weight``).
        MissingPackageError
            If the solver belongs to a package that is not installed.
        """
        X, labels = self._check_input(X, y, reset=True)
        # Weights that overflow are reported in one sentence at the end.
        with np.errstate(all="ignore"):
            self._fit(X, labels, trace or untraced)
            if trace is None and not self._cuts_at_0:  # else `predict` cuts at 0
                self._set_threshold(X, labels)
        self._report_overflow(trace)
        return self

    @abstractmethod
    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Learn from checked rows of one of the `dtypes`, and labels -1 or +1.

        Set `n_iter_` and `n_rows_seen_` to 0, then call ``trace(self)``, which starts
        the clock; call the trace again between slices of work, if there are any, with
        both counters up to date, and end when it returns true. Weights may overflow:
        `fit` reports this.
        """

    @abstractmethod
    def _start(self, n_features: int) -> None:
        """Set the counters to 0, in a linear solver also the weights."""

    @abstractmethod
    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows, from which no threshold is subtracted."""

    @property
    def overflowed(self) -> bool:
        """Whether the last fit has ended with weights that are not finite."""
        return False

    @property
    def _cuts_at_0(self) -> bool:
        """Whether a score of 0 has a meaning, so that `predict` cuts there."""
        return False

    @property
    def _judged_at(self) -> TopK:
        """The k of `predict` and `score`: the solver's, or 1.0 for all positives."""
        # Of solvers with an objective only those that learn "prec@k" use their `k`.
        uses_k = getattr(self, "objective", "prec@k") == "prec@k"
        return getattr(self, "k", 1.0) if uses_k else 1.0

    def _set_threshold(self, X: Any, labels: NDArray[np.int8]) -> None:
        """Set `threshold_` below the scores of the first `_judged_at` training rows."""
        scores = self._scores(X)
        # `predict` marks as many rows as `k` says, whatever the cap of training.
        n_pos = int(np.count_nonzero(labels > 0))
        top = training_k(self._judged_at, n_pos, len(labels))
        if np.isfinite(scores).all():  # else the overflow is reported
            self.threshold_ = cut_below(scores, top.uncapped)

    def _report_overflow(self, trace: Trace | None) -> None:
        """Raise an error if weights are not finite, or warn if there is a trace.

        A trace has earlier weights, so that the fit was of some use.
        """
        if not self.overflowed:
            return
        message = (
            f"the weights of {type(self).__name__} have overflowed; scale the features,"
            " or give a smaller eta0 or C if the solver has one"
        )
        if trace is None or trace is untraced:
            raise InputError(message)
        warn(message)

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        """Return how many values the largest arrays of a fit hold, and their name."""
        return _VECTORS * n_features, f"{_VECTORS} vectors of n_features"

    def require_memory(self, n_features: int) -> None:
        """Raise an error if a fit needs more memory than this process may use.

        Parameters
        ----------
        n_features : int
            Number of features of the rows.

        Raises
        ------
        InputError
            If the largest arrays of a fit exceed the limit of machine, process or
            container.
        """
        n_values, what = self._fit_memory(n_features)
        require_memory(n_values, n_features, what)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to score, with the features of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Larger is more likely positive. The `threshold_`, if there is one, is
            subtracted, so that `predict` marks the rows above 0 as positive.
        """
        check_is_fitted(self, self._fitted)
        X = self._validate(X, dtype=STORED, reset=False)
        self._check_width(X.shape[1])
        scores = self._scores(X)
        return scores - self.threshold_ if hasattr(self, "threshold_") else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return labels: positive for rows that score as the top of the training rows.

        A row is positive where its score exceeds all training scores except the top
        ones. The top is the first `k` training rows, by the solver's own `k`; if the
        solver or objective has none, as many rows as there are positives. So among as
        many new rows of the same source about `k` are marked. Rows tied with the first
        row below the top are not marked. Scores are cut at 0 instead where 0 has a
        meaning (the objective "f1", the log-odds of trees, foreign classifiers), or
        where there is no `threshold_`: after `partial_fit` or a traced fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to label, with the features of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, each one of `classes_`.
        """
        positive = self.decision_function(X) > 0  # checks that the solver is fitted
        return self.classes_[positive.astype(np.intp)]

    @refuses_weights
    def score(self, X: Any, y: ArrayLike) -> float:
        """Return precision at k of the ranking of some rows.

        By this number `GridSearchCV` and `cross_val_score` choose by default. It is
        `precbench.ranking.metrics.precision_at_k` at the solver's own `k`, or at the
        number of positives where the solver or its objective has no `k`. To compare
        solvers choose one `k` for all: `precbench.precision_at_k_scorer`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to rank, with the features of the training rows.
        y : array-like of shape (n_samples,)
            Their labels, the greater of which is the positive class.

        Returns
        -------
        float
            From 0 to 1, larger is better.
        """
        return precision_at_k_scorer(self._judged_at)(self, X, y)

    def catch_up(self) -> None:
        """Set the weights for a trace, in a fit that sets them only at its end."""

    def _check_width(self, n_features: int) -> None:
        if n_features != self._width:
            raise InputError(
                f"X has {n_features:,} features, but the weights are of an earlier fit"
                f" with {self._width:,} features, because the last fit failed; call fit"
                " again"
            )

    def _validate(self, X: Any, *y: ArrayLike, **options: Any) -> Any:
        """Return X, checked and in C order or canonical CSR, or X and y if y is given.

        `options` are those of scikit-learn's `validate_data`.
        """
        check_form(X)
        options |= {"accept_sparse": "csr", "order": "C"}
        if not y:
            return canonical(validate_data(self, X, **options))
        X, labels = validate_data(self, X, *y, **options)
        return canonical(X), labels

    def _check_input(
        self, X: Any, y: ArrayLike, *, reset: bool, classes: ArrayLike | None = None
    ) -> tuple[Any, NDArray[np.int8]]:
        """Return X in one of `dtypes`, in C order or CSR, and labels -1 or +1.

        With `reset`, set `classes_` to `classes` or the labels of y. Else refuse new
        labels in y.
        """
        X, y = self._validate(X, y, dtype=self.dtypes, reset=reset)
        check_classification_targets(y)
        _check_size(X.data if sparse.issparse(X) else X.ravel())
        if reset:
            self.require_memory(X.shape[1])
            self.classes_ = np.unique(np.asarray(y if classes is None else classes))
        if len(self.classes_) > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is"
                f" multiclass: y has {len(self.classes_)} different labels; map them to"
                " two."
            )
        if len(self.classes_) < 2:
            raise InputError(
                f"y has one class only ({self.classes_[0]}); give rows of two classes"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise InputError(
                f"y holds the label {unknown[0]}, which is neither {self.classes_[0]}"
                f" nor {self.classes_[1]}; map it to one of the two"
            )
        self.__dict__.pop("threshold_", None)  # of an earlier fit
        return X, np.where(y == self.classes_[1], 1, -1).astype(np.int8)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what `fit` takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # also CSR matrices
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # accuracy is not the aim
        return tags


class LinearRanker(Ranker):
    """Base of the linear solvers: ``X @ coef_`` ranks the rows, highest score first.

    There is no intercept, since none changes a ranking, but a `threshold_`, above which
    `predict` marks positives. The exception is the objective "f1", which depends on the
    sign of the scores: solvers fitted to "f1" have an `intercept_` and no threshold.

    A subclass defines ``__init__``, `allowed` (see `Ranker`) and `_fit`, which calls
    `_start` first, and sets `coef_`, `n_iter_` and `n_rows_seen_`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``, plus `intercept_` if
        there is one.
    intercept_ : float
        Weight of a constant column. Only if the objective is "f1" or the like.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. Only after a
        `fit` without a trace, and not with an `intercept_`.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_iter_ : int
        Passes over the training rows; for batch solvers, iterations.
    n_rows_seen_ : int
        Rows visited so far, repeated visits included: the common unit of work.

    Examples
    --------
    >>> from precbench.solvers import LinearRanker
    >>> class MeanDifference(LinearRanker):
    ...     def _fit(self, X, labels, trace):
    ...         self._start(X.shape[1])
    ...         if not trace(self):
    ...             self.coef_ = X[labels > 0].mean(axis=0) - X[labels < 0].mean(axis=0)
    ...             self.n_iter_, self.n_rows_seen_ = 1, len(labels)
    >>> X = [[4.0, 1.0], [2.0, 1.0], [1.0, 0.0]]
    >>> ranker = MeanDifference().fit(X, ["yes", "no", "no"])
    >>> ranker.coef_.tolist(), ranker.predict([[3.0, 3.0]]).tolist()
    ([2.5, 0.5], ['yes'])
    """

    _fitted = "coef_"

    coef_: NDArray[np.float64]
    intercept_: float

    def _start(self, n_features: int) -> None:
        self._publish(np.zeros(n_features))
        self.n_iter_ = self.n_rows_seen_ = 0

    def _publish(self, w: NDArray[np.float64], *, has_intercept: bool = False) -> None:
        """Set `coef_` to w, or `coef_` and `intercept_`, which is the last entry of w.

        Drop the `threshold_` of earlier weights.
        """
        self.__dict__.pop("threshold_", None)
        if has_intercept:
            self.coef_ = w[:-1]
            self.intercept_ = float(w[-1])
        else:
            self.coef_ = w
            # An earlier fit to another objective may have left one.
            self.__dict__.pop("intercept_", None)

    @property
    def _width(self) -> int:  # type: ignore[override]
        return len(self.coef_)

    @property
    def _cuts_at_0(self) -> bool:
        return hasattr(self, "intercept_")

    @property
    def overflowed(self) -> bool:
        return not np.isfinite(self.coef_).all()

    def _scores(self, X: Any) -> NDArray[np.float64]:
        scores = linear_scores(as_rows(X), self.coef_)
        return scores + self.intercept_ if hasattr(self, "intercept_") else scores


class NonlinearRanker(Ranker):
    """Base of the solvers without weights, such as ensembles of trees.

    A subclass defines ``__init__``, `allowed` (see `Ranker`), `_fit` and
    `scores_after`. A trial stores the scores of the rows that the trial is measured on.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations; for ensembles, of trees.
    n_rows_seen_ : int
        Rows visited so far, repeated visits included: the common unit of work.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.

    Examples
    --------
    >>> from precbench.solvers import NonlinearRanker
    >>> class Nearness(NonlinearRanker):  # to the mean of the positives
    ...     def _fit(self, X, labels, trace):
    ...         self._start(X.shape[1])
    ...         if not trace(self):
    ...             self.mean_ = X[labels > 0].mean(axis=0)
    ...             self.n_iter_, self.n_rows_seen_ = 1, len(labels)
    ...     def scores_after(self, X, n_iter):
    ...         return -n_iter * ((X - self.mean_) ** 2).sum(axis=1)
    >>> ranker = Nearness().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> ranker.predict([[1.4], [9.0]]).tolist()
    [1, 0]
    """

    def _start(self, n_features: int) -> None:
        self._width = n_features
        self.n_iter_ = self.n_rows_seen_ = 0

    @abstractmethod
    def scores_after(self, X: Any, n_iter: int) -> NDArray[np.float64]:
        """Return the scores of rows after the first `n_iter` iterations.

        Parameters
        ----------
        X : ndarray in C order, or CSR matrix, of shape (n_samples, n_features)
            Of float64 or float32.
        n_iter : int
            A value of `n_iter_` at a call of the trace; after 0 iterations all scores
            are 0.

        Returns
        -------
        ndarray of shape (n_samples,)
        """

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return as_scores(self.scores_after(X, self.n_iter_), X.shape[0])


def _check_size(values: NDArray[np.floating]) -> None:
    """Raise an error if `X` has values so large that solvers overflow.

    `values` are all that it stores, as one vector.
    """
    if values.dtype == np.float32:  # cannot hold values that large
        return
    with np.errstate(over="ignore"):
        sum_of_squares = values @ values  # no product x_i' x_j of rows is larger
        is_finite = np.isfinite(np.square(sum_of_squares))
    if not is_finite:
        raise InputError(
            f"X has values up to {np.abs(values).max():.3g}, so that squares of"
            " products of its rows overflow; scale the features"
        )
