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

from precbench.core.studies import Count, Seed, rows_of, table_of
from precbench.ranking.losses import SURROGATES, margins, prec_loss


class _Case(NamedTuple):  # one list, on which a law is tried
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_]
    k: int


_Quantity = Callable[[_Case], float]  # such as a loss, a margin, or the excess of a law


@table_of("place", "law", "scores", "quantity", "value")
def precision_laws(
    vectors: Count,
    starts: Count,
    steps: Count,
    most_rows: Annotated[int, Field(ge=4)],
    seed: Seed,
) -> Iterator[tuple[str, str, str, str, float]]:
    """Try to refute the laws of Section 3, which are stated for all scores."""
    # Each law is tried on `vectors` random score vectors of each kind in `_SORTS` and
    # by `starts` hill climbs of `steps` moves (``sought``). Numbers of rows, of
    # positives and k are random. The ``excess`` of the left side over the right one is
    # in units of the largest score, at least 1. The ``control`` is the excess of an
    # inequality that is false, which the search should refute. If a law needs a margin
    # of 1, the negatives are shifted to this margin, in the control to 0.9.
    rng = np.random.default_rng(seed)
    for law in _LAWS:
        for scores in _SORTS:
            cases = [_case(scores, rng, most_rows) for _ in range(vectors)]
            worst = {
                "excess": max(_relative(law.excess, case) for case in cases),
                "control": max(_relative(law.control, case) for case in cases),
            }
            yield from _rows(law, scores, vectors, worst)
        sought = {
            name: max(_climb(inequality, rng, most_rows, steps) for _ in range(starts))
            for name, inequality in (("excess", law.excess), ("control", law.control))
        }
        # a climb tries steps + 1
        yield from _rows(law, "sought", starts * (steps + 1), sought)


class _Law(NamedTuple):
    """A law ``left <= right`` of the paper, and a similar inequality that does not always hold."""

    place: str  # in the paper
    name: str
    excess: _Quantity  # left - right: at most 0 in all cases, by the law
    control: _Quantity  # left - right of the other inequality: above 0 in some cases


def _rows(
    law: _Law, scores: str, vectors: int, largest: dict[str, float]
) -> Iterator[tuple[str, str, str, str, float]]:  # place, law, scores, quantity, value
    values = {**largest, "allowed": 0.0, "vectors": float(vectors)}
    return rows_of(values, law.place, law.name, scores)


_SORTS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "normal": lambda rng, n: rng.standard_normal(n) * rng.choice([0.3, 1.0, 3.0]),
    "small integers": lambda rng, n: rng.integers(-2, 3, n).astype(float),
    "powers of ten": (
        lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-3, 3, n)
    ),
}


def _case(sort: str, rng: np.random.Generator, most_rows: int) -> _Case:
    n = int(rng.integers(4, most_rows + 1))  # rows
    # k stays below n_pos: at n_pos some surrogates are equal
    n_pos = int(rng.integers(2, n))
    return _Case(
        _SORTS[sort](rng, n), rng.permutation(n) < n_pos, int(rng.integers(1, n_pos))
    )


def _relative(excess: _Quantity, case: _Case) -> float:
    # / the largest |score|, at least 1
    return excess(case) / max(1.0, float(np.abs(case.scores).max()))


def _climb(
    excess: _Quantity, rng: np.random.Generator, most_rows: int, steps: int
) -> float:
    """Return the largest excess that hill climbing reaches by changing one score at a time."""
    case = _case("normal", rng, most_rows)
    best = _relative(excess, case)
    for _ in range(steps):
        moved = case.scores.copy()
        # another random score
        moved[rng.integers(len(moved))] = _SORTS["normal"](rng, 1)[0]
        if (reached := _relative(excess, case._replace(scores=moved))) >= best:
            case, best = case._replace(scores=moved), reached
    return best


def _loss(name: str) -> _Quantity:
    # value of the surrogate, or loss prec@k, with this name
    if name == "prec@k":
        return lambda case: prec_loss(*case)  # scores, positive, k
    return lambda case: replace(SURROGATES[name], k=case.k).evaluate(
        case.scores, case.positive
    )[0]


def _excess(
    left: str, right: str, quantity: Callable[[str], _Quantity] = _loss
) -> _Quantity:
    return lambda case: quantity(left)(case) - quantity(right)(case)


def _margin(kind: str) -> _Quantity:
    return lambda case: getattr(margins(*case), kind)


def _vanishes(surrogate: str, kind: str, gamma: float) -> _Quantity:
    """Return a function.

    How far surrogate and loss are from 0 in a case moved to margin gamma.
    """

    def distance(case: _Case) -> float:
        # of the negatives: the margin is then gamma
        shift = _margin(kind)(case) - gamma
        shifted = case._replace(scores=case.scores + shift * ~case.positive)
        return max(abs(_loss(surrogate)(shifted)), _loss("prec@k")(shifted))

    return distance


def _avg_from_struct(case: _Case) -> float:
    return abs(_excess("avg", "struct")(case))


def _largest_over_sets(surrogate: str) -> _Quantity:
    """Return a function.

    The largest xi of Claim 1, over all sets of k rows, less a surrogate.
    """
    # xi of a set sums its scores, plus 1 for each negative, less the k largest scores
    # of positives.

    def excess(case: _Case) -> float:
        scores, positive, k = case
        sets = np.array([*combinations(range(len(scores)), k)])
        sums = (scores + ~positive)[sets].sum(axis=1)  # + 1 for each negative
        return float(sums.max() - np.sort(scores[positive])[-k:].sum()) - _loss(
            surrogate
        )(case)

    return excess


def _lemma_16(case: _Case, sign: float = 1.0) -> float:
    """Return `sign` * (mean of the k least scores - mean of the k' = n_pos > k least scores)."""
    ordered = np.sort(case.scores)
    return sign * float(
        ordered[: case.k].mean() - ordered[: case.positive.sum()].mean()
    )


def _lemma_21(case: _Case, share: float = 1.0) -> float:
    """Return how far the mean of the k largest scores moves, less `share` of the largest move."""
    # Scores of positives move by the first score, scores of negatives by half the first
    # score.
    other = case.scores + case.scores[0] * np.where(case.positive, 1.0, 0.5)
    change = np.mean(np.sort(case.scores)[-case.k :] - np.sort(other)[-case.k :])
    return float(abs(change) - share * np.abs(case.scores - other).max())


def _upper_bound(place: str, left: str, surrogate: str) -> _Law:
    # control: struct, no bound
    return _Law(
        place,
        f"{left} <= {surrogate}",
        _excess(left, surrogate),
        _excess(left, "struct"),
    )


def _order(
    left: str, right: str, quantity: Callable[[str], _Quantity], suffix: str = ""
) -> _Law:
    """Return the law `left` <= `right`, with the reverse inequality as the control."""
    name = f"{left} <= {right}{suffix}"
    return _Law(
        "Figure 1", name, _excess(left, right, quantity), _excess(right, left, quantity)
    )


def _consistent(place: str, surrogate: str, margin: str) -> _Law:
    """Return the law that the surrogate is 0 at a margin of 1.

    Its control has a margin of 0.9.
    """
    name = f"{surrogate} = 0 at a {margin} margin of 1"
    return _Law(
        place,
        name,
        _vanishes(surrogate, margin, 1.0),
        _vanishes(surrogate, margin, 0.9),
    )


_LAWS = (
    _upper_bound("Claim 1", "prec@k", "ramp"),
    *(
        _upper_bound("Sections 3.3 and 3.4", left, right)
        for left in ("prec@k", "ramp")
        for right in ("max", "avg")
    ),
    _consistent("Claim 3", "ramp", "weak"),
    _consistent("Section 3.3", "max", "strong"),
    _consistent("Claim 6", "avg", "average"),
    _Law(
        "Section 3.4",
        "avg = struct at k = n_+",
        lambda case: _avg_from_struct(case._replace(k=int(case.positive.sum()))),
        _avg_from_struct,
    ),
    _order("ramp", "avg", _loss),
    _order("avg", "max", _loss),
    _order("strong", "average", _margin, " margin"),
    _order("average", "weak", _margin, " margin"),
    _Law(
        "Claim 1, the set S",
        "sum <= xi",
        _largest_over_sets("ramp"),
        _largest_over_sets("struct"),
    ),
    _Law("Lemma 16", "k <= k'", _lemma_16, partial(_lemma_16, sign=-1.0)),
    _Law("Lemma 21", "1-Lipschitz", _lemma_21, partial(_lemma_21, share=0.5)),
)


@table_of("quantity", "weight", "value")
def appendix_a(
    weights: Annotated[list[PositiveFloat], Field(min_length=1)],
) -> Iterator[tuple[str, str, float]]:
    """Evaluate the struct surrogate on the six points of Appendix A, as scaled there."""
    # The score of a point x is w x / 6. Each weight w > 0 has ``struct(w)``,
    # ``struct(-w)``, how far struct(-w) is ``from 1 - w / 6``, and ``loss(-w)``, the
    # loss prec@1 at -w. Besides: the ``least`` struct for each sign of the weights;
    # ``root``, the w < 0 at which struct is 0; ``case (i)``, the least w > 0 from which
    # on struct is w / 2.
    for w in weights:
        yield "struct(w)", f"{w:g}", _struct(w)
        yield "struct(-w)", f"{w:g}", _struct(-w)
        yield "from 1 - w / 6", f"{w:g}", abs(_struct(-w) - (1 - w / 6))
        yield "loss(-w)", f"{w:g}", prec_loss(-w * _POINTS, _LABELS, k=1)
    largest = 2 * max(weights)  # where the search for ``root`` and ``case (i)`` ends
    yield from (
        ("least", "a negative sign", min(_struct(-w) for w in weights)),
        ("least", "a positive sign", min(_struct(w) for w in weights)),
        ("zero", "", 0.0),  # for comparisons
        ("root", "", brentq(_struct, -largest, 0.0)),
        # + rounding
        ("case (i)", "", _bisect(lambda w: _struct(w) <= w / 2 + _TINY, largest)),
    )


_POINTS = np.array([-1.0, -1.0, -2.0, -3.0, -3.0, -3.0])
_LABELS = np.array([1, 1, 1, 0, 0, 0])
_TINY = 1e-12  # for rounding


def _struct(w: float) -> float:
    """Return the struct surrogate at w for k = 1, by the first display of Appendix A."""
    # as scaled there; a labelling has a single 1 (k = 1)
    scores = w * _POINTS / len(_POINTS)
    return float((1 + scores - _LABELS).max() - scores[_LABELS == 1].sum())


def _bisect(holds: Callable[[float], bool], high: float) -> float:
    """Return the least number from which on `holds` is true.

    False at 0, true at `high`.
    """
    low, tol = 0.0, _TINY * high
    while high - low > tol:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
