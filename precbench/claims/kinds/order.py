"""One side is better than the other, by a sign test over the splits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims.evidence import WALL_SECONDS, Evidence, MissingError, Outcomes
from precbench.claims.kinds.base import MeasuredClaim, Texts
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import LEVEL, MIN_REPETITIONS, MIN_SPLITS, Verdict, sign_test
from precbench.text import count
from precbench.yaml.models import Items

__all__ = ["OrderClaim"]

_HOLDS = (Verdict.REPRODUCED, Verdict.WITH_DEVIATION)


class OrderClaim(MeasuredClaim):
    """One side is better than the other, paired over the splits.

    Attributes
    ----------
    better, worse : tuple of str
        Labels of solvers.
    of : {"best", "gap", "falls", "shortfall", "variation"}
        What is compared: the best value of each side; the distance between the two values of
        each side; the fraction of the steps from one checkpoint to the next at which the value
        falls by more than `fall_by`; how far the values before the last lie below the best of the
        curve, on average; by which share the least value over the sweep lies below the largest. Of
        the last four the smaller is the better.
    fall_by : float
    margin : float
        The better side may be worse by less than this: it is comparable.
    worse_checkpoint : int, "last" or None
        The checkpoint of the worse side, if it is not that of the better one.
    at, worse_at : str
        The point of the sweep, as ``batch_size=500``, of the better side, and of the worse one if
        it is another.
    or_on : tuple of str
        Other data sets; it is enough that it holds on one of all.
    one_draw : bool
        Said of one draw of the data alone: it holds if more of our draws show it than chance
        would, fails if hardly any does, and else is undecided.
    deterministic : bool
        Nothing is left to chance, so that one run decides.
    """

    kind: Literal["order"]
    better: Items[str]
    worse: Items[str]
    of: Literal["best", "gap", "falls", "shortfall", "variation"] = "best"
    fall_by: float = 0.0
    margin: float = 0.0
    worse_checkpoint: int | Literal["last"] | None = None
    at: str = ""
    worse_at: str = ""
    or_on: Texts = ()
    one_draw: bool = False
    deterministic: bool = False

    @property
    def chance(self) -> float:
        """How often it would hold if all solvers were equal; of all splits, at least one half."""
        share = len(self.better) / (len(self.better) + len(self.worse))
        if self.of == "gap":
            return 0.5
        return share if self.one_draw else max(share, 0.5)

    def without(self, solver: str) -> Self | None:
        """Return the order of the others."""
        better = tuple(name for name in self.better if name != solver)
        worse = tuple(name for name in self.worse if name != solver)
        if not better or not worse:
            return None
        return self.model_copy(update={"better": better, "worse": worse})

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge that one side is better, by a sign test over the splits."""
        outcomes = self.results_in(evidence.outcomes)
        return self._judge_one_of(outcomes) if self.or_on else self._judge_on_one(outcomes)

    def _judge_on_one(self, outcomes: Outcomes, level: float = LEVEL) -> LedgerRow:
        later = self.checkpoint if self.worse_checkpoint is None else self.worse_checkpoint
        later = None if later == "last" else later
        better = _Side(self, outcomes, self.checkpoint, self.at).best(self.better)
        worse = _Side(self, outcomes, later, self.worse_at or self.at).best(self.worse)
        better, worse = better.align(worse, join="inner")
        wins, losses, p = sign_test(better.to_numpy() + self.margin, worse.to_numpy(), self.chance)
        measured = f"holds in {wins} of {len(better)}, fails in {losses}"
        fields: dict[str, Any] = {"measured": measured, "runs": len(better)}
        needed = MIN_REPETITIONS if self.one_draw else MIN_SPLITS
        needed = 1 if self.deterministic else needed
        if len(better) < needed:
            reason = f"needs {count(needed, 'split')}"
            return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, **fields)
        if self.deterministic:
            holds = wins == len(better)
            reason = "nothing is left to chance" if holds else ""
            return self.ledger_row(*self.judged(holds), reason=reason, **fields)
        fields["reason"] = f"sign test: p = {p:.2g}"
        if self.chance != 0.5:
            fields["reason"] += f" against {self.chance:.0%} by chance"
        # Otherwise one of our draws would hardly ever show what the paper's single one did.
        compatible = not self.one_draw or wins > LEVEL * len(better)
        if p <= level and compatible:
            return self.ledger_row(*self.judged(True), **fields)
        if self.one_draw and compatible:
            fields["reason"] += "; the paper's single draw could have come out either way"
            return self.ledger_row(Verdict.NO_POWER, **fields)
        ahead = wins > self.chance * (wins + losses)
        return self.ledger_row(*self.judged(False, trend=ahead), **fields)

    def _judge_one_of(self, outcomes: Outcomes) -> LedgerRow:
        """Judge an order that need hold on one data set only, by the best; their levels add up."""
        rows: dict[str, LedgerRow] = {}
        # Bonferroni's correction: each of the data sets has its chance to pass.
        missing, level = [], LEVEL / len(self.data)
        for name in self.data:
            alone = self.model_copy(update={"dataset": name, "or_on": ()})
            try:
                rows[name] = alone._judge_on_one(outcomes, level)
            except MissingError as error:
                missing.append(str(error))
        ranks = {name: row.verdict.rank for name, row in rows.items()}
        best = min(ranks, key=lambda name: (ranks[name] is None, ranks[name] or 0), default="")
        if missing and (not best or rows[best].verdict not in _HOLDS):
            raise MissingError("; ".join(missing))
        part = f"the best of {len(rows)} of {len(self.data)} data sets, each at {level:.2g}"
        measured = f"{best}: {rows[best].measured}"
        return replace(rows[best], measured=measured, reason=f"{rows[best].reason}; {part}")


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
            self.outcomes.refuse_different_runs(dataset, self.claim.labels)
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
        measured = {
            split: measure(curve["value"].to_numpy()) if len(curve) > 1 else np.nan
            for split, curve in self.outcomes.curves(*self._cell(solver)).items()
        }
        return pd.Series(measured)
