"""The claim that some solvers are near the best on all data sets, and others not."""

from typing import Any, Literal

import numpy as np
import pandas as pd

from precbench.claims.evidence import Evidence, Outcomes
from precbench.claims.kinds.kind import Claim, Texts
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import LEVEL, MIN_SPLITS, sign_test
from precbench.core.yaml.models import Items


class ConsistencyClaim(Claim):
    """Some solvers are near the best on all data sets, others fall behind on some.

    On a data set a solver falls behind by 1 - its value / the best value of the solvers
    `among`; the largest share over the data sets counts. On a split the claim holds if
    each of the `unsteady` falls behind by over `margin` more than all of the `steady`
    (than 0 without any).
    """

    kind: Literal["consistency"]
    datasets: Items[str]
    metric: str
    among: Items[str]
    steady: Texts = ()
    unsteady: Items[str]
    margin: float = 0.0

    def is_about(self, dataset: str) -> bool:
        return False  # no single data set decides the claim

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by a sign test whether the `unsteady` fall behind by more."""
        largest = self._largest_shares(self.results_in(evidence.outcomes))
        n_splits = len(largest)
        least_unsteady = largest[[*self.unsteady]].min(axis=1).to_numpy()
        most_steady = np.zeros(n_splits)
        if self.steady:
            most_steady = largest[[*self.steady]].max(axis=1).to_numpy()
        wins, losses, p = sign_test(least_unsteady, most_steady + self.margin)
        means = [
            f"{solver} {largest[solver].mean():.0%}"
            for solver in (*self.steady, *self.unsteady)
        ]
        outcome = f"holds in {wins} of {n_splits}, fails in {losses}"
        fields: dict[str, Any] = {
            "runs": n_splits,
            "measured": f"{outcome}; behind by {', '.join(means)}",
        }
        if n_splits < MIN_SPLITS:
            return self.undecided(f"needs {MIN_SPLITS} splits", **fields)
        fields["reason"] = f"sign test: p = {p:.2g}"
        return self.ledger_row(*self.judged(p <= LEVEL, trend=wins > losses), **fields)

    def _largest_shares(self, outcomes: Outcomes) -> pd.DataFrame:
        """Return by split, in a column for each solver, the most it falls behind.

        On a data set this is 1 - value / best value. Only splits count that all data
        sets have.
        """
        by_dataset = []
        for dataset in self.datasets:
            columns = {s: outcomes.values(dataset, s, self.metric) for s in self.among}
            values = pd.concat(columns, axis=1, join="inner")
            by_dataset.append(1 - values.div(values.max(axis=1), axis=0))
        by_split = pd.concat(by_dataset).groupby(level=0)
        largest = by_split.max()
        return largest[by_split.size() == len(by_dataset)]
