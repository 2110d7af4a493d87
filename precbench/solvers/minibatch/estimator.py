"""Mini-batch methods: perceptrons and stochastic gradients for precision at k, 1PMB, 2PMB.

The estimators hold parameters and say by a `Rule` what a step does; `MiniBatchStep` is their state,
and gives the kernel the rows of each batch. The steps themselves are in kernel.pyx, and as the
papers write them in reference.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.topk import TopK, k_by_size, split_at, training_k
from precbench.solvers.common.base import LinearRanker, top_of_training
from precbench.solvers.common.driver import PassMixin, Piece, Shuffle, Step, visiting_order
from precbench.solvers.common.parameters import COUNT, POSITIVE, RADIUS, SHARE, Allowed, K, one_of
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
    """What a step does: which formula of the kernel, for which top, how far, in which ball."""

    code: int  # of the kernel
    k: TopK = 1.0  # top of a batch, see `precbench.ranking.topk`; not of PAUC and F1
    share_of_negatives: float = 1.0  # of a batch, that form pairs; of PAUC alone
    eta0: float | None = None  # step t = 1, 2, ... has the length eta0 / sqrt(t); None: length 1
    radius: float | None = None  # of the ball; None for the whole space


class Candidate(NamedTuple):
    """What the kernel reads of one solver for some batches; w, w_sum and counts change."""

    rule: int  # code of the formula
    k_of: NDArray[np.int32]  # k by the number of positives of a batch, for PAUC of negatives
    eta: NDArray[np.float64]  # step length of each batch
    radius: float  # of the ball, infinite for the whole space
    w: NDArray[np.float64]
    w_sum: NDArray[np.float64]  # to which w is added after each batch, or empty
    counts: NDArray[np.int64]  # of empty batches, of mistakes


class MiniBatchStep(Step):
    """The state of a mini-batch method: w, its sum, and counts of batches and mistakes."""

    def __init__(self, n_features: int, rule: Rule, keep: Keep):
        self.rule = rule
        self.has_intercept = rule.code == F1  # where score 0 divides the classes
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
        k_by_size(top, batch_size)  # fills its cache before the clock starts

    @staticmethod
    def visit(
        steps: Sequence["MiniBatchStep"],
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        batch_size: int,
    ) -> None:
        # The kernel reads the rows once for `n_together` solvers and changes their w in place; a
        # comment there states the lengths of the scratch arrays.
        n_together = min(len(steps), MOST_CANDIDATES)
        real_scratch = np.empty((n_together + 3) * batch_size)
        int_scratch = np.empty(5 * batch_size, dtype=np.int32)
        # A last, shorter batch is visited separately, since its k may be a fraction of its rows.
        n_whole = len(order) // batch_size
        whole, rest = np.split(order, [n_whole * batch_size])
        for n_before, part in ((0, whole), (n_whole, rest)):  # number of batches before the part
            if not len(part):
                continue
            n_rows = min(batch_size, len(part))  # of a batch
            n_batches = -(-len(part) // batch_size)  # rounded up
            candidates = []
            for step in steps:
                rule = step.rule
                top = rule.share_of_negatives if rule.code == PAUC else rule.k
                first = step.t + n_before + 1  # number of the first batch, counted from 1
                # w_t = P_W[w_{t-1} - eta0 / sqrt(t) g_t] of kar2015, Algorithm 3
                eta = np.ones(n_batches)
                if rule.eta0 is not None:
                    eta = rule.eta0 / np.sqrt(np.arange(first, first + n_batches))
                candidates.append(
                    Candidate(
                        rule=rule.code,
                        k_of=k_by_size(top, n_rows),
                        eta=eta,
                        radius=np.inf if rule.radius is None else rule.radius,
                        w=step.w,
                        w_sum=step.w_sum,
                        counts=step.counts,
                    )
                )
            for i in range(0, len(candidates), n_together):
                together = candidates[i : i + n_together]
                minibatch_pass(rows, labels, part, batch_size, together, real_scratch, int_scratch)

    def finish_pass(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Keep w as the best one if its precision at k on all rows is not lower than before."""
        # Of the rows tied at the end of the top, prec@k counts the mean over their orders.
        if self.keep != "best":
            return
        scores, positive = linear_scores(rows, self.w), labels > 0
        if not np.isfinite(scores).all():
            return
        k, _uncapped = training_k(self.rule.k, int(np.count_nonzero(positive)), len(labels))
        above, tied, free = split_at(scores, k)  # free: places left for tied rows
        precision = float(positive[above].sum() + free * positive[tied].mean()) / k
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
    """Perceptron@k: learn from the negatives in the top k of each batch.

    With the false positives FP (negatives in the top k) and the false negatives FN
    (positives that are not) of a batch under the current w,

    - ``"avg"``: ``w += |FP| / |FN| * sum(FN) - sum(FP)``,
    - ``"max"``: ``w += sum(the |FP| first of FN) - sum(FP)``.

    Of rows with equal scores the one visited earlier is first. In a batch, k is a fraction of the
    batch's own positives or rows, rounded up, or a count; at most the number of its positives.

    Parameters
    ----------
    variant : {"avg", "max"}, default="avg"
    k : float, int or str, default=0.25
        Fraction of the positives in (0, 1], a count of rows, or a fraction of the rows ("1 %"); of
        more rows than there are positives, as many as these.
    batch_size : int, default=500
        In rows.
    epochs : int, default=25
        Number of passes over the rows.
    average : bool, default=False
        True is short for ``keep="mean"``, and has no meaning beside `keep`.
    keep : {"last", "mean", "best"} or None, default=None
        The w that is the model: the last one (the paper's choice, and the default), the mean of w
        over all batches, or the best w at the end of a pass, by prec@k on the rows of `fit` (the
        latest of equally good ones); with "best" there is no `partial_fit`.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`: True or "rows" for a new random order, "blocks"
        for blocks of 32 neighbouring rows in random order (faster; for rows that already lie in
        random order), False for the stored order.
    random_state : int, Generator or None, default=None
        Of that order.

    Attributes
    ----------
    n_empty_batches_ : int
        Batches without a positive: nothing changes.
    n_mistakes_ : int
        False positives summed over all batches, the Delta of Theorems 7 and 9.

    References
    ----------
    kar2015 (see `precbench.ranking.losses`), Algorithms 1 and 2. The text says that Algorithm 2
    updates "only for false positives in the set FN": false negatives are meant.

    Examples
    --------
    >>> from precbench import PerceptronAtK
    >>> X, y = [[3.0], [2.0], [1.0], [0.0]], [0, 0, 1, 1]
    >>> for variant in ("avg", "max"):  # of equal rows the first negative: (1 + 0) / 2 - 3, 1 - 3
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
        return MiniBatchStep(n_features, self._rule(), self.keep or mean_or_last(self.average))

    def _rule(self) -> Rule:
        codes = {"avg": PERCEPTRON_AVG, "max": PERCEPTRON_MAX}
        return Rule(codes[self.variant], self.k)


@dataclass(kw_only=True, eq=False, repr=False)
class SGDAtK(PassMixin, LinearRanker):
    """SGD@k: learn weights that put positives among the top k rows, batch by batch.

    Each batch takes a step down a subgradient g_t of a surrogate of the prec@k loss, a sum over its
    top k rows: ``w_t = P_W[w_{t-1} - eta0 / sqrt(t) * g_t]``, P_W being the projection onto a ball.

    Parameters
    ----------
    surrogate : {"avg", "max", "ramp", "struct"}, default="avg"
        See `precbench.ranking.losses`.
    eta0 : float, default=0.1
        Length of the first step.
    radius : float or None, default=None
        Of the ball; None for the whole space, where "struct" with k < n_pos has no minimum.
    average : bool, default=True
        True, the paper's choice, is short for ``keep="mean"``, False for ``keep="last"``.
    keep : {"last", "mean", "best"} or None, default=None
        Which w is the model, see `PerceptronAtK`; None for what `average` says.
    k, batch_size, epochs, shuffle, random_state
        As in `PerceptronAtK`.

    Attributes
    ----------
    n_empty_batches_ : int
        Batches without a positive: nothing changes.

    References
    ----------
    kar2015, Algorithms 3 and 4. The paper leaves step sizes and the ball open.

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
        return MiniBatchStep(n_features, self._rule(), self.keep or mean_or_last(self.average))

    def _rule(self) -> Rule:
        codes = {"avg": AVG, "max": MAX, "ramp": RAMP, "struct": STRUCT}
        return Rule(codes[self.surrogate], self.k, eta0=self.eta0, radius=self.radius)


@dataclass(kw_only=True, eq=False, repr=False)
class OnePMB(PassMixin, LinearRanker):
    """1PMB: mini-batch subgradient descent on a non-decomposable loss, one pass and more.

    ``w_e = P_W[w_{e-1} - eta0 / sqrt(e) * g_e]`` over the batches e = 1, 2, ..., with g_e a
    subgradient of one of `precbench.ranking.losses` on batch e; the model is the mean of
    w_1, ..., w_e.
    With ``objective="prec@k"``, the struct surrogate, this is `SGDAtK` with ``surrogate="struct"``.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "auc", "f1"}, default="prec@k"
    k : float, int or str, default=0.25
        For "prec@k": as in `PerceptronAtK`; kar2014 takes 1.0 (PRBEP).
    beta : float, default=0.1
        For "pauc": fraction of a batch's negatives in (0, 1], rounded up.
    batch_size : int, default=500
        In rows; if there are fewer, all rows are one batch.
    average : bool, default=True
        Give the mean of w, else the last one.
    eta0, radius
        As in `SGDAtK`.
    epochs, shuffle, random_state
        As in `PerceptronAtK`.

    Attributes
    ----------
    n_empty_batches_ : int
        Batches without a positive, or for "pauc" and "auc" without a negative: nothing changes.
    intercept_ : float
        Only for the objective "f1", which appends a constant feature; part of w also where w is
        projected. `decision_function` adds `intercept_`.

    References
    ----------
    kar2014 (see `precbench.ranking.losses`), Algorithm 1 and appendix H. It prints a plus where a
    descent step is meant, and ``eta / sqrt(e)`` from e = 0: ours counts from 1. The scaling of
    "prec@k" is that of kar2015 (3), with the same path as kar2014 (3) up to a factor.

    Examples
    --------
    >>> from precbench import OnePMB
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> ranker = OnePMB("f1", random_state=0).fit(X, y)  # the only objective with an intercept
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
    """2PMB: mini-batches of streaming negatives, each against a stored sample of the positives.

    Pass 1 fills a buffer with positives by reservoir sampling. Pass 2 streams the negatives in
    batches e = 1, 2, ...; each one, appended to the buffer, makes a step as in `OnePMB`. Every
    further epoch is one more pass 2 with the same buffer. There is no `partial_fit`, because no
    step can be taken before pass 1 has seen all positives.

    In a batch the fraction of positives is inflated. The loss of a batch still estimates "pauc" and
    "auc", which treat the classes separately; the loss of "prec@k" and "f1" is an easier problem's.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "auc", "f1"}, default="prec@k"
    k : float, int or str, default=0.25
        For "prec@k": fraction of the positives in the buffer in (0, 1], rounded up, a count, or a
        fraction of the rows of a batch with the buffer ("1 %"); at most the number of positives in
        the buffer. The paper does not say.
    batch_size : int, default=500
        Negatives in a batch (the paper's buffer B₋ of size s, beside B₊); if there are fewer, all.
    reservoir_size : int or None, default=None
        Positives to keep (B₊), None for `batch_size`; if there are no more, all are kept.
    beta, epochs, eta0, radius, average, shuffle, random_state
        As in `OnePMB`; the order is that of the negatives.

    Attributes
    ----------
    n_rows_seen_ : int
        Rows that were scored, those of the buffer in every batch.
    n_empty_batches_, intercept_
        As in `OnePMB`.

    References
    ----------
    kar2014, Algorithm 2 and appendix H; sign and step size as in `OnePMB`.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import TwoPMB
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.arange(400) < 20
    >>> ranker = TwoPMB("pauc", batch_size=95, reservoir_size=10, epochs=2).fit(X, y)
    >>> ranker.n_rows_seen_  # in each epoch 4 batches of 95 negatives, and with each 10 positives
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
        n_pos = int(np.count_nonzero(labels > 0))
        size = self.reservoir_size or self.batch_size
        return min(size, n_pos) + min(self.batch_size, len(labels) - n_pos)  # buffer, negatives

    def _epochs(
        self, rows: Rows, labels: NDArray[np.int8], batch_size: int, rng: np.random.Generator
    ) -> Iterator[Iterable[Piece]]:
        """Yield the pieces of each epoch (pass 2 of kar2014's Algorithm 2).

        They are batches of negatives, each after the buffer, which is a sample of the positives.
        """
        pos = np.flatnonzero(labels > 0).astype(np.int32)
        neg = np.flatnonzero(labels <= 0).astype(np.int32)
        buffer = pos[reservoir_sample(len(pos), self.reservoir_size or self.batch_size, rng)]
        # Negatives in a piece: whole batches that make, with their buffers, about _ORDER_ROWS rows.
        n_streamed = self.batch_size * max(1, _ORDER_ROWS // batch_size)
        while True:
            streamed = neg[visiting_order(len(neg), self.shuffle, rng)]
            yield (
                Piece(
                    rows,
                    labels,
                    joined_batches(buffer, streamed[i : i + n_streamed], self.batch_size),
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
    """Draw min(n, size) of the positions 0 to n - 1, ascending, all sets equally likely."""
    # Algorithm R of Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985.
    reservoir = np.arange(min(n, size))
    later = np.arange(len(reservoir), n)
    # Position j draws one of the places 0 to j, and enters if this place is in the reservoir.
    places = rng.integers(0, later + 1)
    enters = places < size
    reservoir[places[enters]] = later[enters]  # the last position drawn to a place remains
    return np.sort(reservoir)


def joined_batches(
    buffer: NDArray[np.int32], streamed: NDArray[np.int32], batch_size: int
) -> NDArray[np.int32]:
    """Cut streamed rows into batches; return one array: buffer, batch 1, buffer, batch 2, ..."""
    parts = []
    for start in range(0, len(streamed), batch_size):
        parts += [buffer, streamed[start : start + batch_size]]
    return np.concatenate(parts)
