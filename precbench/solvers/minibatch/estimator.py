"""Mini-batch methods: perceptrons and stochastic gradients for precision at k, 1PMB, 2PMB."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.topk import TopK, k_by_size, split_at, training_k
from precbench.solvers.common.base import top_of_training
from precbench.solvers.common.driver import PassRanker, Shuffle, visiting_order
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

Keep = Literal["last", "mean", "best"] | None

_ORDER_ROWS = 2**20  # indices of joined batches that 2PMB holds at a time


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


@dataclass(frozen=True)
class Rule:
    """The update rule of the kernel: its code, the top of a batch, step lengths and ball."""

    code: int
    top: TopK  # as k in `precbench.ranking.topk`; for "pauc" and "auc" a fraction of the negatives
    has_threshold: bool = False  # whether score 0 divides the classes: there is an intercept
    eta0: float | None = None  # step t = 1, 2, ... has the length eta0 / sqrt(t); None: length 1
    radius: float | None = None  # None for the whole space

    def step_lengths(self, t: int, n: int) -> NDArray[np.float64]:  # of n steps, after the first t
        if self.eta0 is None:
            return np.ones(n)
        return self.eta0 / np.sqrt(np.arange(t + 1, t + n + 1))


@dataclass(kw_only=True, eq=False, repr=False)
class MiniBatchRanker(PassRanker):
    """Base of the methods that step along a subgradient of a measure of a whole batch.

    Attributes
    ----------
    n_empty_batches_ : int
        Batches without a positive, or for "pauc" and "auc" without a negative: nothing changes.
    """

    k: TopK = 0.25
    batch_size: int = 500
    epochs: int = 25
    average: bool = True
    shuffle: Shuffle = True
    random_state: Any = None

    allowed = Allowed(k=K, batch_size=COUNT)

    @abstractmethod
    def _rule(self) -> Rule: ...  # for the parameters of the solver

    @property
    def _has_intercept(self) -> bool:
        return self._rule().has_threshold

    def _prepare(self, labels: NDArray[np.int8]) -> None:
        top = self._rule().top
        top_of_training(top, labels)  # warns if k exceeds the number of positives
        k_by_size(top, self._batch_length(labels))  # fills its cache before the clock starts

    def _candidate(self, n_rows: int, n_before: int, n_steps: int) -> tuple[Any, ...]:
        # Return this solver's arguments of `minibatch_pass`, which calls them a candidate.
        # The pass has `n_steps` batches of `n_rows` rows, after `n_before` batches not yet in `t_`.
        rule = self._rule()
        return (
            rule.code,
            k_by_size(rule.top, n_rows),
            rule.step_lengths(self.t_ + n_before, n_steps),
            np.inf if rule.radius is None else rule.radius,
            self._w,
            self._w_sum,
            self._counts,
        )

    def _reset(self, n_features: int) -> None:
        self._counts = np.zeros(2, dtype=np.int64)  # of empty batches, of mistakes
        self.n_empty_batches_ = 0
        super()._reset(n_features)

    @staticmethod
    def _visit_batches(
        solvers: Sequence["MiniBatchRanker"],
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        batch_size: int,
    ) -> None:
        # Let each solver take a step on each batch. The kernel reads the rows once for `n_together`
        # solvers and changes their w in place; a comment there states the lengths of `scratch`.
        n_together = min(len(solvers), MOST_CANDIDATES)
        scratch = np.empty((n_together + 3) * batch_size), np.empty(5 * batch_size, dtype=np.int32)
        # A last, shorter batch is visited separately, since its k may be a fraction of its rows.
        n_whole = len(order) // batch_size
        whole, rest = np.split(order, [n_whole * batch_size])
        for n_before, part in ((0, whole), (n_whole, rest)):  # number of batches before the part
            if not len(part):
                continue
            n_rows, n_steps = min(batch_size, len(part)), -(-len(part) // batch_size)  # rounded up
            for first in range(0, len(solvers), n_together):
                candidates = tuple(
                    solver._candidate(n_rows, n_before, n_steps)
                    for solver in solvers[first : first + n_together]
                )
                minibatch_pass(rows, labels, part, batch_size, candidates, *scratch)
        for solver in solvers:
            solver.n_empty_batches_, _n_mistakes = solver._counts.tolist()


@dataclass(kw_only=True, eq=False, repr=False)
class PrecisionRanker(MiniBatchRanker):
    """Base of the methods for precision at k, which may keep the iterate of the best prec@k."""

    keep: Keep = None

    allowed = Allowed(keep=[None, *one_of("last", "mean", "best")])

    @property
    def _takes_pieces(self) -> bool:
        return self.keep != "best"  # which scores all rows after each pass

    @property
    def _takes_mean(self) -> bool:
        return self.average if self.keep is None else self.keep == "mean"

    def _reset(self, n_features: int) -> None:
        self._best: tuple[float, NDArray[np.float64]] | None = None  # prec@k, w
        super()._reset(n_features)

    def _finish_pass(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        # With ``keep="best"``, note w and its prec@k as `_best` if prec@k is not lower than before.
        # Of the rows tied at the end of the top, prec@k counts the mean over their orders.
        if self.keep != "best":
            return
        scores, positive = linear_scores(rows, self._w), labels > 0
        if np.isfinite(scores).all():
            k, _uncapped = training_k(self.k, int(np.count_nonzero(positive)), len(labels))
            above, tied, free = split_at(scores, k)  # free: places left for tied rows
            precision = float(positive[above].sum() + free * positive[tied].mean()) / k
            if self._best is None or precision >= self._best[0]:  # [0]: the best prec@k so far
                self._best = precision, self._w.copy()  # later steps change w in place

    def _model(self) -> NDArray[np.float64]:
        return super()._model() if self._best is None else self._best[1]  # [1]: the best w


@dataclass(kw_only=True, eq=False, repr=False)
class PerceptronAtK(PrecisionRanker):
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
    average: bool = False

    allowed = Allowed(variant=one_of("avg", "max"))

    def _rule(self) -> Rule:
        codes = {"avg": PERCEPTRON_AVG, "max": PERCEPTRON_MAX}
        return Rule(codes[self.variant], self.k)

    @property
    def n_mistakes_(self) -> int:
        return int(self._counts[1])  # [0] counts the empty batches


@dataclass(kw_only=True, eq=False, repr=False)
class SGDAtK(PrecisionRanker):
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
    eta0: float = 0.1
    radius: float | None = None

    allowed = Allowed(
        surrogate=one_of("avg", "max", "ramp", "struct"), eta0=POSITIVE, radius=RADIUS
    )

    def _rule(self) -> Rule:
        codes = {
            "avg": AVG,
            "max": MAX,
            "ramp": RAMP,
            "struct": STRUCT,
        }
        return Rule(codes[self.surrogate], self.k, eta0=self.eta0, radius=self.radius)


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectiveRanker(MiniBatchRanker):
    """Base of the mini-batch methods that take any of `precbench.ranking.losses`.

    Attributes
    ----------
    intercept_ : float
        Only for the objective "f1", which appends a constant feature; part of w also where w is
        projected. `decision_function` adds `intercept_`.
    """

    objective: str = field(default="prec@k", kw_only=False)
    beta: float = 0.1
    eta0: float = 0.1
    radius: float | None = None

    allowed = Allowed(
        objective=one_of("prec@k", "pauc", "auc", "f1"), beta=SHARE, eta0=POSITIVE, radius=RADIUS
    )

    def _rule(self) -> Rule:
        code, top = {
            "prec@k": (STRUCT, self.k),
            "pauc": (PAUC, float(self.beta)),
            "auc": (PAUC, 1.0),  # all negatives
            "f1": (F1, 1.0),  # has no top: the kernel does not use it
        }[self.objective]
        has_threshold = self.objective == "f1"
        return Rule(code, top, has_threshold, eta0=self.eta0, radius=self.radius)


@dataclass(kw_only=True, eq=False, repr=False)
class OnePMB(ObjectiveRanker):
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


@dataclass(kw_only=True, eq=False, repr=False)
class TwoPMB(ObjectiveRanker):
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

    reservoir_size: int | None = None

    allowed = Allowed(reservoir_size=[None, *COUNT])

    @property
    def _takes_pieces(self) -> bool:
        return False

    def _batch_length(self, labels: NDArray[np.int8]) -> int:
        n_pos = int(np.count_nonzero(labels > 0))
        size = self.reservoir_size or self.batch_size
        return min(size, n_pos) + min(self.batch_size, len(labels) - n_pos)  # buffer, negatives

    def _passes(
        self, labels: NDArray[np.int8], rng: np.random.Generator
    ) -> Iterator[Iterable[NDArray[np.int32]]]:
        # Yield for each epoch (pass 2 of kar2014's Algorithm 2) the order of its rows, in pieces:
        # batches of negatives, each after the buffer, which is a sample of the positives.
        pos = np.flatnonzero(labels > 0).astype(np.int32)
        neg = np.flatnonzero(labels <= 0).astype(np.int32)
        buffer = pos[reservoir_sample(len(pos), self.reservoir_size or self.batch_size, rng)]
        # Negatives in a piece: whole batches that make, with their buffers, about _ORDER_ROWS rows.
        per_piece = self.batch_size * max(1, _ORDER_ROWS // self._batch_length(labels))
        while True:  # endless: the caller stops
            negatives = neg[visiting_order(len(neg), self.shuffle, rng)]
            yield (
                joined_batches(buffer, negatives[start : start + per_piece], self.batch_size)
                for start in range(0, len(neg), per_piece)
            )


def joined_batches(
    buffer: NDArray[np.int32], streamed: NDArray[np.int32], batch_size: int
) -> NDArray[np.int32]:
    """Cut streamed rows into batches; return one array: buffer, batch 1, buffer, batch 2, ..."""
    parts = []
    for start in range(0, len(streamed), batch_size):
        parts += [buffer, streamed[start : start + batch_size]]
    return np.concatenate(parts)
