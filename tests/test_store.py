"""Records and other files: written whole, whatever happens.

Read exactly, or refused.
"""

import errno
import getpass
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.testing import assert_array_equal

from precbench.advice.contest import prepare
from precbench.core.errors import InputError, PrecbenchError
from precbench.core.files import temporary, write_whole, writing
from precbench.core.npz import DamagedError, pack, unpack
from precbench.data import Dataset
from precbench.results.machine import environment
from precbench.results.records import HAVE_NUMBERS, RETRIED, SCHEMA
from precbench.results.store import Store, key_of
from precbench.runner import run_plan, to_do
from precbench.runner.worker import run_job
from tests.sentences import raises

KEY = key_of({"a": 1})
OK = {"key": KEY, "status": "ok", "description": {"a": 1}}
ARRAYS = {
    "coef": np.arange(6.0).reshape(2, 3),
    "file": np.array([1, 2]),
    "names": np.array(["é"]),
}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results" / "letter")


def files(store):
    return sorted(path.name for path in (store.folder / "trials").iterdir())


def test_a_key_is_stable_and_tells_counts_from_shares():
    assert KEY == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    description = {"a": 1, "b": {"c": 2, "d": 0.1}}
    in_other_order = {"b": {"d": 0.1, "c": 2}, "a": 1}
    assert key_of(in_other_order) == key_of(description)
    assert key_of({"k": 1}) != key_of({"k": 1.0})
    with raises(ValueError):
        key_of({"k": float("nan")})


def test_a_record_round_trips(store):
    store.write({**OK, "label": "é", "n": np.int64(3), "x": np.float64(0.1)}, ARRAYS)
    assert store.read(KEY).to_dict() == {
        **OK,
        "label": "é",
        "n": 3,
        "x": 0.1,
        "schema": SCHEMA,
        "arrays": ("coef", "file", "names"),
    }
    read = store.arrays(KEY)
    assert list(read) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
    assert files(store) == [f"{KEY}.json", f"{KEY}.npz"]


def test_non_finite_values_become_null(store):
    values = [float("nan"), np.inf, {"gap": -np.inf, "a": np.array([1.0, np.nan])}]
    store.write({"key": KEY, "status": "failed", "values": values})
    assert store.read(KEY).to_dict()["values"] == [
        None,
        None,
        {"gap": None, "a": [1.0, None]},
    ]
    assert "NaN" not in (store.folder / "trials" / f"{KEY}.json").read_text()


def test_rewriting_replaces_everything(store):
    store.write(OK, ARRAYS)
    assert store.read(KEY).status == "ok"
    Store(store.folder).write({"key": KEY, "status": "failed"})
    assert store.read(KEY).status == "failed"
    assert store.arrays(KEY) == {}
    assert files(store) == [f"{KEY}.json"]
    (store.folder / "trials" / f"{KEY}.json").unlink()
    assert store.read(KEY) is None
    assert not [*store.records()]


@pytest.mark.promise("R13")
def test_pickles_are_neither_written_nor_read(store):
    with raises(ValueError):
        store.write({"key": KEY, "status": "ok"}, {"evil": np.array([object()])})
    assert not store.folder.exists()
    store.write(OK, {"evil": np.zeros(1)})
    np.savez(store.folder / "trials" / f"{KEY}.npz", evil=np.array([{}], dtype=object))
    with raises(InputError, f"{KEY}.npz"):
        store.arrays(KEY)


@pytest.mark.promise("R14")
@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="half a mapping"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="no fields"),
        pytest.param('{"schema": NaN, "key": 1}', id="a schema that is no number"),
        pytest.param(json.dumps({"schema": SCHEMA + 1, "key": KEY}), id="newer"),
    ],
)
def test_a_damaged_or_newer_record_is_named(store, content):
    store.write(OK, ARRAYS)
    (store.folder / "trials" / f"{KEY}.json").write_text(content)
    with raises(InputError, f"{KEY}.json"):
        store.read(KEY)


@pytest.mark.promise("R14")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("status", "fine", id="an unknown status"),
        pytest.param("seconds", -1e300, id="a negative time"),
        pytest.param("dataset", ["a"], id="a list in place of a name"),
        pytest.param("arrays", [], id="numbers without arrays"),
        pytest.param("description", {}, id="numbers without a description"),
        pytest.param("description", {"a": 2}, id="the description of another key"),
        pytest.param("description", {"a": 1, "code": 3}, id="a description with more"),
    ],
)
def test_a_record_with_a_damaged_field_is_named(store, field, value):
    store.write(OK, ARRAYS)
    record = {"schema": 1, **OK, "arrays": ["coef"], field: value}
    (store.folder / "trials" / f"{KEY}.json").write_text(json.dumps(record))
    with raises(InputError, f"{KEY}.json"):
        store.read(KEY)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(Path.unlink, id="missing"),
        pytest.param(lambda path: os.truncate(path, 40), id="truncated"),
    ],
)
def test_missing_or_truncated_arrays_are_damage(store, damage):
    store.write(OK, ARRAYS)
    damage(store.folder / "trials" / f"{KEY}.npz")
    with raises(InputError, f"{KEY}.npz"):
        store.arrays(KEY)


def fail_on_a_full_disk(*_arguments, **_options):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.promise("R4")
@pytest.mark.parametrize("failing", ["write_bytes", "open"])
def test_a_full_disk_keeps_existing_records(store, monkeypatch, failing):
    store.write(OK, ARRAYS)

    with monkeypatch.context() as patch:
        patch.setattr(Path, failing, fail_on_a_full_disk)
        with raises(PrecbenchError) as caught:
            store.write({"key": KEY, "status": "failed"}, ARRAYS)
    assert caught.value.exit_code == 1
    assert store.read(KEY).status == "ok"
    assert files(store) == [f"{KEY}.json", f"{KEY}.npz"]


def test_an_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(PrecbenchError):
        Store(tmp_path / "file" / "letter").write({"key": KEY, "status": "ok"})
    with raises(PrecbenchError), Store(tmp_path / "file").lock():
        pass


HOLDER = """
import sys, time
from precbench.results.store import Store
with Store(sys.argv[1]).lock():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.promise("R5")
def test_the_lock_names_its_holder_and_ends_with_it(store):
    command = [sys.executable, "-c", HOLDER, str(store.folder)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with raises(InputError, f"letter {holder.pid}"), store.lock():
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with store.lock():
        assert (store.folder / ".lock").read_text() == str(os.getpid())
    with store.lock():
        pass


@pytest.mark.promise("R24")
def test_the_environment_is_stored_once_and_without_names(store):
    machine = environment()
    assert machine["packages"]["numpy"] == np.__version__
    text = json.dumps(machine)
    assert str(Path.home()) not in text
    assert str(Path.cwd()) not in text
    assert sys.prefix not in text
    assert socket.gethostname() not in text
    assert f'"{getpass.getuser()}"' not in text
    machine_id = store.add_environment(machine)
    assert store.add_environment(environment()) == machine_id
    path = store.folder / "environments" / f"{machine_id}.json"
    assert json.loads(path.read_text()) == machine


# --- one way of writing files, and one-line messages for what the disk refuses ---


@pytest.mark.promise("R1")
def test_the_mark_is_absent_while_the_others_are_replaced(tmp_path, monkeypatch):
    data = tmp_path / "a.npz"
    mark = tmp_path / "a.json"
    replaced_with_mark = []  # the names of files, and whether the mark existed
    replace = type(data).replace

    def watched_replace(path, target):
        replaced_with_mark.append((target.name, mark.exists()))
        return replace(path, target)

    monkeypatch.setattr(type(data), "replace", watched_replace)
    for content in (b"1", b"2"):
        write_whole({data: content, mark: content})
        assert data.read_bytes() == content
        assert mark.read_bytes() == content
    assert replaced_with_mark == [("a.npz", False), ("a.json", False)] * 2
    assert sorted(tmp_path.iterdir()) == [mark, data]


@pytest.mark.promise("R1")
def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", fail_on_a_full_disk)
    with raises(PrecbenchError), writing(target):
        write_whole({target: b"new"})
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.promise("R1")
def test_an_unfinished_folder_is_removed(tmp_path):
    with pytest.raises(KeyError), temporary(tmp_path / "folder") as path:
        path.mkdir()
        (path / "part").write_bytes(b"1")
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_what_the_system_says_is_in_the_message_of_a_refusal():
    with raises(InputError) as caught, writing("here", "advice", refused=InputError):
        raise OSError(errno.EIO, "what the system says")
    assert "what the system says" in str(caught.value)


def test_what_the_system_says_of_a_full_disk_is_left_out():
    with (
        raises(PrecbenchError) as caught,
        writing("here", "advice", refused=InputError),
    ):
        raise OSError(errno.EDQUOT, "what the system says")
    assert "what the system says" not in str(caught.value)


# --- runs ---


ENDINGS = ["ok", "ok", "crashed", "failed", "interrupted"]


@cache
def plan():
    X = np.random.default_rng(0).standard_normal((60, 2))
    dataset = Dataset("X", "X", X, np.where(X[:, 0] > 0.5, 1.0, -1.0), "0" * 64)
    return prepare(dataset, 5, solvers=["sgd-avg", "pnorm-push"], n_splits=3).plan


KEYS = [key for _, key in plan().trials]


@cache
def reference():
    """Return the arrays of each trial, as a run without faults writes them."""

    def run_here(jobs):
        return [(job, run_job(job)) for job in jobs]

    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        trials = {key: trial for trial, key in plan().trials}
        with store.lock():
            ends = list(run_plan(plan(), store, trials, elsewhere=run_here))
        assert {status for _job, status in ends} == {"ok"}
        return {key: store.arrays(key) for key in KEYS}


class Resuming(RuleBasedStateMachine):
    """A results folder, beside the statuses that its records must have."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store(self.folder)
        self.statuses = {}  # by key

    def teardown(self):
        shutil.rmtree(self.folder)

    def run(self, trials, endings):
        """Run trials, each of which ends as drawn; nothing runs after an interrupt."""
        drawn = dict(zip(trials, endings, strict=False))
        keys_with_result = {
            key for key, status in self.statuses.items() if status not in RETRIED
        }

        def elsewhere(jobs):
            for job in jobs:
                yield job, self.end(job, drawn[job.key])

        with self.store.lock():
            try:
                ends = run_plan(plan(), self.store, trials, elsewhere=elsewhere)
                for job, status in ends:
                    self.statuses[job.key] = status
                    assert status == drawn[job.key]
            except KeyboardInterrupt:
                for key in trials:
                    # Those whose worker has died were to be repeated.
                    was_running = drawn[key] in ("crashed", "interrupted")
                    if was_running and key not in keys_with_result:
                        self.statuses[key] = "interrupted"
                    if drawn[key] == "interrupted":
                        break  # later trials have not begun

    def end(self, job, ending):
        """Let a job end as drawn; return its status, None if its worker has died."""
        if ending == "ok":
            return run_job(job)
        job.mark.parent.mkdir(parents=True, exist_ok=True)
        job.mark.touch()
        if ending == "interrupted":
            raise KeyboardInterrupt
        if ending == "failed":
            unfinished = self.folder / "trials" / f".{job.key}.json.tmp"
            unfinished.parent.mkdir(exist_ok=True)
            unfinished.write_text('{"cut')
            params = {"no such parameter": 1}  # the solver refuses it
            return run_job(replace(job, trial=replace(job.trial, params=params)))
        return None

    @rule(
        wanted=st.sets(st.sampled_from(KEYS)),
        endings=st.lists(st.sampled_from(ENDINGS), min_size=6, max_size=6),
    )
    def resume(self, wanted, endings):
        trials = to_do(plan(), self.store, wanted=wanted)
        unusable = (None, *RETRIED)
        keys_to_run = [key for key in KEYS if self.statuses.get(key) in unusable]
        assert [*trials] == [key for key in keys_to_run if key in wanted]
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
    def records_have_their_statuses(self):
        statuses = {record.key: record.status for record in self.store.records()}
        assert statuses == self.statuses

    @invariant()
    def arrays_are_those_of_an_undisturbed_run(self):
        for key, status in self.statuses.items():
            has_arrays = (self.folder / "trials" / f"{key}.npz").exists()
            assert has_arrays == (status in HAVE_NUMBERS)
            if status == "ok":
                arrays = self.store.arrays(key)
                for name, array in reference()[key].items():
                    if "seconds" not in name:
                        assert_array_equal(arrays[name], array)

    @invariant()
    def nothing_unfinished_is_left(self):
        with self.store.lock():
            assert not [*self.folder.glob("**/.*.tmp")]
            assert not [*self.store.running.glob("*")]


TestResuming = Resuming.TestCase
TestResuming.settings = settings(max_examples=15, stateful_step_count=8, deadline=None)


# --- untrusted npz files: read exactly, or refused, in memory that they pay for ---


CONTENT = {
    "coef": np.arange(12.0).reshape(3, 4),
    "rows_seen": np.array([1, 2, 3]),
    "scalar": np.array(2.5),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big_endian": np.array([1.0, 2.0], dtype=">f8"),
}


def test_arrays_come_back(tmp_path):
    file = tmp_path / "arrays.npz"
    file.write_bytes(pack(CONTENT))
    read = unpack(file)
    assert list(read) == list(CONTENT)
    assert list(unpack(file, ["coef"])) == ["coef"]
    with np.load(file, allow_pickle=False) as loaded:
        for name, array in CONTENT.items():
            assert_array_equal(read[name], array, strict=array.dtype.isnative)
            assert_array_equal(loaded[name], array)
            assert read[name].dtype.isnative


def test_compressed_arrays_only_where_they_are_accepted(tmp_path):
    path = tmp_path / "packed.npz"
    np.savez_compressed(path, X=np.zeros(100_000))
    with raises(DamagedError):
        unpack(path)
    assert_array_equal(unpack(path, packed=True)["X"], np.zeros(100_000))


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.array([1j]), id="complex"),
        pytest.param(np.array(["a"]), id="text"),
        pytest.param(np.array(["2020-01-01"], dtype="M8[D]"), id="date"),
        pytest.param(np.array([True]), id="truth"),
    ],
)
def test_what_is_not_a_real_number_is_refused(tmp_path, array):
    path = tmp_path / "odd.npz"
    path.write_bytes(pack({"X": array}))
    with raises(DamagedError):
        unpack(path)
    assert_array_equal(unpack(path, kinds=array.dtype.kind)["X"], array)


def npy(shape, content=b""):
    """Return an array of npy format, whose header states a shape."""
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + content


@pytest.mark.promise("R14")
@pytest.mark.parametrize("shape", [(10**15,), (2**40, 2**40), (3,), (0, 4)])
def test_a_shape_that_its_bytes_do_not_fill_is_refused(tmp_path, shape):
    path = tmp_path / "lies.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy(shape, bytes(16)))
    with raises(DamagedError):
        unpack(path)


def test_a_file_that_is_not_there_is_no_damaged_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        unpack(tmp_path / "other.npz")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"PK", id="a beginning"),
        pytest.param(b"not an archive", id="text"),
        pytest.param(b"PK\x05\x06" + bytes(18), id="an archive without files"),
    ],
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(DamagedError):
        unpack(path, ["coef"])
