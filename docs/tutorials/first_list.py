"""
Your first ranked list
======================

For anyone who has a list and can look at a few rows a day: here at 30 scans, of which
as many as possible should show an 8. After this page you can choose a method, save the
model, rank new rows, explain them, and notice when the data change.
"""

# %%
# The table
# ---------
# The digits of scikit-learn: a row for each scan, with the darkness of 8 x 8 pixels.
# 500 rows are set aside as new scans.

from sklearn.datasets import load_digits

import precbench

scans = load_digits(as_frame=True)
X, y = scans.data, scans.target == 8
new = X.sample(500, random_state=0)
known = X.drop(new.index)
print(f"{len(known)} scans, {y[known.index].mean():.1%} of them an 8")

# %%
# Which method?
# -------------
# :func:`precbench.compare` divides the rows several times into a part to learn from and
# one to rank, chooses the parameters of each method within the first, and counts hits
# among the first k rows of the second. ``k=30`` is a number of rows; ``k="1 %"`` would
# be a share of them.

choice = precbench.compare(known, y[known.index], k=30, n_splits=5)
print(choice.text)

# %%
# **What it recommends.** The hits are a mean over the divisions, with an interval that
# allows for the rows that these share. What to expect of a new list is said apart.
#
# **How sure it is.** *Equivalent* methods differ by less than would matter
# (``choice.margin`` hits); of *undecided* ones these rows cannot say; *worse* ones lose
# in a paired test.
# Among equivalent methods the simplest is recommended. ``behind`` is what a method
# loses to the best:

print(f"within {choice.margin:.1f} hits counts as equivalent")
choice.table[
    ["hits", "low", "high", "behind", "behind_low", "behind_high", "verdict"]
].round(1)

# %%
# Fit, save, rank
# ---------------
# ``fit`` trains the recommended method on all rows. A model is a file of plain arrays,
# no pickle, and ranks the same to the last bit on another machine.

from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    file = Path(folder) / "eights.npz"
    choice.fit().save(file)
    print(f"{file.stat().st_size / 1000:.0f} kB")
    model = precbench.Model.load(file)

ranking = model.rank(new).head(30)
ranking.head()

# %%
# ``row`` counts from 1. Once the labels are known, count the hits:

scores = model.decision_function(new)
answers = y[new.index]
print(f"{answers.iloc[ranking['row'] - 1].sum()} of 30 are eights")
print(precbench.interval_at_k(answers, scores, k=30))

# %%
# Why these rows?
# ---------------
# ``explain`` divides a score among the columns, by Shapley values: they add up to the
# score minus that of an average row. Here are the first row, the 30th and the last,
# each with the three pixels that matter most. Such reasons explain the model: pixels
# beside each other are alike, and any of them may have the weight.

order = model.rank(new)["row"] - 1
chosen = new.iloc[order.iloc[[0, 29, -1]]]
why = model.explain(chosen)
for place, (_, row) in zip(("first", "30th", "last"), why.iterrows(), strict=True):
    most = row[row.abs().nlargest(3).index]
    print(
        f"{place}: score {why.attrs['base'] + row.sum():.1f},", most.round(2).to_dict()
    )

# %%
# Does it still hold?
# -------------------
# A model has stored the distribution of its training rows, and compares new ones with
# it, column by column, by the population stability index. A second scanner is paler:
# every pixel has 60 % of its darkness.

for name, rows in {"the same scanner": new, "a paler one": 0.6 * new}.items():
    drift = model.drift()
    drift.add(rows.to_numpy(), model.decision_function(rows))
    columns = [of["name"] for of in drift.summary()["columns"] if of["drift"]]
    hits = y[rows.index].iloc[model.rank(rows)["row"].head(30) - 1].sum()
    print(
        f"{name}: {len(columns)} of {rows.shape[1]} columns have drifted; {hits} of 30"
        " are eights"
    )

# %% The index says that something has changed, not how many hits that costs. Label some
# of the new rows, count, and compare again with them among the others.
#
# Next: :doc:`recipes for fraud, churn and screening </own-data>`, with costs, times and
# groups, and :doc:`how good this advice is </advice>`, measured on real lists.
