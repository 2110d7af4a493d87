"""Claims about several splits: orders, ratios, spreads, sweeps and counts."""

from collections.abc import Sequence
from itertools import permutations
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, model_validator

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
from precbench.core.yaml.models import Items, at, refuse


class OrderClaim(MeasuredClaim):
    """One side is better than the other, paired over the splits."""

    kind: Literal["order"]
    better: Items[str]
    worse: Items[str]
    # What is compared of each side, by split. Except for "best", less is better.
    of: Literal[
        "best",  # the best value
        "gap",  # the distance between two values
        "falls",  # the share of steps of the curve that fall by more than `fall_by`
        "shortfall",  # the mean distance of a curve's values from its best value
        "variation",  # by which share a sweep's least value is below its largest
    ] = "best"
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
        if self.one_draw:
            return share
        return max(share, 0.5)  # the claim is about most splits

    @property
    def is_about_the_end(self) -> bool:
        return self.of not in ("falls", "shortfall")  # which are of the curve

    @property
    def _needed_splits(self) -> int:
        if self.deterministic:
            return 1
        return MIN_REPETITIONS if self.one_draw else MIN_SPLITS

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by a sign test whether the better side wins more than by chance."""
        better, worse = self._sides(self.results_in(evidence.outcomes))
        wins, losses, p = sign_test(
            better.to_numpy() + self.margin, worse.to_numpy(), self.chance
        )
        n_splits = len(better)
        fields: dict[str, Any] = {
            "measured": f"holds in {wins} of {n_splits}, fails in {losses}",
            "runs": n_splits,
        }
        if n_splits < self._needed_splits:
            reason = f"needs {count(self._needed_splits, 'split')}"
            return self.undecided(reason, **fields)
        if self.deterministic:
            holds = wins == n_splits
            reason = "nothing is left to chance" if holds else ""
            return self.ledger_row(*self.judged(holds), reason=reason, **fields)

        reason = f"sign test: p = {p:.2g}"
        if self.chance != 0.5:
            reason += f" against {self.chance:.0%} by chance"
        # The paper's single draw is no surprise if more than 5 % of our draws are like
        # that draw.
        compatible = wins > LEVEL * n_splits if self.one_draw else True
        if p <= LEVEL and compatible:
            return self.ledger_row(*self.judged(holds=True), reason=reason, **fields)
        if self.one_draw and compatible:
            reason += "; the paper's single draw could have come out either way"
            return self.ledger_row(Verdict.NO_POWER, reason=reason, **fields)
        # more than by chance, if not significantly
        trend = wins > self.chance * (wins + losses)
        return self.ledger_row(
            *self.judged(holds=False, trend=trend), reason=reason, **fields
        )

    def _sides(self, outcomes: Outcomes) -> tuple[pd.Series, pd.Series]:
        """Return what is compared of the two sides, on common splits."""
        better = self._side(outcomes, self.better, self.checkpoint, self.at)
        worse = self._side(
            outcomes, self.worse, self._checkpoint_of_worse, self.worse_at or self.at
        )
        return better.align(worse, join="inner")

    @property
    def _checkpoint_of_worse(self) -> int | None:
        """The checkpoint of the worse side; None: the final weights."""
        if self.worse_checkpoint is None:
            return self.checkpoint
        return None if self.worse_checkpoint == "last" else self.worse_checkpoint

    def _side(
        self,
        outcomes: Outcomes,
        solvers: Sequence[str],
        checkpoint: int | None,
        point: str,
    ) -> pd.Series:
        """Return by split what is compared of a side, so that larger is better."""
        columns = [
            self._read(outcomes, solver, checkpoint, point) for solver in solvers
        ]
        by_split = pd.concat(columns, axis=1, join="inner")
        best = by_split.max(axis=1)
        if self.of == "gap":
            return by_split.min(axis=1) - best
        return best

    def _read(
        self, outcomes: Outcomes, solver: str, checkpoint: int | None, point: str
    ) -> pd.Series:
        """Return by split what is compared of a solver, so that larger is better."""
        cell = (self.dataset, solver, self.metric, self.part)
        if self.of in ("falls", "shortfall"):
            curves = outcomes.curves(*cell)
            return pd.Series(
                {
                    split: self._read_curve(curve["value"].to_numpy())
                    for split, curve in curves.items()
                }
            )
        if self.of == "variation":
            points = outcomes.sweep(*cell, points=[point] if point else [])
            # minus the variation, 1 - least / largest
            return points.min(axis=1) / points.max(axis=1) - 1
        values = self._read_values(outcomes, solver, checkpoint, point)
        smaller_is_better = self.metric in (WALL_SECONDS, *outcomes.run.losses)
        return -values if smaller_is_better else values

    def _read_values(
        self, outcomes: Outcomes, solver: str, checkpoint: int | None, point: str
    ) -> pd.Series:
        """Return by split the value at a point or a checkpoint, or the seconds."""
        cell = (self.dataset, solver, self.metric, self.part)
        if point:
            return outcomes.sweep(*cell, points=[point])[point]
        if self.metric == WALL_SECONDS:
            times = outcomes.times(self.dataset, solver)
            outcomes.refuse_different_runs(self.dataset, self.labels)
            return times
        return outcomes.values(*cell, checkpoint)

    def _read_curve(self, values: NDArray[np.float64]) -> float:
        """Return minus the share of steps that fall, or minus the shortfall."""
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

    @model_validator(mode="after")
    def _check_metric(self) -> Self:
        """Require a metric for times to an accuracy."""
        if self.within is not None and not self.metric:
            refuse(at(("within",), ["needs the key metric, whose values it is of"]))
        return self

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
        # They are read for times to an accuracy as well: `times` refuses trials that
        # ran in parallel.
        times = pd.DataFrame(
            {
                "slower": outcomes.times(self.dataset, self.slower),
                "faster": outcomes.times(self.dataset, self.faster),
            }
        )
        outcomes.refuse_different_runs(self.dataset, self.labels)
        if self.within is not None:
            times = self._times_to_accuracy(self.within, outcomes)
        ratios = (times["slower"] / times["faster"]).dropna()  # of common splits
        if len(ratios) < MIN_TIMED_SPLITS:
            reason = f"needs {MIN_TIMED_SPLITS} splits that both sides have"
            return self.undecided(reason, runs=len(ratios))
        ratio = float(ratios.median())
        fields: dict[str, Any] = {"measured": f"{ratio:.3g}", "runs": len(ratios)}
        if self._agrees(ratio):
            return self.ledger_row(*self.judged(holds=True), **fields)
        same_is_faster = ratio > 1
        reason = f"the {'same' if same_is_faster else 'other'} side is the faster"
        return self.ledger_row(
            *self.judged(holds=False, trend=same_is_faster), reason=reason, **fields
        )

    def _agrees(self, ratio: float) -> bool:
        printed = self.read_as or parse_printed(self.printed).value
        if self.at_least:
            return ratio >= printed
        # Times differ between machines: a ratio agrees up to a factor of 2.
        return printed / 2 <= ratio <= printed * 2

    def _times_to_accuracy(self, within: float, outcomes: Outcomes) -> pd.DataFrame:
        """Return by split when the slower and the faster side reach a common accuracy.

        It is the worse of their final values, less `within`.
        """
        curves_of_slower = outcomes.curves(self.dataset, self.slower, self.metric)
        curves_of_faster = outcomes.curves(self.dataset, self.faster, self.metric)
        times = {}
        for split in curves_of_slower.keys() & curves_of_faster.keys():
            slower = curves_of_slower[split]
            faster = curves_of_faster[split]
            worse = min(slower["value"].iloc[-1], faster["value"].iloc[-1])
            accuracy = worse - within
            times[split] = [_time_to(accuracy, slower), _time_to(accuracy, faster)]
        columns = ["slower", "faster"]
        return pd.DataFrame.from_dict(times, orient="index", columns=columns)


def _time_to(accuracy: float, curve: pd.DataFrame) -> float:
    """Return the seconds of the first checkpoint that reaches an accuracy."""
    return curve.loc[curve["value"] >= accuracy, WALL_SECONDS].iloc[0]


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
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
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
        """Judge by t tests whether a mean is too far below another mean."""
        results = self.results_in(evidence.outcomes)
        values = results.sweep(
            self.dataset, self.solver, self.metric, points=self.points
        )
        means = values.mean()
        variation = np.nan
        if means.max() > 0:
            variation = 1 - means.min() / means.max()
        fields: dict[str, Any] = {"measured": f"{variation:.2%}", "runs": len(values)}
        if len(values) < MIN_SPLITS:
            return self.undecided(f"needs {MIN_SPLITS} splits", **fields)
        # The claim: for all points a and b the mean at a is at least share * the mean
        # at b. By pair, a small p_holds says that it is, a small p_fails that it is
        # less.
        share = 1 - self.at_most
        p_holds = []
        p_fails = []
        for a, b in permutations(values, 2):
            p_holds.append(mean_test(values[a] - share * values[b]))
            p_fails.append(mean_test(share * values[b] - values[a]))
        p_of_all = max(p_holds)  # small: the claim holds for every pair
        if p_of_all <= LEVEL:
            reason = f"t tests of {len(p_holds)} pairs: p = {p_of_all:.2g}"
            return self.ledger_row(*self.judged(holds=True), reason=reason, **fields)
        p_of_any = min(p_fails) * len(p_fails)  # by Bonferroni's rule
        if p_of_any <= LEVEL:
            reason = (
                f"t test of the farthest of {len(p_fails)} pairs: p = {p_of_any:.2g}"
            )
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
    # what is counted
    of: Literal[
        "rows",
        "features",
        "positives",
        "negatives",
        "positives_per_fold",
        "training_rows",  # of the provided split
        "columns",  # features and label
        "share",  # percentage of positives
    ]

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
