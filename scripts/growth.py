"""Measure how the time and the memory of each solver grow with the number of rows.

Every fit has a process of its own and one thread. The rows are generated (synthetic):
10 normal features, and 5 % positives where a linear score with noise is high. The work
per row is fixed: one pass, or a number of iterations. ``python -m scripts.growth``
writes results/reference/growth.csv, which docs/performance.md shows; it takes ten
minutes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.solvers import SOLVERS
from precbench.tables.streamed_files import open_stream
from scripts.reference import REFERENCE
from scripts.survey.tables import laid_out

GROWTH = REFERENCE / "growth.csv"
ROWS = (10**4, 10**5, 10**6, 10**7)
FEATURES = 10
NOISE = 1.0
LONGEST = 20.0  # CPU seconds; a fit that is expected to take longer is left out
STREAMED = ", streamed"
ITERATIONS = {
    "cutting-plane": {"max_iter": 10, "tol": 1e-12},
    "psg": {"max_iter": 10},
    "ftrl": {"max_iter": 2},
    "pnorm-push": {"max_iter": 5, "tol": 1e-300},
    "ir-push": {"max_iter": 5, "tol": 1e-300},
    "rankboost": {"max_iter": 5, "tol": 1e-300},
    "toppush": {"max_iter": 10, "tol": 1e-12},
    "toppush-k": {"max_iter": 10, "tol": 1e-12},
    "logistic-regression": {"max_iter": 10, "tol": 1e-300},
    "linear-svm": {"max_iter": 10, "tol": 1e-300},
    "hist-gradient-boosting": {"max_iter": 10},
    "lightgbm": {"n_estimators": 10},
    "lightgbm-lambdarank": {"n_estimators": 10},
    "random-forest": {"n_estimators": 2},
    "extra-trees": {"n_estimators": 2},
    "ensemble": {"n_estimators": 2, "max_iter": 2},
}


def rows_and_labels(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Generate rows in slices, so that nothing but the rows takes memory."""
    rng = np.random.default_rng(0)
    X = np.empty((n, FEATURES))
    y = np.empty(n)
    w = np.linspace(1, 0.1, FEATURES)
    limit = 1.6449 * np.sqrt(w @ w + NOISE**2)  # the 95 % quantile of a normal score
    for start in range(0, n, 10_000):
        rows = slice(start, start + 10_000)
        part = rng.standard_normal(out=X[rows])
        scores = part @ w + NOISE * rng.standard_normal(len(part))
        y[rows] = np.where(scores > limit, 1.0, -1.0)
    return X, y


def peak() -> int:
    """Return the largest memory so far, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(name: str, n: int) -> dict[str, float]:
    """Return CPU seconds of a fit, and the bytes that it takes beyond the rows."""
    warnings.simplefilter("ignore")
    solver = SOLVERS[name.removesuffix(STREAMED)]()
    fixed = {"epochs": 1, "random_state": 0, **ITERATIONS.get(name, {})}
    known = solver.get_params()
    solver.set_params(**{key: fixed[key] for key in fixed if key in known})
    solver.fit(*rows_and_labels(500))  # loads all that it needs
    if not name.endswith(STREAMED):
        X, y = rows_and_labels(n)
        return _measured(lambda: solver.fit(X, y))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        X_file = Path(folder, "X.npy")
        y_file = Path(folder, "y.npy")
        run("--write", n, X_file, y_file)
        stream = open_stream(X_file, labels=y_file).X

        def visits() -> Any:
            return stream.visits(500, np.random.default_rng(0))

        return _measured(lambda: solver.fit_pieces(FEATURES, visits))


def _measured(fit: Callable[[], object]) -> dict[str, float]:
    """Return CPU seconds of a fit, and the bytes by which it raises the peak."""
    peak_at_start = peak()
    start = time.process_time()
    fit()
    seconds = time.process_time() - start
    return {"seconds": seconds, "bytes": peak() - peak_at_start}


def run(*arguments: object) -> subprocess.CompletedProcess:
    """Run this script in a process of its own, with one thread."""
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "scripts.growth", *map(str, arguments)]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, env=os.environ | one_thread
    )


def measure(names: list[str], sizes: tuple[int, ...]) -> pd.DataFrame:
    """Measure the solvers, each from few rows to many, as long as it stays quick.

    A fit is expected to take at least ten times as long as the one before, or to grow
    as that did.
    """
    rows = []
    for name in names:
        last = 0.0  # seconds of the fit before
        for n in sizes:
            figures = json.loads(run("--one", name, n).stdout)
            rows.append({"solver": name, "rows": n, **figures})
            print(rows[-1], flush=True)
            seconds = figures["seconds"]
            growth = seconds / last if last else 0.0
            last = seconds
            if seconds * max(10, growth) > LONGEST:
                break
    return pd.DataFrame(rows)


def growth_table(table: pd.DataFrame) -> str:
    """Lay out the committed figures of solvers in memory."""
    in_memory = table[~table["solver"].str.endswith(STREAMED)]
    sizes = [n for n in ROWS if n != 10**5]
    header = ["solver", *(f"{n:,} rows" for n in sizes), "bytes per row"]
    lines = []
    for name, fits in in_memory.groupby("solver", sort=False):
        nanoseconds = {}  # per row, by the number of rows
        for fit in fits.itertuples():
            nanoseconds[fit.rows] = 1e9 * fit.seconds / fit.rows
        largest = fits.iloc[-1]
        bytes_per_row = max(0.0, largest["bytes"] / largest["rows"])
        cells = [_digits(nanoseconds[n]) if n in nanoseconds else "" for n in sizes]
        lines.append([f"`{name}`", *cells, _digits(bytes_per_row)])
    return laid_out(header, lines, numbers=len(header) - 1)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def main() -> None:
    """Measure all solvers, or one fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("solvers", nargs="*", help="default: all")
    parser.add_argument(
        "--one", nargs=2, metavar=("SOLVER", "ROWS"), help="one fit, as JSON"
    )
    parser.add_argument(
        "--write", nargs=3, metavar=("ROWS", "X", "Y"), help="rows to files"
    )
    options = parser.parse_args()
    if options.one:
        name, n = options.one
        print(json.dumps(measured(name, int(n))))
        return
    if options.write:
        n, X_file, y_file = options.write
        X, y = rows_and_labels(int(n))
        np.save(X_file, X)
        np.save(y_file, y)
        return
    names = list(SOLVERS)
    for name in SOLVERS:
        if hasattr(SOLVERS[name](), "fit_pieces"):
            names.append(f"{name}{STREAMED}")
    table = measure(options.solvers or names, ROWS)
    if not options.solvers:
        table.to_csv(GROWTH, index=False, lineterminator="\n", float_format="%.4g")
    print(growth_table(table))


if __name__ == "__main__":
    main()
