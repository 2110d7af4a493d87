"""The verdict on each claim."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims.evidence import WALL_SECONDS, Evidence, MissingError, Outcomes
from precbench.claims.kinds import (
    BoundClaim,
    Claim,
    ConsistencyClaim,
    ExactClaim,
    FactClaim,
    MeanClaim,
    OrderClaim,
    RatioClaim,
    Reading,
    Selection,
    SpreadClaim,
    StatementClaim,
    VariationClaim,
)
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import (
    LEVEL,
    MIN_REPETITIONS,
    MIN_SPLITS,
    MIN_TIMED_SPLITS,
    Placement,
    Verdict,
    agrees,
    beyond_all_others,
    has_spread,
    mean_test,
    parse_printed,
    place,
    prediction_error,
    sign_test,
)
from precbench.errors import InputError
from precbench.locations import shipped

__all__ = ["make_ledger"]

_Results = TypeVar("_Results")


def make_ledger(claims: Sequence[Claim], evidence: Evidence) -> list[LedgerRow]:
    """Give each claim its verdict.

    Parameters
    ----------
    claims : sequence of Claim
    evidence : Evidence

    Returns
    -------
    list of LedgerRow
        In the order of the claims.
    """
    rows: list[LedgerRow] = []
    cells: list[_Draws] = []
    for claim in claims:
        try:
            _refuse_without_config(claim)
            if isinstance(claim, MeanClaim) and claim.runs is not None:
                rows.append(_judge_few_runs(claim, claim.runs, evidence))
            elif isinstance(claim, MeanClaim) and not claim.averaged:
                cells.append(_draws(claim, evidence))
            else:
                rows.append(_JUDGES[type(claim)](claim, evidence))
        except _NoConfigError as missing:
            rows.append(_row(claim, Verdict.NO_CONFIG, reason=str(missing)))
        except MissingError as missing:
            rows.append(_row(claim, Verdict.NO_DATA, reason=str(missing)))
    rows += _judge_together(cells, evidence)
    place_of = {claim.id: i for i, claim in enumerate(claims)}
    return sorted(rows, key=lambda row: place_of[row.id])


class _NoConfigError(Exception):
    """No experiment measures it yet; the text says what is missing."""


def _refuse_without_config(claim: Claim) -> None:
    if claim.untested:
        raise _NoConfigError(claim.untested)
    config = shipped("configs") / f"{claim.config}.yaml"
    if not isinstance(claim, StatementClaim) and not config.exists():
        raise _NoConfigError(f"there is no config {claim.config} yet")


def _measured(claim: Claim, results: Mapping[str, _Results]) -> _Results:
    """Return the results of the claim's experiment."""
    if claim.experiment not in results:
        raise MissingError(f"not in these results: precbench run {claim.config}")
    return results[claim.experiment]


def _row(claim: Claim, verdict: Verdict, **other: Any) -> LedgerRow:
    about: dict[str, Any] = {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "kind": claim.kind,
        "printed": claim.printed,
        "verdict": verdict,
    }
    return LedgerRow(**about | other)


def _reproduced(claim: Claim, deviations: Iterable[str] = ()) -> dict[str, Any]:
    names = " ".join(dict.fromkeys([*claim.deviations, *deviations]))
    verdict = Verdict.WITH_DEVIATION if names else Verdict.REPRODUCED
    return {"verdict": verdict, "deviation": names}


def _select(claim: Claim, table: pd.DataFrame, cell: Selection) -> pd.DataFrame:
    """Return the rows of a study's table that hold these entries."""
    for column, wanted in cell.items():
        if column not in table:
            raise InputError(f"{claim.id}: {claim.experiment} has no column {column}")
        table = table[table[column] == wanted]
    return table


def _judge_exact(claim: ExactClaim, evidence: Evidence) -> LedgerRow:
    table = _measured(claim, evidence.values)
    found = [_read(claim, reading, table) for reading in claim.readings]
    for reading, (measured, agreed) in zip(claim.readings, found, strict=True):
        if agreed:
            ours = [reading.deviation] if reading.deviation else []
            return _row(claim, **_reproduced(claim, ours), measured=measured, runs=1)
    return _row(claim, Verdict.NOT_REPRODUCED, measured=found[0][0], runs=1)


def _read(claim: ExactClaim, reading: Reading, table: pd.DataFrame) -> tuple[str, bool]:
    """Return the value under one reading of the paper, and whether it agrees with the print."""
    rows = _select(claim, table, {**claim.cell, **reading.cell})
    if claim.argmin is not None:
        rows = rows[rows[claim.argmin].isin(claim.among)]
    if len(rows) != (len(claim.among) or 1):
        raise InputError(f"{claim.id}: its cell selects {len(rows)} values")
    if claim.argmin is not None:
        smallest = str(rows[claim.argmin].iloc[int(rows["value"].argmin())])
        return smallest, smallest == claim.printed.replace("_", "")
    value = float(rows["value"].iloc[0])
    if claim.expected is not None or claim.at_least is not None:
        reached = claim.at_least is not None and value >= claim.at_least
        exact = claim.expected is not None and math.isclose(value, claim.expected, rel_tol=1e-12)
        return f"{value:.8g}", reached or exact
    return f"{value:.8g}", agrees(parse_printed(claim.printed), value, claim.truncated)


def _judge_bound(claim: BoundClaim, evidence: Evidence) -> LedgerRow:
    table = _measured(claim, evidence.values)
    left = _select(claim, table, claim.cell)
    values, right = left["value"].to_numpy(), _counterparts(claim, table, left, claim.by)
    bounds = claim.factor * right + claim.margin
    holds = values <= bounds
    measured = f"{values[0]:.4g} against {right[0]:.4g}"
    if len(holds) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = values / right
        measured = f"holds in {holds.sum()} of {len(holds)}, "
        if np.isfinite(shares).all():
            measured += f"ratio {shares.min():.3g} to {shares.max():.3g}"
        else:
            measured += f"excess {(values - right).min():.3g} to {(values - right).max():.3g}"
    about: dict[str, Any] = {"measured": measured, "runs": len(holds)}
    deviation = " ".join(claim.deviations)
    if not holds.all():
        if claim.open_constant:
            reason = "the constant is open, and ours does not suffice, which refutes nothing"
            return _row(claim, Verdict.INCONCLUSIVE, reason=reason, **about)
        return _row(claim, Verdict.NOT_REPRODUCED, deviation=deviation, **about)
    if claim.trivial is not None:
        decisive = int(np.sum(bounds < _counterparts(claim, table, left, claim.trivial)))
        if not decisive:
            reason = "every bound lies above the value of w = 0"
            return _row(claim, Verdict.NO_POWER, reason=reason, **about)
        about["reason"] = f"{decisive} of the bounds lie below the value of w = 0"
    return _row(claim, **_reproduced(claim), **about)


def _counterparts(
    claim: BoundClaim, table: pd.DataFrame, left: pd.DataFrame, cell: Selection
) -> NDArray:
    """Return the value that each value on the left is compared with."""
    right = _select(claim, table, cell)
    if len(right) == 1 and len(left):
        return np.full(len(left), float(right["value"].iloc[0]))
    others = [c for c in table if c != "value" and c not in {**claim.cell, **cell}]
    pairs = left.merge(right, on=others, suffixes=("", "_right"))
    if pairs.empty or len(pairs) != len(left):
        raise InputError(
            f"{claim.id}: {len(left)} values on its left, of which {len(pairs)} have a "
            "counterpart on the right"
        )
    return pairs["value_right"].to_numpy()


def _judge_average(claim: MeanClaim, evidence: Evidence) -> LedgerRow:
    cell = _draws(claim, evidence)
    mean = float(cell.draws.mean())
    about: dict[str, Any] = {"measured": f"{mean:.6g}"}
    if len(cell.draws) < MIN_SPLITS or not np.isfinite(mean):
        return cell.row(Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} repetitions", **about)
    printed = parse_printed(claim.printed, claim.power_of_ten)
    near = abs(mean - printed.value) <= claim.margin + 1e-9 * printed.unit
    if agrees(printed, mean) or (near and claim.margin):
        return cell.row(**_reproduced(claim), **about)
    deviation = " ".join(claim.deviations)
    return cell.row(Verdict.NOT_REPRODUCED, deviation=deviation, **about)


def _judge_few_runs(claim: MeanClaim, runs: int, evidence: Evidence) -> LedgerRow:
    """Judge a printed mean over a few runs by the prediction interval of such a mean."""
    cell = _draws(claim, evidence)
    n = len(cell.draws)
    if n < MIN_SPLITS or not np.isfinite(cell.draws).all():
        return cell.row(Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} repetitions")
    mean, error = float(cell.draws.mean()), prediction_error(cell.draws.to_numpy(), runs)
    about: dict[str, Any] = {"measured": f"{mean:.6g}", "smallest_error": error / abs(mean)}
    if abs(cell.scaled(claim.printed) - mean) <= error:
        return cell.row(**_reproduced(claim), **about)
    holds, trend = _trend(cell, evidence)
    return cell.row(
        Verdict.TREND_ONLY if holds else Verdict.NOT_REPRODUCED,
        deviation=" ".join(claim.deviations),
        reason=f"farther than {error:.3g}, which chance allows for means of {runs}; {trend}",
        **about,
    )


def _judge_spread(claim: SpreadClaim, evidence: Evidence) -> LedgerRow:
    outcomes = _measured(claim, evidence.outcomes)
    values = outcomes.values(
        claim.dataset, claim.solver, claim.metric, claim.part, claim.checkpoint
    )
    error = float(values.std() / np.sqrt(len(values)))
    about: dict[str, Any] = {"measured": f"{error:.3g}", "runs": len(values)}
    if len(values) < MIN_SPLITS or not np.isfinite(error):
        return _row(claim, Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **about)
    if error <= claim.at_most:
        return _row(claim, **_reproduced(claim), **about)
    deviation = " ".join(claim.deviations)
    return _row(claim, Verdict.NOT_REPRODUCED, deviation=deviation, **about)


def _judge_order(claim: OrderClaim, evidence: Evidence, level: float = LEVEL) -> LedgerRow:
    outcomes = _measured(claim, evidence.outcomes)
    if claim.or_on:
        return _judge_one_of(claim, evidence)
    later = claim.checkpoint if claim.worse_checkpoint is None else claim.worse_checkpoint
    later = None if later == "last" else later
    better = _side(claim, claim.better, claim.checkpoint, claim.at, outcomes)
    worse = _side(claim, claim.worse, later, claim.worse_at or claim.at, outcomes)
    better, worse = better.align(worse, join="inner")
    wins, losses, p = sign_test(better.to_numpy() + claim.margin, worse.to_numpy(), claim.chance)
    measured = f"holds in {wins} of {len(better)}, fails in {losses}"
    about: dict[str, Any] = {"measured": measured, "runs": len(better)}
    if claim.deterministic:
        if wins == len(better):
            return _row(claim, **_reproduced(claim), reason="nothing is left to chance", **about)
        return _row(claim, Verdict.NOT_REPRODUCED, deviation=" ".join(claim.deviations), **about)
    needed = MIN_REPETITIONS if claim.one_draw else MIN_SPLITS
    if len(better) < needed:
        about["reason"] = f"needs {needed} splits"
        return _row(claim, Verdict.INCONCLUSIVE, **about)
    about["reason"] = f"sign test: p = {p:.2g}"
    if claim.chance != 0.5:
        about["reason"] += f" against {claim.chance:.0%} by chance"
    compatible = not claim.one_draw or wins > LEVEL * len(better)
    if p <= level and compatible:
        return _row(claim, **_reproduced(claim), **about)
    about["deviation"] = " ".join(claim.deviations)
    if claim.one_draw and compatible:
        about["reason"] += "; the paper's one draw may be such a one, and the contrary, too"
        return _row(claim, Verdict.NO_POWER, **about)
    ahead = wins > claim.chance * (wins + losses)
    return _row(claim, Verdict.TREND_ONLY if ahead else Verdict.NOT_REPRODUCED, **about)


_HOLDS = (Verdict.REPRODUCED, Verdict.WITH_DEVIATION)


def _judge_one_of(claim: OrderClaim, evidence: Evidence) -> LedgerRow:
    """Judge an order that need hold on one data set only, by the best; their levels add up."""
    names = (claim.dataset, *claim.or_on)
    rows, missing = {}, []
    for name in names:
        alone = claim.model_copy(update={"dataset": name, "or_on": ()})
        try:
            rows[name] = _judge_order(alone, evidence, LEVEL / len(names))
        except MissingError as error:
            missing.append(str(error))
    rank = {name: row.verdict.rank for name, row in rows.items()}
    decided = [name for name in rows if rank[name] is not None]
    best = min(decided or rows, key=lambda name: rank[name] or 0, default="")
    if missing and (not best or rows[best].verdict not in _HOLDS):
        raise MissingError("; ".join(missing))
    part = f"the best of {len(rows)} of {len(names)} data sets, each at {LEVEL / len(names):.2g}"
    measured = f"{best}: {rows[best].measured}"
    return replace(rows[best], measured=measured, reason=f"{rows[best].reason}; {part}")


def _judge_consistency(claim: ConsistencyClaim, evidence: Evidence) -> LedgerRow:
    outcomes = _measured(claim, evidence.outcomes)
    behind = {}
    for dataset in claim.datasets:
        values = pd.concat(
            {s: outcomes.values(dataset, s, claim.metric) for s in claim.among},
            axis=1,
            join="inner",
        )
        behind[dataset] = 1 - values.div(values.max(axis=1), axis=0)
    largest = pd.concat(behind, join="inner", axis=1).T.groupby(level=1).max().T
    unsteady = largest[[*claim.unsteady]].min(axis=1)
    steady = largest[[*claim.steady]].max(axis=1) if claim.steady else 0 * unsteady
    wins, losses, p = sign_test(unsteady.to_numpy(), (steady + claim.margin).to_numpy())
    shares = ", ".join(f"{s} {largest[s].mean():.0%}" for s in (*claim.steady, *claim.unsteady))
    about: dict[str, Any] = {"runs": len(largest)}
    about["measured"] = f"holds in {wins} of {len(largest)}, fails in {losses}; behind by {shares}"
    if len(largest) < MIN_SPLITS:
        return _row(claim, Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **about)
    about["reason"] = f"sign test: p = {p:.2g}"
    if p <= LEVEL:
        return _row(claim, **_reproduced(claim), **about)
    verdict = Verdict.TREND_ONLY if wins > losses else Verdict.NOT_REPRODUCED
    return _row(claim, verdict, deviation=" ".join(claim.deviations), **about)


def _judge_variation(claim: VariationClaim, evidence: Evidence) -> LedgerRow:
    """Show by t tests that no point lies too far below another, or that one does."""
    outcomes = _measured(claim, evidence.outcomes)
    values = outcomes.sweep(claim.dataset, claim.solver, claim.metric, points=claim.points)
    means = values.mean()
    variation = 1 - means.min() / means.max() if means.max() > 0 else np.nan
    about: dict[str, Any] = {"measured": f"{variation:.2%}", "runs": len(values)}
    if len(values) < MIN_SPLITS:
        return _row(claim, Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **about)
    share = 1 - claim.at_most
    above = [mean_test(values[a] - share * values[b]) for a, b in permutations(values, 2)]
    below = [mean_test(share * values[b] - values[a]) for a, b in permutations(values, 2)]
    if max(above) <= LEVEL:
        reason = f"t tests of {len(above)} pairs: p = {max(above):.2g}"
        return _row(claim, **_reproduced(claim), reason=reason, **about)
    about["deviation"] = " ".join(claim.deviations)
    if min(below) * len(below) <= LEVEL:
        reason = f"t test of the farthest of {len(below)} pairs: p = {min(below) * len(below):.2g}"
        return _row(claim, Verdict.NOT_REPRODUCED, reason=reason, **about)
    reason = f"{len(values)} splits show neither less nor more than {claim.at_most:.0%}"
    return _row(claim, Verdict.INCONCLUSIVE, reason=reason, **about)


def _side(
    claim: OrderClaim, solvers: Sequence[str], checkpoint: int | None, at: str, outcomes: Outcomes
) -> pd.Series:
    """Return the value of one side on each split; larger is better."""
    if claim.of == "variation" or at:
        swept = [
            outcomes.sweep(claim.dataset, s, claim.metric, claim.part, [at] if at else ())
            for s in solvers
        ]
        if claim.of == "variation":
            lacks = [1 - values.min(axis=1) / values.max(axis=1) for values in swept]
            return -pd.concat(lacks, axis=1, join="inner").min(axis=1)
        sign = -1 if claim.metric in outcomes.run.losses else 1
        return (sign * pd.concat(swept, axis=1, join="inner")).max(axis=1)
    if claim.of in _OF_CURVES:
        columns = [
            pd.Series({split: _OF_CURVES[claim.of](claim, curve) for split, curve in of.items()})
            for of in (
                outcomes.curves(claim.dataset, solver, claim.metric, claim.part)
                for solver in solvers
            )
        ]
        return -pd.concat(columns, axis=1, join="inner").min(axis=1)
    if claim.metric == WALL_SECONDS:
        columns = [outcomes.times(claim.dataset, solver) for solver in solvers]
        _refuse_different_runs(claim.dataset, [*claim.better, *claim.worse], outcomes)
    else:
        columns = [
            outcomes.values(claim.dataset, solver, claim.metric, claim.part, checkpoint)
            for solver in solvers
        ]
    together = pd.concat(columns, axis=1, join="inner")
    if claim.of == "gap":
        return together.min(axis=1) - together.max(axis=1)
    if claim.metric == WALL_SECONDS or claim.metric in outcomes.run.losses:
        return -together.min(axis=1)
    return together.max(axis=1)


def _falls(claim: OrderClaim, curve: pd.DataFrame) -> float:
    return float(np.mean(np.diff(curve["value"]) < -claim.fall_by)) if len(curve) > 1 else np.nan


def _shortfall(claim: OrderClaim, curve: pd.DataFrame) -> float:
    before = curve["value"].to_numpy()[:-1]
    return float(curve["value"].max() - before.mean()) if len(before) else np.nan


_OF_CURVES: dict[str, Callable[[OrderClaim, pd.DataFrame], float]] = {
    "falls": _falls,
    "shortfall": _shortfall,
}


def _refuse_different_runs(dataset: str, solvers: Sequence[str], outcomes: Outcomes) -> None:
    runs = outcomes.runs(dataset, solvers)
    if len(runs) > 1 or "" in runs:  # the first versions did not note the run
        raise MissingError("timed in different runs: run it again with --timing --force")


def _judge_ratio(claim: RatioClaim, evidence: Evidence) -> LedgerRow:
    outcomes = _measured(claim, evidence.outcomes)
    slower, faster = (outcomes.times(claim.dataset, s) for s in (claim.slower, claim.faster))
    _refuse_different_runs(claim.dataset, [claim.slower, claim.faster], outcomes)
    if claim.within is not None:
        slower, faster = _times_to_accuracy(claim, claim.within, outcomes)
    ratios = (slower / faster).dropna()
    ratio = float(ratios.median())
    printed = claim.read_as or parse_printed(claim.printed).value
    if len(ratios) < MIN_TIMED_SPLITS:
        reason = f"needs {MIN_TIMED_SPLITS} splits that both sides have"
        return _row(claim, Verdict.INCONCLUSIVE, reason=reason, runs=len(ratios))
    about: dict[str, Any] = {"measured": f"{ratio:.3g}", "runs": len(ratios)}
    if ratio >= printed if claim.at_least else printed / 2 <= ratio <= printed * 2:
        return _row(claim, **_reproduced(claim), **about)
    if claim.at_least and outcomes.stopped(claim.dataset, claim.slower):
        reason = "the slower side was stopped by the limit of the config"
        return _row(claim, Verdict.INCONCLUSIVE, reason=reason, **about)
    if ratio > 1:
        return _row(claim, Verdict.TREND_ONLY, reason="the same side is the faster", **about)
    return _row(claim, Verdict.NOT_REPRODUCED, reason="the other side is the faster", **about)


def _times_to_accuracy(
    claim: RatioClaim, within: float, outcomes: Outcomes
) -> tuple[pd.Series, pd.Series]:
    """Return the seconds of both sides to about the worse of their two final values, by split."""
    slower, faster = (
        outcomes.curves(claim.dataset, s, claim.metric) for s in (claim.slower, claim.faster)
    )
    found = {}
    for split in slower.keys() & faster.keys():
        curves = slower[split], faster[split]
        target = min(curve["value"].iloc[-1] for curve in curves) - within
        found[split] = [c.loc[c["value"] >= target, WALL_SECONDS].iloc[0] for c in curves]
    times = pd.DataFrame.from_dict(found, orient="index", columns=["slower", "faster"])
    return times["slower"], times["faster"]


def _judge_fact(claim: FactClaim, evidence: Evidence) -> LedgerRow:
    outcomes = _measured(claim, evidence.outcomes)
    shape = outcomes.shape(claim.dataset)
    if claim.of == "training_rows" and not shape.get("training_rows"):
        raise MissingError(f"{claim.dataset} was not used with the split that it provides")
    values = {
        **shape,
        "columns": shape["features"] + 1,
        "negatives": shape["rows"] - shape["positives"],
        "share": 100 * shape["positives"] / shape["rows"],
        "positives_per_fold": shape["positives"] / outcomes.run.folds,
    }
    value = float(values[claim.of])
    about: dict[str, Any] = {"measured": f"{value:.8g}", "runs": 1}
    if agrees(parse_printed(claim.printed), value):
        return _row(claim, **_reproduced(claim), **about)
    return _row(claim, Verdict.NOT_REPRODUCED, **about)


def _judge_statement(claim: StatementClaim, evidence: Evidence) -> LedgerRow:
    deviation = " ".join(claim.deviations)
    return _row(claim, Verdict.NOT_TESTABLE, reason=claim.reason, deviation=deviation)


_JUDGES: dict[type, Callable[[Any, Evidence], LedgerRow]] = {
    ExactClaim: _judge_exact,
    BoundClaim: _judge_bound,
    MeanClaim: _judge_average,
    SpreadClaim: _judge_spread,
    OrderClaim: _judge_order,
    ConsistencyClaim: _judge_consistency,
    VariationClaim: _judge_variation,
    RatioClaim: _judge_ratio,
    FactClaim: _judge_fact,
    StatementClaim: _judge_statement,
}


class _Draws(NamedTuple):
    """The claim of a mean with our own draws of it, on the scale on which distances are taken.

    Attributes
    ----------
    claim : MeanClaim
    draws : Series
        By number of the repetition.
    """

    claim: MeanClaim
    draws: pd.Series

    def scaled(self, printed: str) -> float:
        value = parse_printed(printed, self.claim.power_of_ten).value
        return float(np.log(value)) if self.claim.logarithm else value

    def row(self, verdict: Verdict, **other: Any) -> LedgerRow:
        if self.draws.empty or not np.isfinite(self.draws).all():
            return _row(self.claim, verdict, runs=len(self.draws), **other)
        quartiles = np.quantile(self.draws, [0.25, 0.5, 0.75])
        q25, q50, q75 = np.exp(quartiles) if self.claim.logarithm else quartiles
        about: dict[str, Any] = {"measured": f"{q50:.6g}", "spread": f"{q25:.4g} to {q75:.4g}"}
        return _row(self.claim, verdict, runs=len(self.draws), **about | other)


def _draws(claim: MeanClaim, evidence: Evidence) -> _Draws:
    outcomes = _measured(claim, evidence.outcomes)
    values = outcomes.values(
        claim.dataset, claim.solver, claim.metric, claim.part, claim.checkpoint
    )
    with np.errstate(divide="ignore"):
        return _Draws(claim, np.log(values) if claim.logarithm else values)


def _judge_together(cells: Sequence[_Draws], evidence: Evidence) -> Iterator[LedgerRow]:
    """Judge all means, those with enough draws by their rows and one threshold for all of them."""
    placed = []
    for cell in cells:
        if len(cell.draws) < MIN_REPETITIONS:
            yield cell.row(Verdict.INCONCLUSIVE, reason=f"needs {MIN_REPETITIONS} repetitions")
        elif not np.isfinite(cell.draws).all():
            yield cell.row(Verdict.INCONCLUSIVE, reason="a repetition has no finite value")
        elif not has_spread(cell.draws.to_numpy()):
            yield cell.row(Verdict.INCONCLUSIVE, reason="half of the repetitions are equal")
        else:
            placed.append(cell)
    if not placed:
        return
    together = pd.concat([cell.draws for cell in placed], axis=1, join="inner")
    if len(together) < MIN_REPETITIONS:
        reason = f"needs {MIN_REPETITIONS} repetitions that all cells have"
        yield from (cell.row(Verdict.INCONCLUSIVE, reason=reason) for cell in placed)
        return
    placed = [cell._replace(draws=together.iloc[:, i]) for i, cell in enumerate(placed)]
    by_row: dict[str, list[_Draws]] = {}
    for cell in placed:
        by_row.setdefault(cell.claim.row or cell.claim.id, []).append(cell)
    placements = place(
        [
            (
                np.array([cell.scaled(cell.claim.printed) for cell in row]),
                np.column_stack([cell.draws for cell in row]),
            )
            for row in by_row.values()
        ]
    )
    beyond = beyond_all_others(together.to_numpy())
    for row, placement in zip(by_row.values(), placements, strict=True):
        for i, cell in enumerate(row):
            yield _judge_mean(cell, placement, i, beyond, evidence)


def _judge_mean(
    cell: _Draws, placement: Placement, i: int, beyond: int, evidence: Evidence
) -> LedgerRow:
    """Judge a cell: the row decides, unless nothing printed in the cell could have changed it."""
    claim, error = cell.claim, float(placement.smallest_error[i])
    found: dict[str, Any] = {
        "distance": float(placement.distance[i]),
        "percentile": float(placement.percentile[i]),
        "reason": f"row: p = {placement.p:.2g}, of all rows {placement.p_of_all:.2g}",
    }
    if claim.logarithm:
        found["smallest_error"] = float(np.expm1(error))
    elif (mean := float(cell.draws.mean())) != 0:
        found["smallest_error"] = error / abs(mean)
    if found["percentile"] in (0, 100):
        side = "below" if found["percentile"] == 0 else "above"
        found["reason"] += f"; {side} all draws, as {beyond} of them are in some cell"
    if placement.p_of_all <= LEVEL:
        holds, trend = _trend(cell, evidence)
        found["reason"] += f"; {trend}"
        verdict = Verdict.TREND_ONLY if holds else Verdict.NOT_REPRODUCED
        return cell.row(verdict, deviation=" ".join(claim.deviations), **found)
    if claim.power_of_ten and found.get("smallest_error", 0) > _HIDDEN_BY_A_POWER:
        times = 1 + found["smallest_error"]
        found["reason"] += f"; alone wrong by {times:.2g} times it passes; the power of ten is ours"
        return cell.row(Verdict.NO_POWER, deviation=" ".join(claim.deviations), **found)
    return cell.row(**_reproduced(claim), **found)


_HIDDEN_BY_A_POWER = math.sqrt(10) - 1
"""The largest error that is left if the power of ten is chosen by the measured value."""


def _trend(cell: _Draws, evidence: Evidence) -> tuple[bool, str]:
    """Return whether the difference from the first column of the row has the printed sign."""
    claim = cell.claim
    if claim.first_solver in ("", claim.solver):
        return False, "it is the first of its row"
    try:
        first = _draws(claim.model_copy(update={"solver": claim.first_solver}), evidence)
    except MissingError:
        return False, "the first of its row was not measured"
    ours, others = cell.draws.align(first.draws, join="inner")
    sign = np.sign(cell.scaled(claim.printed) - cell.scaled(claim.first_printed))
    wins, _, p = sign_test(sign * ours.to_numpy(), sign * others.to_numpy())
    side = f"on the printed side of the first of its row in {wins} of {len(ours)}"
    return bool(p <= LEVEL) and len(ours) >= MIN_SPLITS, side
