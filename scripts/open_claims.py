"""The open claims of the committed ledger, each with what would decide it.

`scripts.pages` puts the lists into docs/open-claims.md, and what holds of each paper,
what does not and what could not be tried into docs/reproduce.md.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase as fnmatch
from typing import NamedTuple

from precbench.claims import Claim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from scripts import printed
from scripts.printed import Decision
from scripts.survey.tables import apart, laid_out

NOT_HERE = {"kdd08": "KDD Cup 2008", "ppi": "PPI"}
"""Data sets that may not be redistributed, and that nobody here has."""
OPEN = (Verdict.NO_DATA, Verdict.INCONCLUSIVE, Verdict.NO_POWER)


class Group(NamedTuple):
    """Claims that are open for one reason, and what would decide them."""

    title: str
    decides: str


DATA = Group(
    "The data are not here",
    "The files of KDD Cup 2008 or PPI, which may not be redistributed: `precbench "
    "data info kdd08` and `ppi` say where they are, `precbench reproduce kdd08` and "
    "`ppi` then run what decides.",
)
SECONDHAND = Group(
    "The paper could not be read",
    "The paper itself: the numbers are quoted from another source, with our verdict"
    " beside them.",
)
AFTER_RESULTS = Group(
    "Our reading was chosen after our results",
    "Results on data that were not seen when the margin, the data set or the claim "
    "was chosen. What was chosen so can fail, not pass.",
)
MINIMUM = Group(
    "The minimum of the cutting plane is w = 0",
    "No run on these data: the method, run to its end, ranks nothing there, and what "
    "it shows on the way depends on where it is stopped. The authors' stopping point,"
    " or other data, would decide.",
)
ITERATIONS = Group(
    "The cutting plane ended at `max_iter`",
    "More iterations than the config allows.",
)
POWERS = Group(
    "The print dropped a power of ten",
    "The power of ten of the column, which the authors' own output has. Ours was "
    "chosen when our values were known, and its neighbours pass as well.",
)
ONE_DRAW = Group(
    "The paper has a single draw",
    "The paper's draw: over ours the sentence holds too often to be refuted and too "
    "seldom to be confirmed, and more draws of ours do not change that.",
)
CHANCE = Group(
    "Chance: more splits",
    "More splits than were run: the variation lies near the margin of 5 %, and both "
    "sides of it remain possible.",
)
SIZES = Group(
    "The bound says nothing at these sizes",
    "Sizes, or constants, at which the bound lies below what does not obey it (w = 0,"
    " or a control); at ours whatever is measured lies below the bound.",
)
CONSTANTS = Group(
    "The paper leaves the constant open",
    "The constant of the O(·), which the paper does not give: with it the measured "
    "values could refute the bound. Without it no finite run can.",
)
GROUPS = (
    DATA,
    SECONDHAND,
    AFTER_RESULTS,
    MINIMUM,
    ITERATIONS,
    POWERS,
    ONE_DRAW,
    CHANCE,
    SIZES,
    CONSTANTS,
)
_WITHOUT_POWER = (
    "does not obey",
    "the value of w = 0",
    "can be told from",
    "0 against 0 decides nothing",
)


def group_of(claim: Claim, row: LedgerRow) -> Group:
    """Return why a claim is open; raise `ValueError` for a reason without a group."""
    reason = row.reason
    if row.verdict is Verdict.NO_DATA and NOT_HERE.keys() & {*claim.data}:
        return DATA
    if claim.secondhand:
        return SECONDHAND
    if reason.startswith("what decides it was chosen after our results"):
        return AFTER_RESULTS
    if "is w = 0 on" in reason:
        return MINIMUM
    if "ended at max_iter" in reason:
        return ITERATIONS
    if "which is ours" in reason:
        return POWERS
    if "single draw" in reason:
        return ONE_DRAW
    if "splits show neither" in reason:
        return CHANCE
    if "refutes no O" in reason or "the constant is open" in reason:
        return CONSTANTS
    if any(text in reason for text in _WITHOUT_POWER):
        return SIZES
    raise ValueError(f"{row.id} is {row.verdict}, which no group explains: {reason}")


def open_claims() -> str:
    """List every open claim under what would decide it, after a table of the counts."""
    by_group = defaultdict(list)
    for decision in printed.ledger():
        if decision.row.verdict in OPEN:
            by_group[group_of(*decision)].append(decision)
    groups = [group for group in GROUPS if group in by_group]
    counts = []
    for group in groups:
        link = f"[{group.title}](#{_anchor(group.title)})"
        counts.append([link, *_counted(by_group[group]), len(by_group[group])])
    text = laid_out(["why", *map(str, OPEN), "rows"], counts, numbers=len(OPEN) + 1)
    for group in groups:
        lines = []
        for claim, row in by_group[group]:
            name = f"`{row.id}`{apart(claim)}"
            lines.append([name, row.printed, row.measured, str(row.verdict)])
        text += f"\n## {group.title}\n\n{group.decides}\n\n"
        text += laid_out(["claim", "printed", "measured", "verdict"], lines)
    return text


def _anchor(title: str) -> str:
    """Return what a link within the page says for a title."""
    letters = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return letters.replace(" ", "-")


def _counted(decisions: Iterable[Decision]) -> list[int | str]:
    """Return the number of each open verdict, nothing in place of 0."""
    counts = Counter(decision.row.verdict for decision in decisions)
    return [counts[verdict] or "" for verdict in OPEN]


def is_it_true(paper: str, *strongest: str) -> str:
    """Lay out what holds of a paper, what does not, and what could not be tried.

    `strongest` are patterns of ids, without the paper, of claims that hold wherever
    they were decided. Of what does not hold, each sentence is listed, with a claim
    about it.
    """
    own = []
    for decision in printed.claims(paper):
        if not decision.claim.ours and not decision.claim.secondhand:
            own.append(decision)
    decided = [each for each in own if each.row.verdict.rank is not None]
    lines = [_line_of_pattern(pattern, paper, decided) for pattern in strongest]
    lines += _lines_of_failures(paper, decided)
    lines += _lines_without_data(own)
    header = ["", "the paper says", "claims", "rows", "measured, for example"]
    return laid_out(header, lines)


def _line_of_pattern(
    pattern: str, paper: str, decided: Sequence[Decision]
) -> list[object]:
    """Return the line of claims that hold; raise `ValueError` if one does not."""
    ids = f"{paper}/{pattern}"
    matching = [each for each in decided if fnmatch(each.row.id, ids)]
    if not matching or not all(each.row.verdict.holds for each in matching):
        raise ValueError(f"{pattern} of {paper} does not hold: name claims that do")
    return _line("holds", matching, len(matching), pattern)


def _lines_of_failures(paper: str, decided: Sequence[Decision]) -> list[list[object]]:
    """Return a line for each sentence of which a claim does not hold."""
    by_sentence = defaultdict(list)
    for decision in decided:
        claim = decision.claim
        sentence = claim.sentence or claim.says or claim.id
        by_sentence[sentence].append(decision)
    lines = []
    for of_sentence in by_sentence.values():
        failing = [
            each for each in of_sentence if each.row.verdict is Verdict.NOT_REPRODUCED
        ]
        if failing:
            name = failing[0].row.id.removeprefix(f"{paper}/")
            lines.append(_line("does not hold", failing, len(of_sentence), name))
    return lines


def _lines_without_data(decisions: Sequence[Decision]) -> list[list[object]]:
    """Return a line for each data set that is not here, with the number of rows."""
    lacking: Counter[str] = Counter()
    for claim, row in decisions:
        if row.verdict is Verdict.NO_DATA:
            lacking.update(NOT_HERE.get(name, name) for name in claim.data)
    return [
        ["could not be tried", f"on {name}", "", n, ""] for name, n in lacking.items()
    ]


def _line(
    outcome: str, decisions: Sequence[Decision], n_decided: int, name: str
) -> list[object]:
    """Return the cells of a line, whose example is the first decision."""
    claim, row = decisions[0]
    says = claim.says or f"{row.where}: {row.printed}"
    rows = f"{len(decisions)} of {n_decided}"
    return [outcome, says, f"`{name}`", rows, row.measured]
