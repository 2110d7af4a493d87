"""precbench runs, measures and judges methods for the top of a ranked list.

Everything public is imported on first use, so that ``import precbench`` costs nothing:
``SOLVERS``, ``SURROGATES``, ``DATASETS``, ``METRICS`` map names to members,
``load_dataset(name)`` reads a data set, ``Model`` is a fitted ranking to save and use,
``compare(X, y, k=...)`` recommends a method for the top of a list, ``run(config)`` runs
an experiment of a paper, or one of your own, ``profile(table, label=...)`` describes a
table before anything is trained, ``fit(table, label=..., k=...)``, or ``fit(X, y,
k=...)``, fits and measures a method, ``score(model, rows)`` ranks new rows, and
``evaluate(model, rows)`` counts their hits later, ``refit(model, table)`` fits its
recipe to new rows, ``interval_at_k`` says how sure a
precision is, ``precision_at_k_scorer(k)`` is a scorer for the searches of scikit-learn,
and each solver is also a class, such as `SGDAtK`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "BBR",
    "DATASETS",
    "FTRL",
    "LCBR",
    "METRICS",
    "MLP",
    "OAM",
    "PGD",
    "SOLVERS",
    "SPAM",
    "SURROGATES",
    "AdaOAM",
    "CatBoost",
    "CuttingPlane",
    "Ensemble",
    "ExtraTrees",
    "HistGradientBoosting",
    "IRPush",
    "LambdaRank",
    "LightGBM",
    "LinearSVMRanker",
    "LogisticRegressionRanker",
    "Model",
    "NoSkill",
    "OnePMB",
    "PNormPush",
    "PerceptronAtK",
    "ProjectedSubgradient",
    "RandomForest",
    "RankBoost",
    "SGDAtK",
    "TopPush",
    "TwoPMB",
    "XGBoost",
    "__version__",
    "compare",
    "evaluate",
    "fit",
    "interval_at_k",
    "load_dataset",
    "precision_at_k_scorer",
    "profile",
    "refit",
    "run",
    "score",
]

# The module of each name; the solvers, all other names, are in `precbench.solvers`.
_MODULES = {
    "DATASETS": "precbench.data",
    "METRICS": "precbench.ranking.metrics",
    "Model": "precbench.model.model",
    "SURROGATES": "precbench.ranking.losses",
    "compare": "precbench.advice.comparison",
    "evaluate": "precbench.advice.evaluation",
    "fit": "precbench.advice.training",
    "interval_at_k": "precbench.ranking.metrics",
    "load_dataset": "precbench.data",
    "precision_at_k_scorer": "precbench.ranking.scorers",
    "profile": "precbench.advice.table_description",
    "refit": "precbench.advice.refitting",
    "run": "precbench.runner.session",
    "score": "precbench.model.scored_list",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'precbench' has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "precbench.solvers")), name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
