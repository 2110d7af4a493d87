"""Compare methods for the top of a list, and recommend one."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.advice.advised_report import write_report
from precbench.advice.choice import Choice, choice_table, choose_method
from precbench.advice.contest import NAME, Contest, prepare
from precbench.advice.given_rows import (
    gains_of_rows,
    gains_of_table,
    read_rows,
    refuse_table_options,
    table_options,
)
from precbench.advice.importance import Importance
from precbench.advice.length import (
    Length,
    Worth,
    length_sheet,
    length_table,
    measure_length,
    write_length,
)
from precbench.advice.pictures import (
    Measured,
    answer_pictures,
    importance_picture,
    write_measured,
)
from precbench.advice.quality import Quality, as_texts, held_out_lists, importance_of
from precbench.advice.reliability import Reliability, measure_reliability
from precbench.advice.stages import (
    Effort,
    Stage,
    first_stage,
    last_stage,
    next_stage,
)
from precbench.advice.stated_recipe import state_recipe
from precbench.core import processes
from precbench.core.errors import InputError
from precbench.data import Dataset
from precbench.data.splits import RowSplit
from precbench.model.model import Model
from precbench.ranking.statistics import auc_interval
from precbench.ranking.topk import HeldOut, TopK
from precbench.report.html.templates import render
from precbench.report.table import Table
from precbench.results.measure import final_scores
from precbench.results.read import Run, read_run
from precbench.results.store import Store
from precbench.results.summary import final_values
from precbench.runner.options import Options
from precbench.runner.session import Bar, Observer, run_config
from precbench.solvers import SOLVERS
from precbench.tables.encoding import Encoding
from precbench.tables.own_table import open_table
from precbench.tables.reading import Categorical, ColumnOptions, Label, Missing
from precbench.tables.roles import (
    require_same_rows,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Splits whose models are fitted again to measure the importance of columns.
_EXPLAINED = 5


def compare(
    X: Any,
    y: Any = None,
    *,
    k: TopK | Sequence[TopK],
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    groups: Any = None,
    time: Any = None,
    categorical: Categorical = "error",
    missing: Missing = "error",
    solvers: Sequence[Any] | None = None,
    n_splits: int | None = None,
    list_rows: int | None = None,
    prefer: Literal["best", "simple"] = "best",
    effort: Effort = "normal",
    gain: Any = None,
    cost: float = 0.0,
    random_state: int = 0,
    n_jobs: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    allow: Sequence[str] = (),
    **reading: Unpack[ColumnOptions],
) -> "Comparison":
    """Compare methods for the top of a list, and recommend one.

    As ``precbench compare`` does: on random splits, stratified only where positives are
    few, or on successive periods where times are given, with parameters chosen on a
    part of the training rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features), or path
        Without `y`, a labelled table: a file, or a frame with the column `label`.
    y : array-like of shape (n_samples,), optional
        0 and 1, -1 and 1, truth values, or other labels of which `positive` names the
        hits.
    k : int, float or str, or a list of these
        Length of the top of the list to score. An int is a number of rows, a float in
        (0, 1] a fraction of the positives, and text such as "1 %" a fraction of the
        rows; fractions are rounded up. So 1 is a single row, and 1.0 as many rows as
        there are positives. Held-out lists have up to 30 % of the rows: a count becomes
        a share there. Of several k the first decides; the ``length`` of the result has
        all.
    label : str, optional
        Column of the labels, in place of `y`; svmlight and npz files have labels of
        their own.
    positive : str or number, or a list of these, optional
        The labels of the positive class; not needed for 0 and 1, or -1 and 1.
    groups : array-like of shape (n_samples,), or str, optional
        Rows with the same value stay together; of a labelled table, the name of a
        column.
    time : array-like of shape (n_samples,), or str, optional
        Numbers, or dates as text: train on the past, test on the latest rows. Of a
        labelled table, the name of a column.
    categorical : {"error", "one-hot"} or sequence of str
        Treatment of text in a frame, or the columns whose text or numbers are
        categories.
    missing : {"error", "mean", "median", "most-frequent"}
        Treatment of missing values in a frame.
    solvers : sequence of str, of solvers or of classifiers of scikit-learn, optional
        Contestants, see ``precbench list solvers``, or classes in files as
        "FILE.py:CLASS"; by default those of ``configs/compare.yaml``. Classifiers keep
        all parameters but `random_state`; these must be numbers or text.
    n_splits : int, optional
        By default 10, and 5 with times or for more than 50,000 rows.
    list_rows : int, optional
        Length of the list of new rows for which hits are expected; by default as many
        as `X` has.
    prefer : {"best", "simple"}
        "simple" recommends the simplest method within one standard error of the best.
    effort : {"quick", "normal", "thorough"}
        How much is trained. "quick": three methods on three splits. "normal": then all
        methods on two fifths of the splits, and last, on the other splits, only the
        methods that may still change the answer. "thorough": all methods on all splits.
        Each of these steps ends with an answer: an interrupt (KeyboardInterrupt) after
        the first answer returns the last one.
    gain : float, array-like of shape (n_samples,), or str, optional
        What every hit gains, or for each row its gain as a hit; of a labelled table,
        the name of a column with these gains. See ``length.profit`` of the result.
    cost : float, default=0.0
        What each row of the list costs.
    random_state : int, default=0
        Seed of the splits and of the methods.
    n_jobs : int, optional
        Worker processes; by default, and with -1, one for each core. Results are always
        the same.
    folder : path-like, optional
        Where to keep the records, so that an interrupted comparison can resume; by
        default nowhere.
    verbose : bool, default=False
        Whether to show a bar of progress, also in a notebook.
    allow : sequence of str
        Columns of a labelled table to use even if they look like a leak, an identifier
        or a code.
    **reading
        Of a labelled table: ``drop``, ``id``, ``numeric`` and ``format`` of
        `precbench.tables.own_file.read_own_file`, and how the file is written.

    Returns
    -------
    Comparison
        With ``recommended``, the paragraph ``text``, ``table`` and ``length``, and the
        methods ``plot()``, ``fit()`` and ``explain(rows)``.

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
    Use ...: about ... hits in 20 ...
    >>> choice.fit().solver == choice.recommended
    True
    """
    _require_valid(solvers, prefer, effort, n_splits, list_rows, random_state, n_jobs)
    # Integers may be those of NumPy.
    of_contest: dict[str, Any] = {
        "solvers": solvers,
        "n_splits": None if n_splits is None else int(n_splits),
        "seed": int(random_state),
        "list_rows": None if list_rows is None else int(list_rows),
    }
    if y is None:
        options = table_options(
            label, positive, groups, time, categorical, missing, reading
        )
        own = open_table(X, options)
        gains = gains_of_table(own, gain, cost)
        contest = prepare({"file": own, **options}, k, allow=allow, **of_contest)
    else:
        refuse_table_options({"label": label, "allow": allow, **reading})
        require_same_rows(X, y=y, groups=groups, time=time, gain=gain)
        rows = read_rows(X, y, positive, categorical, missing, groups, time)
        gains = gains_of_rows(gain, cost, len(rows.dataset.y))
        contest = prepare(rows.dataset, k, **of_contest)
        contest = replace(contest, encoding=rows.encoding)
        options = {"categorical": categorical, "missing": missing}
    with tempfile.TemporaryDirectory() as temporary:
        return run_contest(
            contest,
            Options(
                jobs=joblib.cpu_count() if n_jobs in (None, -1) else int(n_jobs),
                own_folder=Path(folder or Path(temporary) / "results"),
                tables=False,
            ),
            observer=Bar() if verbose else Observer(),
            prefer=prefer,
            effort=effort,
            worth=gains.worth,
            amounts=gains.amounts,
            # What a saved model states of its training:
            label=label,
            positive=positive,
            reading=options,
            allow=allow,
        )


def _require_valid(
    solvers: Any,
    prefer: Any,
    effort: Any,
    n_splits: Any,
    list_rows: Any,
    random_state: Any,
    n_jobs: Any,
) -> None:
    """Refuse arguments of `compare` that have no meaning, with what to give instead."""
    if isinstance(solvers, str):
        raise InputError(
            f"solvers must be a list, found {solvers!r}; give [{solvers!r}]"
        )
    if prefer not in ("best", "simple"):
        raise InputError(f"prefer must be 'best' or 'simple', found {prefer!r}")
    if effort not in get_args(Effort):
        raise InputError(
            f"effort must be 'quick', 'normal' or 'thorough', found {effort!r}"
        )
    _require_integer("n_splits", n_splits, least=1)
    _require_integer("list_rows", list_rows, least=1)
    _require_integer("random_state", random_state, least=0)
    if n_jobs is None:
        return
    if not isinstance(n_jobs, Integral) or (n_jobs < 1 and n_jobs != -1):
        raise InputError(
            f"n_jobs must be at least 1, or -1 for all cores, found {n_jobs!r}"
        )


def _require_integer(name: str, number: Any, *, least: int) -> None:
    if number is None:
        return
    if not isinstance(number, Integral) or int(number) < least:
        raise InputError(
            f"{name} must be an integer of at least {least}, found {number!r}"
        )


def run_contest(
    contest: Contest,
    options: Options,
    *,
    observer: Observer,
    effort: Effort,
    on_answer: Callable[["Comparison", Stage | None], None] | None = None,
    prefer: Literal["best", "simple"] = "best",
    worth: Worth | None = None,
    amounts: NDArray[np.float64] | None = None,
    label: str | None = None,
    positive: Label | Sequence[Label] | None = None,
    reading: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    config: str = "",
) -> "Comparison":
    """Train and measure the contestants in stages, and return the last answer.

    An answer recommends a method, and forecasts its hits. A user who interrupts a later
    stage gets the answer of the stage before.

    Parameters
    ----------
    contest : Contest
    options : Options
        How and where the trials run.
    observer : Observer
    effort : {"quick", "normal", "thorough"}
        See `precbench.advice.stages`.
    on_answer : callable, optional
        Takes each answer, and the stage that follows, None after the last.
    prefer : {"best", "simple"}
    worth : Worth, optional
        What a hit gains, and what a row of the list costs.
    amounts : ndarray of shape (n_samples,), optional
        What each row gains if it is a hit.
    label, positive : optional
        Which the saved model will state.
    reading, allow : optional
        Options of reading the table, which the saved model will state.
    config : str
        Path of the config file of the contest, if it has one.
    """
    experiment = contest.experiment
    stage: Stage | None = first_stage(experiment)
    answer: Comparison | None = None
    while stage is not None:
        selection = replace(
            options, solvers=stage.methods, splits=range(stage.n_splits)
        )
        try:
            results = run_config(
                experiment,
                selection,
                name=config,
                datasets=contest.plan.datasets,
                observer=observer,
            )
        except KeyboardInterrupt:
            if answer is None:
                raise
            processes.end()
            return replace(answer, was_interrupted=True)
        run = read_run(results.folder)
        try:
            measured = choose_method(run, prefer=prefer)
        except InputError:  # no method has a result
            if stage == last_stage(experiment):
                raise
            stage = last_stage(experiment)
            continue
        choice, recipe = with_forecast_and_recipe(
            contest,
            run,
            measured,
            contest.lengths,
            list_rows=contest.list_rows,
            worth=worth,
            amounts=amounts,
        )
        stated = state_recipe(
            reading=reading or {},
            allow=allow,
            k=contest.lengths,
            list_rows=contest.list_rows,
            worth=worth,
            fourier=recipe.how.get("fourier"),
            n_splits=experiment.protocol.n_splits,
            random_state=experiment.protocol.seed,
        )
        failed_before = answer is not None and answer.has_failed
        answer = Comparison(
            **vars(choice),
            recipe=replace(
                recipe, label=label, positive=as_texts(positive), stated=stated
            ),
            folder=results.folder,
            has_failed=failed_before or results.has_failed,
        )
        stage = next_stage(stage, choice, experiment, effort)
        if on_answer is not None:
            on_answer(answer, stage)
    assert answer is not None
    return answer


@dataclass(frozen=True)
class Recipe:
    """How a recommended method is fitted to all rows, and its measured quality.

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
    label : str or None
        Column of the labels.
    positive : list of str, or None
        Labels of the hits, if they were named.
    reliability : Reliability or None
        Whether probabilities hold at the top of `lists`; None of a single list.
    stated : dict or None
        What the model will state of how it was fitted, see `StatedRecipe`.
    """

    how: dict[str, Any]
    quality: Quality
    lists: Sequence[HeldOut]
    test_share: float
    splits: Sequence[RowSplit]
    data: Dataset
    encoding: Encoding | None
    label: str | None = None
    positive: list[str] | None = None
    reliability: Reliability | None = None
    stated: dict[str, Any] | None = None

    @cached_property
    def importance(self) -> Importance | None:
        """Which columns matter on held-out rows.

        None where the importance cannot be measured.
        """
        try:
            return importance_of(self.data, self.splits, self.how, self.encoding)
        except InputError:  # a model cannot keep this method
            return None

    @property
    def measured(self) -> Measured:
        """What pictures show: the importance of columns only if it is measured."""
        return Measured(
            reliability=self.reliability, importance=vars(self).get("importance")
        )

    def fit(self) -> Model:
        """Return a model of all rows, with its quality and its calibration.

        If the rows were encoded, it has a profile for drift.
        """
        data = self.data
        model = Model.fit(data.X, data.y, encoding=self.encoding, **self.how)
        stated = {
            "importance": self.importance,
            "label": self.label,
            "positive": self.positive,
        }
        quality = self.quality.model_copy(update=stated)
        model.about.update(quality.model_dump(exclude_unset=True))
        model.about["groups"] = 0
        if data.groups is not None:
            model.about["groups"] = len(set(data.groups.tolist()))
        if self.stated is not None:
            model.about["recipe"] = self.stated
        calibrated = model.calibrated(self.lists, self.test_share, data.X)
        if self.encoding is None:
            return calibrated
        return calibrated.profiled(data.X, self.lists, data.imputed)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Choice):
    """The result of `compare`, to print, plot and fit.

    See `precbench.advice.choice.Choice`.

    Attributes
    ----------
    recipe : Recipe
        How the recommended method is fitted.
    folder : Path
        The results folder; of a comparison that keeps no records, it is gone.
    has_failed : bool
        Whether a trial has failed.
    was_interrupted : bool
        Whether the user stopped a later stage of the comparison.
    """

    recipe: Recipe = field(kw_only=True)
    folder: Path = field(kw_only=True)
    has_failed: bool = field(kw_only=True)
    was_interrupted: bool = field(default=False, kw_only=True)

    def __repr__(self) -> str:
        """Return the paragraph that recommends a method."""
        return self.text

    @property
    def table(self) -> pd.DataFrame:
        """Hits in the first `k` held-out rows, the recommended method first."""
        methods = self.values.set_index("solver").rename_axis("method")
        precisions = ["mean", "low", "high", "behind", "behind_low", "behind_high"]
        hits = methods[precisions] * self.k
        # No list has fewer than 0 hits, or more than k.
        hits[["low", "high"]] = hits[["low", "high"]].clip(0, self.k)
        others = methods[["p", "verdict", "seconds"]]
        return hits.rename(columns={"mean": "hits"}).join(others)

    def plot(self) -> "Figure":
        """Draw hits, precision, recall and profit against the length of the list."""
        assert self.length is not None  # `compare` sets the length
        return length_sheet(self.length).figure()

    def fit(self) -> Model:
        """Return the recommended method, fitted to all rows as it was tuned most often.

        The method is also fitted to the training rows of five splits, to see which
        columns matter.

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
    def _model(self) -> Model:
        """The fitted method: `fit` and `explain` fit it once."""
        return self.recipe.fit()

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        assert self.length is not None
        measured = self.recipe.measured
        pictures = answer_pictures(self, measured.reliability)
        if measured.importance is not None:
            pictures.append(importance_picture(measured.importance))
        return render(
            "comparison.html.j2",
            card=self.card,
            pictures=[picture.drawn() for picture in pictures],
            tables=[choice_table(self, "Which method"), length_table(self.length)],
        )


def report_length(
    length: Length,
    folder: str | os.PathLike[str],
    tables: Sequence[Table] = (),
    command: str = "",
    measured: Measured | None = None,
) -> None:
    """Write a `Length` into a results folder, and write the report there again.

    `measured` has what further pictures of the report show.
    """
    store = Store(folder)
    with store.lock():
        write_length(length, store.folder, tables, command)
        write_measured(measured or Measured(), store.folder)
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
    """Return a choice with a forecast for new lists, and the recipe of its method.

    The first `k` of `list_rows` rows (None: as many as the file) are forecast, with
    their profit by `worth` and `amounts` (the gain of each row). The recipe has the
    most chosen parameters.
    """
    data = contest.dataset
    method = choice.recommended
    scored_splits = list(final_scores(contest.plan, Store(run.folder), method))
    tuned = _most_chosen([scored.record.chosen for scored in scored_splits])
    how = _fit_arguments(contest, method, tuned)
    lists = []
    for scored in scored_splits:
        scores = scored.scores
        if scored.record.chosen != tuned:
            # Fit again by `how`: all scores get the model's scale. A method that a
            # model cannot hold keeps its scores.
            with suppress(InputError):
                scores = held_out_lists(data, [scored.split], how)[0].scores
        held_out = scored.split.test
        gains = None if amounts is None else amounts[held_out]
        lists.append(HeldOut(data.y[held_out], scores, gains))
    test_share = run.test_shares[NAME]
    length = measure_length(
        lists,
        test_share,
        k,
        data.n_pos,
        len(data.y),
        method=method,
        list_rows=list_rows,
        worth=worth,
    )
    reliability = measure_reliability(
        lists,
        [scored.split.test for scored in scored_splits],
        test_share,
        choice.k,
        method=method,
    )
    recipe = Recipe(
        how=how,
        quality=_quality(contest, run, choice, k[0], length),
        lists=lists,
        test_share=test_share,
        splits=[scored.split for scored in scored_splits[:_EXPLAINED]],
        data=data,
        encoding=contest.encoding,
        reliability=reliability,
    )
    return choice.with_length(length), recipe


def _quality(
    contest: Contest, run: Run, choice: Choice, k: TopK, length: Length
) -> Quality:
    """Return the measured quality of the recommended method, for its model to state."""
    measured = choice.methods[choice.recommended]
    final = final_values(run.results)
    is_auc = final["solver"].eq(choice.recommended) & final["metric"].eq("auc")
    aucs = final["value"][is_auc].dropna().to_numpy()
    n_pos = run.data[NAME].positives
    n_neg = run.data[NAME].rows - n_pos
    auc = auc_interval(aucs, run.test_shares[NAME], n_pos, n_neg)
    return Quality(
        split="time" if contest.experiment.protocol.split == "time" else "random",
        splits=choice.splits,
        held_out_rows=choice.rows,
        held_out_positives=choice.positives,
        k=k,
        precision_at_k=measured["mean"],
        precision_at_k_interval=[measured["low"], measured["high"]],
        auc=auc.mean,
        auc_interval=[auc.low, auc.high] if choice.splits > 1 else None,
        by_chance=choice.by_chance,
        length=length,
    )


def _most_chosen(chosen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tuned parameters that most splits have, of equally many the first."""
    n_splits = Counter(tuple(params.items()) for params in chosen)
    [(most_chosen, _count)] = n_splits.most_common(1)
    return dict(most_chosen)


def _fit_arguments(
    contest: Contest, method: str, tuned: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of `Model.fit` for a method with its tuned parameters.

    Common parameters that the solver lacks are left out.
    """
    experiment = contest.experiment
    entry = experiment.solvers[method]
    seed = experiment.protocol.seed
    params: dict[str, Any] = {}
    for name, value in experiment.common.items():
        if entry.has_parameter(name):
            params[name] = value
    params |= entry.params
    for name in params:
        params[name] = tuned.get(name, params[name])
    if "random_state" in SOLVERS[entry.solver]().get_params():
        params["random_state"] = seed
    if entry.fourier:  # options of the random features, tuned as fourier.NAME
        fourier: dict[str, Any] = {"random_state": seed}
        for name, value in entry.fourier.model_dump().items():
            fourier[name] = tuned.get(f"fourier.{name}", value)
        params["fourier"] = fourier
    return {
        "solver": entry.solver,
        "scaling": experiment.scaling or "none",
        **params,
    }
