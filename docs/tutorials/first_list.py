"""
Your first ranked list
======================

A clerk can look at 30 scans a day. Which ones, so that most of them show an 8? We ask which method
finds most, read the answer, keep the model, rank new scans, say why three of them are where they
are, and notice when the scanner changes. Fraud and churn are the same with other columns.
"""

# %%
# The table
# ---------
# The scans are the digits of scikit-learn: a row for each, with the darkness of 8 x 8 pixels,
# and what we look for. 500 rows are set aside: they play the scans of the days to come.

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
# :func:`precbench.compare` divides the rows several times into a part to learn from and one to
# rank, chooses the parameters of each method within the first, and counts hits among the first
# 30 of the second. On the command line that is ``precbench compare scans.csv --label eight
# --k 30``. ``k=30`` is a number of rows, as many as we can look at; ``k="1 %"`` would be a share of
# them.

choice = precbench.compare(known, y[known.index], k=30, n_splits=5)
print(choice.text)

# %%
# Read it in three steps.
#
# **What it recommends, and what that brings.** The hits are a mean over the divisions, beside
# those of chance: 30 times the share of eights. Its interval allows for the rows that the
# divisions share. What to expect of a new list, which has luck of its own, is said apart.
#
# **How sure it is.** *Equivalent* methods differ by less than would matter (``choice.margin``
# hits); of *undecided* ones these rows cannot say; *worse* ones lose in a paired test that knows
# that the divisions share rows. With few rows nearly everything is undecided, and the answer
# says so.
#
# **What it costs.** Among equivalent methods the simplest is recommended. The column ``behind``
# is what each other one loses to the best, with its interval:

print(f"within {choice.margin:.1f} hits counts as equivalent")
choice.table[["hits", "low", "high", "behind", "behind_low", "behind_high", "verdict"]].round(1)

# %%
# A linear method is easier to explain and to audit. Here it would cost some hits of 30; whether
# it is worth that is for you to say, not for a test.
#
# Fit, keep, rank
# ---------------
# ``fit`` trains the recommended method on all rows. A model is a file of plain arrays, no
# pickle: it runs nothing when it is loaded, and ranks the same to the last bit on another
# machine.

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
# ``row`` counts from 1. A day later we know what the 30 were:

scores = model.decision_function(new)
answers = y[new.index]
print(f"{answers.iloc[ranking['row'] - 1].sum()} of 30 are eights")
print(precbench.interval_at_k(answers, scores, k=30))

# %%
# Why these rows?
# ---------------
# ``explain`` divides a score among the columns, by Shapley values: they add up to the score
# minus that of an average row. Here are the first row, the last one that is looked at, and the
# one at the bottom of the list, with the three pixels that say most of each.

order = model.rank(new)["row"] - 1
chosen = new.iloc[order.iloc[[0, 29, -1]]]
why = model.explain(chosen)
for place, (_, row) in zip(("first", "30th", "last"), why.iterrows(), strict=True):
    most = row[row.abs().nlargest(3).index]
    print(f"{place}: score {why.attrs['base'] + row.sum():.1f},", most.round(2).to_dict())

# %%
# Such reasons are of the model: pixels beside each other are alike, and any of them may have the
# weight. To see whether it looks where it should, look at the scan:

import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 3, figsize=(7, 2.6), layout="constrained")
for axes, place, (_, scan) in zip(
    panels, ("first", "30th", "last"), chosen.iterrows(), strict=True
):
    axes.imshow(scan.to_numpy().reshape(8, 8), cmap="gray_r")
    axes.set(title=place, xticks=[], yticks=[])
plt.show()

# %%
# Does it still hold?
# -------------------
# A model ranks whatever it is given. It has kept the distribution of its training rows, and
# compares new ones with it, column by column, by the population stability index; above 0.25, and
# above what chance makes of so few rows, is drift. A second scanner is paler: every pixel has 60
# % of its darkness.

for name, rows in {"the same scanner": new, "a paler one": 0.6 * new}.items():
    drift = model.drift()
    drift.add(rows.to_numpy(), model.decision_function(rows))
    columns = [of["name"] for of in drift.summary()["columns"] if of["drift"]]
    hits = y[rows.index].iloc[model.rank(rows)["row"].head(30) - 1].sum()
    print(
        f"{name}: {len(columns)} of {rows.shape[1]} columns have drifted; {hits} of 30 are eights"
    )

# %%
# The index says that something has changed, before anyone knows the answers; it does not say how
# many hits that costs. Label some of the new rows, count, and compare again with them among the
# others. ``drift.summary()["scores"]`` compares the scores, too; those of boosted trees depend on
# how many rows they have learnt from, so that their index alone is no alarm.
#
# Next: :doc:`recipes for fraud, churn and screening </own-data>`, with costs, times and groups,
# and :doc:`how good this advice is </advice>`, measured on real lists.
