"""Records are written atomically, whatever happens to the writer."""

import errno
import getpass
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from precbench.errors import InputError, PrecbenchError
from precbench.store import SCHEMA, Store, environment, key_of
from tests.sentences import raises

KEY = key_of({"a": 1})
OK = {"key": KEY, "status": "ok", "description": {"a": 1}}
ARRAYS = {"coef": np.arange(6.0).reshape(2, 3), "file": np.array([1, 2]), "names": np.array(["é"])}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results" / "letter")


def files(store):
    return sorted(path.name for path in (store.folder / "trials").iterdir())


def test_a_key_is_stable_and_tells_counts_from_shares():
    assert KEY == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert key_of({"a": 1, "b": {"c": 2, "d": 0.1}}) == key_of({"b": {"d": 0.1, "c": 2}, "a": 1})
    assert key_of({"k": 1}) != key_of({"k": 1.0})
    with raises(ValueError):
        key_of({"k": float("nan")})


def test_a_record_round_trips(store):
    store.write({**OK, "label": "é", "n": np.int64(3), "x": np.float64(0.1)}, ARRAYS)
    assert store.read(KEY).to_dict() == {
        **OK, "label": "é", "n": 3, "x": 0.1, "schema": SCHEMA, "arrays": ("coef", "file", "names"),
    }  # fmt: skip
    read = store.arrays(KEY)
    assert list(read) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
    assert files(store) == [f"{KEY}.json", f"{KEY}.npz"]


def test_non_finite_values_become_null(store):
    values = [float("nan"), np.inf, {"gap": -np.inf, "a": np.array([1.0, np.nan])}]
    store.write({"key": KEY, "status": "failed", "values": values})
    assert store.read(KEY).to_dict()["values"] == [None, None, {"gap": None, "a": [1.0, None]}]
    assert "NaN" not in (store.folder / "trials" / f"{KEY}.json").read_text()


def test_rewriting_replaces_everything(store):
    store.write(OK, ARRAYS)
    assert store.read(KEY).status == "ok"
    Store(store.folder).write({"key": KEY, "status": "failed"})
    assert store.read(KEY).status == "failed"
    assert store.arrays(KEY) == {}
    assert files(store) == [f"{KEY}.json"]
    (store.folder / "trials" / f"{KEY}.json").unlink()
    assert store.read(KEY) is None and not [*store.records()]


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
def test_a_newer_schema_is_rejected(store):
    store.write({"key": KEY, "status": "ok"})
    path = store.folder / "trials" / f"{KEY}.json"
    path.write_text(json.dumps({"schema": SCHEMA + 1, "key": KEY}))
    with raises(InputError, f"{KEY}.json"):
        store.read(KEY)


@pytest.mark.parametrize("content", [
    *("", "{", "[]", "{}", '{"schema": NaN, "key": 1}'),
    *(json.dumps({"schema": 1, **OK, "arrays": ["coef"],
     **changes}) for changes in ({"status": "fine"}, {"seconds": -1e300}, {"dataset": ["a"]},
     {"arrays": []}, {"description": {}}, {"description": {"a": 2}}, {"description": {"a": 1,
     "code": 3}})),
])  # fmt: skip
def test_a_damaged_file_is_named(store, content):
    store.write(OK, ARRAYS)
    (store.folder / "trials" / f"{KEY}.json").write_text(content)
    with raises(InputError, f"{KEY}.json"):
        store.read(KEY)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 40)])
def test_missing_or_truncated_arrays_are_damage(store, damage):
    store.write(OK, ARRAYS)
    damage(store.folder / "trials" / f"{KEY}.npz")
    with raises(InputError, f"{KEY}.npz"):
        store.arrays(KEY)


@pytest.mark.promise("R4")
@pytest.mark.parametrize("failing", ["write_bytes", "open"])
def test_a_full_disk_keeps_existing_records(store, monkeypatch, failing):
    store.write(OK, ARRAYS)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, failing, full)
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
from precbench.store import Store
with Store(sys.argv[1]).lock():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.promise("R5")
def test_the_lock_names_its_holder_and_ends_with_it(store):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store.folder)], stdout=subprocess.PIPE
    )
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
    for private in (str(Path.home()), str(Path.cwd()), sys.prefix, socket.gethostname()):
        assert private not in text
    assert f'"{getpass.getuser()}"' not in text
    name = store.add_environment(machine)
    assert store.add_environment(environment()) == name
    assert json.loads((store.folder / "environments" / f"{name}.json").read_text()) == machine
