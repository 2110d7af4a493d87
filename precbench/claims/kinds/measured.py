"""Claims about results on several splits.

Orders, ratios, spreads, sweeps and counts.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, PositiveFloat

from precbench.claims.evidence import WALL_SECONDS, Evidence, MissingError, Outcomes
from precbench.claims.kinds.kind import Claim, MeasuredClaim, Texts
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
from precbench.core.text import count
from precbench.core.yaml.models import Items


class OrderClaim(MeasuredClaim):
    """One side is better than the other, paired over the splits."""

    kind: Literal["order"]
    better: Items[str]
    worse: Items[str]
    # What is compared of each side. best: the best value; gap: the distance between two
    # values; falls: the share of steps to the next checkpoint that fall by more than
    # `fall_by`; shortfall: the mean distance of the values before the last from the
    # best of the curve; variation: by which share the least value of the sweep is below
    # the largest. Except best, less is better.
    of: Literal["best", "gap", "falls", "shortfall", "variation"] = "best"
    fall_by: float = 0.0
    margin: float = 0.0  # the better side may be worse by less than this
    worse_checkpoint: int | Literal["last"] | None = None  # None: as the better side
    at: str = ""  # point of the sweep, as ``batch_size=500``
    worse_at: str = ""  # point of the worse side; "": as the better side
    # Whether the claim is about a single draw: it holds if more of our draws show it
    # than chance would, fails if hardly any draw does, and else is undecided.
    one_draw: bool = False
    deterministic: bool = False  # one run decides

    @property
    def chance(self) -> float:
        """Probability that the claim holds on a split if all solvers are equal."""
        if self.of == "gap":  # a gap on each side, whatever the numbers of solvers
            return 0.5
        # If each solver is equally often the best, the best is this often on the better
        # side.
        share = len(self.better) / (len(self.better) + len(self.worse))
        # 0.5: the claim is about most splits
        return share if self.one_draw else max(share, 0.5)

    @property
    def is_about_the_end(self) -> bool:
        return self.of not in ("falls", "shortfall")  # which are of the curve

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by a sign test over the splits whether the better side wins more than by chance."""
        outcomes = self.results_in(evidence.outcomes)
        at_worse = (
            self.checkpoint if self.worse_checkpoint is None else self.worse_checkpoint
        )
        # checkpoint; None: final weights
        at_worse = None if at_worse == "last" else at_worse
        better = self._best(outcomes, self.better, self.checkpoint, self.at)
        worse = self._best(outcomes, self.worse, at_worse, self.worse_at or self.at)
        better, worse = better.align(worse, join="inner")  # on common splits
        wins, losses, p = sign_test(
            better.to_numpy() + self.margin, worse.to_numpy(), self.chance
        )
        fields: dict[str, Any] = {
            "measured": f"holds in {wins} of {len(better)}, fails in {losses}",
            "runs": len(better),
        }
        needed = (
            1
            if self.deterministic
            else (MIN_REPETITIONS if self.one_draw else MIN_SPLITS)
        )
        if len(better) < needed:
            return self.undecided(f"needs {count(needed, 'split')}", **fields)
        if self.deterministic:
            holds = wins == len(better)
            reason = "nothing is left to chance" if holds else ""
            return self.ledger_row(*self.judged(holds), reason=reason, **fields)
        fields["reason"] = f"sign test: p = {p:.2g}"
        if self.chance != 0.5:
            fields["reason"] += f" against {self.chance:.0%} by chance"
        # The paper's single draw is no surprise if more than 5 % of our draws are like
        # that draw.
        compatible = not self.one_draw or wins > LEVEL * len(better)
        if p <= LEVEL and compatible:
            return self.ledger_row(*self.judged(holds=True), **fields)
        if self.one_draw and compatible:
            fields["reason"] += (
                "; the paper's single draw could have come out either way"
            )
            return self.ledger_row(Verdict.NO_POWER, **fields)
        # more than by chance, if not significantly
        trend = wins > self.chance * (wins + losses)
        return self.ledger_row(*self.judged(holds=False, trend=trend), **fields)

    def _best(
        self,
        outcomes: Outcomes,
        solvers: Sequence[str],
        checkpoint: int | None,
        at: str,
    ) -> pd.Series:
        """Return by split the best (largest, see `_read`) value.

        For "gap" minus the gap of two.
        """
        columns = [self._read(outcomes, solver, checkpoint, at) for solver in solvers]
        by_split = pd.concat(columns, axis=1, join="inner")
        best = by_split.max(axis=1)
        return by_split.min(axis=1) - best if self.of == "gap" else best

    def _read(
        self, outcomes: Outcomes, solver: str, checkpoint: int | None, at: str
    ) -> pd.Series:
        """Return by split what `of` names for a solver.

        With a sign so that larger is better.
        """
        cell = self.dataset, solver, self.metric, self.part
        if self.of in ("falls", "shortfall"):  # of the curve over the checkpoints
            by_split = outcomes.curves(*cell).items()
            return pd.Series(
                {split: self._of_curve(curve) for split, curve in by_split}
            )
        if self.of == "variation":  # over the points of the sweep
            points = outcomes.sweep(*cell, points=[at] if at else [])
            # 0 or less: minus the variation
            return points.min(axis=1) / points.max(axis=1) - 1
        if at:
            values = outcomes.sweep(*cell, points=[at])[at]
        elif self.metric == WALL_SECONDS:
            values = outcomes.times(self.dataset, solver)
            outcomes.refuse_different_runs(self.dataset, self.labels)
        else:
            values = outcomes.values(*cell, checkpoint)
        return (
            -values if self.metric in (WALL_SECONDS, *outcomes.run.losses) else values
        )

    def _of_curve(self, curve: pd.DataFrame) -> float:
        """Return minus the share of steps that fall, or minus the shortfall, see `of`."""
        values = curve["value"].to_numpy()
        if len(values) < 2:  # a curve of one point has no step
            return np.nan  # neither a win nor a loss
        if self.of == "falls":
            return -float(np.mean(np.diff(values) < -self.fall_by))
        return float(values[:-1].mean() - values.max())


class RatioClaim(Claim):
    """One side takes a number of times as long as the other."""

    number_unless: ClassVar = ("read_as",)

    kind: Literal["ratio"]
    dataset: str
    slower: str
    faster: str
    # If given, a side's time ends at the first checkpoint at which `metric` reaches the
    # worse of the two final values, less `within`; else the time ends at the final
    # weights.
    within: PositiveFloat | None = None
    metric: str = ""
    read_as: PositiveFloat | None = None  # the ratio, if the paper says it in words
    # whether any larger ratio agrees, not only a ratio near the print
    at_least: bool = False

    @property
    def is_timed(self) -> bool:  # in any case
        return True

    @property
    def is_decided_by_values(self) -> bool:
        """Whether the times are times to an accuracy, which the final values set."""
        return self.within is not None

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by the median over the splits of the ratio of the two times."""
        outcomes = self.results_in(evidence.outcomes)
        slower, faster = (
            outcomes.times(self.dataset, s) for s in (self.slower, self.faster)
        )
        outcomes.refuse_different_runs(self.dataset, self.labels)
        if self.within is not None:
            slower, faster = self._times_to_accuracy(self.within, outcomes)
        ratios = (slower / faster).dropna()  # of common splits
        ratio = float(ratios.median())
        printed = self.read_as or parse_printed(self.printed).value
        if len(ratios) < MIN_TIMED_SPLITS:
            reason = f"needs {MIN_TIMED_SPLITS} splits that both sides have"
            return self.undecided(reason, runs=len(ratios))
        fields: dict[str, Any] = {"measured": f"{ratio:.3g}", "runs": len(ratios)}
        # Times differ between machines: a ratio agrees up to a factor of 2.
        holds = (
            ratio >= printed if self.at_least else printed / 2 <= ratio <= printed * 2
        )
        if holds:
            return self.ledger_row(*self.judged(holds=True), **fields)
        reason = f"the {'same' if ratio > 1 else 'other'} side is the faster"
        return self.ledger_row(
            *self.judged(holds=False, trend=ratio > 1), reason=reason, **fields
        )

    def _times_to_accuracy(
        self, within: float, outcomes: Outcomes
    ) -> tuple[pd.Series, pd.Series]:
        """Return by split when each side reaches the worse of the final values, less `within`."""
        slower, faster = (
            outcomes.curves(self.dataset, s, self.metric)
            for s in (self.slower, self.faster)
        )
        seconds = {}
        for split in slower.keys() & faster.keys():
            curves = slower[split], faster[split]
            target = min(curve["value"].iloc[-1] for curve in curves) - within
            # The first checkpoint of each side that reaches the target; the last
            # checkpoint does.
            seconds[split] = [
                c.loc[c["value"] >= target, WALL_SECONDS].iloc[0] for c in curves
            ]
        times = pd.DataFrame.from_dict(
            seconds, orient="index", columns=["slower", "faster"]
        )
        return times["slower"], times["faster"]


class SpreadClaim(MeasuredClaim):
    """A mean over the splits has a small standard error."""

    kind: Literal["spread"]
    solver: str
    at_most: PositiveFloat  # the largest standard error that agrees

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by the standard error of the mean over the splits."""
        outcomes = self.results_in(evidence.outcomes)
        values = outcomes.values(
            self.dataset, self.solver, self.metric, self.part, self.checkpoint
        )
        error = float(values.std() / np.sqrt(len(values)))
        fields: dict[str, Any] = {"measured": f"{error:.3g}", "runs": len(values)}
        if len(values) < MIN_SPLITS or not np.isfinite(error):
            return self.undecided(f"needs {MIN_SPLITS} splits", **fields)
        return self.ledger_row(*self.judged(error <= self.at_most), **fields)


class VariationClaim(Claim):
    """The mean over the splits hardly varies over the points of a sweep."""

    kind: Literal["variation"]
    dataset: str
    solver: str
    metric: str
    # the largest relative variation that agrees
    at_most: Annotated[float, Field(gt=0, lt=1)]
    points: Texts = ()  # points of the sweep, as ``batch_size=500``; default all

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by t tests of all pairs of points whether a mean is too far below another mean."""
        results = self.results_in(evidence.outcomes)
        values = results.sweep(
            self.dataset, self.solver, self.metric, points=self.points
        )
        means = values.mean()
        variation = 1 - means.min() / means.max() if means.max() > 0 else np.nan
        fields: dict[str, Any] = {"measured": f"{variation:.2%}", "runs": len(values)}
        if len(values) < MIN_SPLITS:
            return self.undecided(f"needs {MIN_SPLITS} splits", **fields)
        # the claim: for all points a and b, a is at least share * b
        share = 1 - self.at_most
        # p by pair: a small p in `shown` says that the claim holds, in `refuted` that
        # it fails
        shown = [
            mean_test(values[a] - share * values[b]) for a, b in permutations(values, 2)
        ]
        refuted = [
            mean_test(share * values[b] - values[a]) for a, b in permutations(values, 2)
        ]
        if max(shown) <= LEVEL:  # for every pair
            reason = f"t tests of {len(shown)} pairs: p = {max(shown):.2g}"
            return self.ledger_row(*self.judged(holds=True), reason=reason, **fields)
        # for one pair, by Bonferroni's rule
        if (p := min(refuted) * len(refuted)) <= LEVEL:
            reason = f"t test of the farthest of {len(refuted)} pairs: p = {p:.2g}"
            return self.ledger_row(*self.judged(holds=False), reason=reason, **fields)
        reason = (
            f"{len(values)} splits show neither less nor more than {self.at_most:.0%}"
        )
        return self.undecided(reason, **fields)


class FactClaim(Claim):
    """A count that describes a data set."""

    number_unless: ClassVar = ()

    kind: Literal["fact"]
    dataset: str
    of: Literal[
        "rows", "features", "positives", "negatives", "positives_per_fold",
        "training_rows",  # of the provided split
        "columns",  # features and label
        "share",  # percentage of positives
    ]  # fmt: skip

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge whether the count agrees with the digits in print."""
        outcomes = self.results_in(evidence.outcomes)
        shape = outcomes.shape(self.dataset)
        if self.of == "training_rows" and not shape.get("training_rows"):
            raise MissingError(
                f"{self.dataset} was not run on the split that its files provide: write"
                " `split: provided` in the data set's entry of the config, and run the"
                " config again"
            )
        values = {
            **shape,
            "columns": shape["features"] + 1,  # and the label
            "negatives": shape["rows"] - shape["positives"],
            "share": 100 * shape["positives"] / shape["rows"],
            "positives_per_fold": shape["positives"] / outcomes.run.folds,
        }
        value = float(values[self.of])
        verdict, deviations = self.judged(agrees(parse_printed(self.printed), value))
        return self.ledger_row(verdict, deviations, measured=f"{value:.8g}", runs=1)
