"""What a run has shown, kept so that a run that would find the same shows it without the work.

``shown.json`` in a results folder holds it, beside a hash of all that the run has read and left:
config, options, data, the package, and the files of the folder. Files count by name, size and
times, as for make. No scikit-learn, pandas or matplotlib is imported to find out.
"""

import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precbench.data.cards.load import data_hash
from precbench.errors import DataUnavailableError
from precbench.experiment.config import read_config
from precbench.experiment.sections import FILE_KEYS, NamedData, StreamedCard
from precbench.locations import shipped
from precbench.report.table import Table
from precbench.store import Store, package_versions
from precbench.strict_json import Fields, Text
from precbench.yaml.document import extended

if TYPE_CHECKING:
    from precbench.cli.run import RunOptions
    from precbench.experiment.plan import Plan

__all__ = ["Kept", "Shown"]

_NAME = "shown.json"
_ELSEWHERE = {"trials", "running", ".lock", "asked.json", _NAME}
_NO_MATTER = {"jobs", "cluster", "cluster_wait", "out", "as_json", "quiet", "verbose", "events"}
_ONCE = {"force", "rerun", "timing", "dry_run", "shard"}
_SHIPPED = ("configs", "datasets", "results/reference")
_CODE = (Path(__file__).parents[1], *map(shipped, _SHIPPED))


class Shown(Fields):
    """What a run shows of its results.

    Attributes
    ----------
    announced : list of (str, str)
        Lines about protocol and data, each with its style.
    tables : list of Table
    files : list of (str, str)
        What a figure or page is, and its place in the folder.
    summary : dict
        What ``--json`` prints, but for the folder.
    """

    announced: list[tuple[Text, Text]]
    tables: list[Table]
    files: list[tuple[Text, Text]]
    summary: dict[Text, Any]


class _Content(Fields):
    of: str
    cards: dict[Text, bool]
    """Names of data sets, and whether a stand-in will do."""

    shown: Shown


@dataclass(frozen=True)
class Kept:
    """What a run of a config reads, but for data and records, as it begins."""

    store: Store
    options: "RunOptions"
    begun: str

    @classmethod
    def find(cls, config: str, options: "RunOptions") -> "Kept | None":
        """Return where a run of a config keeps what it shows, None if it keeps nothing."""
        document, home = read_config(config)
        about = extended(document, home).data
        name = about.get("name") if isinstance(about, dict) else None
        if not isinstance(name, str):
            return None
        asked = {k: v for k, v in asdict(options).items() if k not in _NO_MATTER | _ONCE}
        state = [_state(folder) for folder in _CODE]
        versions = [sys.version, package_versions()]
        own = [_of_file(path) for path in _own_files(about, home)]
        begun = _digest([about, own, asked, state, versions, list(_additions())])
        return cls(Store(options.folder(name)), options, begun)

    def shown(self) -> Shown | None:
        """Return what this run would show, None if it has to find out."""
        if any(getattr(self.options, name) for name in _ONCE):
            return None
        try:
            content = _Content.model_validate_json((self.store.folder / _NAME).read_bytes())
            same = content.of == self._hash(content.cards, self.records())
        except (OSError, ValueError, DataUnavailableError):  # none, edited, or without its data
            return None
        return content.shown if same else None

    def records(self) -> str:
        """Return a hash of the records."""
        return _digest(_state(self.store.folder / "trials"))

    def keep(self, shown: Shown, plan: "Plan", records: str) -> None:
        """Keep what was shown of these records."""
        cards = {
            getattr(entry, "card", entry.name): self.options.stand_ins
            and getattr(entry, "on_missing", "error") == "stand-in"
            for entry in plan.experiment.datasets
            if entry.name in plan.datasets and isinstance(entry, NamedData | StreamedCard)
        }
        content = _Content(of=self._hash(cards, records), cards=cards, shown=shown)
        self.store.write_text(_NAME, content.model_dump_json(indent=1) + "\n")

    def _hash(self, cards: dict[str, bool], records: str) -> str:
        hashes = {
            card: data_hash(card, self.options.mirror, "stand-in" if stand_in else "error")
            for card, stand_in in cards.items()
        }
        left = _state(self.store.folder, _ELSEWHERE)
        return _digest([self.begun, hashes, records, left])


def _additions() -> Iterator[Any]:
    """Yield the entry points of other packages, and the state of these packages."""
    groups = (group for group in entry_points().groups if group.startswith("precbench."))
    for entry in chain.from_iterable(entry_points(group=group) for group in sorted(groups)):
        package = entry.module.partition(".")[0]
        spec = None if package == "precbench" else find_spec(package)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            state = _state(origin.parent) if origin.stem == "__init__" else _of_file(origin)
            yield [entry.group, entry.name, entry.value, state]


def _own_files(about: dict[str, Any], home: Path) -> list[Path]:
    """Return the files of the user among the data of a config, which nobody has checked yet."""
    entries = about.get("datasets")
    listed = entries if isinstance(entries, list) else []
    named = [entry.get(key) for entry in listed if isinstance(entry, dict) for key in FILE_KEYS]
    paths = [Path(home, name).expanduser() for name in named if isinstance(name, str)]
    there = filter(os.path.isfile, paths)  # false also for a name that is too long
    return sorted({path.resolve() for path in there})


def _state(folder: Path, without: Collection[str] = ()) -> list[tuple[str, int, int, int]]:
    """Return path, size and times of each file in a folder."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted({*folders} - {*without, "__pycache__"})
        found += [_of_file(Path(place, name)) for name in sorted({*files} - {*without})]
    return found


def _of_file(path: Path) -> tuple[str, int, int, int]:
    about = path.lstat()
    return str(path), about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()
