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


def ring(*_: object) -> None:
    """End a case that takes too long."""
    raise TimeoutError("takes too long")


def limit_memory() -> None:
    """Limit what a case may ask for.

    Not under a sanitizer, whose shadow needs terabytes.
    """
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        used = (
            int(Path("/proc/self/statm").read_text().split()[0])
            * resource.getpagesize()
        )
        resource.setrlimit(resource.RLIMIT_AS, (used + GIBIBYTES * 2**30,) * 2)


def read_changed(kind: Kind, rng: random.Random, content: bytes) -> tuple[str, str]:
    """Read a changed file in the place of the valid one.

    Return how that ended, and the error.
    """
    path = Path(kind.path)
    valid = path.read_bytes()
    path.write_bytes(content)
    signal.alarm(SECONDS)
    try:
        kind.read(rng, path)
    except PrecbenchError:
        return "refused", ""
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return f"{path.name}: {type(error).__name__} ({place})", str(error)[:200]
    finally:
        signal.alarm(0)
        path.write_bytes(valid)
    return "read", ""


def run(folder: Path, n_cases: int, seed: int, first: int) -> int:
    """Give the cases and return the number of findings."""
    kinds = write_files(folder / "world")
    limit_memory()
    signal.signal(signal.SIGALRM, ring)
    warnings.simplefilter("ignore")
    ends = Counter[str]()
    started = time.perf_counter()
    for number in range(first, first + n_cases):
        rng, kind = random.Random(f"{seed}/{number}"), kinds[number % len(kinds)]
        content = kind.change(rng, Path(kind.path).read_bytes())
        end, error = read_changed(kind, rng, content)
        ends[end] += 1
        if (
            end not in {"read", "refused"}
            and ends[end] == 1
            and len(ends) <= MOST_SHOWN
        ):
            print(f"case {number}: {end}: {error}", file=sys.stderr)
            (folder / f"case-{number}-{Path(kind.path).name}").write_bytes(content)
    seconds = time.perf_counter() - started
    n_findings = n_cases - ends["read"] - ends["refused"]
    print(
        f"fuzz: {n_cases:,} mutated files in {seconds:.0f} s, seed {seed}:"
        f" {ends['read']:,} read, {ends['refused']:,} refused; {n_findings:,} findings"
    )
    return n_findings


def overflow(expected: str) -> bool:
    """Write beyond an array in a process; say whether it ends with this text."""
    command = [sys.executable, "-c", OVERFLOW]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = done.returncode != 0 and expected in done.stderr
    print(f"a planted overflow was {'found' if found else 'NOT found'} ({expected})")
    return found


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
        return int(not overflow(options.overflow))
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    return int(run(folder, options.cases, options.seed, options.first) > 0)


if __name__ == "__main__":
    sys.exit(main())
