"""
A figure of a paper, small
==========================

For anyone who repeats a figure of a paper. After this page you can draw Figure 2 of
:doc:`Kar, Narasimhan and Jain 2015 </papers/kar2015>`, ``prec@0.25`` against training
time, on generated rows, of which one in twenty is positive. The axis is rows visited,
not seconds, so that the figure is the same on every machine.
"""

# %%
# Data and measure
# ----------------
# The classes overlap. ``prec@0.25`` looks at as many rows as a quarter of the
# positives.

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import precbench

X, y = make_classification(
    4000,
    weights=[0.95],
    n_clusters_per_class=3,
    n_informative=8,
    flip_y=0.02,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.3, stratify=y, random_state=0
)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
precision = precbench.METRICS["precision_at_k"]

# %%
# A trace
# -------
# A solver calls its trace between slices of work. Ours scores the test rows with the
# weights of that moment; it must not change the solver, and ends the fit if it returns
# true.


def curve(solver):
    """Return rows visited and prec@0.25 on the test rows, along one fit."""
    rows, values = [], []

    def trace(solver):
        rows.append(solver.n_rows_seen_)
        values.append(precision(y_test, X_test @ solver.coef_, k=0.25))

    solver.fit(X_train, y_train, trace=trace)
    return rows, values


# %%
# The figure
# ----------

solvers = {
    "SGD@k-avg": precbench.SGDAtK(
        surrogate="avg", k=0.25, batch_size=200, random_state=0
    ),
    "SGD@k-max": precbench.SGDAtK(
        surrogate="max", k=0.25, batch_size=200, random_state=0
    ),
    "Perceptron@k-avg": precbench.PerceptronAtK(
        variant="avg", k=0.25, batch_size=200, random_state=0
    ),
    "1PMB": precbench.OnePMB(k=0.25, batch_size=200, random_state=0),
}
fig, ax = plt.subplots()
for name, solver in solvers.items():
    ax.plot(*curve(solver), label=name)
ax.set(xlabel="rows visited", ylabel="prec@0.25 on the test rows")
ax.legend()
plt.show()

# %%
# The real one
# ------------
# One division of a small set shows the form, and proves nothing. The experiment of the
# paper has its data, its protocol, several divisions and tuned parameters in a file;
# one command runs it, another compares the results with what the paper printed:
#
# .. code-block:: sh
#
#    precbench run letter
#    precbench check results/
#
# :doc:`/claims` says what the verdicts mean, and :doc:`/papers/kar2015` what came out.
