"""All solvers, as estimators in the style of scikit-learn; `SOLVERS` maps names to them.

``SOLVERS[name](**params)`` gives an unfitted solver. Two names may stand for presets of one class.
"""

from collections.abc import Callable
from functools import partial

from precbench.solvers.base import LinearRanker
from precbench.solvers.baselines import LinearSVMRanker, LogisticRegressionRanker
from precbench.solvers.bbr import BBR, LCBR
from precbench.solvers.cutting_plane import CuttingPlane
from precbench.solvers.ftrl import FTRL
from precbench.solvers.minibatch import OnePMB, PerceptronAtK, SGDAtK, TwoPMB
from precbench.solvers.online_auc import OAM, PGD, SPAM, AdaOAM
from precbench.solvers.psg import ProjectedSubgradient
from precbench.solvers.push import IRPush, PNormPush, RankBoost

__all__ = [
    "BBR",
    "FTRL",
    "LCBR",
    "OAM",
    "PGD",
    "SOLVERS",
    "SPAM",
    "AdaOAM",
    "CuttingPlane",
    "IRPush",
    "LinearRanker",
    "LinearSVMRanker",
    "LogisticRegressionRanker",
    "OnePMB",
    "PNormPush",
    "PerceptronAtK",
    "ProjectedSubgradient",
    "RankBoost",
    "SGDAtK",
    "TwoPMB",
]

SOLVERS: dict[str, Callable[..., LinearRanker]] = {
    "perceptron-avg": partial(PerceptronAtK, variant="avg"),
    "perceptron-max": partial(PerceptronAtK, variant="max"),
    "sgd-avg": partial(SGDAtK, surrogate="avg"),
    "sgd-max": partial(SGDAtK, surrogate="max"),
    "1pmb": OnePMB,
    "2pmb": TwoPMB,
    "cutting-plane": CuttingPlane,
    "psg": ProjectedSubgradient,
    "ftrl": FTRL,
    "pnorm-push": PNormPush,
    "ir-push": IRPush,
    "rankboost": RankBoost,
    "bbr": BBR,
    "bbr-pairs": partial(BBR, accumulate="pairs"),
    "lcbr": LCBR,
    "oam": OAM,
    "pgd": PGD,
    "adaoam": AdaOAM,
    "spam": SPAM,
    "logistic-regression": LogisticRegressionRanker,
    "linear-svm": LinearSVMRanker,
}
