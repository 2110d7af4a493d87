"""Compare methods on a list of the user, as an ordinary experiment.

The contestants and their grids are those of ``configs/compare.yaml``.
"""

import hashlib
import os
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length

from precbench.advice.advised_report import write_report
from precbench.advice.choice import Choice, choice_table, choose_method
from precbench.advice.importance import Importance
from precbench.advice.length import (
    Length,
    Worth,
    length_sheet,
    length_table,
    measure_length,
    share_of_list,
    write_length,
)
from precbench.advice.quality import Quality, held_out_lists, importance_of
from precbench.core.errors import InputError, did_you_mean
from precbench.core.locations import shipped
from precbench.core.text import count
from precbench.core.yaml.document import Document, load
from precbench.core.yaml.models import validated
from precbench.data import Dataset
from precbench.data.splits import RowSplit, rule_for_new_lists
from precbench.experiment import Experiment
from precbench.experiment.division import divide_into_folds, divide_rows
from precbench.experiment.plan import Plan, make_plan
from precbench.experiment.sections import NamedData, solver_defaults
from precbench.model.model import Model
from precbench.ranking.metrics import METRICS
from precbench.ranking.statistics import auc_interval
from precbench.ranking.topk import HeldOut, TopK, several_k
from precbench.report.html.templates import render
from precbench.report.table import Table
from precbench.results.measure import final_scores
from precbench.results.read import Run, read_run
from precbench.results.store import Store
from precbench.results.summary import final_values
from precbench.runner.options import Options
from precbench.runner.session import Bar, Observer, run_config
from precbench.solvers import SOLVERS
from precbench.solvers.rows import canonical, with_short_indices
from precbench.tables.encoding import Categorical, Encoding, Missing
from precbench.tables.own_file import read_own_file
from precbench.tables.own_table import is_frame, open_table, table_of
from precbench.tables.problems import Problems
from precbench.tables.roles import (
    Label,
    number_groups,
    order_in_time,
    require_same_rows,
    signs_of_rows,
)
from precbench.tables.suspects import look_for_suspects

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAME = "list"  # of every compared data set: names seed the splits
_LARGE = 50_000  # rows above which there are fewer splits
_EXPLAINED = 5  # splits whose models are fitted again to measure the importance of columns


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
    encoding : Encoding or None
        How the columns of a file were encoded.
    """

    document: dict[str, Any]
    experiment: Experiment
    dataset: Dataset
    encoding: Encoding | None = None

    @property
    def config(self) -> str:  # the text of the config file; style None: innermost lists on a line
        style: dict[str, Any] = {"default_flow_style": None, "allow_unicode": True}
        return yaml.safe_dump(self.document, sort_keys=False, **style)

    @cached_property
    def plan(self) -> Plan:  # with `dataset` in place of the one that the config names
        return make_plan(self.experiment, datasets={_NAME: self.dataset})


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
    """Return the experiment that compares methods on `data`: a data set, or a file with options.

    The contestants are `solvers`, or those of ``configs/compare.yaml`` with their grids. The first
    `k` decides. A count of rows is measured as a share of `list_rows`, since held-out lists are
    shorter. The config, which will lie in `folder`, names the file relative to this folder.
    """
    k, *others = several_k(k)
    entry: Any  # of the data in the config
    if isinstance(data, Dataset):
        dataset, encoding, path, label = data, None, Path(data.title), ""
        entry = NamedData.model_construct(name=_NAME)  # not validated: the plan gets the rows
    else:
        options = {name: value for name, value in data.items() if value and name != "file"}
        own = open_table(data["file"], options)
        path, label = own.path, str(options.get("label", ""))
        dataset, encoding = read_own_file(own, **options, allow=allow)
        entry = {"file": os.path.relpath(path, folder), "name": _NAME, **options}
    dataset = replace(dataset, name=_NAME, split_key=None)  # the name seeds splits
    template = load(shipped("configs") / "compare.yaml").data
    needs_few_splits = dataset.time is not None or len(dataset.y) > _LARGE
    n_splits = n_splits or (5 if needs_few_splits else template["protocol"]["n_splits"])
    shares = [share_of_list(length, list_rows or len(dataset.y)) for length in (k, *others)]
    # The content of a config; `_with_common` gives its sections ``common`` and ``solvers``.
    document = {
        "name": _name_of(path, folder, label, [k, *others]),
        "title": f"Which method for the top of {path.name}, k = {k}",
        "datasets": [entry],
        "scaling": "none" if issparse(dataset.X) else "standardise",
        "protocol": {**_division(dataset, n_splits), "seed": seed},
        **_with_common({**template["common"], "k": k}, _entries(template["solvers"], solvers)),
        "tuning": dict(tuning or template["tuning"]),
        "metrics": _with_shares(template["metrics"], shares),
        **{name: template[name] for name in ("checkpoints", "plots")},
    }
    # The document has no text: its errors name line 1, column 1.
    experiment = validated(Document("the comparison", document, {(): (1, 1)}), Experiment, folder)
    _require_divisible(dataset, experiment, path.name)
    return Contest(document, experiment, dataset, encoding)


def _division(dataset: Dataset, n_splits: int) -> dict[str, Any]:
    # Return the keys of a section ``protocol`` that say how the rows are split.
    rule = rule_for_new_lists(dataset, n_splits)
    stratified = {"stratified": True} if rule.stratified else {}
    return {"split": rule.kind, "test_size": rule.test_size, "n_splits": n_splits, **stratified}


def _with_shares(metrics: Sequence[str], shares: Sequence[float | str]) -> list[Any]:
    # Return the section ``metrics`` of a config: prec@k of each share once, then the other metrics;
    # where these have a `k`, with the first share, which decides.
    others = [name for name in metrics if name != "precision_at_k"]
    return [
        *({"precision_at_k": {"k": share}} for share in dict.fromkeys(shares)),
        *({name: {"k": shares[0]}} if "k" in METRICS[name].parameters else name for name in others),
    ]


def _name_of(path: Path, folder: Path, label: str, ks: Sequence[TopK]) -> str:
    # Return a name for the results of a comparison, such as compare-DATA-LABEL-k-100.
    folders = Path(os.path.relpath(path.parent, folder)).parts
    place = [*folders[-2:], path.name.removesuffix(".csv"), label]  # the nearest two folders
    parts = ["compare", *place, "k", *(f"{k}".replace("%", "percent") for k in ks)]
    words = [re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-") for part in parts]
    if len(folders) > 2 or not "".join(parts).isascii():  # a hash for what is left out
        words.append(hashlib.sha256("/".join((*folders, *place)).encode()).hexdigest()[:8])
    return "-".join(filter(None, words))


def _require_divisible(dataset: Dataset, experiment: Experiment, name: str) -> None:
    # Raise an error unless some split can divide the rows for training, tuning and measuring.
    trials = [*experiment.trials()]
    tuned = [trial for trial in trials if trial.candidates]  # these divide the rows further
    for trial in tuned or trials:
        with suppress(InputError):
            split, _ = divide_rows(trial, dataset)
            if trial.candidates and trial.folds:
                divide_into_folds(trial, dataset, split.train)
            return  # one split without an error is enough
    raise InputError(
        f"{name}: {count(dataset.n_pos, 'positive')} in {len(dataset.y):,} rows are too few to "
        f"train, tune and measure on any of {experiment.protocol.n_splits} splits; add rows"
    )


def _entries(known: dict[str, Any], chosen: Sequence[Any] | None) -> dict[str, Any]:
    # Return the config entries of the methods in `chosen` by label; if none is chosen, all entries
    # of `known`, the shipped config. A method is a label, the name of a solver or an object.
    if not chosen:
        return {label: entry or {} for label, entry in known.items()}  # an empty entry is None
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
    # Return a label and the config entry of an object: a solver or a classifier of scikit-learn.
    kind = type(estimator)
    name = ".".join([*kind.__module__.split(".")[:2], kind.__name__])  # as in sklearn.svm.LinearSVC
    names = [name] if name in SOLVERS else [n for n in SOLVERS if type(SOLVERS[n]()) is kind]
    if not names:
        raise InputError(
            f"solvers: {estimator!r} is neither a name, a solver of precbench nor a classifier of "
            "scikit-learn such as AdaBoostClassifier(); register a class of your own by an entry "
            "point, see docs/add-a-solver.md"
        )
    # Of several presets of a class, the one from which the estimator differs least.
    name = min(names, key=lambda name: len(_changed(estimator, name)))
    changed = _changed(estimator, name)
    for param, value in changed.items():
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(
                f"solvers: {kind.__name__} has {param}={value!r}, which no config can store; set "
                f"{param} to a number, a boolean, text or None"
            )
    title = kind.__name__ if name.startswith("sklearn.") else name
    label = ", ".join([title, *(f"{n}={v}" for n, v in changed.items())])
    return label, {"solver": name, **changed}


def _changed(estimator: Any, name: str) -> dict[str, Any]:
    # Return the parameters of `estimator` that differ from the defaults of the registered solver
    # `name`; `random_state`, which the comparison sets, is ignored.
    defaults, changed = SOLVERS[name]().get_params(deep=False), {}
    for param, value in estimator.get_params(deep=False).items():
        value = value.item() if isinstance(value, np.generic) else value
        default = defaults[param]
        is_equal = value is default or (np.isscalar(value) and value == default)
        if param != "random_state" and not is_equal:
            changed[param] = value
    return changed


def _with_common(common: dict[str, Any], entries: dict[str, Any]) -> dict[str, Any]:
    # Return the sections ``common`` and ``solvers`` of a config. A classifier of scikit-learn takes
    # no common parameters: if `entries` has one, each entry of `ours` gets them instead.
    ours = {n: e for n, e in entries.items() if not e.get("solver", n).startswith("sklearn.")}
    if len(ours) == len(entries):
        return {"common": shared_parameters(common, ours), "solvers": entries}
    filled = {n: shared_parameters(common, {n: entry}) | entry for n, entry in ours.items()}
    return {"solvers": {**entries, **filled}}


def shared_parameters(common: dict[str, Any], entries: dict[str, Any]) -> dict[str, Any]:
    """Return the common parameters that some solver of `entries` has: configs accept no others."""
    solvers = {entry.get("solver", label) for label, entry in entries.items()}
    known = {name for solver in solvers for name in solver_defaults(solver)}
    return {name: value for name, value in common.items() if name in known}


def compare(
    X: Any,
    y: Any,
    *,
    k: TopK | Sequence[TopK],
    positive: Label | Sequence[Label] | None = None,
    groups: Any = None,
    time: Any = None,
    categorical: Categorical = "error",
    missing: Missing = "error",
    solvers: Sequence[Any] | None = None,
    n_splits: int | None = None,
    list_rows: int | None = None,
    prefer: Literal["best", "simple"] = "best",
    gain: Any = None,
    cost: float = 0.0,
    random_state: int = 0,
    n_jobs: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> "Comparison":
    """Compare methods for the top of a list, and recommend one.

    As ``precbench compare`` does: on random splits, stratified only where positives are few, or on
    successive periods where times are given, with parameters chosen on a part of the training rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        0 and 1, -1 and 1, truth values, or other labels of which `positive` names the hits.
    k : int, float or str, or a list of these
        Length of the top of the list to score: a count of rows, a fraction of the positives such as
        0.25, or of the rows such as ``"1 %"``. Held-out lists have up to 30 % of the rows: a count
        becomes a share there. Of several k the first decides; ``choice.length`` has all.
    positive : str or number, or a list of these, optional
        The labels of the positive class; not needed for 0 and 1, or -1 and 1.
    groups : array-like of shape (n_samples,), optional
        Rows with the same value stay together.
    time : array-like of shape (n_samples,), optional
        Numbers, or dates as text: train on the past, test on the latest rows.
    categorical : {"error", "one-hot"} or sequence of str
        Treatment of text in a frame, or the columns whose text or numbers are categories.
    missing : {"error", "mean", "median", "most-frequent"}
        Treatment of missing values in a frame.
    solvers : sequence of str, of solvers or of classifiers of scikit-learn, optional
        Contestants, see ``precbench list solvers``; by default those of ``configs/compare.yaml``.
        Classifiers keep all parameters but `random_state`; these must be numbers or text.
    n_splits : int, optional
        By default 10, and 5 with times or for more than 50,000 rows.
    list_rows : int, optional
        Length of the list of new rows for which hits are expected; by default as many as `X` has.
    prefer : {"best", "simple"}
        "simple" recommends the simplest method within one standard error of the best.
    gain : float or array-like of shape (n_samples,), optional
        What every hit gains, or for each row its gain as a hit; see ``choice.length.profit``.
    cost : float, default=0.0
        What each row of the list costs.
    random_state : int, default=0
    n_jobs : int, optional
        Worker processes; by default, and with -1, one for each core. Results are always the same.
    folder : path-like, optional
        Where to keep the records, so that an interrupted comparison can resume; by default nowhere.
    verbose : bool, default=False
        Whether to show a bar of progress, also in a notebook.

    Returns
    -------
    Comparison
        With ``recommended``, the paragraph ``text``, ``table`` and ``length``, and the methods
        ``plot()``, ``fit()`` and ``explain(rows)``.

    Raises
    ------
    InputError
        If an argument is not valid.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> import precbench
    >>> X, y = make_classification(400, weights=[0.9], random_state=0)
    >>> few = ["logistic-regression", "sgd-avg"]
    >>> choice = precbench.compare(X, y, k=20, solvers=few, n_splits=2, verbose=False)
    >>> print(choice.text)
    This file cannot decide: ...
    >>> choice.fit().solver == choice.recommended
    True
    """
    if isinstance(solvers, str):
        raise InputError(f"solvers must be a list, found {solvers!r}; give [{solvers!r}]")
    if prefer not in ("best", "simple"):
        raise InputError(f"prefer must be 'best' or 'simple', found {prefer!r}")
    integers = [("n_splits", n_splits, 1), ("list_rows", list_rows, 1)]  # name, value, least
    for name, number, least in [*integers, ("random_state", random_state, 0)]:
        if number is not None and not (isinstance(number, Integral) and number >= least):
            raise InputError(f"{name} must be an integer of at least {least}, found {number!r}")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or (n_jobs < 1 and n_jobs != -1)):
        raise InputError(f"n_jobs must be at least 1, or -1 for all cores, found {n_jobs!r}")
    require_same_rows(X, y=y, groups=groups, time=time, gain=gain)
    dataset, encoding = _rows(X, y, positive, categorical, missing, groups, time)
    worth, amounts = _worth(gain, cost, len(dataset.y))
    list_rows = list_rows and int(list_rows)  # from an integer of NumPy; None stays None
    contest = prepare(
        dataset,
        several_k(k),
        solvers=solvers,
        n_splits=n_splits and int(n_splits),
        seed=int(random_state),
        list_rows=list_rows,
    )
    contest = replace(contest, encoding=encoding)
    n_workers = joblib.cpu_count() if n_jobs in (None, -1) else int(n_jobs)
    with tempfile.TemporaryDirectory() as temporary:
        results = run_config(
            contest.experiment,
            Options(
                jobs=n_workers,
                own_folder=Path(folder or Path(temporary) / "results"),
                tables=False,
            ),
            datasets=contest.plan.datasets,
            observer=Bar() if verbose else Observer(),
        )
        run = read_run(results.folder)
        choice = choose_method(run, prefer=prefer)
        choice, recipe = with_forecast_and_recipe(  # adds the hits by length, and how to fit
            contest, run, choice, several_k(k), list_rows=list_rows, worth=worth, amounts=amounts
        )
    return Comparison(**vars(choice), recipe=recipe)


def _worth(gain: Any, cost: float, n_rows: int) -> tuple[Worth | None, Any]:
    # Return what hits and rows are worth (None without gain and cost), and what each row gains as a
    # hit (None if all hits gain the same).
    if not np.ndim(gain):  # None, or one number
        return (None if gain is None and not cost else Worth(gain, cost=cost)), None
    amounts = _plain(gain, n_rows, "gain")  # numbers, flags or text
    is_number = amounts.dtype.kind in "fiub"
    is_gain = np.isfinite(amounts) & (amounts >= 0) if is_number else np.zeros(n_rows, dtype=bool)
    if not is_gain.all():
        row = int(is_gain.argmin())
        raise InputError(
            f"gain of row {row + 1} is {amounts[row].item()!r}; give a finite number of at least 0"
        )
    return Worth(column="gain", cost=cost), amounts


@dataclass(frozen=True)
class Recipe:
    """How a recommended method is fitted to all rows, and the quality that its model states.

    Attributes
    ----------
    how : dict
        Arguments of `Model.fit`.
    quality : Quality
    lists : sequence of HeldOut
        The held-out list of each split, to calibrate the model.
    test_share : float
        Share of the rows that a split holds out.
    splits : sequence of RowSplit
        Splits on which the importance of columns is measured.
    data : Dataset
    encoding : Encoding or None
    """

    how: dict[str, Any]
    quality: Quality
    lists: Sequence[HeldOut]
    test_share: float
    splits: Sequence[RowSplit]
    data: Dataset
    encoding: Encoding | None

    @cached_property
    def importance(self) -> Importance | None:
        """Which columns matter on held-out rows; None where the importance cannot be measured."""
        try:
            return importance_of(self.data, self.splits, self.how, self.encoding)
        except InputError:  # a model cannot keep this method
            return None

    def fit(self) -> Model:
        """Return a model of all rows, with quality, calibration, if encoded a profile for drift."""
        data, encoding = self.data, self.encoding
        model = Model.fit(data.X, data.y, encoding=encoding, **self.how)
        quality = self.quality.model_copy(update={"importance": self.importance})
        model.about.update(quality.model_dump(exclude_unset=True))
        model = model.calibrated(self.lists, self.test_share, data.X)
        return model if encoding is None else model.profiled(data.X, self.lists, data.imputed)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Choice):
    """The result of `compare`, to print, plot and fit; see `precbench.advice.choice.Choice`.

    Attributes
    ----------
    recipe : Recipe
        How the recommended method is fitted.
    """

    recipe: Recipe = field(kw_only=True)

    def __repr__(self) -> str:
        """Return the paragraph that recommends a method."""
        return self.text

    @property
    def table(self) -> pd.DataFrame:
        """Hits among the first `k` rows of held-out lists, the recommended method first."""
        methods = self.values.set_index("solver").rename_axis("method")
        hits = methods[["mean", "low", "high", "behind", "behind_low", "behind_high"]] * self.k
        hits[["low", "high"]] = hits[["low", "high"]].clip(0, self.k)  # 0 to k can be hits
        return hits.rename(columns={"mean": "hits"}).join(methods[["p", "verdict", "seconds"]])

    def plot(self) -> "Figure":
        """Draw hits, precision, recall and profit against the length of the list."""
        assert self.length is not None  # `compare` sets the length
        return length_sheet(self.length).figure()

    def fit(self) -> Model:
        """Return the recommended method, fitted to all rows as it was tuned most often.

        The method is also fitted to the training rows of five splits, to see which columns matter.

        Raises
        ------
        InputError
            If a model cannot keep the method.
        """
        return self._model

    def explain(self, rows: Any) -> pd.DataFrame:
        """Say what each column adds to the scores of rows, see `Model.explain`."""
        return self._model.explain(rows)

    @cached_property
    def _model(self) -> Model:  # kept, so that `fit` and `explain` fit once
        return self.recipe.fit()

    def _repr_html_(self) -> str:  # what a notebook shows
        assert self.length is not None
        return render(
            "comparison.html.j2",
            card=self.card,
            tables=[choice_table(self, "Which method"), length_table(self.length)],
        )


def _rows(
    X: Any,
    y: Any,
    positive: Label | Sequence[Label] | None,
    categorical: Categorical,
    missing: Missing,
    groups: Any,
    time: Any,
) -> tuple[Dataset, Encoding | None]:
    # Return a data set of these rows and labels, and the encoding learnt from a frame, else None.
    encoding, imputed = None, None  # imputed: the values that were filled in
    if is_frame(X):
        table = table_of(X, "X")
        encoding = Encoding.learn(table, categorical=categorical, missing=missing)
        X = encoding.encode(table.frame, "X")
        imputed = encoding.imputed(table.frame, missing)
    signs = signs_of_rows(y, positive)
    try:
        X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        check_consistent_length(X, signs)
    except ValueError as error:
        first_line = f"{error}".partition("\n")[0].rstrip(".")
        advice = {
            "Input X contains NaN": "; give a DataFrame, and how to fill missing values (missing)",
        }.get(first_line, "; give a matrix of finite numbers and one label per row")
        raise InputError(f"X or y cannot be used: {first_line}{advice}") from error
    if encoding is not None:
        names, problems = [column.name for column in encoding.columns], Problems("X")
        look_for_suspects(table, names, signs, problems, numeric=names)  # numeric: leaks only
        for leak in problems.errors:
            warnings.warn(f"{leak}", stacklevel=3)  # names the line that calls `compare`
    columns = {  # those that are given
        name: pd.Series(_plain(values, len(signs), name), name=name)
        for name, values in (("groups", groups), ("time", time))
        if values is not None
    }
    group_numbers = number_groups(columns["groups"], "groups") if "groups" in columns else None
    time_order = order_in_time(columns["time"], "time") if "time" in columns else None
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else with_short_indices(canonical(X))
    roles: dict[str, Any] = {"groups": group_numbers, "time": time_order, "imputed": imputed}
    sha256 = _sha256(X, signs, **roles)
    return Dataset(name="X", title="X", X=X, y=signs, sha256=sha256, **roles), encoding


def _sha256(X: Any, signs: NDArray, groups: Any, time: Any, imputed: Any) -> str:
    # Return the hash of the content, by which trials are stored. Equal data have one hash: `_rows`
    # has sorted sparse rows, with int32 indices.
    filled = () if imputed is None else (imputed.how, *imputed.columns)
    parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr, X.shape]
    content = joblib.hash((*parts, signs, groups, time, *filled))
    return hashlib.sha256(content.encode()).hexdigest()


def _plain(column: Any, n_rows: int, name: str) -> Any:
    # Return the argument `name` as an array with a number, flag or text for each row; refuse gaps.
    values = np.asarray(column)
    if values.shape != (n_rows,):
        raise InputError(f"{name} must have the shape ({n_rows},) of y, found {values.shape}")
    if (missing := np.asarray(pd.isna(values))).any():
        raise InputError(
            f"{name}: the value of row {int(missing.argmax()) + 1} is missing; fill it in or "
            "remove the row"
        )
    return values if values.dtype.kind in "fiubU" else values.astype(str)  # numbers, flags, text


def report_length(
    length: Length, folder: str | os.PathLike[str], tables: Sequence[Table] = (), command: str = ""
) -> None:
    """Write a `Length` into a results folder, and write the report there again."""
    store = Store(folder)
    with store.lock():
        write_length(length, store.folder, tables, command)
        write_report(store.folder)


def with_forecast_and_recipe(
    contest: Contest,
    run: Run,
    choice: Choice,
    k: Sequence[TopK],
    *,
    list_rows: int | None = None,
    worth: Worth | None = None,
    amounts: NDArray[np.float64] | None = None,
) -> tuple[Choice, Recipe]:
    """Return a choice with a forecast for new lists, and the recipe that fits its method.

    The first `k` of `list_rows` rows (None: as many as the file) are forecast, with their profit by
    `worth` and `amounts` (the gain of each row). The recipe has the most chosen parameters.
    """
    data, method = contest.dataset, choice.recommended
    # Of each split: its trial, the record of this trial, and the scores of its held-out rows
    scored = [*final_scores(contest.plan, Store(run.folder), method)]
    how, most_chosen = _fit_arguments(contest, method, [record.chosen for _, record, _ in scored])
    splits, lists = [divide_rows(trial, data)[0] for trial, *_ in scored], []
    for split, (_, record, scores) in zip(splits, scored, strict=True):
        if record.chosen != most_chosen:  # fit again by `how`: all scores get the model's scale
            with suppress(InputError):  # keep the scores if a model cannot hold the method
                [(_, scores, _)] = held_out_lists(data, [split], how)  # labels, scores, gains
        gains = None if amounts is None else amounts[split.test]
        lists.append(HeldOut(data.y[split.test], scores, gains))
    share = run.test_shares[_NAME]  # of the rows that a split holds out
    length = measure_length(
        lists, share, k, data.n_pos, len(data.y), method=method, list_rows=list_rows, worth=worth
    )
    quality = _quality(contest, run, choice, k[0], length)
    recipe = Recipe(how, quality, lists, share, splits[:_EXPLAINED], data, contest.encoding)
    return choice.with_length(length), recipe


def _quality(contest: Contest, run: Run, choice: Choice, k: TopK, length: Length) -> Quality:
    # Return the measured quality of the recommended method, which its model will state.
    method, protocol = choice.methods[choice.recommended], contest.experiment.protocol
    final = final_values(run.results)
    aucs = final["value"][final["solver"].eq(choice.recommended) & final["metric"].eq("auc")]
    n_pos, n_rows = run.data[_NAME].positives, run.data[_NAME].rows
    auc, *auc_ends = auc_interval(
        aucs.dropna().to_numpy(), run.test_shares[_NAME], n_pos, n_rows - n_pos
    )
    return Quality(
        split="time" if protocol.split == "time" else "random",
        splits=choice.splits,
        held_out_rows=choice.rows,
        held_out_positives=choice.positives,
        k=k,
        precision_at_k=method["mean"],
        precision_at_k_interval=[method["low"], method["high"]],
        auc=auc,
        auc_interval=auc_ends if choice.splits > 1 else None,
        by_chance=choice.by_chance,
        length=length,
    )


def _fit_arguments(
    contest: Contest, method: str, chosen: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    # Return the arguments of `Model.fit` for a method, and among these the tuned ones, as most
    # splits have `chosen` them. Common parameters that the solver lacks are left out.
    experiment = contest.experiment
    entry, seed = experiment.solvers[method], experiment.protocol.seed
    [(most_chosen, _)] = Counter(tuple(params.items()) for params in chosen).most_common(1)
    tuned = dict(most_chosen)
    common = {n: value for n, value in experiment.common.items() if entry.has_parameter(n)}
    params = {name: tuned.get(name, value) for name, value in {**common, **entry.params}.items()}
    if "random_state" in SOLVERS[entry.solver]().get_params():
        params["random_state"] = seed
    if entry.fourier:  # options of the random features, tuned as fourier.NAME
        params["fourier"] = {"random_state": seed} | {
            name: tuned.get(f"fourier.{name}", value)
            for name, value in entry.fourier.model_dump().items()
        }
    return {"solver": entry.solver, "scaling": experiment.scaling or "none", **params}, tuned
