"""
Your first ranked list
======================

A shop can call 50 customers a month. Which ones? We make a table of customers, ask which method
finds most of those who will leave among the first 50, fit it, and rank the next month's table.
"""

# %%
# The table
# ---------
# One row for each customer, and a column that says who has left. Use your own table instead.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)


def customers(n):
    """Return a table of customers, of whom about one in ten leaves."""
    table = pd.DataFrame(
        {
            "calls": rng.poisson(2, n),
            "bill": rng.normal(40, 9, n).round(2),
            "years": rng.integers(0, 10, n),
        }
    )
    leaving = table["calls"] - 0.5 * table["years"] + rng.standard_normal(n)
    table["churned"] = leaving > 2.5
    return table


known, new = customers(1500), customers(1000)
known.head()

# %%
# What guessing would find
# ------------------------
# Of 50 customers called at random, about 50 times the share of those who leave:

share = known["churned"].mean()
print(f"{share:.1%} leave; 50 calls at random reach {50 * share:.1f} of them.")

# %%
# Which method?
# -------------
# A method is worth what it finds in rows that it has not learnt from. So we fit on two thirds,
# and count hits among the first 50 of the rest. ``k=50`` is a number of rows; a fraction would be
# one of the positives, ``"1 %"`` one of the rows.

from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import precbench

X, y = known.drop(columns="churned"), known["churned"]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=1 / 3, stratify=y, random_state=0
)
methods = {
    "logistic regression": precbench.LogisticRegressionRanker(),
    "SGD@k": precbench.SGDAtK(k=50, random_state=0),
    "boosted trees": precbench.HistGradientBoosting(random_state=0),
}
precision = precbench.METRICS["precision_at_k"]
for name, method in methods.items():
    scores = make_pipeline(StandardScaler(), method).fit(X_train, y_train).decision_function(X_test)
    print(f"{name}: {50 * precision(y_test, scores, k=50):.0f} of 50 leave")

# %%
# One division says little: the interval of such a share is wide.

print(precbench.interval_at_k(y_test, scores, k=50))

# %%
# :func:`precbench.compare` does all of it properly: several divisions, tuned parameters, more
# methods, and a recommendation that says what the data cannot decide. On the command line that is
#
# .. code-block:: sh
#
#    precbench compare customers.csv --label churned --k 50
#
# The list
# --------
# We fit the simplest of them to all that is known, and rank the next table.

ranker = make_pipeline(StandardScaler(), precbench.LogisticRegressionRanker()).fit(X, y)
new["score"] = ranker.decision_function(new[X.columns])
calls = new.sort_values("score", ascending=False).head(50)
calls.head()

# %%
# Next month we know who has left, and count:

print(f"{calls['churned'].sum()} of the 50 left; guessing would have found {50 * share:.1f}.")

# %%
# Next: :doc:`recipes for fraud, churn and screening </own-data>`, with costs, times and groups.
