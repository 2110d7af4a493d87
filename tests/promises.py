"""Run the tests that keep the promises, and print what became of each promise.

``make promises`` runs it at quick size, ``make promises FULL=1`` at full size (50 kills, 100,000
damaged files, every key of every config), which also writes the figures into ``docs/trust.csv``;
``make docs`` makes the table of ``docs/trust.md`` from that. A test keeps a promise if it is marked
``promise("R1")``, and states what it saw through the fixture ``figure``. Given the reports of
``make test``, the script runs only what that does not, the tests marked ``measured``.
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

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "trust.csv"
PROMISES = {
    "R1": "A kill loses only the running trials; files are whole; a resumed run repeats nothing.",
    "R2": "Ctrl-C and SIGTERM end a run at once, finished trials kept, no process left.",
    "R3": "A worker that dies costs the one trial it was running; all others finish.",
    "R4": "Too little memory fails one trial, a full disk ends the run, each with one sentence.",
    "R5": "Two runs cannot write to one folder; a run whose folder is moved stops and says so.",
    "R6": "No file of the user is overwritten by a command that reads it.",
    "R7": "Numbers do not depend on `--jobs` or on which other trials are selected.",
    "R8": "Kernels give bitwise identical results whatever the CPU features and the BLAS.",
    "R9": "float32 and float64, dense and CSR, 32- and 64-bit indices give the same weights.",
    "R10": "Every solver passes scikit-learn's checks (linear-svm: with LinearSVC's exceptions).",
    "R11": "NaN, wrong shapes, one class, k out of range and empty data give an error message.",
    "R12": "Solvers agree with brute force, slow reference implementations and general solvers.",
    "R13": "No file is executed: no pickle, YAML is plain data, pages and tables escape text.",
    "R14": "A damaged or newer file of data, models or results gets one sentence, never a crash.",
    "R15": "The svmlight reader equals scikit-learn's bitwise, is faster, and locates errors.",
    "R16": "Downloads come over https, are used once checked, and pass over dead sources.",
    "R17": "No name in a card, an archive or a config leads outside its folder.",
    "R18": "A mistake in a config is reported before any work, with its line and a suggestion.",
    "R19": "Exit codes are as documented; JSON on standard output parses; no colour enters a pipe.",
    "R20": "Times are the solver's own: the clock stops for evaluation; parallel ones are apart.",
    "R21": "Published numbers hold: a verdict that gets worse fails the check.",
    "R22": "It installs and runs from a wheel on every platform; only certifi is copyleft (MPL).",
    "R23": "Equal results give equal tables and figures, byte for byte.",
    "R24": "Records hold no user name, host name or path.",
    "R25": "Edited code trains nothing again unless asked; a number moves only with its version.",
}
# What keeps a promise beside the tests.
COMMANDS = {
    "R14": ["make sanitize"],
    "R21": ["make check"],
    "R22": [".github/workflows/wheels.yml"],
}


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
        return "was NOT TRIED (all tests were skipped)" if self.skipped == self.tests else "holds"

    @property
    def measured(self) -> str:
        """The figures with the number of tests."""
        ran = self.tests - self.skipped
        said = [text if n is None else f"{n:,} {text}" for text, n in self.figures.items()]
        return "; ".join([*said, f"{ran:,} test{'' if ran == 1 else 's'}"])


def run_tests(measured: bool, full: bool, folder: Path) -> list[Path]:
    """Run the tests of promises, all or those that `make test` leaves out; return their reports."""
    marked, files = "promise", []
    if measured:  # only their files are collected
        marked = "promise and measured"
        tests = sorted((ROOT / "tests").rglob("test_*.py"))
        files = [str(path) for path in tests if "mark.measured" in path.read_text()]
    size = ["--full", "--timeout", "7200"] if full else []
    reports = []
    for part, processes in {"not alone": ["-n2", "--dist", "worksteal"], "alone": []}.items():
        reports.append(folder / f"{part}.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-m", f"{marked} and {part}", *processes]
        command += ["--junitxml", str(reports[-1]), *size, *files]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code not in (0, 1, 5):  # all passed, some failed, none is marked so
            sys.exit(code)
    return reports


def read(reports: list[Path]) -> dict[str, Kept]:
    """Gather the outcomes of tests by promise; counts of the same thing are added up."""
    found = {name: Kept() for name in PROMISES}
    for case in (case for report in reports for case in ET.parse(report).iter("testcase")):
        properties = [(p.get("name"), p.get("value", "")) for p in case.iter("property")]
        for name in {value for kind, value in properties if kind == "promise"}:
            kept = found[name]
            kept.tests += 1
            kept.failed += any(case.find(end) is not None for end in ("failure", "error"))
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
    """Put the figures of this size into the committed file, in the place of earlier ones."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = [
        (name, size, today, " ".join(sorted(kept.files)), kept.measured)
        for name, kept in found.items()
        if kept.tests
    ]
    others = pd.read_csv(FIGURES).query("size != @size")
    table = pd.concat([others, pd.DataFrame(rows, columns=others.columns)])
    places = {name: place for place, name in enumerate([*PROMISES, "quick", "full"])}
    table.sort_values(["promise", "size"], key=lambda of: of.map(places)).to_csv(
        FIGURES, index=False
    )


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", type=Path, nargs="*", help="of tests that have just been run")
    parser.add_argument("--full", action="store_true", help="as many rounds as for docs/trust.csv")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/trust.csv")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports = run_tests(bool(options.reports), options.full, Path(folder))
        found = read([*options.reports, *reports])
    for name, kept in found.items():
        also = "".join(f"; see also {command}" for command in COMMANDS.get(name, ()))
        print(f"{name} {kept.state}: {PROMISES[name]} {kept.measured}{also}")
    if broken := [
        name
        for name, kept in found.items()
        if kept.failed or (kept.tests == kept.skipped and name not in COMMANDS)
    ]:
        sys.exit(f"not kept: {', '.join(broken)}")
    if options.write:
        write(found, "full" if options.full else "quick")


if __name__ == "__main__":
    main()
