"""Compare methods on a list of the user, as an ordinary experiment.

The contestants and their grids are those of ``configs/compare.yaml``.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from scipy.sparse import issparse

from precbench.advice.given_rows import content_hash
from precbench.advice.length import share_of_list
from precbench.core.errors import InputError, did_you_mean
from precbench.core.locations import shipped
from precbench.core.text import count
from precbench.core.yaml.document import Document, Place, load
from precbench.core.yaml.models import validated
from precbench.data import Dataset
from precbench.data.splits import rule_for_new_lists
from precbench.experiment import Experiment, Trial
from precbench.experiment.division import divide_into_folds, divide_rows
from precbench.experiment.plan import Plan, make_plan
from precbench.experiment.sections import (
    SOLVER_KEYS,
    NamedData,
    Origin,
    solver_defaults,
)
from precbench.ranking.metrics import METRICS
from precbench.ranking.topk import TopK, several_k
from precbench.solvers import SOLVERS
from precbench.solvers.own_class import is_own_class
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_own_file
from precbench.tables.own_table import open_table

NAME = "list"  # of every compared data set, as the name seeds the splits
# The entry of rows without a file in a config. It is not validated, as no registry has
# this name: the plan gets the rows.
_WITHOUT_FILE = NamedData.model_construct(name=NAME)
_LARGE = 50_000  # rows above which there are fewer splits


@dataclass(frozen=True)
class Contest:
    """An experiment that compares methods on a list.

    Attributes
    ----------
    document : dict
        The content of the experiment's config file.
    experiment : Experiment
    dataset : Dataset
        The list.
    lengths : tuple of k
        Lengths of the top of the list; the first decides.
    list_rows : int or None
        Length of the list of new rows for which hits are expected; None for as many as
        the data.
    encoding : Encoding or None
        How the columns of a file were encoded.
    """

    document: dict[str, Any]
    experiment: Experiment
    dataset: Dataset
    lengths: tuple[TopK, ...]
    list_rows: int | None = None
    encoding: Encoding | None = None

    @property
    def config(self) -> str:
        """The text of the config file."""
        # The style None writes the innermost lists on a line.
        style: dict[str, Any] = {"default_flow_style": None, "allow_unicode": True}
        return yaml.safe_dump(self.document, sort_keys=False, **style)

    @cached_property
    def plan(self) -> Plan:
        """The trials, with `dataset` in place of the one that the config names."""
        return make_plan(self.experiment, datasets={NAME: self.dataset})


def prepare(
    data: Mapping[str, Any] | Dataset,
    k: TopK | Sequence[TopK],
    *,
    folder: Path = Path(),
    solvers: Sequence[Any] | None = None,
    n_splits: int | None = None,
    seed: int = 0,
    list_rows: int | None = None,
    tuning: Mapping[str, Any] | None = None,
    allow: Sequence[str] | None = None,
) -> Contest:
    """Return the experiment that compares methods on `data`.

    `data` is a data set, or the options of a table and the table as "file".

    The contestants are `solvers`, or those of ``configs/compare.yaml`` with their
    grids. The first `k` decides. A count of rows is measured as a share of `list_rows`,
    since held-out lists are shorter. The config, which will lie in `folder`, names the
    file relative to this folder.
    """
    lengths = several_k(k)
    if isinstance(data, Dataset):
        source = _source_of_dataset(data)
    else:
        source = _source_of_table(data, folder, allow)
    dataset = _named(source.dataset)
    n_rows = len(dataset.y)
    template = load(shipped("configs") / "compare.yaml").data
    if not n_splits:
        needs_few_splits = dataset.time is not None or n_rows > _LARGE
        n_splits = 5 if needs_few_splits else template["protocol"]["n_splits"]
    shares = [share_of_list(length, list_rows or n_rows) for length in lengths]
    common = {**template["common"], "k": lengths[0]}
    contestants = _entries(template["solvers"], solvers, folder)
    document = {
        "name": _name_of(source.path, folder, source.label, lengths),
        "title": f"Which method for the top of {source.path.name}, k = {lengths[0]}",
        "datasets": [source.entry],
        "scaling": "none" if issparse(dataset.X) else "standardise",
        "protocol": {**_division(dataset, n_splits), "seed": seed},
        **_with_common(common, contestants, folder),  # the sections common and solvers
        "tuning": dict(tuning or template["tuning"]),
        "metrics": _with_shares(template["metrics"], shares),
        "checkpoints": template["checkpoints"],
        "plots": template["plots"],
    }
    # The document has no text: its errors name line 1, column 1.
    parsed = Document("the comparison", document, {(): Place(1, 1)})
    origin = Origin(folder, runs_own_classes=True)
    experiment = validated(parsed, Experiment, origin)
    _require_divisible(dataset, experiment, source.path.name)
    return Contest(
        document=document,
        experiment=experiment,
        dataset=dataset,
        lengths=tuple(lengths),
        list_rows=list_rows,
        encoding=source.encoding,
    )


class _Source(NamedTuple):
    """Where the rows of a comparison come from.

    Attributes
    ----------
    dataset : Dataset
    encoding : Encoding or None
        How the columns of a table were encoded.
    path : Path
        The file, or the title of rows without one.
    label : str
        Column of the labels, "" without one.
    entry : dict or NamedData
        The data set in the config.
    """

    dataset: Dataset
    encoding: Encoding | None
    path: Path
    label: str
    entry: Any


def _source_of_dataset(dataset: Dataset) -> _Source:
    return _Source(
        dataset=dataset,
        encoding=None,
        path=Path(dataset.title),
        label="",
        entry=_WITHOUT_FILE,
    )


def _source_of_table(
    data: Mapping[str, Any], folder: Path, allow: Sequence[str] | None
) -> _Source:
    options = {name: value for name, value in data.items() if value and name != "file"}
    own = open_table(data["file"], options)
    dataset, encoding = read_own_file(own, **options, allow=allow)
    entry: Any = _WITHOUT_FILE
    if own.is_file:
        entry = {"file": os.path.relpath(own.path, folder), "name": NAME, **options}
    return _Source(
        dataset=dataset,
        encoding=encoding,
        path=own.path,
        label=str(options.get("label", "")),
        entry=entry,
    )


def _named(dataset: Dataset) -> Dataset:
    """Return the data set with the name that seeds the splits, and with a hash."""
    sha256 = dataset.sha256
    if not sha256:  # rows of a frame
        sha256 = content_hash(
            dataset.X, dataset.y, dataset.groups, dataset.time, dataset.imputed
        )
    return replace(dataset, name=NAME, split_key=None, sha256=sha256)


def _division(dataset: Dataset, n_splits: int) -> dict[str, Any]:
    """Return the keys of a section ``protocol`` that say how the rows are split."""
    rule = rule_for_new_lists(dataset, n_splits)
    division: dict[str, Any] = {
        "split": rule.kind,
        "test_size": rule.test_size,
        "n_splits": n_splits,
    }
    if rule.stratified:
        division["stratified"] = True
    return division


def _with_shares(metrics: Sequence[str], shares: Sequence[float | str]) -> list[Any]:
    """Return the section ``metrics`` of a config.

    First comes prec@k of each share once, then the other metrics; where these have a
    `k`, it is the first share, which decides.
    """
    section: list[Any] = []
    for share in dict.fromkeys(shares):
        section.append({"precision_at_k": {"k": share}})
    for name in metrics:
        if name == "precision_at_k":
            continue
        if "k" in METRICS[name].parameters:
            section.append({name: {"k": shares[0]}})
        else:
            section.append(name)
    return section


def _name_of(path: Path, folder: Path, label: str, ks: Sequence[TopK]) -> str:
    """Return a name for the results, such as compare-FOLDER-DATA-LABEL-k-100.

    It has the nearest two folders of the file, and a hash for what is left out.
    """
    folders = Path(os.path.relpath(path.parent, folder)).parts
    place = [*folders[-2:], path.name.removesuffix(".csv"), label]
    lengths = [f"{k}".replace("%", "percent") for k in ks]
    parts = ["compare", *place, "k", *lengths]
    words = [re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-") for part in parts]
    if len(folders) > 2 or not "".join(parts).isascii():
        content = "/".join((*folders, *place))
        words.append(hashlib.sha256(content.encode()).hexdigest()[:8])
    return "-".join(word for word in words if word)


def _require_divisible(dataset: Dataset, experiment: Experiment, name: str) -> None:
    """Require a split that can divide the rows to train, tune and measure."""
    trials = list(experiment.trials())
    # Tuned methods divide the rows further.
    tuned = [trial for trial in trials if trial.candidates]
    if any(_can_divide(trial, dataset) for trial in tuned or trials):
        return
    raise InputError(
        f"{name}: {count(dataset.n_pos, 'positive')} in {len(dataset.y):,} rows are too"
        f" few to train, tune and measure on any of {experiment.protocol.n_splits}"
        " splits; add rows"
    )


def _can_divide(trial: Trial, dataset: Dataset) -> bool:
    """Return whether the rows can be divided as a trial asks."""
    try:
        split, _n_fit = divide_rows(trial, dataset)
        if trial.candidates and trial.folds:
            divide_into_folds(trial, dataset, split.train)
    except InputError:
        return False
    return True


def _entries(
    known: dict[str, Any], chosen: Sequence[Any] | None, folder: Path
) -> dict[str, Any]:
    """Return the config entries of the methods in `chosen` by label.

    If none is chosen, these are all entries of `known`, the shipped config. A chosen
    method is a label, the name of a solver, FILE.py:CLASS or an object. The config
    names a file relative to its `folder`.
    """
    if not chosen:
        # In the config file, an entry without parameters is None.
        return {label: entry or {} for label, entry in known.items()}
    entries = {}
    for method in chosen:
        if is_own_class(method):
            label = Path(method).name
            entries[label] = {"solver": os.path.relpath(method, folder)}
            continue
        if isinstance(method, str):
            label = method
            entry = known.get(method) or {}
        else:
            entry = _as_entry(method)
            label = _label_of(entry)
        if label not in known and entry.get("solver", label) not in SOLVERS:
            names = {**known, **SOLVERS}
            raise InputError(
                f"unknown method {label!r}{did_you_mean(label, names)}; choose from "
                f"{', '.join(names)}"
            )
        entries[label] = entry
    return entries


def _as_entry(estimator: Any) -> dict[str, Any]:
    """Return the config entry of a solver or of a classifier of scikit-learn."""
    names = _names_of_class(type(estimator))
    if not names:
        raise InputError(
            f"solvers: {estimator!r} is neither a name, a solver of precbench nor a"
            " classifier of scikit-learn such as AdaBoostClassifier(); register a"
            " class of your own by an entry point, see docs/add-a-solver.md"
        )
    # Of several presets of a class, the one from which the estimator differs least.
    changed_by_name = {name: _changed(estimator, name) for name in names}
    nearest = min(names, key=lambda name: len(changed_by_name[name]))
    changed = changed_by_name[nearest]
    for param, value in changed.items():
        if param in SOLVER_KEYS:  # such as the `solver` of LogisticRegression
            raise InputError(
                f"solvers: {type(estimator).__name__} has {param}={value!r}, but the"
                f" key {param} of a config means something else; leave {param} at its"
                " default"
            )
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(
                f"solvers: {type(estimator).__name__} has {param}={value!r}, which no"
                f" config can store; set {param} to a number, a boolean, text or None"
            )
    return {"solver": nearest, **changed}


def _names_of_class(kind: type) -> list[str]:
    """Return the solvers of a class: its dotted name, or its presets."""
    package = kind.__module__.split(".")[:2]
    dotted = ".".join([*package, kind.__name__])  # such as sklearn.svm.LinearSVC
    if dotted in SOLVERS:
        return [dotted]
    return [name for name in SOLVERS if type(SOLVERS[name]()) is kind]


def _label_of(entry: Mapping[str, Any]) -> str:
    """Return a label such as "LinearSVC, C=10" for the entry of an object."""
    solver = entry["solver"]
    title = solver.rpartition(".")[2] if solver.startswith("sklearn.") else solver
    changed = [f"{key}={value}" for key, value in entry.items() if key != "solver"]
    return ", ".join([title, *changed])


def _changed(estimator: Any, name: str) -> dict[str, Any]:
    """Return the parameters that differ from the defaults of the solver `name`.

    The comparison sets `random_state`, which is ignored.
    """
    defaults = SOLVERS[name]().get_params(deep=False)
    changed = {}
    for param, given in estimator.get_params(deep=False).items():
        if param == "random_state":
            continue
        value = given.item() if isinstance(given, np.generic) else given
        default = defaults[param]
        is_equal = value is default or (np.isscalar(value) and value == default)
        if not is_equal:
            changed[param] = value
    return changed


def _with_common(
    common: dict[str, Any], entries: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Return the sections ``common`` and ``solvers`` of a config.

    A classifier of scikit-learn takes no common parameters: if `entries` has one, there
    is no section ``common``, and each other entry gets these parameters itself.
    """
    filled: dict[str, Any] = {}
    has_sklearn = False
    for label, entry in entries.items():
        if entry.get("solver", label).startswith("sklearn."):
            has_sklearn = True
            filled[label] = entry
        else:
            filled[label] = shared_parameters(common, {label: entry}, folder) | entry
    if has_sklearn:
        return {"solvers": filled}
    return {
        "common": shared_parameters(common, entries, folder),
        "solvers": entries,
    }


def shared_parameters(
    common: dict[str, Any], entries: dict[str, Any], folder: Path = Path()
) -> dict[str, Any]:
    """Return the common parameters that some solver of `entries` has.

    Configs accept no others. Files of solvers are relative to `folder`.
    """
    solvers = {
        SOLVERS.admit(entry.get("solver", label), folder)
        for label, entry in entries.items()
    }
    known = {name for solver in solvers for name in solver_defaults(solver)}
    return {name: value for name, value in common.items() if name in known}
