"""Compare methods on a list of the user, as an ordinary experiment.

The contestants and their grids are those of ``configs/compare.yaml``.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.sparse import issparse

from precbench.advice.length import (
    share_of_list,
)
from precbench.core.errors import InputError, did_you_mean
from precbench.core.locations import shipped
from precbench.core.text import count
from precbench.core.yaml.document import Document, load
from precbench.core.yaml.models import validated
from precbench.data import Dataset
from precbench.data.dataset import Imputed
from precbench.data.splits import rule_for_new_lists
from precbench.experiment import Experiment
from precbench.experiment.division import divide_into_folds, divide_rows
from precbench.experiment.plan import Plan, make_plan
from precbench.experiment.sections import NamedData, solver_defaults
from precbench.ranking.metrics import METRICS
from precbench.ranking.topk import TopK, several_k
from precbench.solvers import SOLVERS
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_own_file
from precbench.tables.own_table import open_table

if TYPE_CHECKING:
    pass

NAME = "list"  # of every compared data set: names seed the splits
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
        # the text of the config file; style None: innermost lists on a line
        style: dict[str, Any] = {"default_flow_style": None, "allow_unicode": True}
        return yaml.safe_dump(self.document, sort_keys=False, **style)

    @cached_property
    def plan(self) -> Plan:  # with `dataset` in place of the one that the config names
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

    A data set, or a table with options.

    The contestants are `solvers`, or those of ``configs/compare.yaml`` with their
    grids. The first `k` decides. A count of rows is measured as a share of `list_rows`,
    since held-out lists are shorter. The config, which will lie in `folder`, names the
    file relative to this folder.
    """
    lengths = several_k(k)
    entry: Any  # of the data in the config
    if isinstance(data, Dataset):
        dataset, encoding, path, label = data, None, Path(data.title), ""
    else:
        options = {
            name: value for name, value in data.items() if value and name != "file"
        }
        own = open_table(data["file"], options)
        path, label = own.path, str(options.get("label", ""))
        dataset, encoding = read_own_file(own, **options, allow=allow)
    if isinstance(data, Dataset) or not own.is_file:
        # not validated: the plan gets the rows
        entry = NamedData.model_construct(name=NAME)
    else:
        entry = {"file": os.path.relpath(path, folder), "name": NAME, **options}
    if not dataset.sha256:  # of a frame
        roles = (dataset.groups, dataset.time, dataset.imputed)
        dataset = replace(dataset, sha256=content_hash(dataset.X, dataset.y, *roles))
    dataset = replace(dataset, name=NAME, split_key=None)  # the name seeds splits
    template = load(shipped("configs") / "compare.yaml").data
    needs_few_splits = dataset.time is not None or len(dataset.y) > _LARGE
    n_splits = n_splits or (5 if needs_few_splits else template["protocol"]["n_splits"])
    shares = [share_of_list(length, list_rows or len(dataset.y)) for length in lengths]
    common = {**template["common"], "k": lengths[0]}
    # The content of a config; `_with_common` gives its sections ``common`` and
    # ``solvers``.
    document = {
        "name": _name_of(path, folder, label, lengths),
        "title": f"Which method for the top of {path.name}, k = {lengths[0]}",
        "datasets": [entry],
        "scaling": "none" if issparse(dataset.X) else "standardise",
        "protocol": {**_division(dataset, n_splits), "seed": seed},
        **_with_common(common, _entries(template["solvers"], solvers)),
        "tuning": dict(tuning or template["tuning"]),
        "metrics": _with_shares(template["metrics"], shares),
        **{name: template[name] for name in ("checkpoints", "plots")},
    }
    # The document has no text: its errors name line 1, column 1.
    experiment = validated(
        Document("the comparison", document, {(): (1, 1)}), Experiment, folder
    )
    _require_divisible(dataset, experiment, path.name)
    return Contest(document, experiment, dataset, tuple(lengths), list_rows, encoding)


def _division(dataset: Dataset, n_splits: int) -> dict[str, Any]:
    """Return the keys of a section ``protocol`` that say how the rows are split."""
    rule = rule_for_new_lists(dataset, n_splits)
    stratified = {"stratified": True} if rule.stratified else {}
    return {
        "split": rule.kind,
        "test_size": rule.test_size,
        "n_splits": n_splits,
        **stratified,
    }


def _with_shares(metrics: Sequence[str], shares: Sequence[float | str]) -> list[Any]:
    """Return the section ``metrics`` of a config.

    Prec@k of each share once, then the other metrics; where these have a `k`, with the
    first share, which decides.
    """
    others = [name for name in metrics if name != "precision_at_k"]
    return [
        *({"precision_at_k": {"k": share}} for share in dict.fromkeys(shares)),
        *(
            {name: {"k": shares[0]}} if "k" in METRICS[name].parameters else name
            for name in others
        ),
    ]


def _name_of(path: Path, folder: Path, label: str, ks: Sequence[TopK]) -> str:
    # Return a name for the results of a comparison, such as compare-DATA-LABEL-k-100.
    folders = Path(os.path.relpath(path.parent, folder)).parts
    # the nearest two folders
    place = [*folders[-2:], path.name.removesuffix(".csv"), label]
    parts = ["compare", *place, "k", *(f"{k}".replace("%", "percent") for k in ks)]
    words = [re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-") for part in parts]
    if len(folders) > 2 or not "".join(parts).isascii():  # a hash for what is left out
        words.append(
            hashlib.sha256("/".join((*folders, *place)).encode()).hexdigest()[:8]
        )
    return "-".join(filter(None, words))


def _require_divisible(dataset: Dataset, experiment: Experiment, name: str) -> None:
    # Raise an error unless some split can divide the rows for training, tuning and
    # measuring.
    trials = [*experiment.trials()]
    # these divide the rows further
    tuned = [trial for trial in trials if trial.candidates]
    for trial in tuned or trials:
        with suppress(InputError):
            split, _ = divide_rows(trial, dataset)
            if trial.candidates and trial.folds:
                divide_into_folds(trial, dataset, split.train)
            return  # one split without an error is enough
    raise InputError(
        f"{name}: {count(dataset.n_pos, 'positive')} in {len(dataset.y):,} rows are too"
        f" few to train, tune and measure on any of {experiment.protocol.n_splits}"
        " splits; add rows"
    )


def _entries(known: dict[str, Any], chosen: Sequence[Any] | None) -> dict[str, Any]:
    """Return the config entries of the methods in `chosen` by label.

    If none is chosen, all entries of `known`, the shipped config. A method is a label,
    the name of a solver or an object.
    """
    if not chosen:
        # an empty entry is None
        return {label: entry or {} for label, entry in known.items()}
    entries = {}
    for method in chosen:
        if isinstance(method, str):
            label, entry = method, known.get(method) or {}
        else:
            label, entry = _as_entry(method)
        if label not in known and entry.get("solver", label) not in SOLVERS:
            names = {**known, **SOLVERS}
            raise InputError(
                f"unknown method {label!r}{did_you_mean(label, names)}; choose from "
                f"{', '.join(names)}"
            )
        entries[label] = entry
    return entries


def _as_entry(estimator: Any) -> tuple[str, dict[str, Any]]:
    """Return a label and the config entry of an object.

    A solver or a classifier of scikit-learn.
    """
    kind = type(estimator)
    # as in sklearn.svm.LinearSVC
    name = ".".join([*kind.__module__.split(".")[:2], kind.__name__])
    names = (
        [name]
        if name in SOLVERS
        else [n for n in SOLVERS if type(SOLVERS[n]()) is kind]
    )
    if not names:
        raise InputError(
            f"solvers: {estimator!r} is neither a name, a solver of precbench nor a"
            " classifier of scikit-learn such as AdaBoostClassifier(); register a"
            " class of your own by an entry point, see docs/add-a-solver.md"
        )
    # Of several presets of a class, the one from which the estimator differs least.
    name = min(names, key=lambda name: len(_changed(estimator, name)))
    changed = _changed(estimator, name)
    for param, value in changed.items():
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(
                f"solvers: {kind.__name__} has {param}={value!r}, which no config can"
                f" store; set {param} to a number, a boolean, text or None"
            )
    title = kind.__name__ if name.startswith("sklearn.") else name
    label = ", ".join([title, *(f"{n}={v}" for n, v in changed.items())])
    return label, {"solver": name, **changed}


def _changed(estimator: Any, name: str) -> dict[str, Any]:
    # Return the parameters of `estimator` that differ from the defaults of the
    # registered solver `name`; `random_state`, which the comparison sets, is ignored.
    defaults, changed = SOLVERS[name]().get_params(deep=False), {}
    for param, value in estimator.get_params(deep=False).items():
        value = value.item() if isinstance(value, np.generic) else value
        default = defaults[param]
        is_equal = value is default or (np.isscalar(value) and value == default)
        if param != "random_state" and not is_equal:
            changed[param] = value
    return changed


def _with_common(common: dict[str, Any], entries: dict[str, Any]) -> dict[str, Any]:
    """Return the sections ``common`` and ``solvers`` of a config.

    A classifier of scikit-learn takes no common parameters: if `entries` has one, each
    entry of `ours` gets them instead.
    """
    ours = {
        n: e
        for n, e in entries.items()
        if not e.get("solver", n).startswith("sklearn.")
    }
    if len(ours) == len(entries):
        return {"common": shared_parameters(common, ours), "solvers": entries}
    filled = {
        n: shared_parameters(common, {n: entry}) | entry for n, entry in ours.items()
    }
    return {"solvers": {**entries, **filled}}


def shared_parameters(
    common: dict[str, Any], entries: dict[str, Any]
) -> dict[str, Any]:
    """Return the common parameters that some solver of `entries` has.

    Configs accept no others.
    """
    solvers = {entry.get("solver", label) for label, entry in entries.items()}
    known = {name for solver in solvers for name in solver_defaults(solver)}
    return {name: value for name, value in common.items() if name in known}


def content_hash(
    X: Any,
    signs: NDArray,
    groups: NDArray | None,
    time: NDArray | None,
    imputed: Imputed | None,
) -> str:
    """Return the hash of rows and labels, by which their trials are stored.

    Equal rows have one hash: sparse rows are sorted, and have int32 indices.
    """
    filled = () if imputed is None else (imputed.how, *imputed.columns)
    parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr, X.shape]
    content = joblib.hash((*parts, signs, groups, time, *filled))
    return hashlib.sha256(content.encode()).hexdigest()
