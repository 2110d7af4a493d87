"""Plant errors one at a time, and see whether ``make check`` and ``make test`` find
them.

In some hours: ``make plants``, each week in CI. Each error of tests/plants.yaml is
planted in a copy of the tree, which holds the results of the tree as it is; trials
whose records come from other code run again (``--rerun changed-code``). The check goes
from its cheapest part to the dearest and ends where the error is found; then, for the
errors that it has not found, the tests run until one fails, those first that name the
module. What is known is kept in the folder and not done again. ``--write`` takes it
into results/reference/planted.csv, which ``make docs`` counts in docs/claims.md.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from precbench.core.yaml.document import load

ROOT = Path(__file__).resolve().parents[1]
PLANTS = ROOT / "tests" / "plants.yaml"
TABLE = ROOT / "results" / "reference" / "planted.csv"
MOST_UNSEEN = 2
"""So many errors may be found by nothing."""

_BIN = Path(sys.executable).parent
_MAKE = ("make", "-o", "build", "-o", ".venv/.dev", f"BIN={_BIN}", "JOBS=1")
CHECKS = {
    "values": (*_MAKE, "regression"),
    "verdicts": (*_MAKE, "verdicts"),
    "all": (*_MAKE, "REGRESSION=", "check"),
}
"""The parts of the check, the cheapest first."""
TEST, _TESTS = "test", (sys.executable, "-m", "pytest", "-xq", "-m", "not measured")
_LEFT_OUT = shutil.ignore_patterns(
    *("__pycache__", ".*_cache", ".git", ".venv", "build", "*.egg-info"), "results"
)
_RECORDS = shutil.ignore_patterns("trials", "figures")


class Plant(NamedTuple):
    """An error: what stands in a file in place of a text that occurs in it once.

    The tests begin with those of `test`, a file of tests/, if it is given.
    """

    name: str
    file: str
    old: str
    new: str
    test: str = ""

    def text(self, root: Path) -> str:
        """Return the file with the error; `old` may be broken into other lines."""
        text = read(root / self.file)
        words = [re.findall(r"\w+|[^\w\s]", part) for part in self.old.split()]
        pattern = r"\s+".join(r"\s*".join(map(re.escape, part)) for part in words)
        places = [*re.finditer(rf"(?<!\w){pattern}", text)]
        if len(places) != 1:
            raise ValueError(
                f"{self.name}: {self.file} has its text {len(places)} times"
            )
        return text[: places[0].start()] + self.new.strip() + text[places[0].end() :]


def read(path: Path) -> str:
    """Return the text of a file, compressed or not."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def plants() -> list[Plant]:
    """Read the list of errors."""
    return [Plant(**entry) for entry in load(PLANTS).data]


class Copy:
    """A copy of the tree, with its compiled kernels.

    Parameters
    ----------
    folder : Path
        For the copy, tables of its results without an error, and what is known.
    parts : sequence of str
        What has to pass without an error.
    """

    def __init__(self, folder: Path, parts: Sequence[str]):
        self.tree, self.results = folder / "tree", folder / "results"
        if not self.tree.exists():
            shutil.copytree(ROOT, self.tree, ignore=_LEFT_OUT)
        if not self.results.exists():
            shutil.rmtree(self.tree / "results", ignore_errors=True)
            shutil.copytree(TABLE.parent, self.tree / "results" / "reference")
            for part in parts:
                if words := self.run(*(CHECKS | {TEST: _TESTS})[part]):
                    sys.exit(f"{part} fails without an error planted:\n{words}")
            shutil.copytree(self.tree / "results", self.results, ignore=_RECORDS)

    def run(self, *command: str) -> str:
        """Run a command in the copy.

        Return its last words, or nothing if all is well.
        """
        environment = os.environ | {
            "PYTHONPATH": str(self.tree),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command,
            cwd=self.tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return ""
        lines = [
            line for line in (done.stdout + done.stderr).splitlines() if line.strip()
        ]
        return "\n".join(lines[-40:]) or f"exit code {done.returncode}"

    def build(self, file: str) -> None:
        """Compile the kernels, if the file is one."""
        if file.endswith(".pyx"):
            # other errors, compiled
            shutil.rmtree(self.tree / "build", ignore_errors=True)
            words = self.run(sys.executable, "setup.py", "-q", "build_ext", "--inplace")
            if words:
                raise RuntimeError(words)

    def first_failure(self, plant: Plant) -> str:
        """Run the tests until one fails.

        Those named after the module, then by its mentions.
        """
        file = Path(plant.file)
        is_of_method = file.stem in ("estimator", "kernel", "reference")
        name = file.parent.name if is_of_method else file.stem
        first = self.tree / "tests" / plant.test

        def unlikely(path: Path) -> tuple[bool, bool, int]:
            mentions = path.read_text(encoding="utf-8").count(name)
            return path != first, name not in path.stem, -mentions

        for path in sorted(
            sorted((self.tree / "tests").rglob("test_*.py")), key=unlikely
        ):
            tests = str(path.relative_to(self.tree))
            words = self.run(*_TESTS, tests)
            if words:
                failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", words, re.MULTILINE)
                return failed[-1] if failed else tests
        return ""


def examine(
    plant: Plant, copy: Copy, known: dict[str, str], parts: list[str]
) -> Iterator[str]:
    """Plant an error, run the parts in turn, and report what each has found."""
    path = copy.tree / plant.file
    correct = {
        other: (other.read_bytes(), other.stat())
        for other in path.parent.glob(f"{path.stem}.*")
    }
    content = plant.text(copy.tree).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    try:
        copy.build(plant.file)
        # Records say which code they are of; tables are those without an error.
        shutil.copytree(copy.results, copy.tree / "results", dirs_exist_ok=True)
        for part in parts:
            found = (
                copy.first_failure(plant) if part == TEST else copy.run(*CHECKS[part])
            )
            known[part] = found
            yield f"{part} finds {'it' if found else 'nothing'}"
            if found:
                break
    finally:
        for other in {*path.parent.glob(f"{path.stem}.*")} - {*correct}:
            other.unlink()  # C of an error, which would be compiled again
        for other, (content, about) in correct.items():  # what was compiled, too
            other.write_bytes(content)
            os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))


def finder(known: dict[str, str]) -> str:
    """Return the first part of the check that has found the error, if any has."""
    return next((part for part in CHECKS if known.get(part)), "")


def table(outcomes: dict[str, dict[str, str]]) -> pd.DataFrame:
    """Lay out what is known, in the order of the list."""
    known = [
        (plant, outcomes[plant.name]) for plant in plants() if outcomes.get(plant.name)
    ]
    rows = [[one.name, one.file, finder(of), of.get(TEST, "")] for one, of in known]
    return pd.DataFrame(rows, columns=["error", "file", "check", "test"])


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="parts of the names of errors; default all"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "planted")
    parser.add_argument(
        "--parts", nargs="+", choices=[*CHECKS, TEST], default=[*CHECKS, TEST]
    )
    parser.add_argument(
        "--write", action="store_true", help="write the table; plant nothing"
    )
    parser.add_argument(
        "--strict", action="store_true", help="fail if an error is not found"
    )
    arguments = parser.parse_args()
    noted = arguments.folder / "outcomes.json"
    outcomes = json.loads(noted.read_text()) if noted.exists() else {}
    if arguments.write:
        table(outcomes).to_csv(TABLE, index=False, lineterminator="\n")
        return
    copy = Copy(arguments.folder, arguments.parts)
    for plant in plants():
        known = outcomes.setdefault(plant.name, {})
        parts = [
            part for part in arguments.parts if part not in known and not finder(known)
        ]
        if parts and any(name in plant.name for name in arguments.names or [""]):
            for text in examine(plant, copy, known, parts):
                noted.write_text(json.dumps(outcomes, indent=1))
                print(f"{plant.name}: {text}", flush=True)
    unseen = [
        name for name, known in outcomes.items() if known and not any(known.values())
    ]
    if arguments.strict and len(unseen) > MOST_UNSEEN:
        sys.exit("\n".join(["found by nothing:", *unseen]))


if __name__ == "__main__":
    main()
