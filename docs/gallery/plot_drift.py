"""
Detect drift: do new rows look like the training rows?
======================================================

A model goes on scoring whatever it is given. The population stability index (PSI)
compares the shares of new rows in bins with those of the training rows: below 0.1 is no
drift, above 0.25 is drift. A model that ``compare`` has fitted to a data frame knows
its training rows, and ``drift`` counts new ones; on the command line ``precbench score
--drift FILE`` does it.

The payments are generated. Each month the amounts grow by 10 %, and nothing else
changes. The index of the amount rises month by month and passes 0.25, that of the hour
stays near 0, and that of the scores rises too, but later: the model looks at both.
There are 2,000 rows in each month, of which chance makes an index of about 0.01.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import precbench

rng = np.random.default_rng(0)


def generated(month):
    amount = rng.lognormal(3, 0.7, 2000) * 1.1**month
    return pd.DataFrame({"amount": amount, "hour": rng.uniform(0, 24, 2000)})


train = generated(0)
risk = np.log(train["amount"]) + train["hour"] / 12
fraud = risk + 0.5 * rng.standard_normal(2000) > 5.2
choice = precbench.compare(
    train, fraud, k=50, solvers=["logistic-regression"], n_splits=3
)
model = choice.fit()

months, index = range(1, 11), []
for month in months:
    new = generated(month)
    drift = model.drift()
    drift.add(new.to_numpy(), model.decision_function(new))
    summary = drift.summary()
    index.append(
        {each["name"]: each["psi"] for each in [*summary["columns"], summary["scores"]]}
    )

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
looks = {"amount": "#D55E00", "scores": "#0072B2", "hour": "#009E73"}
for (name, colour), marker in zip(looks.items(), "osv", strict=True):
    axes.plot(
        months, [of[name] for of in index], color=colour, marker=marker, label=name
    )
for limit, name in ((0.1, "some drift"), (0.25, "drift")):
    axes.axhline(limit, color="0.5", linestyle="--", linewidth=0.8)
    axes.annotate(name, (1, limit), (0, 3), textcoords="offset points", color="0.4")
axes.set(xlabel="months after training", ylabel="population stability index")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
