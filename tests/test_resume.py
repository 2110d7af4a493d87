"""Runs, deaths, interrupts, damage and reruns in any order leave the records that they should."""

import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from precbench.advice.compare import prepare
from precbench.data import Dataset
from precbench.runner import run_plan, to_do
from precbench.runner.worker import run_job
from precbench.store import HAVE_NUMBERS, RETRIED, Store
from tests.sentences import raises

ENDINGS = ["ok", "ok", "crashed", "failed", "interrupted"]


@cache
def plan():
    """Make the plan of six trials on sixty rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    dataset = Dataset("X", "X", X, np.where(X[:, 0] > 0.5, 1.0, -1.0), "0" * 64)
    return prepare(dataset, 5, solvers=["sgd-avg", "pnorm-push"], n_splits=3).plan


KEYS = [key for _, key in plan().trials]


@cache
def reference():
    """Return the arrays of each trial, as a run without faults writes them."""
    with tempfile.TemporaryDirectory() as folder:
        store, trials = Store(folder), {key: trial for trial, key in plan().trials}
        with store.lock():
            assert {status for _, status in run_plan(plan(), store, trials)} == {"ok"}
        return {key: store.arrays(key) for key in KEYS}


class Resuming(RuleBasedStateMachine):
    """A results folder, beside the statuses that its records must have."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store, self.statuses = Store(self.folder), {}

    def teardown(self):
        shutil.rmtree(self.folder)

    def run(self, trials, endings):
        """Run trials, each of which ends as drawn; nothing runs after an interrupt."""
        drawn = dict(zip(trials, endings, strict=False))
        self.finished = {k for k, status in self.statuses.items() if status not in RETRIED}

        def elsewhere(jobs):
            for job in jobs:
                ending = drawn[job.key]
                if ending == "ok":
                    yield job, run_job(job)
                    continue
                job.mark.parent.mkdir(parents=True, exist_ok=True)
                job.mark.touch()
                if ending == "interrupted":
                    raise KeyboardInterrupt
                if ending == "failed":
                    (self.folder / "trials").mkdir(exist_ok=True)
                    (self.folder / "trials" / f".{job.key}.json.tmp").write_text('{"cut')
                    params = {"no such parameter": 1}  # the solver refuses it
                    job = replace(job, trial=replace(job.trial, params=params))
                    yield job, run_job(job)
                else:
                    yield job, None  # its worker has died

        with self.store.lock():
            try:
                for job, status in run_plan(plan(), self.store, trials, elsewhere=elsewhere):
                    self.statuses[job.key] = status
                    assert status == drawn[job.key]
            except KeyboardInterrupt:
                stopped = [*trials].index(next(k for k in trials if drawn[k] == "interrupted"))
                for key in [*trials][: stopped + 1]:  # those that died were to be repeated
                    if drawn[key] in ("crashed", "interrupted") and key not in self.finished:
                        self.statuses[key] = "interrupted"

    @rule(
        wanted=st.sets(st.sampled_from(KEYS)),
        endings=st.lists(st.sampled_from(ENDINGS), min_size=6, max_size=6),
    )
    def resume(self, wanted, endings):
        trials = to_do(plan(), self.store, wanted=wanted)
        unusable = [None, *RETRIED]
        assert [*trials] == [
            key for key in KEYS if key in wanted and self.statuses.get(key) in unusable
        ]
        self.run(trials, endings)

    @rule(status=st.sampled_from(RETRIED))
    def rerun(self, status):
        trials = to_do(plan(), self.store, rerun={status})
        assert [*trials] == [key for key in KEYS if self.statuses.get(key) == status]
        self.run(trials, ["ok"] * len(KEYS))

    @rule(key=st.sampled_from(KEYS), ending=st.sampled_from(ENDINGS))
    def force(self, key, ending):
        trials = to_do(plan(), self.store, wanted={key}, force=True)
        assert [*trials] == [key]
        self.run(trials, [ending])

    @precondition(lambda self: self.statuses)
    @rule(data=st.data())
    def damage(self, data):
        """Cut a record off: it is named, and once removed its trial runs again."""
        key = data.draw(st.sampled_from(sorted(self.statuses)))
        path = self.folder / "trials" / f"{key}.json"
        path.write_bytes(path.read_bytes()[:-2])
        with raises(Exception, key):
            to_do(plan(), self.store)
        path.unlink()
        del self.statuses[key]

    @invariant()
    def records_are_whole(self):
        assert {record.key: record.status for record in self.store.records()} == self.statuses
        for key, status in self.statuses.items():
            assert (status in HAVE_NUMBERS) == (self.folder / "trials" / f"{key}.npz").exists()
            if status == "ok":
                for name, array in reference()[key].items():
                    if "seconds" not in name:
                        np.testing.assert_array_equal(self.store.arrays(key)[name], array)
        with self.store.lock():
            assert not [*self.folder.glob("**/.*.tmp"), *self.store.running.glob("*")]


TestResuming = Resuming.TestCase
TestResuming.settings = settings(max_examples=15, stateful_step_count=8, deadline=None)
