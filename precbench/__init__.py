"""precbench runs, measures and judges methods for precision at the top of a ranked list.

Everything public is imported on first use, so that ``import precbench`` costs nothing:
``SOLVERS``, ``SURROGATES``, ``DATASETS``, ``METRICS`` map names to members,
``load_dataset(name)`` reads a data set, ``Model`` is a fitted ranking to save and use,
``compare(X, y, k=...)`` recommends a method for the top of a list,
``run(config)`` runs an experiment of a paper, or one of your own,
``profile(table, label=...)`` describes a table before anything is trained,
``fit(table, label=..., k=...)`` fits and measures a method on a table,
``score(model, rows)`` ranks new rows, and ``evaluate(model, rows)`` counts their hits later,
``interval_at_k`` says how sure a precision is,
``precision_at_k_scorer(k)`` is a scorer for the searches of scikit-learn,
and each solver is also a class, such as `SGDAtK`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_SOLVERS = (
    *("PerceptronAtK", "SGDAtK", "OnePMB", "TwoPMB", "CuttingPlane"),
    *("ProjectedSubgradient", "FTRL"),
    *("PNormPush", "IRPush", "RankBoost", "TopPush"),
    *("BBR", "LCBR", "OAM", "PGD", "AdaOAM", "SPAM"),
    *("LogisticRegressionRanker", "LinearSVMRanker"),
    *("HistGradientBoosting", "LightGBM", "LambdaRank", "RandomForest"),
    *("ExtraTrees", "Ensemble"),
    *("XGBoost", "CatBoost", "MLP", "NoSkill"),
)
_HOMES = {  # the module of each public name
    "SOLVERS": "precbench.solvers",
    "SURROGATES": "precbench.ranking.losses",
    "DATASETS": "precbench.data",
    "METRICS": "precbench.ranking.metrics",
    "load_dataset": "precbench.data",
    "Model": "precbench.model.model",
    "compare": "precbench.advice.comparison",
    "fit": "precbench.advice.training",
    "profile": "precbench.advice.table_description",
    "score": "precbench.model.scored_list",
    "evaluate": "precbench.advice.evaluation",
    "run": "precbench.runner.session",
    "interval_at_k": "precbench.ranking.metrics",
    "precision_at_k_scorer": "precbench.ranking.scorers",
    **dict.fromkeys(_SOLVERS, "precbench.solvers"),
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:  # Python calls this for a name that the module lacks
    if name not in _HOMES:
        raise AttributeError(f"module 'precbench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:  # with the names that are not yet imported
    return sorted(__all__)
