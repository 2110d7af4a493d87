"""
Partial AUC: the left end of a ROC curve
========================================

AUC counts the whole ROC curve. Where false alarms are costly only its left end is of
use, and the partial AUC with beta = 0.1 is the area over the tenth of the negatives
that are ranked highest, divided by 0.1 so that a perfect ranking has 1. McClish's form
of it gives 0.5 to chance.

Two rankings of generated scores, 500 positives and 5,000 negatives: A puts half of the
positives above nearly all negatives and knows nothing of the others; B separates all of
them moderately. B has the higher AUC, A the higher partial AUC. With a false alarm rate
of at most one in ten, A finds more until the curves cross near the end of the shaded
strip; if you can afford more, B does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve

import precbench

BETA = 0.1
rng = np.random.default_rng(0)
y = np.arange(5500) < 500
noise = rng.standard_normal(y.size)
rankings = {"A": noise + 5 * (np.arange(y.size) < 250), "B": noise + 1.5 * y}

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
axes.axvspan(
    0, BETA, color="#E69F00", alpha=0.25, linewidth=0, label=f"seen with beta = {BETA}"
)
for (name, scores), colour in zip(
    rankings.items(), ["#D55E00", "#0072B2"], strict=True
):
    measured = [
        precbench.METRICS["auc"](y, scores),
        precbench.METRICS["partial_auc"](y, scores, beta=BETA),
        precbench.METRICS["partial_auc_mcclish"](y, scores, beta=BETA),
    ]
    label = "{}: AUC {:.2f}\n   partial AUC {:.2f}\n   McClish's {:.2f}".format(
        name, *measured
    )
    false_positives, true_positives, _ = roc_curve(y, scores)
    axes.plot(false_positives, true_positives, color=colour, linewidth=2, label=label)
axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="chance")
axes.set(
    xlabel="share of the negatives above the cut", ylabel="share of the positives found"
)
axes.grid(color="0.9")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
