"""The trace of a trial: results and times at checkpoints, recorded with the clock stopped."""

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers import LinearRanker, Ranker


class Recorder:
    """Copies the weights of linear solvers at checkpoints, with the wall and CPU clocks stopped.

    Of other solvers it notes the number of iterations, see `NonlinearRanker.scores_after`.

    The first call, which a solver makes once its input is checked, starts the clocks and is
    checkpoint 0. The row counts of the later ones grow by a constant factor.

    Parameters
    ----------
    first_rows : int or None
        Rows seen at checkpoint 1; None to record the final state only.
    factor : float, default=2
        Ratio of the row counts of successive checkpoints; 1 for a checkpoint at every call.
    places : sequence of int, optional
        Row counts of the checkpoints, ascending, in place of growing distances.
    limit : float, default=inf
        Training time in seconds after which the solver is stopped.
    most_rows : float, default=inf
        Number of rows after which the solver is stopped.

    Attributes
    ----------
    seconds : float
        Wall time of the training so far.
    stopped : {"", "limit"}
    next_rows : int
        Number of rows at which the solver should make its next call at the latest.
    """

    def __init__(
        self,
        first_rows: int | None,
        factor: float = 2.0,
        places: Sequence[int] = (),
        limit: float = np.inf,
        most_rows: float = np.inf,
    ):
        self._places = places
        self._factor = factor
        self.next_rows = sys.maxsize if first_rows is None else first_rows
        if places:
            self.next_rows = self._after(0)
        self.seconds = 0.0
        self.stopped = ""
        self._limit = limit
        self._most_rows = most_rows
        self._cpu_seconds = 0.0
        self._states: dict[str, list[Any]] = defaultdict(list)
        self._wall = self._cpu = 0.0
        self._started = False
        self._from_the_start = first_rows is not None

    def __call__(self, solver: Ranker) -> bool:
        """Record a checkpoint if one is due; return whether the limit is reached."""
        if self._started:
            self._cpu_seconds += time.process_time() - self._cpu
            self.seconds += time.perf_counter() - self._wall
        due = solver.n_rows_seen_ >= self.next_rows if self._started else self._from_the_start
        self._started = True
        if due:
            self._note(solver)
            if solver.n_rows_seen_:
                self.next_rows = self._after(solver.n_rows_seen_)
        if self.seconds >= self._limit or solver.n_rows_seen_ >= self._most_rows:
            self.stopped = "limit"
        # Last, so that the work above is not counted.
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return bool(self.stopped)

    def _after(self, n_rows: int) -> int:
        """Return the row count of the checkpoint that follows `n_rows`."""
        if self._places:
            return next((place for place in self._places if place > n_rows), sys.maxsize)
        return max(n_rows + 1, int(n_rows * self._factor))

    def finish(self, solver: Ranker) -> dict[str, NDArray]:
        """Add the final state as the last checkpoint and return all checkpoints.

        Returns
        -------
        dict of ndarray
            ``rows_seen, wall_seconds, cpu_seconds, mistakes`` of shape (n_checkpoints,); mistakes
            is -1 for a solver that does not count them. ``coef`` of shape (n_checkpoints,
            n_features) of a linear solver, with ``intercept`` of shape (n_checkpoints,) where it
            has one, and ``n_iter`` of shape (n_checkpoints,) of others.
        """
        if self._states["rows_seen"][-1:] != [solver.n_rows_seen_]:
            self._note(solver)
        return {name: np.array(values) for name, values in self._states.items()}

    def _note(self, solver: Ranker) -> None:
        solver.catch_up()
        state = {
            "rows_seen": solver.n_rows_seen_,
            "wall_seconds": self.seconds,
            "cpu_seconds": self._cpu_seconds,
            "mistakes": getattr(solver, "n_mistakes_", -1),
        }
        if isinstance(solver, LinearRanker):
            state["coef"] = np.array(solver.coef_)
            if hasattr(solver, "intercept_"):
                state["intercept"] = solver.intercept_
        else:
            state["n_iter"] = solver.n_iter_
        for name, value in state.items():
            self._states[name].append(value)
