"""The laws of kar2015 that hold for all scores, and its counterexample, as numbers."""

# A law for all scores can only be refuted. `precision_laws` tries to refute each law,
# with random scores and with a search for scores, and tries the same with a control:
# the law without its premise, or with another surrogate. The violations of the control
# show what the search can find.

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat
from scipy.optimize import brentq

from precbench.core.studies import Count, Seed, table_of
from precbench.ranking.losses import SURROGATES, margins, prec_loss


class _Case(NamedTuple):
    """One list, on which a law is tried."""

    scores: NDArray[np.float64]
    positive: NDArray[np.bool_]
    k: int


_Quantity = Callable[[_Case], float]  # such as a loss, a margin, or the excess of a law


class _Law(NamedTuple):
    """A law ``left <= right`` of the paper, and a similar one that is false."""

    place: str  # in the paper
    name: str
    excess: _Quantity  # left - right: at most 0 in all cases, by the law
    control: _Quantity  # left - right of the false law: above 0 in some cases


class _LawRow(NamedTuple):
    place: str
    law: str
    scores: str  # how they are drawn
    quantity: str
    value: float


@table_of("place", "law", "scores", "quantity", "value")
def precision_laws(
    vectors: Count,
    starts: Count,
    steps: Count,
    most_rows: Annotated[int, Field(ge=4)],
    seed: Seed,
) -> Iterator[_LawRow]:
    """Try to refute the laws of Section 3, which are stated for all scores."""
    # Each law is tried on `vectors` random score vectors of each kind in `_SORTS` and
    # by `starts` hill climbs of `steps` moves (``sought``). Numbers of rows, of
    # positives and k are random. The ``excess`` of the left side over the right one is
    # in units of the largest score, at least 1. The ``control`` is the excess of an
    # inequality that is false, which the search should refute. If a law needs a margin
    # of 1, the negatives are shifted to this margin, in the control to 0.9.
    rng = np.random.default_rng(seed)
    for law in _LAWS:
        for sort in _SORTS:
            cases = [_draw_case(sort, rng, most_rows) for _ in range(vectors)]
            excess = max(_relative(law.excess, case) for case in cases)
            control = max(_relative(law.control, case) for case in cases)
            yield from _rows(law, sort, excess, control, vectors)
        excess = max(_climb(law.excess, rng, most_rows, steps) for _ in range(starts))
        control = max(_climb(law.control, rng, most_rows, steps) for _ in range(starts))
        # A climb tries its start and `steps` moves.
        yield from _rows(law, "sought", excess, control, starts * (steps + 1))


def _rows(
    law: _Law, scores: str, excess: float, control: float, vectors: int
) -> Iterator[_LawRow]:
    """Yield the rows of a law tried on so many score vectors of a kind."""
    values = {
        "excess": excess,
        "control": control,
        "allowed": 0.0,
        "vectors": float(vectors),
    }
    for quantity, value in values.items():
        yield _LawRow(law.place, law.name, scores, quantity, value)


# --- cases ---


def _draw_normal(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.standard_normal(n) * rng.choice([0.3, 1.0, 3.0])


def _draw_small_integers(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.integers(-2, 3, n).astype(float)


def _draw_powers_of_ten(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-3, 3, n)


_SORTS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "normal": _draw_normal,
    "small integers": _draw_small_integers,  # many ties
    "powers of ten": _draw_powers_of_ten,
}


def _draw_case(sort: str, rng: np.random.Generator, most_rows: int) -> _Case:
    """Draw scores of a kind in `_SORTS`, for 4 to `most_rows` rows, labels and k."""
    n = int(rng.integers(4, most_rows + 1))
    n_pos = int(rng.integers(2, n))
    scores = _SORTS[sort](rng, n)
    positive = rng.permutation(n) < n_pos
    # k stays below n_pos: at n_pos some surrogates are equal.
    return _Case(scores, positive, k=int(rng.integers(1, n_pos)))


def _relative(quantity: _Quantity, case: _Case) -> float:
    """Return the quantity in units of the largest score, at least 1."""
    return quantity(case) / max(1.0, float(np.abs(case.scores).max()))


def _climb(
    quantity: _Quantity, rng: np.random.Generator, most_rows: int, steps: int
) -> float:
    """Return the largest quantity that changing one score at a time reaches."""
    case = _draw_case("normal", rng, most_rows)
    best = _relative(quantity, case)
    for _ in range(steps):
        scores = case.scores.copy()
        [score] = _draw_normal(rng, 1)
        scores[rng.integers(len(scores))] = score
        moved = case._replace(scores=scores)
        reached = _relative(quantity, moved)
        if reached >= best:  # equal: the climb goes on from another case
            case = moved
            best = reached
    return best


# --- quantities of a case ---


def _loss(name: str, case: _Case) -> float:
    """Return the loss prec@k, or the value of the surrogate with this name."""
    if name == "prec@k":
        return prec_loss(case.scores, case.positive, case.k)
    surrogate = replace(SURROGATES[name], k=case.k)
    value, _ = surrogate.evaluate(case.scores, case.positive)
    return value


def _margin(kind: str, case: _Case) -> float:
    """Return the weak, average or strong margin (Definitions 2, 5 and 4)."""
    return getattr(margins(case.scores, case.positive, case.k), kind)


def _loss_excess(left: str, right: str, case: _Case) -> float:
    return _loss(left, case) - _loss(right, case)


def _margin_excess(left: str, right: str, case: _Case) -> float:
    return _margin(left, case) - _margin(right, case)


def _distance_from_zero(
    surrogate: str, margin: str, gamma: float, case: _Case
) -> float:
    """Return how far surrogate or loss are from 0 if the case has the margin gamma.

    All negatives are shifted to this margin.
    """
    shift = _margin(margin, case) - gamma
    shifted = case._replace(scores=case.scores + shift * ~case.positive)
    return max(abs(_loss(surrogate, shifted)), abs(_loss("prec@k", shifted)))


def _avg_from_struct(case: _Case) -> float:
    return abs(_loss_excess("avg", "struct", case))


def _avg_from_struct_at_n_pos(case: _Case) -> float:
    return _avg_from_struct(case._replace(k=int(case.positive.sum())))


def _xi_excess(surrogate: str, case: _Case) -> float:
    """Return the least xi that Claim 1 allows, less a surrogate.

    The claim: if the surrogate is at most xi, some set S of at most k rows has
    sum_(i in S) s_i >= sum_i y^_i s_i + Delta(y, y^) - xi for all y^ with k ones. Here
    S is the k positives with the highest scores, so the least xi is the largest
    sum_i y^_i (s_i + 1 - y_i) over all y^, less the sum of S.
    """
    scores, positive, k = case
    labellings = np.array([*combinations(range(len(scores)), k)])  # the ones of y^
    sums = (scores + ~positive)[labellings].sum(axis=1)
    xi = float(sums.max() - np.sort(scores[positive])[-k:].sum())
    return xi - _loss(surrogate, case)


def _lemma_16(case: _Case) -> float:
    """Return the mean of the k least scores less that of the k' least scores.

    Lemma 16: for k <= k' the first mean is at most the second. Here k' is n_pos > k.
    """
    n_pos = case.positive.sum()
    ordered = np.sort(case.scores)
    return float(ordered[: case.k].mean() - ordered[:n_pos].mean())


def _lemma_16_reversed(case: _Case) -> float:
    return -_lemma_16(case)


def _lemma_21(case: _Case, constant: float = 1.0) -> float:
    """Return |g(v) - g(u)| - constant max_i |v_i - u_i|, g a maximum of 1-Lipschitz f.

    Lemma 21: such a g is Lipschitz with the constant 1; the control has a smaller one.
    Here g is the mean of the k largest scores, the maximum over all sets of k scores of
    their mean.
    """
    # From v to u positives move by the first score, negatives by half of it.
    other = case.scores + case.scores[0] * np.where(case.positive, 1.0, 0.5)
    largest = np.sort(case.scores)[-case.k :]
    largest_after = np.sort(other)[-case.k :]
    change = np.mean(largest - largest_after)
    return float(abs(change) - constant * np.abs(case.scores - other).max())


# --- laws ---


def _upper_bound(place: str, loss: str, surrogate: str) -> _Law:
    """Return the law that a surrogate bounds a loss; struct, its control, does not."""
    return _Law(
        place,
        f"{loss} <= {surrogate}",
        excess=partial(_loss_excess, loss, surrogate),
        control=partial(_loss_excess, loss, "struct"),
    )


def _order_of_losses(left: str, right: str) -> _Law:
    """Return the law `left` <= `right`, with the reverse inequality as the control."""
    return _Law(
        "Figure 1",
        f"{left} <= {right}",
        excess=partial(_loss_excess, left, right),
        control=partial(_loss_excess, right, left),
    )


def _order_of_margins(left: str, right: str) -> _Law:
    """Return the law `left` <= `right`, with the reverse inequality as the control."""
    return _Law(
        "Figure 1",
        f"{left} <= {right} margin",
        excess=partial(_margin_excess, left, right),
        control=partial(_margin_excess, right, left),
    )


def _consistent(place: str, surrogate: str, margin: str) -> _Law:
    """Return the law that surrogate and loss are 0 at a margin of 1; control: 0.9."""
    return _Law(
        place,
        f"{surrogate} = 0 at a {margin} margin of 1",
        excess=partial(_distance_from_zero, surrogate, margin, 1.0),
        control=partial(_distance_from_zero, surrogate, margin, 0.9),
    )


_LAWS = (
    _upper_bound("Claim 1", "prec@k", "ramp"),
    _upper_bound("Sections 3.3 and 3.4", "prec@k", "max"),
    _upper_bound("Sections 3.3 and 3.4", "prec@k", "avg"),
    _upper_bound("Sections 3.3 and 3.4", "ramp", "max"),
    _upper_bound("Sections 3.3 and 3.4", "ramp", "avg"),
    _consistent("Claim 3", "ramp", "weak"),
    _consistent("Section 3.3", "max", "strong"),
    _consistent("Claim 6", "avg", "average"),
    _Law(
        "Section 3.4",
        "avg = struct at k = n_+",
        excess=_avg_from_struct_at_n_pos,
        control=_avg_from_struct,
    ),
    _order_of_losses("ramp", "avg"),
    _order_of_losses("avg", "max"),
    _order_of_margins("strong", "average"),
    _order_of_margins("average", "weak"),
    _Law(
        "Claim 1, the set S",
        "sum <= xi",
        excess=partial(_xi_excess, "ramp"),
        control=partial(_xi_excess, "struct"),
    ),
    _Law("Lemma 16", "k <= k'", excess=_lemma_16, control=_lemma_16_reversed),
    _Law(
        "Lemma 21",
        "1-Lipschitz",
        excess=_lemma_21,
        control=partial(_lemma_21, constant=0.5),
    ),
)


# --- the counterexample of Appendix A ---


@table_of("quantity", "weight", "value")
def appendix_a(
    weights: Annotated[list[PositiveFloat], Field(min_length=1)],
) -> Iterator[tuple[str, str, float]]:
    """Evaluate the struct surrogate on the six points of Appendix A."""
    # The score of a point x is w x / 6. Each weight w > 0 has ``struct(w)``,
    # ``struct(-w)``, how far struct(-w) is ``from 1 - w / 6``, and ``loss(-w)``, the
    # loss prec@1 at -w. Besides: the ``least`` struct for each sign of the weights;
    # ``root``, the w < 0 at which struct is 0; ``case (i)``, the least w > 0 from which
    # on struct is w / 2.
    for w in weights:
        values = {
            "struct(w)": _struct(w),
            "struct(-w)": _struct(-w),
            "from 1 - w / 6": abs(_struct(-w) - (1 - w / 6)),
            "loss(-w)": prec_loss(-w * _POINTS, _LABELS, k=1),
        }
        for quantity, value in values.items():
            yield quantity, f"{w:g}", value
    yield "least", "a negative sign", min(_struct(-w) for w in weights)
    yield "least", "a positive sign", min(_struct(w) for w in weights)
    yield "zero", "", 0.0  # for comparisons
    largest = 2 * max(weights)  # where the two searches end
    yield "root", "", brentq(_struct, -largest, 0.0)
    yield "case (i)", "", _bisect(_is_half_of_weight, largest)


_POINTS = np.array([-1.0, -1.0, -2.0, -3.0, -3.0, -3.0])
_LABELS = np.array([1, 1, 1, 0, 0, 0])
_TINY = 1e-12  # for rounding


def _struct(w: float) -> float:
    """Return the struct surrogate at w, by the first display of Appendix A."""
    # max over y^ of 1 + sum_i y^_i (w x_i / n - y_i / k) - sum_i y_i w x_i / n. As k is
    # 1, y^ has a single 1.
    scores = w * _POINTS / len(_POINTS)
    return float((1 + scores - _LABELS).max() - scores[_LABELS == 1].sum())


def _is_half_of_weight(w: float) -> bool:
    """Return whether struct(w) is w / 2, its least value, but for rounding."""
    return _struct(w) <= w / 2 + _TINY


def _bisect(holds: Callable[[float], bool], high: float) -> float:
    """Return from where on `holds` is true; it is false at 0, true at `high`."""
    low = 0.0
    tolerance = _TINY * high
    while high - low > tolerance:
        middle = (low + high) / 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
