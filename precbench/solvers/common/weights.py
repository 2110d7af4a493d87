"""Solvers that take weights of rows: a row of weight 2 counts like two equal rows."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from precbench.core.errors import InputError
from precbench.ranking.topk import cut_below
from precbench.solvers.common.base import Ranker, Trace
from precbench.solvers.common.parameters import MOST_WEIGHT, signed_weights


class WeightedRanker(Ranker):
    """Base of the solvers whose loss is a sum over rows, so that rows may have weights.

    A subclass takes the weights in `_fit` from `_row_weights`.
    """

    _weights: NDArray[np.float64] | None = None  # of the rows that remain, during a fit
    _sample_weight: Any = None  # the argument of `fit`, during a fit

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        trace: Trace | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows and labels, forgetting any earlier fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows. They are converted to the type and format that the solver
            takes, if they are not, and never changed.
        y : array-like of shape (n_samples,)
            Their labels, of two values: the greater is the positive class.
        trace : callable, optional
            Observer of the training, see `precbench.solvers.common.base.Trace`. A
            traced fit ends with its last trace: it ranks no training rows, so that
            there is no `threshold_`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the loss, at least 0. Rows of weight 0 are left out.
            A linear solver learns from a whole weight what it would learn from as many
            equal rows; trees count rows, not weights, for smallest leaves and bins.
            `score` weighs each row by 1.

        Returns
        -------
        self
            The fitted solver.

        Raises
        ------
        InputError
            If labels or a parameter are invalid, the values of X are so large that
            products overflow, the weights of features overflow (without a trace), the
            memory is too small, or a weight of a row is negative, or above 0 and below
            1e-12 or above 1e12.
        MissingPackageError
            If the solver belongs to a package that is not installed.
        ValueError
            If there is not one finite weight for each row.
        """
        self._sample_weight = sample_weight  # for `_check_input`, which sets `_weights`
        try:
            return super().fit(X, y, trace)
        finally:
            # The attributes are the None of the class again, so that nothing of the fit
            # is kept or pickled.
            self.__dict__.pop("_sample_weight", None)
            self.__dict__.pop("_weights", None)

    def _check_input(
        self, X: Any, y: ArrayLike, **options: Any
    ) -> tuple[Any, NDArray[np.int8]]:
        """Check X, y and the weights; drop rows of weight 0, and set `_weights`."""
        X, labels = super()._check_input(X, y, **options)
        if self._sample_weight is None:
            return X, labels
        weights = _check_sample_weight(self._sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            raise InputError(
                f"sample_weight has {weights.min():g} for row"
                f" {int(np.argmin(weights)) + 1}, counted from 1; give weights of at"
                " least 0"
            )
        least_weight = 1 / MOST_WEIGHT
        is_used = weights > 0
        is_extreme = is_used & ((weights < least_weight) | (weights > MOST_WEIGHT))
        if is_extreme.any():
            row = int(np.argmax(is_extreme))
            raise InputError(
                f"sample_weight has {weights[row]:g} for row {row + 1}, counted from 1,"
                f" outside of {least_weight:g} to {MOST_WEIGHT:g}; divide the weights"
                " by their mean"
            )
        if not is_used.all():
            X, labels, weights = X[is_used], labels[is_used], weights[is_used]
            n_pos = int(np.count_nonzero(labels > 0))
            if n_pos in (0, len(labels)):
                raise InputError(
                    "sample_weight is above 0 for rows of one class only; give weights"
                    " above 0 to rows of both classes"
                )
        self._weights = weights
        return X, labels

    def _row_weights(
        self, labels: NDArray[np.int8], class_weight: Any = None
    ) -> NDArray[np.float64] | None:
        """Return the weights of rows times those of classes, or None without weights.

        "balanced" classes have equal sums of the products.
        """
        if self._weights is None:
            return None
        if class_weight == "balanced":
            neg_sum = self._weights[labels == -1].sum()
            pos_sum = self._weights[labels == 1].sum()
            neg_weight = (neg_sum + pos_sum) / (2 * neg_sum)
            pos_weight = (neg_sum + pos_sum) / (2 * pos_sum)
        else:
            by_sign = signed_weights(class_weight, self.classes_)  # None: 1 for each
            neg_weight, pos_weight = compute_class_weight(
                by_sign, classes=np.array([-1, 1]), y=labels
            )
        return self._weights * np.where(labels > 0, pos_weight, neg_weight)

    def _set_threshold(self, X: Any, labels: NDArray[np.int8]) -> None:
        """Set `threshold_` so that the rows above weigh as much as all positives."""
        if self._weights is None:
            super()._set_threshold(X, labels)
            return
        scores = self._scores(X)
        # Sums of the weights of the first 1, 2, ... rows, highest score first.
        totals = np.cumsum(self._weights[np.argsort(-scores, kind="stable")])
        # The factor covers rounding: `totals` adds the weights in another order than
        # this sum.
        positive_total = self._weights[labels > 0].sum() * (1 + 1e-12)
        n_top = np.searchsorted(totals, positive_total, side="right")
        if np.isfinite(scores).all():  # else the overflow is reported
            self.threshold_ = cut_below(scores, int(n_top))
