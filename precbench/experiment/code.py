"""What the numbers of a trial depend on: its settings, its data, and code."""

from functools import cache
from typing import Any

from precbench.experiment.trial import Trial
from precbench.solvers import SOLVERS, solver_version
from precbench.sources import code_of

__all__ = ["code_behind", "describe"]

_EVERY_TRIAL = (
    *("precbench.experiment.samples", "precbench.runner.recorder", "precbench.runner.worker"),
    "precbench.solvers.base",
)
_NUMERIC = (
    *("precbench.data.preprocess", "precbench.data.random_features", "precbench.data.splits"),
    "precbench.data.stream.*",
    "precbench.experiment.division",
    *("precbench.kernels.*", "precbench.losses", "precbench.metrics", "precbench.seeds"),
    *("precbench.solvers.*", "precbench.topk"),
)


def describe(trial: Trial, data_sha256: str) -> dict[str, Any]:
    """Return everything that the numbers of a trial depend on.

    Parameters
    ----------
    trial : Trial
    data_sha256 : str
        Hash of the data set.

    Returns
    -------
    dict
        Strict JSON; its hash is the key of the trial. ``code`` holds a hash of each module between
        the rows of the data set and the weights: preparation, tuning, limits, solver, kernels, and
        the measure that tuning optimises. ``parts`` are those whose scores are stored, for a solver
        without weights.
    """
    from precbench.solvers import LinearRanker

    code = code_behind(trial.solver, bool(trial.candidates))
    about = trial.description(data_sha256, solver_version(trial.solver), code)
    is_linear = isinstance(SOLVERS[trial.solver](), LinearRanker)
    return about if is_linear else about | {"parts": list(trial.parts)}


@cache
def code_behind(solver: str, is_tuned: bool) -> dict[str, str]:
    """Return a hash of each module between the rows of a data set and the weights of a solver."""
    module = type(SOLVERS[solver]()).__module__
    package = module.partition(".")[0]
    own = () if package == "precbench" else (package, f"{package}.*")
    choice = ["precbench.experiment.tuning", "precbench.metrics"] if is_tuned else []
    return code_of([*_EVERY_TRIAL, module, *choice], within=(*_NUMERIC, *own))
