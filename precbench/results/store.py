"""Records of trials on disk, each written whole or not at all.

``<folder>/trials/<key>.json`` is a record; ``<key>.npz`` are its arrays, which do not
count without the record.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from precbench.core.errors import InputError, PrecbenchError
from precbench.core.files import write_whole, writing
from precbench.core.keys import key_of
from precbench.core.npz import DamagedError, pack, unpack
from precbench.core.strict_json import Fields, parse
from precbench.results.machine import Machine
from precbench.results.records import SCHEMA, Head, Record, Request


class _FileState(NamedTuple):
    """What changes when a file is written again."""

    inode: int
    mtime_ns: int
    size: int


class _CachedRecord(NamedTuple):
    state: _FileState  # when the record was read
    record: Record


class Store:
    """The records of an experiment in ``results/<experiment>``, made when needed."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self._trials = self.folder / "trials"
        self._lock = -1  # descriptor of the file ``.lock`` while `lock` is held
        self._cache: dict[str, _CachedRecord] = {}  # by key

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder against a second run, and remove what killed runs left there.

        The system releases the lock when the file is closed, or the process dies.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # Not "w", which would empty the file of a run that holds the lock.
            stream = (self.folder / ".lock").open("a+")
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.seek(0)
                raise InputError(
                    f"{self.folder} is in use by process"
                    f" {stream.read().strip() or 'unknown'}; wait until it is done, or"
                    " write elsewhere with --out"
                ) from None
            with writing(self.folder):
                stream.truncate(0)
                stream.write(str(os.getpid()))
                stream.flush()
            self._lock = stream.fileno()
            self._remove_leftovers()
            yield

    def require_lock(self) -> None:
        """Raise an error if the locked folder was moved, removed or replaced."""
        locked_file = os.fstat(self._lock)
        with suppress(OSError):  # no such file
            present_file = (self.folder / ".lock").stat()
            if os.path.samestat(present_file, locked_file):
                return
        raise PrecbenchError(
            f"{self.folder} was moved or removed during the run, and later results are"
            " in a new folder of this name; join both with precbench merge, then run"
            " the same command again"
        )

    @property
    def running(self) -> Path:
        """The folder with a file for each trial that runs now."""
        return self.folder / "running"

    def write_request(self, keys: Iterable[str], shards: Iterable[str] = ()) -> None:
        """Note which records a run is to make, for ``status`` and ``merge``."""
        request = {
            "keys": sorted(keys),
            "started": time.time(),
            "shards": list(shards),
        }
        self.write_text("asked.json", json.dumps(request) + "\n")

    def request(self) -> Request:
        """Return what the last run was asked for, without a note the stored keys."""
        path = self.folder / "asked.json"
        if not path.exists():
            return Request.model_construct(keys=self.keys())
        return _read_json(path, Request)

    def running_process(self) -> int | None:
        """Return the id of the process that runs, 0 if unknown, None without a run."""
        try:
            stream = (self.folder / ".lock").open("rb")
        except OSError:
            return None
        with stream:
            try:
                # Shared, so that two readers do not take each other for a run.
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = stream.read(20)  # more bytes than any id has
                # A run that has just begun has not yet written its id.
                return int(text) if text.isdigit() else 0
        return None

    def write_times(self, keys: Iterable[str]) -> Iterator[float]:
        """Yield when each record was written, in seconds since 1970."""
        for key in keys:
            with suppress(OSError):  # a missing record is skipped
                yield self._file(key).stat().st_mtime

    def last_change(self) -> int:
        """Return when a record or arrays were last written, in ns since 1970."""
        times = [path.stat().st_mtime_ns for path in self._trials.glob("*")]
        return max(times, default=0)

    def machines(self) -> dict[str, Machine]:
        """Return the machines of the records by their ids, see `add_environment`."""
        folder = self.folder / "environments"
        return {
            path.stem: _read_json(path, Machine)
            for path in sorted(folder.glob("*.json"))
        }

    def write_text(self, name: str, content: str) -> None:
        """Write a file that is made from the records, whole or not at all."""
        _write({self.folder / name: content})

    def write(
        self, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Write or replace a record and its arrays; numbers not finite become null."""
        json_file = self._file(record["key"])
        npz_file = json_file.with_suffix(".npz")
        whole_record = {**record, "schema": SCHEMA, "arrays": sorted(arrays or ())}
        if arrays:
            # The JSON is written last: without it, the arrays do not count.
            _write({npz_file: pack(arrays), json_file: _json(whole_record)})
        else:
            _write({json_file: _json(whole_record)})
            npz_file.unlink(missing_ok=True)  # of a former record

    def read(self, key: str) -> Record | None:
        """Return a checked record, None without one; a file is read when it changes."""
        path = self._file(key)
        try:
            status = path.stat()
            state = _FileState(status.st_ino, status.st_mtime_ns, status.st_size)
            cached = self._cache.get(key)
            if cached is None or cached.state != state:
                cached = _CachedRecord(state, _read_record(path))
                self._cache[key] = cached
        except FileNotFoundError:
            return None
        return cached.record

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """Return the arrays of a record by name; an empty dictionary without any."""
        record = self.read(key)
        if record is None or not record.arrays:
            return {}
        path = self._file(key).with_suffix(".npz")
        try:
            return unpack(path, record.arrays, kinds="fiuU")  # numbers and text
        except FileNotFoundError as error:
            raise _damaged(path, "missing") from error
        except DamagedError as error:
            raise _damaged(path, "unreadable") from error

    def damaged(self, key: str, why: str) -> InputError:
        """Return the error for a record that this program cannot have written."""
        return _damaged(self._file(key).with_suffix(".npz"), why)

    def keys(self) -> list[str]:
        return sorted(path.stem for path in self._trials.glob("*.json"))

    def records(self) -> Iterator[Record]:
        """Yield the records, but those that are removed meanwhile."""
        for key in self.keys():
            record = self.read(key)
            if record is not None:
                yield record

    def add_environment(self, description: Mapping[str, Any]) -> str:
        """Store the description of a machine once, and return its id."""
        name = key_of(_plain(description))[:12]
        path = self.folder / "environments" / f"{name}.json"
        if not path.exists():
            _write({path: _json(description)})
        return name

    def _remove_leftovers(self) -> None:
        """Remove what killed runs left: unfinished writes, and marks of trials."""
        leftovers = [*self.folder.glob("**/.*.tmp"), *self.running.glob("*")]
        # Arrays without their JSON, which is written last, are of an unfinished write.
        for npz_file in self._trials.glob("*.npz"):
            if not npz_file.with_suffix(".json").exists():
                leftovers.append(npz_file)
        for path in leftovers:
            path.unlink()

    def _file(self, key: str) -> Path:
        return self._trials / f"{key}.json"


_Kind = TypeVar("_Kind", bound=Fields)


def _read_json(path: Path, kind: type[_Kind]) -> _Kind:
    """Return the checked content of a file that the next run writes again."""
    try:
        return parse(path.read_bytes(), kind)
    except ValueError as error:
        raise InputError(
            f"{path} is damaged ({error}); remove the file and run again"
        ) from None


def _read_record(path: Path) -> Record:
    """Return a checked record; raise if it is damaged, or of a newer schema."""
    content = path.read_bytes()
    try:
        schema = parse(content, Head).version
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if schema > SCHEMA:
        raise InputError(
            f"{path} was written by a newer precbench (schema {schema}, this one knows"
            f" {SCHEMA}); update precbench, or write elsewhere with --out"
        )
    try:
        record = parse(content, Record)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if record.key != path.stem:
        raise _damaged(path, f"its key is {record.key}, not the name of the file")
    return record


def _json(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(_plain(value), indent=1, sort_keys=True, allow_nan=False)
    return f"{text}\n".encode()


def _plain(value: Any) -> Any:
    """Return a value for JSON: no NumPy types, and None for numbers not finite."""
    text = json.dumps(value, default=lambda from_numpy: from_numpy.tolist())
    # constants are NaN, Infinity and -Infinity
    return json.loads(text, parse_constant=lambda _constant: None)


def _write(contents: Mapping[Path, bytes | str]) -> None:
    """Write files of one folder, made when needed, each whole or not at all."""
    [folder] = {path.parent for path in contents}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(contents)


def _damaged(path: Path, why: str) -> InputError:
    """Return an error that names the JSON: without it, the trial runs again."""
    return InputError(
        f"{path} is damaged ({why}); remove {path.stem}.json and run again"
    )
