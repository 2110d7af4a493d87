"""Common parts of all kinds of claims."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from precbench.claims.evidence import WALL_SECONDS, Evidence, MissingError
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict, parse_printed
from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.core.yaml.models import Section, at, refuse

_Results = TypeVar("_Results")

SECONDHAND = "printed according to another source, as the paper could not be read"

# Selects the rows of a study's ``values.csv`` that hold the entry given for each column
Selection = dict[str, str | int | float]
Texts = Annotated[tuple[str, ...], Field(strict=False)]
ClaimId = Annotated[str, Field(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.,=@()-]+)+$")]

# Fields that name data sets, or solvers by their labels, in claims of any kind
_DATA = ("dataset", "datasets")
_SOLVERS = ("solver", "first_solver", "better", "worse", "slower", "faster", "among")
_SOLVER_LISTS = ("better", "worse", "among", "steady", "unsteady")


class Minimum(Section):
    """A study of the data sets on which a solver's problem has its minimum at w = 0."""

    solver: str
    study: str  # name of the experiment
    config: str
    # one row for each data set, whose value is 1 if w = 0 is a minimiser, else 0
    cell: Selection


class Doubt(NamedTuple):
    """Why the results of a solver decide nothing, and the verdict then."""

    verdict: Verdict
    reason: str


class _FinalRows(NamedTuple):
    """A row for each trial of a solver on a data set."""

    solver: str
    dataset: str
    rows: pd.DataFrame


class _EndedEarly(NamedTuple):
    """Trials of a solver on a data set that ended before they should."""

    solver: str
    is_serious: bool  # half or more of the trials
    text: str  # how many, in words


class Claim(Section):
    """A claim: its fields in YAML, what it reads, and how it is judged.

    A kind of claim is a subclass with a field ``kind`` and the method `judge`;
    `reads_study` says whether it reads the values of a study, and no results of trials.

    Attributes
    ----------
    id, where, printed : str
        A permanent name (paper, place, row or column), the place, and the text with its
        digits.
    says : str
        The sentence, for a claim that is not a cell of a table.
    experiment, config : str
        The experiment whose results decide, and its config, which may not exist yet.
    deviations : tuple of str
        Ids of the documented deviations under which we measure.
    protocol : str
        How the paper measured, as far as it says.
    untested : str
        Why no experiment decides the claim yet, though an experiment could.
    ours : bool
        Whether the claim is ours, about the paper's methods, and counted separately.
    minimum : Minimum or None
        If the problem of a compared solver has its minimum at w = 0, the solver's
        result is a point on the way to a ranking of nothing, and decides nothing.
    after_results : bool
        Whether what decides the claim (a margin, a choice of data sets, the claim
        itself) was chosen after our results were seen: if the claim holds, the verdict
        is only "no power".
    secondhand : bool
        If the paper could not be read, and the print comes from another source, no
        verdict is a decision, and the ledger says which decision there would be.
    sentence : str
        Claims of one sentence count once: those with equal `says`, or with equal
        `sentence`.
    """

    reads_study: ClassVar[bool] = False
    # A printed number is needed unless one of these fields is given; None: it is never
    # needed
    number_unless: ClassVar[tuple[str, ...] | None] = None

    kind: str
    id: ClaimId
    where: str
    printed: str
    says: str = ""
    experiment: str
    config: str
    deviations: Texts = ()
    protocol: str = ""
    untested: str = ""
    ours: bool = False
    minimum: Minimum | None = None
    after_results: bool = False
    secondhand: bool = False
    sentence: str = ""

    # An id is "paper/place/...".

    @property
    def paper(self) -> str:
        return self.id.split("/")[0]

    @property
    def place(self) -> str:
        return self.id.split("/")[1]

    @property
    def in_words(self) -> bool:
        """Whether the verdict needs no printed number, as of two measured sides."""
        if self.number_unless is None:
            return True
        return any(getattr(self, field) is not None for field in self.number_unless)

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data sets whose results decide the claim; none for a study."""
        return self._names_in(*_DATA)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the solvers that the claim compares, if any."""
        return self._names_in(*_SOLVERS)

    def _names_in(self, *fields: str) -> tuple[str, ...]:
        """Return the names in these fields, each a name or a tuple of names."""
        names: list[str] = []
        for field in fields:
            value = getattr(self, field, ())
            names += [value] if isinstance(value, str) else value
        return tuple(name for name in names if name)

    @property
    def is_testable(self) -> bool:
        """Whether a run can decide the claim."""
        return not self.untested

    @property
    def is_timed(self) -> bool:
        """Whether times are compared."""
        return getattr(self, "metric", "") == WALL_SECONDS

    def is_about(self, dataset: str) -> bool:
        return dataset in self.data

    def all_deviations(self) -> Iterator[str]:
        """Yield the ids of all deviations that a verdict may name."""
        yield from self.deviations

    @model_validator(mode="after")
    def _check_printed(self) -> Self:
        """Refuse a `printed` that is no number, if the verdict needs one."""
        if self.in_words or self.untested:  # an untested claim gets no verdict
            return self
        try:
            parse_printed(self.printed)
        except InputError as error:
            refuse(at((), [str(error)]))  # (): the claim as a whole
        return self

    @abstractmethod
    def judge(self, evidence: Evidence) -> LedgerRow:
        """Return the row of the ledger, see `ledger_row` and `judged`.

        Raise `MissingError` if nothing was measured that the claim could be compared
        with.
        """

    @classmethod
    def judge_all(
        cls, claims: Sequence[Self], evidence: Evidence
    ) -> Iterator[LedgerRow]:
        """Yield the verdicts on claims of this kind, each judged alone.

        A kind may override this to judge claims together.
        """
        for claim in claims:
            try:
                yield claim.judge_checked(evidence)
            except MissingError as missing:
                yield claim.ledger_row(Verdict.NO_DATA, reason=str(missing))

    def judge_checked(self, evidence: Evidence) -> LedgerRow:
        """Judge the claim without doubtful solvers, which the reason names."""
        claim = self
        row = claim.judge(evidence)
        left_out: list[str] = []
        for solver, doubt in self.doubts(evidence).items():
            others = claim.drop_solver(solver)
            if others is None:  # nothing is left to compare: the doubt is the verdict
                reason = _joined(doubt.reason, row.reason, *left_out)
                return replace(row, verdict=doubt.verdict, reason=reason)
            claim = others
            row = claim.judge(evidence)
            left_out.append(f"left out, as {doubt.reason}")
        # Too few trials to leave a solver out are only named.
        few = [*claim._stopped(evidence, "tuning limit"), *claim._unconverged(evidence)]
        reason = _joined(row.reason, *left_out, *(early.text for early in few))
        return claim._with_times_cut_short(replace(row, reason=reason), evidence)

    def _with_times_cut_short(self, row: LedgerRow, evidence: Evidence) -> LedgerRow:
        """Return the row, undecided if a time would decide that a limit cut short.

        The full time is at least the time cut short: a claim that fails might hold.
        """
        stopped = [early.text for early in self._stopped(evidence)]
        if not self.is_timed or not stopped:
            return row
        verdict = row.verdict if row.verdict.holds else Verdict.INCONCLUSIVE
        reason = f"{', '.join(stopped)}: a time is at least that"
        return replace(row, verdict=verdict, reason=_joined(row.reason, reason))

    def doubts(self, evidence: Evidence) -> dict[str, Doubt]:
        """Return by solver why its results decide nothing, if they do not.

        A solver is doubtful if, on a data set of the claim, its problem has the minimum
        at w = 0, or if half or more of its trials or tunings were stopped by a limit,
        or half or more of its trials ended before the tolerance: with other parameters,
        values and times would differ.
        """
        doubts: dict[str, Doubt] = {}
        if self.minimum is not None:
            at_zero = self._datasets_at_zero(self.minimum, evidence)
            if at_zero:
                solver = self.minimum.solver
                reason = f"the minimum of {solver} is w = 0 on {', '.join(at_zero)}"
                doubts[solver] = Doubt(Verdict.NO_POWER, reason)
        ended_early = list(self._stopped(evidence, "tuning limit"))
        # Where times alone decide, trained trials may be cut short.
        if self.is_decided_by_values:
            ended_early += self._stopped(evidence, "limit")
        ended_early += self._unconverged(evidence)
        for early in ended_early:
            # The first doubt about a solver counts.
            if early.is_serious and early.solver not in doubts:
                doubts[early.solver] = Doubt(Verdict.INCONCLUSIVE, early.text)
        return doubts

    def _datasets_at_zero(self, minimum: Minimum, evidence: Evidence) -> list[str]:
        """Return the data sets on which a study finds the minimum at w = 0."""
        table = _results_of(minimum.study, minimum.config, evidence.values)
        values = self.selected(table, minimum.cell).set_index("dataset")["value"]
        missing = set(self.data) - set(values.index)
        if missing:
            raise MissingError(
                f"the results of {minimum.study} lack {', '.join(sorted(missing))}:"
                f" make them with precbench run {minimum.config}"
            )
        return [name for name in self.data if values[name] == 1]  # 1: at w = 0

    def drop_solver(self, solver: str) -> Self | None:
        """Return the claim without a solver, None if a side would have none left."""
        others = {}
        for field in _SOLVER_LISTS:
            names = getattr(self, field, ())
            if names:
                others[field] = tuple(name for name in names if name != solver)
        # A claim without lists compares single solvers.
        if not others or not all(others.values()):
            return None
        return self.model_copy(update=others)

    @property
    def is_decided_by_values(self) -> bool:
        """Whether the results of solvers decide, not only their times."""
        return not self.is_timed

    @property
    def is_about_the_end(self) -> bool:
        """Whether final weights or times are compared, not the way to them."""
        return True

    def _stopped(self, evidence: Evidence, by: str = "limit") -> Iterator[_EndedEarly]:
        """Yield how many trials a limit stopped, by solver and data set, if any.

        The limit is that of training, "limit", or "tuning limit".
        """
        for solver, dataset, rows in self._final_rows(evidence):
            n = int((rows["stopped"] == by).sum())
            if n:
                text = f"a {by} stopped {solver} in {n} of {len(rows)} on {dataset}"
                yield _EndedEarly(solver, is_serious=2 * n >= len(rows), text=text)

    def _unconverged(self, evidence: Evidence) -> Iterator[_EndedEarly]:
        """Yield how many trials ended at max_iter, before the tolerance, by data set.

        Only the solver counts whose minimum the claim is about.
        """
        if self.minimum is None or not self.is_about_the_end:
            return
        for solver, dataset, rows in self._final_rows(evidence):
            if solver != self.minimum.solver:
                continue
            # Where `stopped` names a limit, the limit ended the trial, not max_iter.
            is_at_max_iter = (rows["converged"] == "False") & (rows["stopped"] == "")
            n = int(is_at_max_iter.sum())
            if n:
                text = f"{solver} ended at max_iter in {n} of {len(rows)} on {dataset}"
                yield _EndedEarly(solver, is_serious=2 * n >= len(rows), text=text)

    def _final_rows(self, evidence: Evidence) -> Iterator[_FinalRows]:
        """Yield the final rows of the solvers on the data sets, if measured."""
        outcomes = evidence.outcomes.get(self.experiment)
        if outcomes is None:
            return
        metric = getattr(self, "metric", "")
        if metric == WALL_SECONDS:
            metric = ""  # the first: times stand in the rows of any metric
        for solver in dict.fromkeys(self.labels):
            for dataset in self.data:
                try:
                    rows = outcomes.final_rows(dataset, solver, metric)
                except MissingError:
                    continue  # not compared
                yield _FinalRows(solver, dataset, rows)

    def results_in(self, results: Mapping[str, _Results]) -> _Results:
        """Return the results of the experiment that decides the claim."""
        return _results_of(self.experiment, self.config, results)

    def selected(self, table: pd.DataFrame, cell: Selection) -> pd.DataFrame:
        """Return the rows of a study's table that hold the entries of `cell`."""
        is_selected = np.ones(len(table), dtype=bool)
        for column, entry in cell.items():
            if column not in table:
                raise InputError(
                    f"claim {self.id}: the study {self.experiment} has no column"
                    f" {column}; name one of {', '.join(map(str, table))}"
                )
            is_selected &= table[column].to_numpy() == entry
        return table[is_selected]

    def counterparts(
        self, table: pd.DataFrame, own: Selection, cell: Selection
    ) -> NDArray:
        """Return by row that `own` selects the right-hand value of a comparison.

        A right-hand row is selected by `cell`, and equals its left-hand row in all
        columns that neither selection names. If `cell` selects a single row, every
        left-hand row has this row.
        """
        left = self.selected(table, own)
        right = self.selected(table, cell)
        if len(right) == 1 and len(left):
            return np.full(len(left), float(right["value"].iloc[0]))
        named = {"value", *own, *cell}
        shared = [column for column in table if column not in named]
        pairs = left.merge(right, on=shared, suffixes=("", "_right"))
        if pairs.empty or len(pairs) != len(left):
            raise InputError(
                f"claim {self.id}: {own} selects {len(left)} values, {cell} gives"
                f" {len(pairs)} counterparts; a value and its counterpart must agree in"
                " all columns that neither selection names: name each other column in"
                " both selections"
            )
        return pairs["value_right"].to_numpy(dtype=float)

    def ledger_row(
        self, verdict: Verdict, deviations: Iterable[str] = (), **other: Any
    ) -> LedgerRow:
        """Return the row of the ledger, with further deviations and `other` fields.

        The verdict is weakened if the claim was chosen after the results, and no
        decision if the claim is known second-hand only.
        """
        row = LedgerRow(
            id=self.id,
            paper=self.paper,
            where=self.where,
            kind=self.kind,
            printed=self.printed,
            verdict=verdict,
            deviation=" ".join(dict.fromkeys([*self.deviations, *deviations])),
            **other,
        )
        if self.after_results and row.verdict.holds:
            reason = _joined("what decides it was chosen after our results", row.reason)
            row = replace(row, verdict=Verdict.NO_POWER, reason=reason)
        if not self.secondhand:
            return row
        if row.verdict.rank is None:  # no decision anyhow
            return replace(row, reason=_joined(row.reason, SECONDHAND))
        reason = _joined(f"would be {row.verdict}", row.reason, SECONDHAND)
        return replace(row, verdict=Verdict.INCONCLUSIVE, reason=reason)

    def undecided(self, reason: str, **other: Any) -> LedgerRow:
        """Return the row of the ledger if results are too few or unsuitable."""
        return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, **other)

    def judged(
        self, holds: bool, trend: bool = False, more: Iterable[str] = ()
    ) -> tuple[Verdict, list[str]]:
        """Return the verdict, and the deviations under which it was reached.

        Our result is as printed if it `holds`, or at least its `trend` is; `more` are
        further deviations.
        """
        deviations = list(dict.fromkeys([*self.deviations, *more]))
        if holds:
            verdict = Verdict.WITH_DEVIATION if deviations else Verdict.REPRODUCED
        else:
            verdict = Verdict.TREND_ONLY if trend else Verdict.NOT_REPRODUCED
        return verdict, deviations


class MeasuredClaim(Claim):
    """A claim about a metric, measured on a data set."""

    dataset: str
    metric: str
    part: Literal["test", "training"] = "test"
    checkpoint: int | None = None  # None: the final weights


def _results_of(
    experiment: str, config: str, results: Mapping[str, _Results]
) -> _Results:
    """Return the results of an experiment, or say which config makes them."""
    if experiment not in results:
        raise MissingError(
            f"no results of {experiment}: make them with precbench run {config}"
        )
    return results[experiment]


def _joined(*reasons: str) -> str:
    """Return the reasons in one text, without empty ones."""
    return "; ".join(filter(None, reasons))


def make_ledger(claims: Sequence[Claim], evidence: Evidence) -> list[LedgerRow]:
    """Return the row of each claim with its verdict, in the order of the claims."""
    rows: list[LedgerRow] = []
    # Claims of a kind are judged together: cells of a row depend on each other.
    by_kind: dict[type[Claim], list[Claim]] = {}
    for claim in claims:
        obstacle = _obstacle(claim)
        if obstacle:
            rows.append(claim.ledger_row(Verdict.NO_CONFIG, reason=obstacle))
        else:
            by_kind.setdefault(type(claim), []).append(claim)
    for kind, claims_of_kind in by_kind.items():
        rows += kind.judge_all(claims_of_kind, evidence)
    place_of = {claim.id: i for i, claim in enumerate(claims)}
    return sorted(rows, key=lambda row: place_of[row.id])


def _obstacle(claim: Claim) -> str:
    """Return why no experiment decides a claim yet; "" if one does, or if none can."""
    if claim.untested:
        return claim.untested
    config = shipped("configs") / f"{claim.config}.yaml"
    if claim.is_testable and not config.exists():
        return f"there is no config {claim.config} yet"
    return ""
