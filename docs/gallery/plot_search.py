"""
Pipelines and grid search with precision at k
=============================================

Solvers are scikit-learn estimators: they go into pipelines, and ``precision_at_k_scorer`` lets a
search choose parameters by the top of the list instead of accuracy. A share of the rows such as
``"10 %"`` keeps its meaning in folds of any length; a count of rows would not.

On the breast cancer data of scikit-learn, with malignant as the positive class, the search tries step
sizes of SGD\\@k over seven powers of ten. Points are means over five folds, bars their standard
deviations. Precision in the first 10 % hardly depends on the step size here: those rows are clear
cases. In the first 37 %, as many as there are malignant ones, it does, and the largest steps are
no better than small ones. Choose by the length of list that you will use.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import precbench

X, y = load_breast_cancer(return_X_y=True)
steps = [10.0**power for power in range(-3, 4)]
lengths = ["10 %", "37 %"]
search = GridSearchCV(
    make_pipeline(StandardScaler(), precbench.SGDAtK(k=1.0, batch_size=50, random_state=0)),
    {"sgdatk__eta0": steps},
    scoring={k: precbench.precision_at_k_scorer(k) for k in lengths},
    refit="37 %",
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
).fit(X, y == 0)
print(search.best_params_, search.best_score_)

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for k, colour, marker in zip(lengths, ["#0072B2", "#D55E00"], "os", strict=True):
    mean, spread = (search.cv_results_[f"{of}_test_{k}"] for of in ("mean", "std"))
    label = f"first {k} of the rows"
    axes.errorbar(steps, mean, spread, color=colour, marker=marker, capsize=3, label=label)
axes.set(xscale="log", xlabel="step size eta0", ylabel="precision, mean of 5 folds")
axes.grid(color="0.9")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
