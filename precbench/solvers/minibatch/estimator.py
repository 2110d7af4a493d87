"""Mini-batch methods: Perceptron@k, SGD@k, 1PMB and 2PMB.

The estimators hold parameters and say by a `Rule` what a step does; `MiniBatchStep` is
their state, and gives the kernel the rows of each batch. The steps themselves are in
kernel.pyx, and as the papers write them in reference.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.topk import TopK, k_by_n_pos, split_at, training_k
from precbench.solvers.common.base import LinearRanker, top_of_training
from precbench.solvers.common.driver import (
    PassMixin,
    Piece,
    Shuffle,
    Step,
    visiting_order,
)
from precbench.solvers.common.parameters import (
    COUNT,
    POSITIVE,
    RADIUS,
    SHARE,
    Allowed,
    K,
    one_of,
)
from precbench.solvers.common.rows import Rows, linear_scores
from precbench.solvers.minibatch.kernel import (
    AVG,
    F1,
    MAX,
    MOST_CANDIDATES,
    PAUC,
    PERCEPTRON_AVG,
    PERCEPTRON_MAX,
    RAMP,
    STRUCT,
    minibatch_pass,
)

Keep = Literal["last", "mean", "best"]
_KEEP = [None, *one_of("last", "mean", "best")]

_ORDER_ROWS = 2**20  # indices of joined batches that 2PMB holds at a time


@dataclass(frozen=True)
class Rule:
    """What a step does: its formula, the top it learns from, its length, the ball."""

    code: int  # the kernel's number of the formula
    # The top of a batch, see `precbench.ranking.topk`. PAUC and F1 have none.
    k: TopK = 1.0
    # The share of a batch's negatives that form pairs, for PAUC alone.
    share_of_negatives: float = 1.0
    # Step t = 1, 2, ... has the length eta0 / sqrt(t), or 1 if eta0 is None.
    eta0: float | None = None
    radius: float | None = None  # of the ball; None for the whole space


class Candidate(NamedTuple):
    """What the kernel reads of one solver for some batches.

    The kernel changes w, w_sum and counts in place.
    """

    rule: int  # code of the formula
    # k for each number of positives that a batch may have; for PAUC the number of
    # negatives that form pairs, for each number of negatives.
    k_of: NDArray[np.int32]
    eta: NDArray[np.float64]  # step length of each batch
    radius: float  # of the ball, infinite for the whole space
    w: NDArray[np.float64]
    w_sum: NDArray[np.float64]  # sum of w after each batch, or empty
    counts: NDArray[np.int64]  # of empty batches, of mistakes


class MiniBatchStep(Step):
    """The state of a mini-batch method: w, its sum, and counts."""

    def __init__(self, n_features: int, rule: Rule, keep: Keep):
        self.rule = rule
        # A score of 0 divides the classes for F1, which needs an intercept for this.
        self.has_intercept = rule.code == F1
        self.keep = keep
        super().__init__(n_features + self.has_intercept, takes_mean=keep == "mean")
        self.counts = np.zeros(2, dtype=np.int64)  # of empty batches, of mistakes
        self.best_precision = -np.inf  # at k on all rows, of the chosen w

    def set_parameters(self, solver: Any) -> None:
        self.rule = solver._rule()
        self.has_intercept = self.rule.code == F1

    def prepare(self, labels: NDArray[np.int8], batch_size: int) -> None:
        rule = self.rule
        top_of_training(rule.k, labels)  # warns if k exceeds the number of positives
        top = rule.share_of_negatives if rule.code == PAUC else rule.k
        k_by_n_pos(top, batch_size)  # fills its cache before the clock starts

    @staticmethod
    def visit(
        steps: Sequence["MiniBatchStep"],
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        batch_size: int,
    ) -> None:
        # The kernel reads the rows once for `n_together` solvers and changes their w in
        # place, and states the lengths of the scratch arrays.
        n_together = min(len(steps), MOST_CANDIDATES)
        real_scratch = np.empty((n_together + 3) * batch_size)
        int_scratch = np.empty(5 * batch_size, dtype=np.int32)
        # A last, shorter batch is visited separately, since its k may be a fraction of
        # its rows.
        n_whole = len(order) // batch_size
        whole_batches, shorter_batch = np.split(order, [n_whole * batch_size])
        for n_batches_before, part in ((0, whole_batches), (n_whole, shorter_batch)):
            if not len(part):
                continue
            n_rows_of_batch = min(batch_size, len(part))
            n_batches = -(-len(part) // batch_size)  # rounded up
            candidates = [
                step.candidate(n_batches_before, n_batches, n_rows_of_batch)
                for step in steps
            ]
            for i in range(0, len(candidates), n_together):
                minibatch_pass(
                    rows,
                    labels,
                    part,
                    batch_size,
                    candidates[i : i + n_together],
                    real_scratch,
                    int_scratch,
                )

    def candidate(
        self, n_batches_before: int, n_batches: int, n_rows_of_batch: int
    ) -> Candidate:
        """Return what the kernel reads for `n_batches` batches.

        They come after `n_batches_before` batches that `t` does not count yet.
        """
        rule = self.rule
        top = rule.share_of_negatives if rule.code == PAUC else rule.k
        # kar2015, Algorithm 3:
        #     w_t = P_W[w_{t-1} - eta0 / sqrt(t) g_t],   t = 1, 2, ...
        first_t = self.t + n_batches_before + 1
        eta = np.ones(n_batches)
        if rule.eta0 is not None:
            eta = rule.eta0 / np.sqrt(np.arange(first_t, first_t + n_batches))
        return Candidate(
            rule=rule.code,
            k_of=k_by_n_pos(top, n_rows_of_batch),
            eta=eta,
            radius=np.inf if rule.radius is None else rule.radius,
            w=self.w,
            w_sum=self.w_sum,
            counts=self.counts,
        )

    def finish_pass(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Keep w as the best one if its precision at k on all rows is no lower."""
        if self.keep != "best":
            return
        scores = linear_scores(rows, self.w)
        if not np.isfinite(scores).all():
            return
        positive = labels > 0
        n_pos = int(np.count_nonzero(positive))
        k = training_k(self.rule.k, n_pos, len(labels)).capped
        # The rows tied at the end of the top share the places that are left there:
        # prec@k counts its mean over their orders.
        top = split_at(scores, k)
        hits_above = positive[top.above].sum()
        hits_of_tied = top.n_tied_in_top * positive[top.tied].mean()
        precision = float(hits_above + hits_of_tied) / k
        if precision >= self.best_precision:
            self.best_precision = precision
            self.chosen_w = self.w.copy()  # later steps change w in place

    @property
    def n_empty(self) -> int:
        return int(self.counts[0])

    @property
    def n_mistakes(self) -> int:
        return int(self.counts[1])


@dataclass(kw_only=True, eq=False, repr=False)
class PerceptronAtK(PassMixin, LinearRanker):
    """The perceptron for precision at k: learn from the negatives in the top k.

    With the false positives FP (negatives in the top k) and the false negatives FN
    (positives that are not) of a batch under the current w, a step is

    - ``"avg"``: ``w += |FP| / |FN| * sum(FN) - sum(FP)``,
    - ``"max"``: ``w += sum(the |FP| first of FN) - sum(FP)``.

    Of rows with equal scores the one visited earlier is first. The number of mistakes
    is bounded in terms of the avg or the max surrogate of the best w. There is no step
    size to choose. Use the method where the first k rows of a list are all that counts.

    Parameters
    ----------
    variant : {"avg", "max"}, default="avg"
        The step, see above. "avg" learns from all false negatives, "max" from as many
        of the highest as there are false positives.
    k : float, int or str, default=0.25
        Length of the top of each batch. An int is a number of rows, a float in (0, 1] a
        fraction of the positives, and text such as "1 %" a fraction of the rows;
        fractions are rounded up. So 1 is a single row, and 1.0 as many rows as there
        are positives. In a batch, fractions are of its own positives or rows, and k is
        at most the number of its positives. A `k` of more rows than there are positives
        in all gives a warning.
    batch_size : int, default=500
        Number of rows of a batch, at least 1; if there are fewer, all rows are one
        batch.
    epochs : int, default=25
        Number of passes over the rows, at least 1.
    average : bool, default=False
        True is short for ``keep="mean"``, False for ``keep="last"``; it has no meaning
        beside `keep`.
    keep : {"last", "mean", "best"} or None, default=None
        The w that is the model. "last" is the w after the last batch, "mean" the mean
        of w over all batches, "best" the w of the greatest precision at k on all rows
        of `fit`, measured after each pass (of equally good ones the latest); with
        "best" there is no `partial_fit`. None is for what `average` says, by default
        "last", as in the paper.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    n_mistakes_ : int
        False positives summed over all batches so far, the Delta of Theorems 7 and 9.
    n_empty_batches_ : int
        Batches so far that had no positive, so that w did not change.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. The first `k`
        training rows score above it, except for ties. Only after a `fit` without a
        trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included.
    t_ : int
        Batches so far, empty ones included.

    Notes
    -----
    A batch without a positive changes nothing. In a batch a fraction is rounded up, so
    that the top of a batch with a positive has at least one row.

    The text of the paper says that Algorithm 2 updates "only for false positives in the
    set FN": false negatives are meant.

    References
    ----------
    kar2015 (Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the
    top", ICML 2015): Algorithm 1 ("avg", with Theorem 7) and Algorithm 2 ("max", with
    Theorem 9).

    Examples
    --------
    >>> from precbench import PerceptronAtK
    >>> X, y = [[3.0], [2.0], [1.0], [0.0]], [0, 0, 1, 1]
    >>> for variant in ("avg", "max"):  # (1 + 0) / 2 - 3 and 1 - 3
    ...     ranker = PerceptronAtK(variant, k=1, shuffle=False).fit(X, y)
    ...     print(ranker.coef_.tolist(), ranker.n_mistakes_)
    [-2.5] 1
    [-2.0] 1
    """

    variant: str = field(default="avg", kw_only=False)
    k: TopK = 0.25
    batch_size: int = 500
    epochs: int = 25
    average: bool = False
    keep: Keep | None = None
    shuffle: Shuffle = True
    random_state: Any = None

    allowed = Allowed(variant=one_of("avg", "max"), k=K, batch_size=COUNT, keep=_KEEP)

    @property
    def _takes_pieces(self) -> bool:
        return self.keep != "best"  # which scores all rows after each pass

    @property
    def n_empty_batches_(self) -> int:
        return self._step.n_empty

    @property
    def n_mistakes_(self) -> int:
        return self._step.n_mistakes

    def _new_step(self, n_features: int) -> MiniBatchStep:
        return MiniBatchStep(
            n_features, self._rule(), self.keep or mean_or_last(self.average)
        )

    def _rule(self) -> Rule:
        codes = {"avg": PERCEPTRON_AVG, "max": PERCEPTRON_MAX}
        return Rule(codes[self.variant], self.k)


@dataclass(kw_only=True, eq=False, repr=False)
class SGDAtK(PassMixin, LinearRanker):
    """Stochastic gradient descent for precision at k, by a surrogate of its loss.

    Each batch t = 1, 2, ... takes a step down a subgradient g_t of a surrogate of the
    loss of precision at k, which counts the negatives in the top k of the batch:

        w_t = P_W[w_(t-1) - eta0 / sqrt(t) g_t],

    with P_W the projection onto the ball ``||w|| <= radius``. With the labellings y' of
    a batch that have k ones, n_false of these on negatives and n_true on positives, its
    scores s, labels y of 0 and 1, and n_pos positives, the surrogates are

    ``avg``
        ``max [n_false + sum_i (y'_i - y_i) s_i + share * (sum of the scores of the
        positives without a one)]`` with ``share = (n_pos - k) / (n_pos - n_true)``.
    ``max``
        The same with the sum of the n_pos - k highest scores of positives without a one
        in place of the share of their sum.
    ``ramp``
        ``max [n_false + sum_i y'_i s_i]`` less the sum of the k highest scores of
        positives, the only one that is not convex.
    ``struct``
        ``max [n_false + sum_i (y'_i - y_i) s_i]``.

    The number of negatives in the top k is at most ramp, ramp at most avg, and avg at
    most max. Use the method where the first k rows of a list are all that counts. The
    paper finds "avg" the most consistent over data sets and batch sizes.

    Parameters
    ----------
    surrogate : {"avg", "max", "ramp", "struct"}, default="avg"
        The surrogate, see above.
    k : float, int or str, default=0.25
        Length of the top of each batch. An int is a number of rows, a float in (0, 1] a
        fraction of the positives, and text such as "1 %" a fraction of the rows;
        fractions are rounded up. So 1 is a single row, and 1.0 as many rows as there
        are positives. In a batch, fractions are of its own positives or rows, and k is
        at most the number of its positives. A `k` of more rows than there are positives
        in all gives a warning.
    batch_size : int, default=500
        Number of rows of a batch, at least 1; if there are fewer, all rows are one
        batch.
    epochs : int, default=25
        Number of passes over the rows, at least 1.
    eta0 : float, default=0.1
        Length of the first step, above 0, as a multiple of the subgradient; step t has
        ``eta0 / sqrt(t)``.
    radius : float or None, default=None
        Radius of the ball that w is projected onto, above 0; None for the whole space.
        There "struct" with fewer than n_pos rows as k may have no minimum.
    average : bool, default=True
        True, the paper's choice, is short for ``keep="mean"``, False for
        ``keep="last"``; it has no meaning beside `keep`.
    keep : {"last", "mean", "best"} or None, default=None
        The w that is the model. "last" is the w after the last batch, "mean" the mean
        of w over all batches, "best" the w of the greatest precision at k on all rows
        of `fit`, measured after each pass (of equally good ones the latest); with
        "best" there is no `partial_fit`. None is for what `average` says, by default
        "mean", as in the paper.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    n_empty_batches_ : int
        Batches so far that had no positive, so that w did not change.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. The first `k`
        training rows score above it, except for ties. Only after a `fit` without a
        trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included.
    t_ : int
        Batches so far, empty ones included.

    Notes
    -----
    A batch without a positive changes nothing. The paper leaves step sizes and the ball
    open.

    References
    ----------
    kar2015 (Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the
    top", ICML 2015): Algorithm 3, and Algorithm 4 for the subgradient of "avg". The
    surrogates are (7) "avg", (6) "max", (4) "ramp" and (3) "struct".

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import SGDAtK
    >>> X = np.random.default_rng(0).standard_normal((1000, 2))
    >>> y = X[:, 0] > 2
    >>> ranker = SGDAtK(k=10, random_state=0).fit(X, y)
    >>> int(y[ranker.decision_function(X).argsort()[-10:]].sum())
    10
    """

    surrogate: str = field(default="avg", kw_only=False)
    k: TopK = 0.25
    batch_size: int = 500
    epochs: int = 25
    eta0: float = 0.1
    radius: float | None = None
    average: bool = True
    keep: Keep | None = None
    shuffle: Shuffle = True
    random_state: Any = None

    allowed = Allowed(
        surrogate=one_of("avg", "max", "ramp", "struct"),
        k=K,
        batch_size=COUNT,
        eta0=POSITIVE,
        radius=RADIUS,
        keep=_KEEP,
    )

    @property
    def _takes_pieces(self) -> bool:
        return self.keep != "best"  # which scores all rows after each pass

    @property
    def n_empty_batches_(self) -> int:
        return self._step.n_empty

    def _new_step(self, n_features: int) -> MiniBatchStep:
        return MiniBatchStep(
            n_features, self._rule(), self.keep or mean_or_last(self.average)
        )

    def _rule(self) -> Rule:
        codes = {"avg": AVG, "max": MAX, "ramp": RAMP, "struct": STRUCT}
        return Rule(codes[self.surrogate], self.k, eta0=self.eta0, radius=self.radius)


@dataclass(kw_only=True, eq=False, repr=False)
class OnePMB(PassMixin, LinearRanker):
    """Single-pass mini-batches (1PMB): subgradient steps on a measure of whole batches.

    Each batch e = 1, 2, ... takes a step down a subgradient g_e of the loss of the
    batch:

        w_e = P_W[w_(e-1) - eta0 / sqrt(e) g_e],

    with P_W the projection onto the ball ``||w|| <= radius``; the model is the mean of
    w_1, ..., w_e. In the scores s of a batch with n_pos positives, n_neg negatives and
    labels y of 0 and 1, the loss is

    ``prec@k``
        ``max [#(ones on negatives) + sum_i (y'_i - y_i) s_i]`` over the labellings y'
        with k ones, the struct surrogate.
    ``pauc``, ``auc``
        The mean of the hinges ``max(0, 1 - (s_i - s_j))`` over the pairs of a positive
        i and one of the ``ceil(beta n_neg)`` highest negatives j, or over all pairs.
    ``f1``
        ``max [1 - F1(y, y') + 1/n_pos sum_i (y'_i - y_i) s_i]`` over all labellings y'.

    Use the method for measures of a list that are no sums over rows, on many rows: one
    pass may do. With ``objective="prec@k"`` this is `SGDAtK` with
    ``surrogate="struct"``.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "auc", "f1"}, default="prec@k"
        The loss, see above.
    k : float, int or str, default=0.25
        Length of the top of each batch, for "prec@k" only. An int is a number of rows,
        a float in (0, 1] a fraction of the positives, and text such as "1 %" a fraction
        of the rows; fractions are rounded up. So 1 is a single row, and 1.0 as many
        rows as there are positives. In a batch, fractions are of its own positives or
        rows, and k is at most the number of its positives. The paper takes 1.0 (PRBEP).
        A `k` of more rows than there are positives in all gives a warning.
    beta : float, default=0.1
        Fraction in (0, 1] of the negatives of a batch, rounded up, that form pairs; for
        "pauc" only.
    batch_size : int, default=500
        Number of rows of a batch, at least 1; if there are fewer, all rows are one
        batch.
    epochs : int, default=25
        Number of passes over the rows, at least 1.
    eta0 : float, default=0.1
        Length of the first step, above 0, as a multiple of the subgradient; step t has
        ``eta0 / sqrt(t)``.
    radius : float or None, default=None
        Radius of the ball that w is projected onto, above 0; None for the whole space.
    average : bool, default=True
        Whether the model is the mean of w over all batches, the paper's choice, instead
        of the last w.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``, plus `intercept_` if
        there is one.
    intercept_ : float
        Weight of a constant feature of 1, part of w also where w is projected. Only if
        the objective is "f1", which depends on the sign of the scores.
    n_empty_batches_ : int
        Batches so far that had no positive, or for "pauc" and "auc" no negative, so
        that w did not change.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. With "prec@k"
        the first `k` training rows score above it, with other objectives as many as
        there are positives, except for ties. Only after a `fit` without a trace, and
        not with an `intercept_`.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included.
    t_ : int
        Batches so far, empty ones included.

    Notes
    -----
    The paper prints a plus where a descent step is meant, and ``eta / sqrt(e)`` from e
    = 0: ours counts from 1. The scaling of "prec@k" is that of kar2015 (3), with the
    same path as kar2014 (3) up to a factor.

    References
    ----------
    kar2014 (Kar, Narasimhan, Jain, "Online and stochastic gradient methods for
    non-decomposable loss functions", NIPS 2014): Algorithm 1, (3) for "prec@k", (5) for
    "pauc", and appendix H for its subgradient. kar2015 (Kar, Narasimhan, Jain,
    "Surrogate functions for maximizing precision at the top", ICML 2015): (3).
    Joachims, "A support vector method for multivariate performance measures", ICML
    2005, for "f1".

    Examples
    --------
    >>> from precbench import OnePMB
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> ranker = OnePMB("f1", random_state=0).fit(X, y)
    >>> round(ranker.intercept_, 1), ranker.predict(X).tolist()
    (0.2, [0, 0, 1, 1])
    """

    objective: str = field(default="prec@k", kw_only=False)
    k: TopK = 0.25
    beta: float = 0.1
    batch_size: int = 500
    epochs: int = 25
    eta0: float = 0.1
    radius: float | None = None
    average: bool = True
    shuffle: Shuffle = True
    random_state: Any = None

    allowed = Allowed(
        objective=one_of("prec@k", "pauc", "auc", "f1"),
        k=K,
        beta=SHARE,
        batch_size=COUNT,
        eta0=POSITIVE,
        radius=RADIUS,
    )

    @property
    def n_empty_batches_(self) -> int:
        return self._step.n_empty

    def _new_step(self, n_features: int) -> MiniBatchStep:
        return MiniBatchStep(n_features, self._rule(), mean_or_last(self.average))

    def _rule(self) -> Rule:
        return rule_of_objective(
            self.objective, self.k, self.beta, eta0=self.eta0, radius=self.radius
        )


@dataclass(kw_only=True, eq=False, repr=False)
class TwoPMB(PassMixin, LinearRanker):
    """Two-pass mini-batches (2PMB): batches of negatives beside sampled positives.

    Pass 1 fills a buffer with positives by reservoir sampling. Pass 2 streams the
    negatives in batches e = 1, 2, ...; each one, appended to the buffer, makes a step
    down a subgradient g_e of the loss of buffer and batch:

        w_e = P_W[w_(e-1) - eta0 / sqrt(e) g_e],

    with P_W the projection onto the ball ``||w|| <= radius``; the model is the mean of
    w_1, ..., w_e. In the scores s of n_pos positives and n_neg negatives with labels y
    of 1 and 0, the loss is

    ``prec@k``
        ``max [#(ones on negatives) + sum_i (y'_i - y_i) s_i]`` over the labellings y'
        with k ones, the struct surrogate.
    ``pauc``, ``auc``
        The mean of the hinges ``max(0, 1 - (s_i - s_j))`` over the pairs of a positive
        i and one of the ``ceil(beta n_neg)`` highest negatives j, or over all pairs.
    ``f1``
        ``max [1 - F1(y, y') + 1/n_pos sum_i (y'_i - y_i) s_i]`` over all labellings y'.

    Use the method where positives are so rare that most batches of `OnePMB` have few.
    Every further epoch is one more pass 2 with the same buffer. There is no
    `partial_fit`, because no step can be taken before pass 1 has seen all positives.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "auc", "f1"}, default="prec@k"
        The loss, see above.
    k : float, int or str, default=0.25
        Length of the top of buffer and batch, for "prec@k" only. An int is a number of
        rows, a float in (0, 1] a fraction of the positives, and text such as "1 %" a
        fraction of the rows; fractions are rounded up. So 1 is a single row, and 1.0 as
        many rows as there are positives. In a step, fractions are of the positives in
        the buffer, or of the rows of buffer and batch, and k is at most the number of
        positives in the buffer. The paper leaves k open here. A `k` of more rows than
        there are positives in all gives a warning.
    beta : float, default=0.1
        Fraction in (0, 1] of the negatives of a batch, rounded up, that form pairs; for
        "pauc" only.
    batch_size : int, default=500
        Number of negatives of a batch, at least 1; if there are fewer, all negatives
        are one batch. It is the size s of the paper.
    reservoir_size : int or None, default=None
        Number of positives to keep in the buffer, at least 1; None for `batch_size`. If
        there are no more, all are kept.
    epochs : int, default=25
        Number of passes over the negatives, at least 1.
    eta0 : float, default=0.1
        Length of the first step, above 0, as a multiple of the subgradient; step t has
        ``eta0 / sqrt(t)``.
    radius : float or None, default=None
        Radius of the ball that w is projected onto, above 0; None for the whole space.
    average : bool, default=True
        Whether the model is the mean of w over all batches, the paper's choice, instead
        of the last w.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the negatives in each epoch. True or "rows" draws a new random order.
        "blocks" draws an order of blocks of 32 neighbouring negatives, fit for rows
        that already lie in random order. False keeps the stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the buffer and of the order of the negatives. An int of at least 0 gives
        the same in each fit, None new ones; a RandomState or Generator goes on where it
        stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``, plus `intercept_` if
        there is one.
    intercept_ : float
        Weight of a constant feature of 1, part of w also where w is projected. Only if
        the objective is "f1", which depends on the sign of the scores.
    n_empty_batches_ : int
        Batches so far that could not change w; each has a positive and a negative here,
        so that it is 0.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. With "prec@k"
        the first `k` training rows score above it, with other objectives as many as
        there are positives, except for ties. Only after a `fit` without a trace, and
        not with an `intercept_`.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the negatives so far.
    n_rows_seen_ : int
        Rows scored, repeated visits included: those of the buffer count in every batch.
        Pass 1 is not counted.
    t_ : int
        Batches so far.

    Notes
    -----
    The fraction of positives in a step is inflated. The loss of a step still estimates
    "pauc" and "auc", which treat the classes separately; that of "prec@k" and "f1" is
    the loss of an easier problem.

    The paper prints a plus where a descent step is meant, and ``eta / sqrt(e)`` from e
    = 0: ours counts from 1. Its buffers of positives and negatives have the same size.

    References
    ----------
    kar2014 (Kar, Narasimhan, Jain, "Online and stochastic gradient methods for
    non-decomposable loss functions", NIPS 2014): Algorithm 2, (3) for "prec@k", (5) for
    "pauc", and appendix H for its subgradient. Joachims, "A support vector method for
    multivariate performance measures", ICML 2005, for "f1".

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import TwoPMB
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.arange(400) < 20
    >>> ranker = TwoPMB("pauc", batch_size=95, reservoir_size=10, epochs=2).fit(X, y)
    >>> ranker.n_rows_seen_  # in each epoch 4 batches of 95 negatives and 10 positives
    840
    """

    objective: str = field(default="prec@k", kw_only=False)
    k: TopK = 0.25
    beta: float = 0.1
    batch_size: int = 500
    reservoir_size: int | None = None
    epochs: int = 25
    eta0: float = 0.1
    radius: float | None = None
    average: bool = True
    shuffle: Shuffle = True
    random_state: Any = None

    allowed = Allowed(
        objective=one_of("prec@k", "pauc", "auc", "f1"),
        k=K,
        beta=SHARE,
        batch_size=COUNT,
        reservoir_size=[None, *COUNT],
        eta0=POSITIVE,
        radius=RADIUS,
    )

    @property
    def _takes_pieces(self) -> bool:
        return False

    @property
    def n_empty_batches_(self) -> int:
        return self._step.n_empty

    def _new_step(self, n_features: int) -> MiniBatchStep:
        return MiniBatchStep(n_features, self._rule(), mean_or_last(self.average))

    def _rule(self) -> Rule:
        return rule_of_objective(
            self.objective, self.k, self.beta, eta0=self.eta0, radius=self.radius
        )

    def _batch_length(self, labels: NDArray[np.int8]) -> int:
        """Return the rows of the buffer and a batch of negatives together."""
        n_pos = int(np.count_nonzero(labels > 0))
        n_buffer = min(self.reservoir_size or self.batch_size, n_pos)
        n_neg_of_batch = min(self.batch_size, len(labels) - n_pos)
        return n_buffer + n_neg_of_batch

    def _epochs(
        self,
        rows: Rows,
        labels: NDArray[np.int8],
        batch_size: int,
        rng: np.random.Generator,
    ) -> Iterator[Iterable[Piece]]:
        """Yield the pieces of each epoch (pass 2 of kar2014's Algorithm 2).

        They are batches of negatives, each after the buffer, which is a sample of the
        positives.
        """
        pos = np.flatnonzero(labels > 0).astype(np.int32)
        neg = np.flatnonzero(labels <= 0).astype(np.int32)
        reservoir_size = self.reservoir_size or self.batch_size
        buffer = pos[reservoir_sample(len(pos), reservoir_size, rng)]
        # The negatives of a piece are those of as many batches as make about
        # `_ORDER_ROWS` rows together with their buffers.
        n_streamed = self.batch_size * max(1, _ORDER_ROWS // batch_size)
        while True:
            streamed = neg[visiting_order(len(neg), self.shuffle, rng)]
            yield (
                Piece(
                    rows,
                    labels,
                    joined_batches(
                        buffer, streamed[i : i + n_streamed], self.batch_size
                    ),
                    batch_size,
                )
                for i in range(0, len(neg), n_streamed)
            )


def mean_or_last(average: bool) -> Keep:
    return "mean" if average else "last"


def rule_of_objective(
    objective: str, k: TopK, beta: float, *, eta0: float, radius: float | None
) -> Rule:
    """Return the rule of a step down one of `precbench.ranking.losses`."""
    if objective == "prec@k":
        return Rule(STRUCT, k, eta0=eta0, radius=radius)
    if objective == "pauc":
        return Rule(PAUC, share_of_negatives=float(beta), eta0=eta0, radius=radius)
    if objective == "auc":
        return Rule(PAUC, eta0=eta0, radius=radius)  # all negatives
    return Rule(F1, eta0=eta0, radius=radius)


def reservoir_sample(n: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw min(n, size) of the positions 0 to n - 1, all sets equally likely."""
    # Algorithm R of Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985.
    reservoir = np.arange(min(n, size))
    later = np.arange(len(reservoir), n)
    # Position j draws one of the places 0 to j, and enters if this place is in the
    # reservoir. Of several positions with one place the last remains there.
    places = rng.integers(0, later + 1)
    enters = places < size
    reservoir[places[enters]] = later[enters]
    return np.sort(reservoir)


def joined_batches(
    buffer: NDArray[np.int32], streamed: NDArray[np.int32], batch_size: int
) -> NDArray[np.int32]:
    """Return one array of the buffer, batch 1, the buffer, batch 2, and so on."""
    parts = []
    for start in range(0, len(streamed), batch_size):
        parts += [buffer, streamed[start : start + batch_size]]
    return np.concatenate(parts)
