"""The trace of a trial: its states at checkpoints, recorded with the clocks stopped."""

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers import LinearRanker, Ranker


class Recorder:
    """Records weights of linear solvers, and iterations of others, at checkpoints.

    The first call, which a solver makes once its input is checked, starts the wall and
    CPU clocks and is checkpoint 0. Checkpoint 1 is at `first_rows`; row counts then
    grow by `factor`, or all are those of `places`. If `first_rows` is None, there is no
    checkpoint 0, and without `places` only the final state. The solver is stopped after
    `most_rows` rows, and calls at `next_rows`.
    """

    def __init__(
        self,
        first_rows: int | None,  # row count of checkpoint 1; None: also no checkpoint 0
        factor: float = 2.0,  # growth of the row counts; 1: a checkpoint at every call
        places: Sequence[int] = (),  # row counts, ascending, in place of the two above
        most_rows: float = np.inf,
    ):
        self._places = places
        self._factor = factor
        self._most_rows = most_rows
        self._is_start_due = first_rows is not None  # the first call is checkpoint 0
        # row count of the next checkpoint
        if places:
            self.next_rows = self._next_place(0)
        elif first_rows is not None:
            self.next_rows = first_rows
        else:
            self.next_rows = sys.maxsize
        self.stopped = ""  # "limit" once `most_rows` are reached
        # by field, a value per checkpoint
        self._states: dict[str, list[Any]] = defaultdict(list)
        self._has_started = False  # whether the solver has called before
        # while the solver learnt, by the wall clock and the CPU clock
        self.seconds = 0.0
        self._cpu_seconds = 0.0
        # readings of the clocks at the end of the last call
        self._wall = 0.0
        self._cpu = 0.0

    def __call__(self, solver: Ranker) -> bool:
        """Record a checkpoint if one is due; return whether a limit is reached."""
        if self._has_started:
            # the time since the last call
            self._cpu_seconds += time.process_time() - self._cpu
            self.seconds += time.perf_counter() - self._wall
            is_due = solver.n_rows_seen_ >= self.next_rows
        else:
            is_due = self._is_start_due
        self._has_started = True
        if is_due:
            self._record_state(solver)
            # At the start `next_rows` is still ahead.
            if solver.n_rows_seen_:
                self.next_rows = self._next_place(solver.n_rows_seen_)
        if solver.n_rows_seen_ >= self._most_rows:
            self.stopped = "limit"
        # The clocks are read last, so that the time of this method is not counted.
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return bool(self.stopped)

    def _next_place(self, n_rows: int) -> int:
        """Return the row count of the checkpoint after `n_rows`."""
        if not self._places:
            return max(n_rows + 1, int(n_rows * self._factor))
        for place in self._places:
            if place > n_rows:
                return place
        return sys.maxsize

    def finish(self, solver: Ranker) -> dict[str, NDArray]:
        """Add the final state as the last checkpoint, and return arrays by name.

        ``rows_seen, wall_seconds, cpu_seconds, mistakes`` (-1 if not counted); ``coef``
        and perhaps ``intercept`` of a linear solver, ``n_iter`` of others.
        """
        rows_seen = self._states["rows_seen"]
        is_recorded = bool(rows_seen) and rows_seen[-1] == solver.n_rows_seen_
        if not is_recorded:
            self._record_state(solver)
        return {name: np.array(values) for name, values in self._states.items()}

    def _record_state(self, solver: Ranker) -> None:
        """Append a checkpoint: times, counts, and weights or number of iterations."""
        solver.catch_up()  # some solvers set their weights only when asked
        state = {
            "rows_seen": solver.n_rows_seen_,
            "wall_seconds": self.seconds,
            "cpu_seconds": self._cpu_seconds,
            "mistakes": getattr(solver, "n_mistakes_", -1),  # -1 if not counted
        }
        if isinstance(solver, LinearRanker):
            state["coef"] = np.array(solver.coef_)
            if hasattr(solver, "intercept_"):
                state["intercept"] = solver.intercept_
        else:
            state["n_iter"] = solver.n_iter_
        for name, value in state.items():
            self._states[name].append(value)
