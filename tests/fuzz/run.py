"""Give mutated files to the readers.

Each must be read, or refused with an error message.

A file is changed at random, as bytes or in the parts that it consists of, and read as
the commands read it. ``make sanitize`` runs this over kernels built with the address
and undefined-behaviour sanitizers. The cases follow from ``--seed`` alone: ``--first``
repeats one. The file of a case with a finding, or that killed the process, lies in the
folder.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from files import Kind, write_files

from precbench.core.errors import PrecbenchError

SECONDS = 20  # a case that takes longer is a finding
GIBIBYTES = 2  # and one that asks for more memory
MOST_SHOWN = 20
OVERFLOW = """
import numpy as np
from precbench.data.svmlight_kernel import parse_block
text = bytearray(b"1 1:1\\n" * 200)
room = {"data": np.empty(400), "indices": np.empty(400, np.int32)}
room["labels"] = np.empty(600)
inexact = np.empty((9, 3), np.intp)
parse_block(text, len(text), 9, row_ends=np.empty(150, np.intp), inexact=inexact,
            **room)
"""


def end_case(*_: object) -> None:
    """End a case that takes too long."""
    raise TimeoutError("takes too long")


def limit_memory() -> None:
    """Limit what a case may ask for.

    Not under a sanitizer, whose shadow needs terabytes.
    """
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    n_pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = n_pages * resource.getpagesize()
    limit = used + GIBIBYTES * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Outcome(NamedTuple):
    """How the reading of a changed file ended."""

    name: str  # "read", "refused", or the file, the error and where it was raised
    message: str = ""  # of an error that is a finding

    @property
    def is_finding(self) -> bool:
        return self.name not in ("read", "refused")


def read_changed(kind: Kind, rng: random.Random, content: bytes) -> Outcome:
    """Read a changed file in the place of the valid one."""
    path = kind.path
    valid = path.read_bytes()
    path.write_bytes(content)
    signal.alarm(SECONDS)
    try:
        kind.read(rng, path)
    except PrecbenchError:
        return Outcome("refused")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        name = f"{path.name}: {type(error).__name__} ({place})"
        return Outcome(name, str(error)[:200])
    finally:
        signal.alarm(0)
        path.write_bytes(valid)
    return Outcome("read")


def run(folder: Path, n_cases: int, seed: int, first: int) -> int:
    """Give the cases and return the number of findings."""
    kinds = write_files(folder / "world")
    limit_memory()
    signal.signal(signal.SIGALRM, end_case)
    warnings.simplefilter("ignore")
    n_cases_by_outcome = Counter[str]()
    start = time.perf_counter()
    for number in range(first, first + n_cases):
        rng = random.Random(f"{seed}/{number}")
        kind = kinds[number % len(kinds)]
        content = kind.change(rng, kind.path.read_bytes())
        outcome = read_changed(kind, rng, content)
        n_cases_by_outcome[outcome.name] += 1
        is_first = n_cases_by_outcome[outcome.name] == 1
        if outcome.is_finding and is_first and len(n_cases_by_outcome) <= MOST_SHOWN:
            print(f"case {number}: {outcome.name}: {outcome.message}", file=sys.stderr)
            (folder / f"case-{number}-{kind.path.name}").write_bytes(content)
    seconds = time.perf_counter() - start
    n_read = n_cases_by_outcome["read"]
    n_refused = n_cases_by_outcome["refused"]
    n_findings = n_cases - n_read - n_refused
    print(
        f"fuzz: {n_cases:,} mutated files in {seconds:.0f} s, seed {seed}:"
        f" {n_read:,} read, {n_refused:,} refused; {n_findings:,} findings"
    )
    return n_findings


def finds_overflow(expected: str) -> bool:
    """Write beyond an array in a process; return whether it ends with this text."""
    command = [sys.executable, "-c", OVERFLOW]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    is_found = done.returncode != 0 and expected in done.stderr
    print(f"a planted overflow was {'found' if is_found else 'NOT found'} ({expected})")
    return is_found


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--folder", type=Path, default=Path("build", "fuzz"))
    parser.add_argument(
        "--overflow", metavar="TEXT", help="see that a planted overflow is found"
    )
    options = parser.parse_args()
    if options.overflow:
        is_found = finds_overflow(options.overflow)
        return 0 if is_found else 1
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    n_findings = run(folder, options.cases, options.seed, options.first)
    return 0 if n_findings == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
