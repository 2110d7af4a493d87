"""The claim that some solvers are near the best on all data sets, and others not."""

from typing import Any, Literal

import pandas as pd

from precbench.claims.evidence import Evidence
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
        outcomes = self.results_in(evidence.outcomes)
        # by data set: 1 - value / best value, a row per split, a column per solver
        behind = []
        for dataset in self.datasets:
            columns = {s: outcomes.values(dataset, s, self.metric) for s in self.among}
            values = pd.concat(columns, axis=1, join="inner")
            behind.append(1 - values.div(values.max(axis=1), axis=0))
        by_split = pd.concat(behind).groupby(level=0)
        # of splits with all data sets
        largest = by_split.max()[by_split.size() == len(behind)]
        unsteady = largest[[*self.unsteady]].min(axis=1)  # the solver least behind
        # Of the steady solver most behind; without a steady solver: zeros on the same
        # splits.
        steady = largest[[*self.steady]].max(axis=1) if self.steady else 0 * unsteady
        wins, losses, p = sign_test(
            unsteady.to_numpy(), (steady + self.margin).to_numpy()
        )
        shares = ", ".join(
            f"{s} {largest[s].mean():.0%}" for s in (*self.steady, *self.unsteady)
        )
        fields: dict[str, Any] = {
            "runs": len(largest),
            "measured": (
                f"holds in {wins} of {len(largest)}, fails in {losses}; behind by"
                f" {shares}"
            ),
        }
        if len(largest) < MIN_SPLITS:
            return self.undecided(f"needs {MIN_SPLITS} splits", **fields)
        fields["reason"] = f"sign test: p = {p:.2g}"
        return self.ledger_row(*self.judged(p <= LEVEL, trend=wins > losses), **fields)
