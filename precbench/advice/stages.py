"""The stages of a comparison, each of which ends with a complete answer.

The first stage trains three methods on three splits, the second all methods on two
fifths of the splits, the third, on the other splits, only the methods that may still
change the answer. Work is counted in splits, never in time: the answer is the same on
each machine.
"""

from math import ceil
from typing import Any, Literal, NamedTuple

from precbench.advice.choice import REFERENCE, Choice
from precbench.experiment import Experiment
from precbench.ranking.statistics import narrowing

Effort = Literal["quick", "normal", "thorough"]
"""How much work: the first stage alone, all three, or all methods on all splits."""

# Of these one is nearly always recommended, see docs/which-method.md.
_FIRST_METHODS = ("ensemble", REFERENCE, "hist-gradient-boosting")
_FIRST_SPLITS = 3
_SHARE_OF_SPLITS = 0.4


class Stage(NamedTuple):
    """Methods to train on the first splits, besides what earlier stages trained."""

    methods: list[str]
    n_splits: int


def first_stage(experiment: Experiment) -> Stage:
    """Return the stage that answers first."""
    methods = [*experiment.solvers]
    first = [label for label in methods if label in _FIRST_METHODS]
    n_splits = min(_FIRST_SPLITS, experiment.protocol.n_splits)
    return Stage(first or methods, n_splits)


def last_stage(experiment: Experiment) -> Stage:
    """Return the stage with all methods on all splits."""
    return Stage([*experiment.solvers], experiment.protocol.n_splits)


def next_stage(
    stage: Stage, choice: Choice, experiment: Experiment, effort: Effort
) -> Stage | None:
    """Return the stage after `stage`, which answered `choice`; None after the last.

    Parameters
    ----------
    stage : Stage
    choice : Choice
    experiment : Experiment
        With all methods and splits.
    effort : {"quick", "normal", "thorough"}
    """
    n_all = experiment.protocol.n_splits
    everything = last_stage(experiment)
    if effort == "quick" or stage == everything:
        return None
    n_some = max(_FIRST_SPLITS, ceil(_SHARE_OF_SPLITS * n_all))
    second = Stage(everything.methods, min(n_some, n_all))
    if stage == first_stage(experiment) and stage != second:
        return second
    has_failed = choice.splits < choice.splits_asked
    if effort == "thorough" or has_failed:
        return everything
    open_methods = _open_methods(choice, n_all, experiment.protocol.test_size)
    open_methods += _overruled_ensembles(choice)
    if stage.n_splits == n_all or not open_methods:
        return None
    needed = {choice.recommended, choice.best, REFERENCE, *open_methods}
    return Stage([label for label in experiment.solvers if label in needed], n_all)


def _open_methods(choice: Choice, n_all: int, test_share: float) -> list[str]:
    """Return the methods on which the splits that are left may decide.

    Such a method is undecided and may find more hits than make no difference in
    practice, and an interval over `n_all` splits would decide, if the difference stayed
    the same.
    """
    return [
        label
        for label, method in choice.methods.items()
        if method["verdict"] == "undecided"
        and -method["behind_low"] * choice.k > choice.margin
        and _would_decide(choice, method, n_all, test_share)
    ]


def _overruled_ensembles(choice: Choice) -> list[str]:
    """Return the ensembles if another method has significantly more hits.

    Among many methods on few splits that is often chance, so all splits are tried.
    """
    if choice.methods[choice.best]["form"] == "ensemble":
        return []
    return [
        label
        for label, method in choice.methods.items()
        if method["form"] == "ensemble"
    ]


def _would_decide(
    choice: Choice, method: dict[str, Any], n_all: int, test_share: float
) -> bool:
    """Return whether the interval over `n_all` splits would exclude 0, or be narrow.

    Narrow means that the method is as good as the recommended one.
    """
    half_width = (method["behind_high"] - method["behind_low"]) / 2
    half_width *= narrowing(int(method["n"]), n_all, test_share)
    margin = choice.margin / choice.k
    is_other = abs(method["behind"]) > half_width
    is_equivalent = abs(method["behind"]) + half_width <= margin
    return is_other or is_equivalent
