"""Workers of a Dask cluster that are stuck: silent, or on a trial for too long."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_GRACE_SECONDS = 30.0  # past its timeout, in which a trial should have ended by itself


@dataclass(frozen=True)
class Stuck:
    """A worker that is stuck."""

    address: str
    reason: str  # the rest of a sentence about the worker
    # perhaps only because compiled code keeps its other threads waiting
    is_silent: bool
    has_nanny: bool  # a process beside the worker, which watches the worker


@dataclass
class _Worker:
    """What the looks have shown of a worker."""

    last_heartbeat: float  # by the clock of the scheduler
    jobs: frozenset[str]  # the keys of the jobs that the worker holds
    silent_seconds: float = 0.0  # since the last heartbeat
    busy_seconds: float = 0.0  # on a trial, since the last trial ended


class Heartbeats:
    """The heartbeats of a cluster's workers, and how long a trial has kept each busy.

    Seconds are counted look by look, and each look counts at most `most_counted`. While
    this process, the scheduler or the whole machine sleeps there are no looks, so that
    no worker is blamed for a time in which nobody listened.
    """

    def __init__(self, most_counted: float) -> None:
        self._most_counted = most_counted
        self._workers: dict[str, _Worker] = {}

    def look(
        self,
        seconds: float,
        descriptions: Mapping[str, Mapping[str, Any]],
        jobs: Mapping[str, Collection[str]],
        timeouts: Mapping[str, float],
        longest_silence: float,
    ) -> list[Stuck]:
        """Note the workers' state `seconds` after the last look; return the stuck ones.

        `descriptions` of the workers and the keys of the `jobs` that they hold are by
        address; `timeouts` are the seconds that a trial may take, by the key of its
        job.
        """
        known = self._workers
        self._workers = {}
        stuck = []
        for address, description in descriptions.items():
            # Jobs of this run, as others may use the cluster, too.
            held = frozenset(timeouts.keys() & set(jobs.get(address, ())))
            heartbeat = description["last_seen"]
            if address in known:
                worker = known[address]
                counted = min(seconds, self._most_counted)
            else:
                worker = _Worker(heartbeat, held)
                counted = 0.0
            self._workers[address] = worker
            if worker.last_heartbeat == heartbeat:
                worker.silent_seconds += counted
            else:
                worker.silent_seconds = 0.0
            # A worker runs one trial at a time: if all its jobs are still there, none
            # has ended. Nothing executes while rows are sent to the worker; this time
            # is not counted.
            counts_of_tasks = description["metrics"].get("task_counts", {})
            is_executing = counts_of_tasks.get("executing", 0) > 0
            has_ended_none = worker.jobs <= held
            if is_executing and held and has_ended_none:
                worker.busy_seconds += counted
            else:
                worker.busy_seconds = 0.0
            worker.last_heartbeat = heartbeat
            worker.jobs = held

            is_silent = worker.silent_seconds > longest_silence
            timeout = max((timeouts[key] for key in held), default=0.0)
            if worker.busy_seconds > timeout + _GRACE_SECONDS:
                reason = f"has not ended a trial {_GRACE_SECONDS:g} s after its timeout"
            elif is_silent:
                reason = f"has sent no heartbeat for {worker.silent_seconds:.0f} s"
            else:
                continue
            # If the worker stays all the same, its seconds count from 0 again.
            del self._workers[address]
            has_nanny = description.get("nanny") is not None
            stuck.append(Stuck(address, reason, is_silent, has_nanny))
        return stuck
