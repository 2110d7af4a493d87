"""
Random Fourier features: curved boundaries for linear solvers
=============================================================

A linear solver ranks by one direction, which is of no use where the positives lie in
the middle. Random Fourier features turn each row into cosines of random directions, and
a linear solver on them is about one with an RBF kernel, at the cost of a matrix
product. ``Model.fit(..., fourier=300)`` draws and keeps them; ``gamma`` follows from
the rows unless it is given.

The generated positives (orange dots) are the inner of two noisy circles, the negatives
(white) the outer one. The black line borders the rows that would be listed first, as
many as there are positives. On the two features SGD\\@k can only cut off a side, and
its precision is that of chance, 0.5. With 300 random features it finds the disc.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

import precbench

X, y = make_circles(1000, noise=0.15, factor=0.4, random_state=0)
X_new, y_new = make_circles(5000, noise=0.15, factor=0.4, random_state=1)
grid = np.stack(np.meshgrid(*[np.linspace(-1.6, 1.6, 150)] * 2), axis=-1)
k = int(y_new.sum())

figure, panels = plt.subplots(1, 2, figsize=(7, 3.9), layout="constrained", sharey=True)
for axes, fourier in zip(panels, [None, 300], strict=True):
    model = precbench.Model.fit(X, y, "sgd-avg", k=1.0, fourier=fourier, random_state=0)
    scores = model.decision_function(X_new)
    precision = precbench.METRICS["precision_at_k"](y_new, scores, k=k)
    heights = model.decision_function(grid.reshape(-1, 2)).reshape(150, 150)
    cut = np.sort(scores)[-k]
    levels = (heights - scores.mean()) / scores.std()
    image = axes.pcolormesh(*grid.T, levels.T, cmap="cividis", vmin=-2, vmax=2)
    axes.contour(*grid.T, heights.T, levels=[cut], colors="black", linestyles="solid")
    for label, colour in enumerate(["white", "#D55E00"]):
        axes.plot(*X_new[y_new == label][:150].T, ".", color=colour, markersize=4)
    kind = f"{fourier} random features" if fourier else "the two features"
    axes.set_title(f"{kind}: precision {precision:.2f}", fontsize=10)
    axes.set(aspect="equal", xlabel="feature 1")
panels[0].set_ylabel("feature 2")
figure.colorbar(image, ax=panels, label="score (standard deviations)", shrink=0.8)
plt.show()
