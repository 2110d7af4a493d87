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
class Kept:
    """What the tests of one promise saw."""

    tests: int = 0
    failed: int = 0
    skipped: int = 0
    files: set[str] = field(default_factory=set)
    figures: dict[str, int | None] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Whether it holds."""
        if self.failed:
            return f"is BROKEN ({self.failed} of {self.tests} tests failed)"
        if not self.tests:
            return "has NO TEST"
        return (
            "was NOT TRIED (all tests were skipped)"
            if self.skipped == self.tests
            else "holds"
        )

    @property
    def measured(self) -> str:
        """The figures with the number of tests."""
        ran = self.tests - self.skipped
        said = [
            text if n is None else f"{n:,} {text}" for text, n in self.figures.items()
        ]
        return "; ".join([*said, f"{ran:,} test{'' if ran == 1 else 's'}"])


def run_tests(measured: bool, full: bool, folder: Path) -> list[Path]:
    """Run the tests of promises, all or those that `make test` leaves out.

    Return their reports.
    """
    marked = "promise and measured" if measured else "promise"
    size = ["--full", "--timeout", "7200"] if full else []
    reports = []
    for part, processes in {
        "not alone": ["-n2", "--dist", "worksteal"],
        "alone": [],
    }.items():
        reports.append(folder / f"{part}.xml")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            f"{marked} and {part}",
            *processes,
        ]
        command += ["--junitxml", str(reports[-1]), *size]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code not in (0, 1, 5):  # all passed, some failed, none is marked so
            sys.exit(code)
    return reports


def read(reports: list[Path]) -> dict[str, Kept]:
    """Gather the outcomes of tests by promise.

    Counts of the same thing are added up.
    """
    found = {name: Kept() for name in PROMISES}
    for case in (
        case for report in reports for case in ET.parse(report).iter("testcase")
    ):
        properties = [
            (p.get("name"), p.get("value", "")) for p in case.iter("property")
        ]
        for name in {value for kind, value in properties if kind == "promise"}:
            kept = found[name]
            kept.tests += 1
            kept.failed += any(
                case.find(end) is not None for end in ("failure", "error")
            )
            kept.skipped += case.find("skipped") is not None
            kept.files.add(case.get("classname", "").replace(".", "/") + ".py")
            for text in (value for kind, value in properties if kind == "figure"):
                n, _, what = text.partition(" ")
                if n.isdecimal():
                    kept.figures[what] = (kept.figures.get(what) or 0) + int(n)
                else:
                    kept.figures[text] = None
    return found


def write(found: dict[str, Kept], size: str) -> None:
    """Put the figures of this size into the committed file, in the place of earlier
    ones.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = [
        (name, size, today, " ".join(sorted(kept.files)), kept.measured)
        for name, kept in found.items()
        if kept.tests
    ]
    others = pd.read_csv(FIGURES).query("size != @size")
    table = pd.concat([others, pd.DataFrame(rows, columns=others.columns)])
    places = {name: place for place, name in enumerate([*PROMISES, "quick", "full"])}
    table = table.sort_values(["promise", "size"], key=lambda of: of.map(places))
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
        found = read([*options.reports, *reports])
    for name, kept in found.items():
        also = "".join(
            f"; see also {command}" for command in PROMISES[name].get("also", ())
        )
        print(f"{name} {kept.state}: {PROMISES[name]['says']} {kept.measured}{also}")
    if broken := [
        name
        for name, kept in found.items()
        if kept.failed or (kept.tests == kept.skipped and "also" not in PROMISES[name])
    ]:
        sys.exit(f"not kept: {', '.join(broken)}")
    if options.write:
        write(found, "full" if options.full else "quick")


if __name__ == "__main__":
    main()
