"""Verdicts on orders, spreads and times of solvers, and on counts of data sets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims.evidence import WALL_SECONDS, Evidence, MissingError, Outcomes
from precbench.claims.judge.rows import judged, ledger_row, results_of
from precbench.claims.kinds import (
    ConsistencyClaim,
    FactClaim,
    OrderClaim,
    RatioClaim,
    SpreadClaim,
    VariationClaim,
)
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import (
    LEVEL,
    MIN_REPETITIONS,
    MIN_SPLITS,
    MIN_TIMED_SPLITS,
    Verdict,
    agrees,
    mean_test,
    parse_printed,
    sign_test,
)

__all__ = [
    "judge_consistency",
    "judge_fact",
    "judge_order",
    "judge_ratio",
    "judge_spread",
    "judge_variation",
]


def judge_spread(claim: SpreadClaim, evidence: Evidence) -> LedgerRow:
    """Judge how sure a mean is."""
    outcomes = results_of(claim, evidence.outcomes)
    values = outcomes.values(
        claim.dataset, claim.solver, claim.metric, claim.part, claim.checkpoint
    )
    error = float(values.std() / np.sqrt(len(values)))
    about: dict[str, Any] = {"measured": f"{error:.3g}", "runs": len(values)}
    if len(values) < MIN_SPLITS or not np.isfinite(error):
        return ledger_row(claim, Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **about)
    return ledger_row(claim, *judged(claim, error <= claim.at_most), **about)


def judge_order(claim: OrderClaim, evidence: Evidence) -> LedgerRow:
    """Judge that one side is better, by a sign test over the splits."""
    outcomes = results_of(claim, evidence.outcomes)
    return _judge_one_of(claim, outcomes) if claim.or_on else _judge_on_one(claim, outcomes)


def _judge_on_one(claim: OrderClaim, outcomes: Outcomes, level: float = LEVEL) -> LedgerRow:
    later = claim.checkpoint if claim.worse_checkpoint is None else claim.worse_checkpoint
    later = None if later == "last" else later
    better = _Side(claim, outcomes, claim.checkpoint, claim.at).best(claim.better)
    worse = _Side(claim, outcomes, later, claim.worse_at or claim.at).best(claim.worse)
    better, worse = better.align(worse, join="inner")
    wins, losses, p = sign_test(better.to_numpy() + claim.margin, worse.to_numpy(), claim.chance)
    measured = f"holds in {wins} of {len(better)}, fails in {losses}"
    about: dict[str, Any] = {"measured": measured, "runs": len(better)}
    needed = MIN_REPETITIONS if claim.one_draw else MIN_SPLITS
    needed = 1 if claim.deterministic else needed
    if len(better) < needed:
        reason = f"needs {needed} split{'s' * (needed > 1)}"
        return ledger_row(claim, Verdict.INCONCLUSIVE, reason=reason, **about)
    if claim.deterministic:
        holds = wins == len(better)
        reason = "nothing is left to chance" if holds else ""
        return ledger_row(claim, *judged(claim, holds), reason=reason, **about)
    about["reason"] = f"sign test: p = {p:.2g}"
    if claim.chance != 0.5:
        about["reason"] += f" against {claim.chance:.0%} by chance"
    compatible = not claim.one_draw or wins > LEVEL * len(better)
    if p <= level and compatible:
        return ledger_row(claim, *judged(claim, True), **about)
    if claim.one_draw and compatible:
        about["reason"] += "; the paper's one draw may be such a one, and the contrary, too"
        return ledger_row(claim, Verdict.NO_POWER, claim.deviations, **about)
    ahead = wins > claim.chance * (wins + losses)
    return ledger_row(claim, *judged(claim, False, trend=ahead), **about)


def _judge_one_of(claim: OrderClaim, outcomes: Outcomes) -> LedgerRow:
    """Judge an order that need hold on one data set only, by the best; their levels add up."""
    rows: dict[str, LedgerRow] = {}
    missing, level = [], LEVEL / len(claim.data)
    for name in claim.data:
        alone = claim.model_copy(update={"dataset": name, "or_on": ()})
        try:
            rows[name] = _judge_on_one(alone, outcomes, level)
        except MissingError as error:
            missing.append(str(error))
    ranks = {name: row.verdict.rank for name, row in rows.items()}
    best = min(ranks, key=lambda name: (ranks[name] is None, ranks[name] or 0), default="")
    if missing and (not best or rows[best].verdict not in _HOLDS):
        raise MissingError("; ".join(missing))
    part = f"the best of {len(rows)} of {len(claim.data)} data sets, each at {level:.2g}"
    measured = f"{best}: {rows[best].measured}"
    return replace(rows[best], measured=measured, reason=f"{rows[best].reason}; {part}")


_HOLDS = (Verdict.REPRODUCED, Verdict.WITH_DEVIATION)


class _Side(NamedTuple):
    """One side of an order: what its solvers reach on each split; larger is better.

    Attributes
    ----------
    claim : OrderClaim
    outcomes : Outcomes
    checkpoint : int or None
    at : str
        The point of the sweep, or nothing.
    """

    claim: OrderClaim
    outcomes: Outcomes
    checkpoint: int | None
    at: str

    def best(self, solvers: Sequence[str]) -> pd.Series:
        """Return the best of these solvers, or how little they are apart."""
        readers = {"falls": self._falls, "shortfall": self._shortfall, "variation": self._variation}
        read = readers.get(self.claim.of, self._values)
        together = pd.concat([read(solver) for solver in solvers], axis=1, join="inner")
        best = together.max(axis=1)
        return together.min(axis=1) - best if self.claim.of == "gap" else best

    def _cell(self, solver: str) -> tuple[str, str, str, str]:
        return self.claim.dataset, solver, self.claim.metric, self.claim.part

    def _values(self, solver: str) -> pd.Series:
        dataset, metric = self.claim.dataset, self.claim.metric
        if self.at:
            values = self.outcomes.sweep(*self._cell(solver), points=[self.at])[self.at]
        elif metric == WALL_SECONDS:
            values = self.outcomes.times(dataset, solver)
            _refuse_different_runs(dataset, self.claim.labels, self.outcomes)
        else:
            values = self.outcomes.values(*self._cell(solver), self.checkpoint)
        return -values if metric in (WALL_SECONDS, *self.outcomes.run.losses) else values

    def _variation(self, solver: str) -> pd.Series:
        points = [self.at] if self.at else []
        values = self.outcomes.sweep(*self._cell(solver), points=points)
        return values.min(axis=1) / values.max(axis=1) - 1

    def _falls(self, solver: str) -> pd.Series:
        return self._of_curves(solver, lambda v: -np.mean(np.diff(v) < -self.claim.fall_by))

    def _shortfall(self, solver: str) -> pd.Series:
        return self._of_curves(solver, lambda values: values[:-1].mean() - values.max())

    def _of_curves(self, solver: str, measure: Callable[[NDArray], np.floating]) -> pd.Series:
        found = {
            split: measure(curve["value"].to_numpy()) if len(curve) > 1 else np.nan
            for split, curve in self.outcomes.curves(*self._cell(solver)).items()
        }
        return pd.Series(found)


def judge_consistency(claim: ConsistencyClaim, evidence: Evidence) -> LedgerRow:
    """Judge by how much solvers fall behind, by a sign test over the splits."""
    outcomes = results_of(claim, evidence.outcomes)
    behind = []
    for dataset in claim.datasets:
        columns = {s: outcomes.values(dataset, s, claim.metric) for s in claim.among}
        values = pd.concat(columns, axis=1, join="inner")
        behind.append(1 - values.div(values.max(axis=1), axis=0))
    by_split = pd.concat(behind).groupby(level=0)
    largest = by_split.max()[by_split.size() == len(behind)]
    unsteady = largest[[*claim.unsteady]].min(axis=1)
    steady = largest[[*claim.steady]].max(axis=1) if claim.steady else 0 * unsteady
    wins, losses, p = sign_test(unsteady.to_numpy(), (steady + claim.margin).to_numpy())
    shares = ", ".join(f"{s} {largest[s].mean():.0%}" for s in (*claim.steady, *claim.unsteady))
    about: dict[str, Any] = {"runs": len(largest)}
    about["measured"] = f"holds in {wins} of {len(largest)}, fails in {losses}; behind by {shares}"
    if len(largest) < MIN_SPLITS:
        return ledger_row(claim, Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **about)
    about["reason"] = f"sign test: p = {p:.2g}"
    return ledger_row(claim, *judged(claim, p <= LEVEL, trend=wins > losses), **about)


def judge_variation(claim: VariationClaim, evidence: Evidence) -> LedgerRow:
    """Show by t tests that no point lies too far below another, or that one does."""
    outcomes = results_of(claim, evidence.outcomes)
    values = outcomes.sweep(claim.dataset, claim.solver, claim.metric, points=claim.points)
    means = values.mean()
    variation = 1 - means.min() / means.max() if means.max() > 0 else np.nan
    about: dict[str, Any] = {"measured": f"{variation:.2%}", "runs": len(values)}
    if len(values) < MIN_SPLITS:
        return ledger_row(claim, Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **about)
    share = 1 - claim.at_most
    above = [mean_test(values[a] - share * values[b]) for a, b in permutations(values, 2)]
    below = [mean_test(share * values[b] - values[a]) for a, b in permutations(values, 2)]
    if max(above) <= LEVEL:
        reason = f"t tests of {len(above)} pairs: p = {max(above):.2g}"
        return ledger_row(claim, *judged(claim, True), reason=reason, **about)
    if min(below) * len(below) <= LEVEL:
        reason = f"t test of the farthest of {len(below)} pairs: p = {min(below) * len(below):.2g}"
        return ledger_row(claim, *judged(claim, False), reason=reason, **about)
    reason = f"{len(values)} splits show neither less nor more than {claim.at_most:.0%}"
    return ledger_row(claim, Verdict.INCONCLUSIVE, claim.deviations, reason=reason, **about)


def _refuse_different_runs(dataset: str, solvers: Sequence[str], outcomes: Outcomes) -> None:
    runs = outcomes.runs(dataset, solvers)
    if len(runs) > 1 or "" in runs:  # the first versions did not note the run
        raise MissingError("timed in different runs: run it again with --timing --force")
    if len(outcomes.machines(dataset, solvers)) > 1:
        raise MissingError("timed on different machines: run it again with --timing --force")


def judge_ratio(claim: RatioClaim, evidence: Evidence) -> LedgerRow:
    """Judge a ratio of times, by the median over the splits."""
    outcomes = results_of(claim, evidence.outcomes)
    slower, faster = (outcomes.times(claim.dataset, s) for s in (claim.slower, claim.faster))
    _refuse_different_runs(claim.dataset, claim.labels, outcomes)
    if claim.within is not None:
        slower, faster = _times_to_accuracy(claim, claim.within, outcomes)
    ratios = (slower / faster).dropna()
    ratio = float(ratios.median())
    printed = claim.read_as or parse_printed(claim.printed).value
    if len(ratios) < MIN_TIMED_SPLITS:
        reason = f"needs {MIN_TIMED_SPLITS} splits that both sides have"
        return ledger_row(claim, Verdict.INCONCLUSIVE, reason=reason, runs=len(ratios))
    about: dict[str, Any] = {"measured": f"{ratio:.3g}", "runs": len(ratios)}
    if ratio >= printed if claim.at_least else printed / 2 <= ratio <= printed * 2:
        return ledger_row(claim, *judged(claim, True), **about)
    if claim.at_least and outcomes.stopped(claim.dataset, claim.slower):
        reason = "the slower side was stopped by the limit of the config"
        return ledger_row(claim, Verdict.INCONCLUSIVE, reason=reason, **about)
    same = ratio > 1
    reason = f"the {'same' if same else 'other'} side is the faster"
    verdict = Verdict.TREND_ONLY if same else Verdict.NOT_REPRODUCED
    return ledger_row(claim, verdict, reason=reason, **about)


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


def judge_fact(claim: FactClaim, evidence: Evidence) -> LedgerRow:
    """Judge a count of a data set."""
    outcomes = results_of(claim, evidence.outcomes)
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
        return ledger_row(claim, *judged(claim, True), **about)
    return ledger_row(claim, Verdict.NOT_REPRODUCED, **about)
