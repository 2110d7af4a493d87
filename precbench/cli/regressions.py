"""What check and reproduce print of verdicts that have become worse."""

import sys
from collections.abc import Iterable

from precbench.claims.ledger import Change

REGRESSED = 4  # exit code: a verdict is worse than before, or there are no results


def report_regressions(changed: Iterable[Change]) -> int:
    """Print verdicts worse than in the reference; return exit code 4 if any, or 0."""
    worse = [change for change in changed if change.worse]
    for change in worse:
        verdicts = f"was {change.before} in the reference, is {change.after} now"
        print(f"precbench: {change.id} {verdicts}", file=sys.stderr)
    return REGRESSED if worse else 0
