"""Published numbers and sentences, and whether results agree with them.

`load_claims` reads the files ``NAME.published.yaml`` beside the configs,
`read_evidence` the folders of results, and `make_ledger` gives each claim its verdict.
"""

from precbench.claims.evidence import Evidence, read_evidence
from precbench.claims.kinds import KINDS, Claim
from precbench.claims.kinds.kind import make_ledger
from precbench.claims.ledger import LedgerRow
from precbench.claims.published import load_claims, load_deviations

__all__ = [
    "KINDS",
    "Claim",
    "Evidence",
    "LedgerRow",
    "load_claims",
    "load_deviations",
    "make_ledger",
    "read_evidence",
]
