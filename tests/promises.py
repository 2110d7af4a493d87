"""Run the tests that keep the promises, and print what became of each promise.

``make promises`` runs it at quick size, ``make promises FULL=1`` at full size (200
kills, 100,000 damaged files, every key of every config), which also writes the figures
into ``docs/trust.csv``; ``make docs`` makes the table of ``docs/trust.md`` from that. A
test keeps a promise if it is marked ``promise("R1")``, and states what it saw through
the fixture ``figure``. Given the reports of ``make test``, the script runs only what
that does not, the tests marked ``measured``.
"""

import argparse
import datetime
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from precbench.core.yaml.document import load

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "trust.csv"
PROMISES = load(ROOT / "docs" / "promises.yaml").data


@dataclass
class Outcome:
    """What the tests of one promise saw.

    Attributes
    ----------
    tests, failed, skipped : int
    files : set of str
        Of the tests.
    counts : dict of str to int or None
        Numbers by what they count; None for a text without a number.
    """

    tests: int = 0
    failed: int = 0
    skipped: int = 0
    files: set[str] = field(default_factory=set)
    counts: dict[str, int | None] = field(default_factory=dict)

    @property
    def was_tried(self) -> bool:
        return self.tests > self.skipped

    @property
    def state(self) -> str:
        """Whether the promise holds, as a verb and more."""
        if self.failed:
            return f"is BROKEN ({self.failed} of {self.tests} tests failed)"
        if not self.tests:
            return "has NO TEST"
        if not self.was_tried:
            return "was NOT TRIED (all tests were skipped)"
        return "holds"

    @property
    def figures(self) -> str:
        """The figures, and the number of tests."""
        texts = []
        for text, n in self.counts.items():
            texts.append(text if n is None else f"{n:,} {text}")
        n_ran = self.tests - self.skipped
        texts.append(f"{n_ran:,} test" if n_ran == 1 else f"{n_ran:,} tests")
        return "; ".join(texts)

    def add(self, case: ET.Element, figures: list[str]) -> None:
        """Count a test, and add up its figures with those of the same thing."""
        self.tests += 1
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed += 1
        if case.find("skipped") is not None:
            self.skipped += 1
        self.files.add(case.get("classname", "").replace(".", "/") + ".py")
        for text in figures:
            number, _space, thing = text.partition(" ")
            if number.isdecimal():
                self.counts[thing] = (self.counts.get(thing) or 0) + int(number)
            else:
                self.counts[text] = None


def run_tests(measured: bool, full: bool, folder: Path) -> list[Path]:
    """Run the tests of promises, all or those that `make test` leaves out.

    Return their reports.
    """
    marked = "promise and measured" if measured else "promise"
    pytest = [sys.executable, "-m", "pytest", "-q"]
    if full:
        pytest += ["--full", "--timeout", "7200"]
    parallel = ["-n2", "--dist", "worksteal"]
    reports = []
    for part, options in (("not alone", parallel), ("alone", [])):
        report = folder / f"{part}.xml"
        selection = ["-m", f"{marked} and {part}", "--junitxml", str(report)]
        command = [*pytest, *selection, *options]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code not in (0, 1, 5):  # all passed, some failed, none is marked so
            sys.exit(code)
        reports.append(report)
    return reports


def read(reports: list[Path]) -> dict[str, Outcome]:
    """Gather the outcomes of tests by promise."""
    outcomes = {name: Outcome() for name in PROMISES}
    for report in reports:
        for case in ET.parse(report).iter("testcase"):
            for name in dict.fromkeys(properties(case, "promise")):
                outcomes[name].add(case, properties(case, "figure"))
    return outcomes


def properties(case: ET.Element, name: str) -> list[str]:
    """Return the values of the properties of a test that have a name."""
    return [
        each.get("value", "")
        for each in case.iter("property")
        if each.get("name") == name
    ]


def write(outcomes: dict[str, Outcome], size: str) -> None:
    """Put the figures of a size into the committed file, in place of earlier ones."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = []
    for name, outcome in outcomes.items():
        if outcome.tests:
            files = " ".join(sorted(outcome.files))
            rows.append((name, size, today, files, outcome.figures))
    others = pd.read_csv(FIGURES).query("size != @size")
    table = pd.concat([others, pd.DataFrame(rows, columns=others.columns)])
    places = {name: place for place, name in enumerate([*PROMISES, "quick", "full"])}
    table = table.sort_values(
        ["promise", "size"], key=lambda column: column.map(places)
    )
    table.to_csv(FIGURES, index=False)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "reports", type=Path, nargs="*", help="of tests that have just been run"
    )
    parser.add_argument(
        "--full", action="store_true", help="as many rounds as for docs/trust.csv"
    )
    parser.add_argument(
        "--write", action="store_true", help="write the figures to docs/trust.csv"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports = run_tests(bool(options.reports), options.full, Path(folder))
        outcomes = read([*options.reports, *reports])
    broken = []
    for name, outcome in outcomes.items():
        promise = PROMISES[name]
        also = "".join(f"; see also {command}" for command in promise.get("also", ()))
        print(f"{name} {outcome.state}: {promise['says']} {outcome.figures}{also}")
        is_kept_elsewhere = "also" in promise
        if outcome.failed or not (outcome.was_tried or is_kept_elsewhere):
            broken.append(name)
    if broken:
        sys.exit(f"not kept: {', '.join(broken)}")
    if options.write:
        write(outcomes, "full" if options.full else "quick")


if __name__ == "__main__":
    main()
