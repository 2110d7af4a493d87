"""All solvers, as scikit-learn-compatible estimators; `SOLVERS` maps names to them.

``SOLVERS[name](**params)`` gives an unfitted solver. Two names may stand for one class:
`_PRESETS` has the defaults that differ. Packages add solvers by the entry point group
``precbench.solvers``.
"""

import functools
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precbench.core.errors import InputError
from precbench.core.registry import Registry
from precbench.solvers.common.rows import as_rows, linear_scores, weighted_sum
from precbench.solvers.own_class import (
    OwnClass,
    checked_class,
    find_own_class,
    is_own_class,
)

if TYPE_CHECKING:
    from precbench.solvers.bbr.estimator import BBR, LCBR
    from precbench.solvers.common.base import LinearRanker, NonlinearRanker, Ranker
    from precbench.solvers.cutting_plane.estimator import CuttingPlane
    from precbench.solvers.ftrl.estimator import FTRL
    from precbench.solvers.minibatch.estimator import (
        OnePMB,
        PerceptronAtK,
        SGDAtK,
        TwoPMB,
    )
    from precbench.solvers.online_auc.estimator import OAM, PGD, SPAM, AdaOAM
    from precbench.solvers.others.catboost import CatBoost
    from precbench.solvers.others.ensemble import Ensemble
    from precbench.solvers.others.forests import ExtraTrees, RandomForest
    from precbench.solvers.others.hist_gradient_boosting import HistGradientBoosting
    from precbench.solvers.others.lightgbm import LambdaRank, LightGBM
    from precbench.solvers.others.linear import (
        LinearSVMRanker,
        LogisticRegressionRanker,
    )
    from precbench.solvers.others.mlp import MLP
    from precbench.solvers.others.no_skill import NoSkill
    from precbench.solvers.others.wrapper import ScoringClassifier
    from precbench.solvers.others.xgboost import XGBoost
    from precbench.solvers.psg.estimator import ProjectedSubgradient
    from precbench.solvers.push.estimator import IRPush, PNormPush, RankBoost
    from precbench.solvers.toppush.estimator import TopPush

__all__ = [
    "BBR",
    "FTRL",
    "LCBR",
    "MLP",
    "OAM",
    "PGD",
    "SOLVERS",
    "SPAM",
    "AdaOAM",
    "CatBoost",
    "CuttingPlane",
    "Ensemble",
    "ExtraTrees",
    "HistGradientBoosting",
    "IRPush",
    "LambdaRank",
    "LightGBM",
    "LinearRanker",
    "LinearSVMRanker",
    "LogisticRegressionRanker",
    "NoSkill",
    "NonlinearRanker",
    "OnePMB",
    "PNormPush",
    "PerceptronAtK",
    "ProjectedSubgradient",
    "RandomForest",
    "RankBoost",
    "Ranker",
    "SGDAtK",
    "ScoringClassifier",
    "TopPush",
    "TwoPMB",
    "XGBoost",
    "as_rows",
    "check_solver",
    "linear_scores",
    "solver_version",
    "weighted_sum",
]


def check_solver(factory: Any) -> "Callable[..., Ranker]":
    """Return a factory of solvers after checks; wrap a scikit-learn classifier first.

    Parameters
    ----------
    factory : callable
        Gives a solver when called without arguments, or is a scikit-learn-compatible
        classifier.

    Returns
    -------
    callable

    Raises
    ------
    InputError
        If `factory` gives neither a `LinearRanker` nor a `NonlinearRanker` and is no
        classifier, or if the `allowed` of the solver lacks a parameter.
    TypeError, ValueError
        If a default is not a plain value.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from precbench.solvers import SGDAtK, check_solver
    >>> check_solver(SGDAtK) is SGDAtK
    True
    >>> solver = check_solver(GaussianNB)()
    >>> solver.fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]).predict([[4.5]]).tolist()
    [1]
    """
    from precbench.solvers.common.base import LinearRanker, NonlinearRanker
    from precbench.solvers.others.wrapper import ranker_of

    if _is_foreign_classifier(factory):
        factory = ranker_of(factory)
    solver = factory() if callable(factory) else factory
    if not isinstance(solver, LinearRanker | NonlinearRanker):
        raise InputError(
            "a solver must be a subclass of LinearRanker or NonlinearRanker, a"
            " function that returns an instance, or a scikit-learn classifier, not"
            f" {factory!r}"
        )
    defaults = solver.get_params(deep=False)
    json.dumps(defaults, allow_nan=False)  # raises if a default is no plain value
    unchecked = sorted(defaults.keys() - solver._parameter_constraints.keys())
    if unchecked:
        raise InputError(
            f"{type(solver).__name__} does not say which values of"
            f" {', '.join(unchecked)} are allowed; add an entry for each to `allowed`,"
            f" such as Allowed({unchecked[0]}=[float])"
        )
    return factory


def _is_foreign_classifier(factory: Any) -> bool:
    """Return whether `factory` is a class of scikit-learn classifiers, not a solver."""
    from sklearn.base import BaseEstimator, is_classifier

    from precbench.solvers.common.base import Ranker

    is_estimator = isinstance(factory, type) and issubclass(factory, BaseEstimator)
    return is_estimator and not issubclass(factory, Ranker) and is_classifier(factory())


# Module and class of each solver. They are imported when first used, as scikit-learn
# takes a second.
_BUILT_IN = {
    "perceptron-avg": "minibatch.estimator:PerceptronAtK",
    "perceptron-max": "minibatch.estimator:PerceptronAtK",
    "sgd-avg": "minibatch.estimator:SGDAtK",
    "sgd-max": "minibatch.estimator:SGDAtK",
    "1pmb": "minibatch.estimator:OnePMB",
    "2pmb": "minibatch.estimator:TwoPMB",
    "cutting-plane": "cutting_plane.estimator:CuttingPlane",
    "psg": "psg.estimator:ProjectedSubgradient",
    "ftrl": "ftrl.estimator:FTRL",
    "pnorm-push": "push.estimator:PNormPush",
    "ir-push": "push.estimator:IRPush",
    "rankboost": "push.estimator:RankBoost",
    "toppush": "toppush.estimator:TopPush",
    "toppush-k": "toppush.estimator:TopPush",
    "bbr": "bbr.estimator:BBR",
    "bbr-pairs": "bbr.estimator:BBR",
    "lcbr": "bbr.estimator:LCBR",
    "oam": "online_auc.estimator:OAM",
    "pgd": "online_auc.estimator:PGD",
    "adaoam": "online_auc.estimator:AdaOAM",
    "spam": "online_auc.estimator:SPAM",
    "logistic-regression": "others.linear:LogisticRegressionRanker",
    "linear-svm": "others.linear:LinearSVMRanker",
    "hist-gradient-boosting": "others.hist_gradient_boosting:HistGradientBoosting",
    "lightgbm": "others.lightgbm:LightGBM",
    "lightgbm-lambdarank": "others.lightgbm:LambdaRank",
    "random-forest": "others.forests:RandomForest",
    "extra-trees": "others.forests:ExtraTrees",
    "ensemble": "others.ensemble:Ensemble",
    "xgboost": "others.xgboost:XGBoost",
    "catboost": "others.catboost:CatBoost",
    "mlp": "others.mlp:MLP",
    "no-skill": "others.no_skill:NoSkill",
}

_PRESETS: dict[str, dict[str, Any]] = {
    "perceptron-avg": {"variant": "avg"},
    "perceptron-max": {"variant": "max"},
    "sgd-avg": {"surrogate": "avg"},
    "sgd-max": {"surrogate": "max"},
    "toppush-k": {"top_negatives": 0.05},
    "bbr-pairs": {"accumulate": "pairs"},
}

_BASES = (
    "common.base:Ranker",
    "common.base:LinearRanker",
    "common.base:NonlinearRanker",
    "others.wrapper:ScoringClassifier",
)
_MODULES: dict[str, str] = {}  # by the name of a class
for _place in (*_BASES, *_BUILT_IN.values()):
    _module, _class_name = _place.split(":")
    _MODULES[_class_name] = _module


def __getattr__(name: str) -> Any:
    """Import the module of a class on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def _built_in(name: str) -> "Callable[..., Ranker]":
    """Import the class of a solver, or return a function that adds its presets."""
    _module, class_name = _BUILT_IN[name].split(":")
    solver = __getattr__(class_name)
    if name not in _PRESETS:  # the solver has the defaults of its class
        return solver
    preset = functools.partial(solver, **_PRESETS[name])
    preset.__doc__ = solver.__doc__
    return preset


class _Solvers(Registry["Callable[..., Ranker]"]):
    """The registry of solvers.

    It also takes names of scikit-learn classes, and classes in files, once `admit` was
    asked for these.
    """

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._own: dict[str, OwnClass] = {}  # classes in files, by their names here

    def admit(self, name: str, folder: Path = Path()) -> str:
        """Import a class that is named FILE.py:CLASS; return its name in the registry.

        The file is relative to `folder`. Any other name is returned as it is.

        Raises
        ------
        InputError
            If there is no such file or class, or the class is no solver.
        """
        if not is_own_class(name):
            return name
        own = find_own_class(name, folder)
        self.admit_own(own)
        return own.name

    def admit_own(self, own: OwnClass) -> None:
        """Import a class of a file, as a worker does for its trial."""
        if own.name not in self._own:
            self._loaded[own.name] = checked_class(own, check_solver)
        self._own[own.name] = own  # an equal file may lie elsewhere by now

    def own_class(self, name: str) -> OwnClass | None:
        """Return the class in a file that was admitted by a name, or None."""
        return self._own.get(name)

    def __getitem__(self, name: str) -> "Callable[..., Ranker]":
        if name not in self._loaded:
            classifier = _scikit_learn_class(name)
            if classifier is not None:
                # `super` looks here first.
                self._loaded[name] = check_solver(classifier)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        if name in self._own:
            return True
        return super().__contains__(name) or _scikit_learn_class(name) is not None

    def package(self, name: str) -> str:
        """Return the package of a solver, or "" if `algorithm_version` names it.

        The name of a class in a file has a hash of the file, and needs no package.
        """
        if name in self._own or _scikit_learn_class(name):
            return ""
        return super().package(name)


def _scikit_learn_class(name: object) -> type | None:
    """Return the class named like "sklearn.ensemble.AdaBoostClassifier", or None."""
    package, _, path = str(name).partition(".")
    module, _, class_name = path.partition(".")
    if package != "sklearn":
        return None
    is_public = module in import_module(package).__all__
    if not is_public:
        return None
    try:
        classifier = getattr(import_module(f"{package}.{module}"), class_name, None)
        return classifier if _is_foreign_classifier(classifier) else None
    except (AttributeError, ImportError, TypeError):
        # There is no such module, or `_is_foreign_classifier`, which makes an instance,
        # met a class that needs arguments.
        return None


SOLVERS = _Solvers("precbench.solvers", _BUILT_IN, check_solver, _built_in)


def solver_version(name: str) -> int | str:
    """Return the ``algorithm_version`` of a solver, part of the keys of its trials.

    After the version of a solver that is not built in come the name and version of its
    package.

    Examples
    --------
    >>> from precbench.solvers import solver_version
    >>> solver_version("cutting-plane")
    2
    """
    version = SOLVERS[name]().algorithm_version
    package = SOLVERS.package(name)
    return f"{version} of {package}" if package else version
