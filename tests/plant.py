"""Plant errors one at a time; see whether ``make check`` and ``make test`` find them.

``make plants`` runs it, in some hours, each week in CI. Each error of tests/plants.yaml
is planted in a copy of the tree, which holds the results of the tree as it is; trials
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
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from precbench.core.yaml.document import load

ROOT = Path(__file__).resolve().parents[1]
PLANTS = ROOT / "tests" / "plants.yaml"
TABLE = ROOT / "results" / "reference" / "planted.csv"
MOST_UNSEEN = 2  # so many errors may be found by nothing
_BIN = Path(sys.executable).parent
_MAKE = ("make", "-o", "build", "-o", ".venv/.dev", f"BIN={_BIN}", "JOBS=1")
CHECKS = {
    "values": (*_MAKE, "regression"),
    "verdicts": (*_MAKE, "verdicts"),
    "all": (*_MAKE, "REGRESSION=", "check"),
}
"""The parts of the check, the cheapest first."""
TEST = "test"
"""The part that follows: the tests."""
_PYTEST = (sys.executable, "-m", "pytest", "-xq", "-m", "not measured")
_COMMANDS = CHECKS | {TEST: _PYTEST}
_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", ".*_cache", ".git", ".venv", "build", "*.egg-info"
)
_RECORDS = shutil.ignore_patterns("trials", "figures")


def left_out(folder: str, names: list[str]) -> set[str]:
    """Return what of a folder is not copied, such as the results beside the package."""
    ignored = _LEFT_OUT(folder, names)
    if Path(folder) == ROOT:
        ignored |= {"results"}
    return ignored


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
        places = list(re.finditer(_across_lines(self.old), text))
        if len(places) != 1:
            raise ValueError(
                f"{self.name}: {self.file} has its text {len(places)} times"
            )
        [place] = places
        return text[: place.start()] + self.new.strip() + text[place.end() :]


def _across_lines(code: str) -> str:
    """Return a pattern of code in which other white space may stand, and more of it."""
    parts = []
    for part in code.split():
        tokens = re.findall(r"\w+|[^\w\s]", part)
        parts.append(r"\s*".join(map(re.escape, tokens)))
    return r"(?<!\w)" + r"\s+".join(parts)


def read(path: Path) -> str:
    """Return the text of a file, compressed or not."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return content.decode()


def write(path: Path, text: str) -> None:
    """Write the text of a file, compressed if that is."""
    content = text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    path.write_bytes(content)


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
        self.tree = folder / "tree"
        self.results = folder / "results"
        if not self.tree.exists():
            shutil.copytree(ROOT, self.tree, ignore=left_out)
        if not self.results.exists():
            shutil.rmtree(self.tree / "results", ignore_errors=True)
            shutil.copytree(TABLE.parent, self.tree / "results" / "reference")
            for part in parts:
                failure = self.run(*_COMMANDS[part])
                if failure:
                    sys.exit(f"{part} fails without an error planted:\n{failure}")
            shutil.copytree(self.tree / "results", self.results, ignore=_RECORDS)

    def run(self, *command: str) -> str:
        """Run a command in the copy; return its last lines if it fails, or nothing."""
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
        output = done.stdout + done.stderr
        lines = [line for line in output.splitlines() if line.strip()]
        return "\n".join(lines[-40:]) or f"exit code {done.returncode}"

    def build(self) -> None:
        """Compile the kernels."""
        # What was compiled may have another error.
        shutil.rmtree(self.tree / "build", ignore_errors=True)
        failure = self.run(sys.executable, "setup.py", "-q", "build_ext", "--inplace")
        if failure:
            raise RuntimeError(failure)

    @contextmanager
    def planted(self, plant: Plant) -> Iterator[None]:
        """Plant an error, compiled if that is of a kernel, and remove it again."""
        path = self.tree / plant.file
        correct = {}  # the file, and what was made of it
        for file in path.parent.glob(f"{path.stem}.*"):
            correct[file] = (file.read_bytes(), file.stat())
        write(path, plant.text(self.tree))
        try:
            if path.suffix == ".pyx":
                self.build()
            yield
        finally:
            for file in path.parent.glob(f"{path.stem}.*"):
                if file not in correct:  # C of the error, which would be compiled again
                    file.unlink()
            for file, (content, status) in correct.items():
                file.write_bytes(content)
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def first_failure(self, plant: Plant) -> str:
        """Run the files of tests, the likely ones first, until a test fails."""
        for path in self.tests_of(plant):
            tests = str(path.relative_to(self.tree))
            failure = self.run(*_PYTEST, tests)
            if failure:
                names = re.findall(r"^(?:FAILED|ERROR) (\S+)", failure, re.MULTILINE)
                return names[-1] if names else tests
        return ""

    def tests_of(self, plant: Plant) -> list[Path]:
        """Sort the files of tests by how likely they find an error.

        That which is given comes first, then those named after the module, then by how
        often they mention it.
        """
        file = Path(plant.file)
        is_of_method = file.stem in ("estimator", "kernel", "reference")
        name = file.parent.name if is_of_method else file.stem
        given = self.tree / "tests" / plant.test

        def unlikely(path: Path) -> tuple[bool, bool, int, Path]:
            n_mentions = path.read_text(encoding="utf-8").count(name)
            return path != given, name not in path.stem, -n_mentions, path

        return sorted((self.tree / "tests").rglob("test_*.py"), key=unlikely)


Outcomes = dict[str, str]
"""Of an error, what each part found that was run: its last lines, or nothing."""


def examine(
    plant: Plant, copy: Copy, outcomes: Outcomes, parts: list[str]
) -> Iterator[str]:
    """Plant an error and run the parts until one finds it; report on each."""
    # Records say which code they are of; tables are those without an error, but for an
    # error that is planted in one.
    shutil.copytree(copy.results, copy.tree / "results", dirs_exist_ok=True)
    with copy.planted(plant):
        for part in parts:
            if part == TEST:
                failure = copy.first_failure(plant)
            else:
                failure = copy.run(*CHECKS[part])
            outcomes[part] = failure
            yield f"{part} finds {'it' if failure else 'nothing'}"
            if failure:
                break


def finder(outcomes: Outcomes) -> str:
    """Return the first part of the check that has found the error, if any has."""
    for part in CHECKS:
        if outcomes.get(part):
            return part
    return ""


def table(outcomes_by_name: dict[str, Outcomes]) -> pd.DataFrame:
    """Lay out what is known, in the order of the list."""
    rows = []
    for plant in plants():
        outcomes = outcomes_by_name.get(plant.name)
        if outcomes:
            test = outcomes.get(TEST, "")
            rows.append([plant.name, plant.file, finder(outcomes), test])
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
    options = parser.parse_args()
    file = options.folder / "outcomes.json"
    outcomes_by_name: dict[str, Outcomes] = {}
    if file.exists():
        outcomes_by_name = json.loads(file.read_text())
    if options.write:
        table(outcomes_by_name).to_csv(TABLE, index=False, lineterminator="\n")
        return
    copy = Copy(options.folder, options.parts)
    for plant in plants():
        outcomes = outcomes_by_name.setdefault(plant.name, {})
        if options.names and not any(name in plant.name for name in options.names):
            continue
        if finder(outcomes):
            continue
        parts = [part for part in options.parts if part not in outcomes]
        if not parts:
            continue
        for text in examine(plant, copy, outcomes, parts):
            file.write_text(json.dumps(outcomes_by_name, indent=1))
            print(f"{plant.name}: {text}", flush=True)
    unseen = []
    for name, outcomes in outcomes_by_name.items():
        if outcomes and not any(outcomes.values()):
            unseen.append(name)
    if options.strict and len(unseen) > MOST_UNSEEN:
        sys.exit("\n".join(["found by nothing:", *unseen]))


if __name__ == "__main__":
    main()
