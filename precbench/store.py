"""Trial records on disk: written whole or not at all.

``<folder>/trials/<key>.json`` is a record and ``<key>.npz`` its arrays. The JSON is written last:
arrays without it do not count.
"""

import fcntl
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from precbench.errors import InputError, PrecbenchError
from precbench.files import write_whole, writing
from precbench.npz import DamagedError, pack, unpack
from precbench.strict_json import Count, Fields, Number, parse
from precbench.text import one_line

SCHEMA = 1
SHARDS = "shards"
"""The folder of the shards in a folder of results."""
SHARD = r"^([1-9]\d{0,3})/([1-9]\d{0,3})$"
"""How a shard is written, as a regular expression: its number, and how many there are."""
Status = Literal["ok", "skipped", "failed", "timeout", "crashed", "diverged", "interrupted"]
STATUSES: tuple[str, ...] = get_args(Status)
HAVE_NUMBERS = ("ok", "diverged")
RETRIED = ("failed", "timeout", "crashed", "interrupted")
"""Trials that ended like this run again in the next run."""

_PACKAGES = (
    "precbench",
    "catboost",
    "joblib",
    "lightgbm",
    "matplotlib",
    "numpy",
    "pandas",
    "scikit-learn",
    "scipy",
    "threadpoolctl",
    "xgboost",
    "xgboost-cpu",
)


def key_of(description: Mapping[str, Any]) -> str:
    """Return the name of a record: the sha256 of its description as canonical JSON.

    Parameters
    ----------
    description : mapping
        Strict JSON only. The order of the keys does not matter; ``1`` and ``1.0`` differ.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return hashlib.sha256(_canonical(description)).hexdigest()


Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Seconds = Annotated[Number, Field(ge=0)]
_Scalar = bool | Annotated[int, Field(ge=-(2**63), lt=2**63)] | Number | None
_Value = _Scalar | str


class Record(Fields):
    """The record of a trial. Trials that ended without numbers have no description or arrays."""

    model_config = ConfigDict(extra="allow")

    key: Key
    status: Status
    experiment: str = ""
    dataset: str = ""
    title: str = ""
    stand_in: bool = False
    label: str = ""
    solver: str = ""
    split: Count = 0
    seed: Count = 0
    sweep: tuple[str, _Value] | None = None
    description: dict[str, Any] = Field(default_factory=dict)
    """What the numbers of the trial depend on; its hash is the key of the record."""
    reason: str = ""
    before: str = ""
    warnings: list[str] = Field(default_factory=list)
    timing: str = ""
    environment: str = ""
    run: str = ""
    code: str = ""
    stopped: str = ""
    limit: dict[str, Number | None] | None = None
    limit_seconds: _Seconds | None = None
    limit_passes: _Seconds | None = None
    n_train: Count | None = None
    fitted: dict[str, _Scalar] = Field(default_factory=dict)
    seconds: _Seconds | None = None
    chosen: dict[str, _Value] = Field(default_factory=dict)
    tuning_seconds: _Seconds | None = None
    arrays: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.description and key_of(self.description) != self.key:
            raise ValueError("its description does not match its key")
        if self.status in HAVE_NUMBERS and not (self.description and self.arrays):
            raise ValueError(f"it is {self.status} without a description or arrays")
        return self

    @property
    def sweep_point(self) -> str:
        """The swept parameter and its value: ``k=0.25``; empty without a sweep."""
        return "" if self.sweep is None else f"{self.sweep[0]}={self.sweep[1]}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as it was written."""
        return self.model_dump(exclude_unset=True)


class _Head(Fields):
    version: Count = Field(alias="schema")


class Asked(Fields):
    """What the last run of an experiment was asked for."""

    keys: list[Key]
    started: Number = 0.0
    shards: list[Annotated[str, Field(pattern=SHARD)]] = Field(default_factory=list)


class Machine(Fields):
    """The machine that a trial ran on (see `environment`)."""

    model_config = ConfigDict(extra="allow")

    os: str
    machine: str
    cpu: str
    cores: Count | None
    memory_gib: Number
    python: str
    packages: dict[str, str | None]
    commit: str | None
    dirty: bool | None

    @property
    def kind(self) -> str:
        """What times depend on, in words: those of machines of one kind may be compared."""
        text = f"{self.cores or 'unknown'} cores of {self.cpu} with {self.memory_gib:g} GiB"
        return one_line(f"{text} under {self.os} {self.machine}")


class Store:
    """The records of one experiment.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``; it is made when something is written.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        self._trials = self.folder / "trials"
        self._lock = -1
        self._known: dict[str, tuple[tuple[int, int, int], Record]] = {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder against a second run, and remove what killed runs have left in it.

        The system releases it when the process dies.

        Raises
        ------
        InputError
            If another run holds it; the message names the process.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # Not "w", which would empty the file of a run that still holds it.
            stream = (self.folder / ".lock").open("a+")
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.seek(0)
                raise InputError(
                    f"{self.folder} is in use by process {stream.read().strip() or 'unknown'}: "
                    "wait until it is done, or write elsewhere with --out"
                ) from None
            with writing(self.folder):
                stream.truncate(0)
                stream.write(str(os.getpid()))
                stream.flush()
            self._lock = stream.fileno()
            self._sweep_temporaries()
            yield

    def require_lock(self) -> None:
        """See that the folder is still the one that `lock` holds.

        Raises
        ------
        PrecbenchError
            If it was moved, removed or replaced.
        """
        mine = os.fstat(self._lock)
        with suppress(OSError):
            there = (self.folder / ".lock").stat()
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return
        raise PrecbenchError(
            f"{self.folder} was moved or removed during the run: trials that have ended since are "
            "in a new folder of that name; put both together with precbench merge, then run the "
            "same command again"
        )

    @property
    def running(self) -> Path:
        """The folder of the marks of trials that are being worked on."""
        return self.folder / "running"

    def note_asked(self, keys: Iterable[str], shards: Iterable[str] = ()) -> None:
        """Note what a run was asked for, for `precbench status` and `precbench merge`."""
        asked = {"keys": sorted(keys), "started": time.time(), "shards": [*shards]}
        self.write_text("asked.json", json.dumps(asked) + "\n")

    def asked(self) -> Asked:
        """Return what the last run was asked for: all records if no run has noted it.

        Raises
        ------
        InputError
            If the note is damaged.
        """
        path = self.folder / "asked.json"
        return _read(path, Asked) if path.exists() else Asked.model_construct(keys=self.keys())

    def holder(self) -> int | None:
        """Return the process of the run that holds the folder, None if there is none."""
        try:
            stream = (self.folder / ".lock").open("rb")
        except OSError:
            return None
        with stream:
            try:
                # Shared, so that two who ask do not take each other for a run.
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = stream.read(20)
                return int(text) if text.isdigit() else 0
        return None

    def moments(self, keys: Iterable[str]) -> Iterator[float]:
        """Yield when each of these records was written, in seconds since 1970."""
        for key in keys:
            with suppress(OSError):
                yield self._file(key).stat().st_mtime

    def last_change(self) -> int:
        """Return when a record or its arrays were last written, in nanoseconds since 1970."""
        return max((path.stat().st_mtime_ns for path in self._trials.glob("*")), default=0)

    def machines(self) -> dict[str, Machine]:
        """Return the machines on which trials ran, by id.

        Raises
        ------
        InputError
            If a file is damaged.
        """
        paths = sorted((self.folder / "environments").glob("*.json"))
        return {path.stem: _read(path, Machine) for path in paths}

    def write_text(self, name: str, content: str) -> None:
        """Write a file of the folder that is made from the records, whole or not at all.

        Raises
        ------
        PrecbenchError
            If the disk is full, or the folder cannot be written.
        """
        _write({self.folder / name: content})

    def write(
        self, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Write one record with its arrays, whole or not at all.

        Parameters
        ----------
        record : mapping
            At least ``key`` and ``status`` (one of `STATUSES`). NumPy scalars are accepted;
            a number that is not finite becomes null.
        arrays : mapping of str to ndarray, optional
            No objects.

        Raises
        ------
        PrecbenchError
            If the disk is full, or the folder cannot be written.
        """
        if record["status"] not in STATUSES:
            raise ValueError(f"status {record['status']!r} is none of {', '.join(STATUSES)}")
        json_file = self._file(record["key"])
        npz_file = json_file.with_suffix(".npz")
        contents = {npz_file: pack(arrays)} if arrays else {}
        # Last, as the commit mark of both files.
        contents[json_file] = _json({**record, "schema": SCHEMA, "arrays": sorted(arrays or ())})
        _write(contents)
        if not arrays:
            npz_file.unlink(missing_ok=True)

    def load(self) -> dict[str, Record]:
        """Read all records, checked, by key; each file is parsed again only after it has changed.

        Raises
        ------
        InputError
            As for `read`.
        """
        return {record.key: record for record in self.records()}

    def read(self, key: str) -> Record | None:
        """Return the record of this key, checked, None if there is none.

        Raises
        ------
        InputError
            If a newer precbench wrote it, or if it is damaged.
        """
        path = self._file(key)
        try:
            file = path.stat()
            state = file.st_ino, file.st_mtime_ns, file.st_size
            known = self._known.get(key)
            if known is None or known[0] != state:
                known = self._known[key] = state, _read_record(path)
        except FileNotFoundError:
            return None
        return known[1]

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """Return the arrays of this key; empty if it has none.

        Raises
        ------
        InputError
            If the file is damaged or missing.
        """
        record = self.read(key)
        if record is None or not record.arrays:
            return {}
        path = self._file(key).with_suffix(".npz")
        try:
            return unpack(path, record.arrays, kinds="fiuU")
        except (FileNotFoundError, DamagedError) as error:
            raise _damaged(path) from error

    def damaged(self, key: str, why: str) -> InputError:
        """Return the error for a record that cannot be what this program wrote."""
        return _damaged(self._file(key).with_suffix(".npz"), why)

    def keys(self) -> list[str]:
        """Return the keys of all records, sorted."""
        return sorted(path.stem for path in self._trials.glob("*.json"))

    def records(self) -> Iterator[Record]:
        """Yield all records in the order of their keys."""
        for key in self.keys():
            record = self.read(key)
            if record is not None:
                yield record

    def add_environment(self, description: Mapping[str, Any]) -> str:
        """Store a machine record (see `environment`) once, and return its id."""
        name = hashlib.sha256(_canonical(_plain(description))).hexdigest()[:12]
        path = self.folder / "environments" / f"{name}.json"
        if not path.exists():
            _write({path: _json(description)})
        return name

    def _sweep_temporaries(self) -> None:
        stray = [*self.folder.glob("**/.*.tmp"), *self.running.glob("*")]
        # Without its JSON, the commit mark, a record was never written.
        stray += [p for p in self._trials.glob("*.npz") if not p.with_suffix(".json").exists()]
        for path in stray:
            path.unlink()

    def _file(self, key: str) -> Path:
        return self._trials / f"{key}.json"


_Kind = TypeVar("_Kind", bound=Fields)


def _read(path: Path, kind: type[_Kind]) -> _Kind:
    """Read a file that the next run writes again."""
    try:
        return parse(path.read_bytes(), kind)
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): remove it") from None


def _read_record(path: Path) -> Record:
    content = path.read_bytes()
    try:
        schema = parse(content, _Head).version
        record = parse(content, Record) if schema <= SCHEMA else None
        if record is not None and record.key != path.stem:
            raise ValueError("its key does not match its name")
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if record is None:
        raise InputError(
            f"{path} was written by a newer precbench (schema {schema}, this one knows {SCHEMA}): "
            "update precbench, or write elsewhere with --out"
        )
    return record


def stores(results: Path) -> list[Store]:
    """Return the experiments with trials in a folder of results, those of its shards included.

    Parameters
    ----------
    results : pathlib.Path
        It may be the folder of one experiment, too.

    Raises
    ------
    InputError
        If there is none.
    """
    marks = ("trials", "asked.json")  # a shard may have no trials
    folders = result_folders(results, *marks)
    for shard in sorted(results.glob(f"{SHARDS}/*/")):
        folders += result_folders(shard, *marks)
    if not folders:
        raise InputError(f"{results} holds no results of trials: precbench run CONFIG makes some")
    return [Store(folder) for folder in folders]


def result_folders(results: Path, *marks: str) -> list[Path]:
    """Return the folder if it has an entry of one of these names, else the folders in it with one.

    Raises
    ------
    InputError
        If there is no such folder.
    """
    if not results.is_dir():
        raise InputError(f"there is no folder {results}: name a folder of results")
    for pattern in ("", "*/"):
        if places := {path.parent for mark in marks for path in results.glob(pattern + mark)}:
            return sorted(places)
    return []


def environment() -> dict[str, Any]:
    """Describe machine and software, without user name, host name or paths.

    Returns
    -------
    dict
        ``os, machine, cpu, cores`` (usable by this process), ``memory_gib, python, packages,
        blas`` (the libraries loaded so far), ``commit`` and ``dirty`` (None outside a checkout).
    """
    from threadpoolctl import threadpool_info

    blas = [
        {name: value for name, value in library.items() if name not in ("filepath", "prefix")}
        for library in threadpool_info()
    ]
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": package_versions(),
        "blas": sorted(blas, key=_canonical),
        "commit": commit,
        "dirty": None if changes is None else bool(changes),
    }


def package_versions() -> dict[str, str | None]:
    """Return the versions of the packages that numbers and figures depend on, None if missing."""
    return {name: _version(name) for name in _PACKAGES}


def _cpu_model() -> str:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        return next(models, platform.machine())
    return platform.machine()


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache  # the code that runs was read at the start
def _git(*arguments: str) -> str | None:
    root = Path(__file__).parent.parent
    return _output("git", "-C", str(root), *arguments) if (root / ".git").exists() else None


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(_plain(value), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    """Convert a value to one that strict JSON can represent."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write(contents: Mapping[Path, bytes | str]) -> None:
    [folder] = {path.parent for path in contents}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(contents)


def _damaged(path: Path, why: str = "precbench writes whole files only") -> InputError:
    mark = path.with_suffix(".json")  # without it the trial runs again, whatever else is there
    return InputError(f"{path} is damaged ({why}): remove {mark.name} and run again")
