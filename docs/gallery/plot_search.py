"""
Pipelines and grid search with precision at k
=============================================

Solvers are scikit-learn estimators: they go into pipelines, and
``precision_at_k_scorer`` lets a search choose parameters by the top of the list instead
of accuracy. A share of the rows such as ``"5 %"`` keeps its meaning in folds of any
length; a count of rows would not.

The digits of scikit-learn are ranked for being an 8, which one in ten is. Before
SGD\\@k the pipeline has random Fourier features, whose ``gamma`` is searched. Points
are means over five folds, bars their standard deviations. Where it is too large, rows
are alike to none but themselves, and precision falls to chance. The first 5 % of the
rows are easier to fill with hits than the first 10 %, as many as there are; search with
the length of list that you will use.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import precbench

X, digit = load_digits(return_X_y=True)
gammas = [0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
lengths = ["5 %", "10 %"]
search = GridSearchCV(
    make_pipeline(
        StandardScaler(),
        RBFSampler(n_components=300, random_state=0),
        precbench.SGDAtK(k=1.0, batch_size=100, random_state=0),
    ),
    {"rbfsampler__gamma": gammas},
    scoring={k: precbench.precision_at_k_scorer(k) for k in lengths},
    refit="10 %",
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
).fit(X, digit == 8)
print(search.best_params_, search.best_score_)

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for k, colour, marker in zip(lengths, ["#0072B2", "#D55E00"], "os", strict=True):
    mean, spread = (search.cv_results_[f"{of}_test_{k}"] for of in ("mean", "std"))
    label = f"first {k} of the rows"
    axes.errorbar(
        gammas, mean, spread, color=colour, marker=marker, capsize=3, label=label
    )
axes.axhline((digit == 8).mean(), color="0.5", linestyle="--", label="chance")
axes.set(
    xscale="log",
    xlabel="gamma of the random features",
    ylabel="precision, mean of 5 folds",
)
axes.grid(color="0.9")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
