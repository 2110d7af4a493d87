"""A statement that no run decides."""

from typing import Literal, Self

from pydantic import model_validator

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import Claim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.yaml.models import at, refuse

__all__ = ["StatementClaim"]


class StatementClaim(Claim):
    """A sentence, definition or formula that no other kind of claim holds.

    Attributes
    ----------
    reason : str
        Why no run can decide it. If a run could, but none does yet, `untested` says so instead.
    """

    kind: Literal["statement"]
    reason: str = ""

    @property
    def is_testable(self) -> bool:
        """No run decides it."""
        return False

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if bool(self.reason) == bool(self.untested):
            refuse(at((), ["needs either a reason (no run can decide it) or untested (none does)"]))
        return self

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Say why no run can decide it."""
        return self.ledger_row(Verdict.NOT_TESTABLE, reason=self.reason)
