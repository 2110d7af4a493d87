"""
Explain why a row is at the top
===============================

``explain`` says what each column adds to the score of a row, compared with the training
rows: its Shapley value. The contributions and a base add up to the score, so a reason
can be given to the person who checks the row. ``Comparison`` and ``Model`` both have
it.

The rows are the breast cancer data of scikit-learn, malignant being a hit. Of the row
ranked first, and of the last one, the bars show the six columns with the largest
contributions. Two of them, worst radius and worst perimeter, raise one score and lower
the other. It is the model that is explained, not the disease: many of these columns
measure nearly the same, and any of them may have the weight.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import precbench

data = load_breast_cancer(as_frame=True)
model = precbench.Model.fit(
    data.data, data.target == 0, "logistic-regression", C=0.1, scaling="standardise"
)
ranking = model.rank(data.data)
chosen = ranking["row"].iloc[[0, -1]] - 1
explained = model.explain(data.data.iloc[chosen])
base = explained.attrs["base"]

figure, panels = plt.subplots(2, sharex=True, figsize=(7, 5), layout="constrained")
for axes, (_, row), name in zip(
    panels, explained.iterrows(), ["first", "last"], strict=True
):
    largest = row[row.abs().nlargest(6).index][::-1]
    colours = ["#D55E00" if value > 0 else "#0072B2" for value in largest]
    axes.barh(largest.index, largest, color=colours)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_title(
        f"{name} row: score {base + row.sum():.1f}, base {base:.1f}", fontsize=10
    )
    axes.grid(axis="x", color="0.9")
panels[1].set_xlabel("contribution to the score (orange raises, blue lowers)")
plt.show()
