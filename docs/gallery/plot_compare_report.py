"""
Compare methods: table, picture and report
==========================================

``compare`` trains methods on random splits of your rows, chooses their parameters, and
counts the hits of each among the first k held-out rows, with intervals for new lists.
Its result shows as a table in a notebook; ``table`` is a data frame to draw or save;
and where a ``folder`` keeps the records, ``precbench report FOLDER`` writes a page with
all tables, figures, protocol and failures.

The breast cancer data of scikit-learn have 569 rows; the first 50 held-out rows are
checked. All methods find nearly as many as are checked: the intervals overlap, and the
paragraph that recommends a method says so. Take the simplest where nothing differs.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import precbench

X, y = load_breast_cancer(return_X_y=True)
methods = ["logistic-regression", "sgd-avg", "perceptron-max", "extra-trees"]
with tempfile.TemporaryDirectory() as folder:
    choice = precbench.compare(
        X, y == 0, k=50, solvers=methods, n_splits=5, folder=folder
    )
    command = [sys.executable, "-m", "precbench", "report", folder]
    subprocess.run(command, check=True, capture_output=True)
    size = (Path(folder) / "report.html").stat().st_size
print(choice.text)
print(f"report.html: {size / 1000:.0f} kB")

table = choice.table[::-1]
bars = [table["hits"] - table["low"], table["high"] - table["hits"]]
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.errorbar(
    table["hits"], table.index, xerr=bars, fmt="o", color="#0072B2", capsize=3
)
axes.axvline(50, color="0.5", linestyle="--")
axes.set_title("dashed: all 50", fontsize=10)
axes.set(
    xlabel="hits among the first 50 held-out rows, 95 % interval", ylim=(-0.5, 3.5)
)
axes.grid(axis="x", color="0.9")
plt.show()

# %%
# The result itself, as a notebook shows it:
choice
