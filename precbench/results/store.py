"""Records of trials on disk, each written whole or not at all.

``<folder>/trials/<key>.json`` is a record, ``<key>.npz`` its arrays, which do not count
without it.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from precbench.core.errors import InputError, PrecbenchError
from precbench.core.files import write_whole, writing
from precbench.core.keys import key_of
from precbench.core.npz import DamagedError, pack, unpack
from precbench.core.strict_json import Fields, parse
from precbench.results.machine import Machine
from precbench.results.records import SCHEMA, Head, Record, Request


class Store:
    """The records of one experiment, in ``results/<experiment>``, which is made when needed."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self._trials = self.folder / "trials"
        self._lock = -1  # descriptor of the file ``.lock`` while `lock` is held
        # By key: (inode, time, size) of the file when the record was read, and the
        # record.
        self._cache: dict[str, tuple[tuple[int, int, int], Record]] = {}

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
        """Raise an error if the locked folder is no longer there.

        Moved, removed or replaced.
        """
        held = os.fstat(self._lock)  # the file that `lock` has opened
        with suppress(OSError):  # no such file
            present = (self.folder / ".lock").stat()  # the file that is there now
            if (present.st_dev, present.st_ino) == (held.st_dev, held.st_ino):
                return
        raise PrecbenchError(
            f"{self.folder} was moved or removed during the run, and later results are"
            " in a new folder of this name; join both with precbench merge, then run"
            " the same command again"
        )

    @property
    def running(self) -> Path:  # folder with a file for each trial that runs now
        return self.folder / "running"

    def write_request(self, keys: Iterable[str], shards: Iterable[str] = ()) -> None:
        """Note which records a run is to make, for `precbench status` and `precbench merge`."""
        request = {"keys": sorted(keys), "started": time.time(), "shards": [*shards]}
        self.write_text("asked.json", json.dumps(request) + "\n")

    def request(self) -> Request:
        """Return what the last run was asked to run.

        Without a note, the keys of stored records.
        """
        path = self.folder / "asked.json"
        return (
            _read(path, Request)
            if path.exists()
            else Request.model_construct(keys=self.keys())
        )

    def running_process(self) -> int | None:
        """Return the process id of the run in the folder, 0 if unknown, None without a run."""
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
                # 0: a run has not yet written its id
                return int(text) if text.isdigit() else 0
        return None

    def write_times(self, keys: Iterable[str]) -> Iterator[float]:
        """Yield when each record was written, in seconds since 1970.

        Skip missing records.
        """
        for key in keys:
            with suppress(OSError):
                yield self._file(key).stat().st_mtime

    def last_change(self) -> int:
        """Return when a record or its arrays were last written, in nanoseconds since 1970."""
        return max(
            (path.stat().st_mtime_ns for path in self._trials.glob("*")), default=0
        )

    def machines(self) -> dict[str, Machine]:  # by id, see `add_environment`
        folder = self.folder / "environments"
        return {
            path.stem: _read(path, Machine) for path in sorted(folder.glob("*.json"))
        }

    def write_text(self, name: str, content: str) -> None:
        """Write a file that is made from the records, whole or not at all."""
        _write({self.folder / name: content})

    def write(
        self, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Write a record and its arrays, or replace them.

        Numbers not finite become null.
        """
        json_file = self._file(record["key"])
        npz_file = json_file.with_suffix(".npz")
        contents = {npz_file: pack(arrays)} if arrays else {}
        # The JSON is written last: without it, the arrays do not count.
        contents[json_file] = _json(
            {**record, "schema": SCHEMA, "arrays": sorted(arrays or ())}
        )
        _write(contents)
        if not arrays:
            npz_file.unlink(missing_ok=True)  # of a former record

    def read(self, key: str) -> Record | None:
        """Return a checked record, None without one.

        Parse the file again only after a change.
        """
        path = self._file(key)
        try:
            status = path.stat()
            # equal if not changed
            state = status.st_ino, status.st_mtime_ns, status.st_size
            if key not in self._cache or self._cache[key][0] != state:
                self._cache[key] = state, _read_record(path)
        except FileNotFoundError:
            return None
        return self._cache[key][1]  # without the state

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """Return the arrays of a record by name; an empty dictionary without any."""
        record = self.read(key)
        if record is None or not record.arrays:
            return {}
        path = self._file(key).with_suffix(".npz")
        try:
            return unpack(path, record.arrays, kinds="fiuU")  # numbers and text
        except (FileNotFoundError, DamagedError) as error:
            raise _damaged(
                path, "unreadable" if path.exists() else "missing"
            ) from error

    def damaged(self, key: str, why: str) -> InputError:
        """Return the error to raise for a record that this program cannot have written."""
        return _damaged(self._file(key).with_suffix(".npz"), why)

    def keys(self) -> list[str]:
        return sorted(path.stem for path in self._trials.glob("*.json"))

    def records(self) -> Iterator[Record]:  # skips records that are removed meanwhile
        return (record for record in map(self.read, self.keys()) if record is not None)

    def add_environment(self, description: Mapping[str, Any]) -> str:
        """Store the description of a machine once, and return its id."""
        name = key_of(_plain(description))[:12]
        path = self.folder / "environments" / f"{name}.json"
        if not path.exists():
            _write({path: _json(description)})
        return name

    def _remove_leftovers(self) -> None:
        # of killed runs: unfinished writes, marks of trials
        stray = [*self.folder.glob("**/.*.tmp"), *self.running.glob("*")]
        # Arrays without their JSON, which is written last, are of an unfinished write.
        stray += [
            p for p in self._trials.glob("*.npz") if not p.with_suffix(".json").exists()
        ]
        for path in stray:
            path.unlink()

    def _file(self, key: str) -> Path:
        return self._trials / f"{key}.json"


_Kind = TypeVar("_Kind", bound=Fields)


def _read(path: Path, kind: type[_Kind]) -> _Kind:
    """Return the checked content of a file that the next run writes again."""
    try:
        return parse(path.read_bytes(), kind)
    except ValueError as error:
        raise InputError(
            f"{path} is damaged ({error}); remove the file and run again"
        ) from None


def _read_record(path: Path) -> Record:
    """Return a checked record.

    Raise an error for a damaged record, or a record of a newer schema.
    """
    content = path.read_bytes()
    try:
        schema = parse(content, Head).version
        record = parse(content, Record) if schema <= SCHEMA else None  # None: newer
        if record is not None and record.key != path.stem:
            raise ValueError(f"its key is {record.key}, not the name of the file")
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if record is None:
        raise InputError(
            f"{path} was written by a newer precbench (schema {schema}, this one knows"
            f" {SCHEMA}); update precbench, or write elsewhere with --out"
        )
    return record


def _json(value: Mapping[str, Any]) -> bytes:
    return (
        json.dumps(_plain(value), indent=1, sort_keys=True, allow_nan=False) + "\n"
    ).encode()


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it.

    Without NumPy types, and None for numbers not finite.
    """
    text = json.dumps(value, default=lambda array: array.tolist())
    return json.loads(text, parse_constant=lambda _: None)  # NaN, Infinity, -Infinity


def _write(contents: Mapping[Path, bytes | str]) -> None:
    # Write files of one folder, which is made when needed, each whole or not at all.
    [folder] = {path.parent for path in contents}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(contents)


def _damaged(path: Path, why: str) -> InputError:
    # The error names the JSON, also for damaged arrays: without the JSON, the trial
    # runs again.
    return InputError(
        f"{path} is damaged ({why}); remove {path.stem}.json and run again"
    )
