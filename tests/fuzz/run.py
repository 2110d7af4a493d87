"""Give mutated files to the readers: each must be read, or refused with an error message.

A file is changed at random, as bytes or in the parts that it consists of, and read as the commands
read it. ``make sanitize`` runs this over kernels built with the address and undefined-behaviour
sanitizers. The cases follow from ``--seed`` alone: ``--first`` repeats one. The file of a case with
a finding, or that killed the process, lies in the folder.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

from files import Files
from world import ring

MOST_SHOWN = 20
OVERFLOW = """
import numpy as np
from precbench.kernels.svmlight import parse_block
text = bytearray(b"1 1:1\\n" * 200)
room = {"data": np.empty(400), "indices": np.empty(400, np.int32), "labels": np.empty(600)}
parse_block(text, len(text), 9, row_ends=np.empty(150, np.intp), inexact=np.empty((9, 3), np.intp),
            **room)
"""


def run(target: Files, n_cases: int, seed: int, first: int) -> int:
    """Give the cases and return the number of findings."""
    signal.signal(signal.SIGALRM, ring)
    warnings.simplefilter("ignore")
    outcomes, findings = Counter[str](), Counter[str]()
    started = time.perf_counter()
    for number in range(first, first + n_cases):
        end = target.give(number, random.Random(f"{seed}/{number}"))
        outcomes[end.outcome] += 1
        if end.finding:
            findings[end.finding] += 1
            if findings[end.finding] == 1 and len(findings) <= MOST_SHOWN:
                print(f"case {number}, {end.case}: {end.finding}: {end.error}", file=sys.stderr)
                (target.folder / f"case-{number}-{end.case.split()[0]}").write_bytes(end.content)
    seconds = time.perf_counter() - started
    counts = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(outcomes.items()))
    print(
        f"fuzz: {n_cases:,} mutated files in {seconds:.0f} s, seed {seed}: {counts}; "
        f"{findings.total():,} findings"
    )
    return findings.total()


def overflow(expected: str) -> bool:
    """Write beyond an array in another process, and say whether it ends with this text."""
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
    parser.add_argument("--overflow", metavar="TEXT", help="see that a planted overflow is found")
    options = parser.parse_args()
    if options.overflow:
        return int(not overflow(options.overflow))
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    return int(run(Files(folder), options.cases, options.seed, options.first) > 0)


if __name__ == "__main__":
    sys.exit(main())
