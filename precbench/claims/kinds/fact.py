"""A count of a data set."""

from typing import Any, Literal

from precbench.claims.evidence import Evidence, MissingError
from precbench.claims.kinds.base import Claim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict, agrees, parse_printed

__all__ = ["FactClaim"]


class FactClaim(Claim):
    """A count that describes a data set.

    Attributes
    ----------
    dataset : str
    of : str
        "columns" are the features and the label, "share" is the percentage of positives,
        "training_rows" are those of the provided split.
    """

    kind: Literal["fact"]
    dataset: str
    of: Literal[
        "rows",
        "training_rows",
        "features",
        "columns",
        "positives",
        "negatives",
        "share",
        "positives_per_fold",
    ]

    @property
    def in_words(self) -> bool:
        """A number is printed."""
        return False

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge a count of a data set."""
        outcomes = self.results_in(evidence.outcomes)
        shape = outcomes.shape(self.dataset)
        if self.of == "training_rows" and not shape.get("training_rows"):
            raise MissingError(f"{self.dataset} was not used with the split that it provides")
        values = {
            **shape,
            "columns": shape["features"] + 1,
            "negatives": shape["rows"] - shape["positives"],
            "share": 100 * shape["positives"] / shape["rows"],
            "positives_per_fold": shape["positives"] / outcomes.run.folds,
        }
        value = float(values[self.of])
        fields: dict[str, Any] = {"measured": f"{value:.8g}", "runs": 1}
        if agrees(parse_printed(self.printed), value):
            return self.ledger_row(*self.judged(True), **fields)
        return self.ledger_row(Verdict.NOT_REPRODUCED, **fields)
