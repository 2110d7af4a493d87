"""The content of the page of an experiment or a study."""

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from precbench.claims import Evidence, LedgerRow, load_claims, make_ledger
from precbench.claims.verdicts import Verdict
from precbench.core.studies import Result
from precbench.core.text import count
from precbench.report.html.templates import render
from precbench.report.html.trial_groups import machines, trial_groups
from precbench.report.ledger_tables import full_table
from precbench.report.repeat import shipped_config
from precbench.report.table import Table, text_table
from precbench.results.read import Run


@dataclass(frozen=True)
class Page:
    """The page of one folder, and what the index of all pages says about it.

    Attributes
    ----------
    html : str
    title : str
    source : str or None
        The paper.
    fact : str
        What is on the page.
    marks : list of str
        Warnings, also below the title of the page.
    verdicts : str
        How many printed numbers have which verdict.
    """

    html: str
    title: str
    source: str | None
    fact: str = ""
    marks: list[str] = field(default_factory=list)
    verdicts: str = ""


class Choice(NamedTuple):
    """The recommendation for a data set."""

    dataset: str  # its title
    sentences: Sequence[str]  # the first one is the answer
    methods: Table


class _LinkedTable(NamedTuple):
    table: Table
    links: Sequence[str] = ()  # of the rows, to elements of the page; () for no links


class Drawing(NamedTuple):
    """A figure on a page.

    Attributes
    ----------
    name : str
    data : str
        URL that holds the drawing.
    alt : str
        What it shows, in words.
    """

    name: str
    data: str
    alt: str

    @classmethod
    def of(cls, name: str, svg: str, alt: str) -> Self:
        encoded = base64.b64encode(svg.encode()).decode()
        return cls(name, f"data:image/svg+xml;base64,{encoded}", alt)


class DrawnFiles(NamedTuple):
    """The files of a figure, and what it shows in words."""

    paths: Sequence[Path]
    alt: str

    @property
    def drawing(self) -> Drawing:
        """The figure on a page."""
        [svg] = [path for path in self.paths if path.suffix == ".svg"]
        return Drawing.of(svg.stem, svg.read_text("utf-8"), self.alt)


class ImportantColumns(NamedTuple):
    """Which columns matter, as a table and as a figure."""

    table: Table
    drawn: DrawnFiles


class Advised(NamedTuple):
    """What the page of an experiment says beside its results."""

    choices: Sequence[Choice] = ()
    command: str = ""  # what to type next
    texts: Sequence[str] = ()  # on how long a list to choose
    lengths: Sequence[Table] = ()  # tables below these texts
    data: Sequence[Table] = ()  # about the data sets, below the protocol
    figures: Sequence[Path] = ()  # of the list's length
    pictures: Sequence[DrawnFiles] = ()  # of the answer, below its sentences
    importance: ImportantColumns | None = None

    @property
    def files(self) -> list[Path]:
        """All files that were drawn."""
        drawn = [*self.pictures]
        if self.importance is not None:
            drawn.append(self.importance.drawn)
        return [*self.figures, *(path for files in drawn for path in files.paths)]


def ledger_about(evidence: Evidence) -> dict[str, list[LedgerRow]]:
    """Return the verdicts about some results, by experiment or study."""
    measured = evidence.outcomes.keys() | evidence.values.keys()
    if not any(map(shipped_config, measured)):
        return {}  # only shipped experiments have claims; reading claims takes long
    claims = {
        claim.id: claim for claim in load_claims() if claim.experiment in measured
    }
    by_experiment: dict[str, list[LedgerRow]] = {}
    for row in make_ledger(list(claims.values()), evidence):
        by_experiment.setdefault(claims[row.id].experiment, []).append(row)
    return by_experiment


def experiment_page(
    run: Run,
    tables: Sequence[Table],
    figures: Iterable[Path],
    ledger: Sequence[LedgerRow],
    advised: Advised,
) -> Page:
    """Lay out the page of an experiment: results, figures, verdicts and trials."""
    marks = []
    if run.smoke:
        marks.append("smoke size: says nothing about the methods")
    for dataset in run.datasets:
        if run.is_stand_in(dataset):
            marks.append(f"{dataset}: synthetic data stand in for the real ones")
    trials = trial_groups(run)
    links = {(group.dataset, group.solver): f"#{group.id}" for group in trials}
    missing = [dataset for dataset in run.datasets if not run.n_splits(dataset)]
    linked_tables = []
    for table in tables:
        if table.dataset not in missing:
            links_of_rows = [
                links.get((table.dataset, solver), "") for solver in run.solvers
            ]
            linked_tables.append(
                _LinkedTable(_without_protocol(table, run), links_of_rows)
            )
    lead = "Each method leads to its trials."
    if missing:
        lead = f"{lead} Not run: {', '.join(missing)}."
    return _page(
        run,
        fact=f"{count(len(run.solvers), 'method')} on {', '.join(run.datasets)}",
        marks=marks,
        figures=figures,
        ledger=ledger,
        advised=advised,
        lead=lead,  # above the tables
        tables=linked_tables,
        protocol=run.protocol_sentence,
        command="",  # below the protocol; each solver has a command, beside its trials
        data=[_data_table(run), *advised.data, machines(run)],
        trials=trials,
    )


def _without_protocol(table: Table, run: Run) -> Table:
    """Leave the protocol out of the notes, since it has a section of the page."""
    notes = [note for note in table.notes if note != run.protocol_sentence]
    return replace(table, notes=notes)


def study_page(
    study: Result,
    tables: Sequence[Table],
    figures: Iterable[Path],
    ledger: Sequence[LedgerRow],
) -> Page:
    """Lay out the page of a study: results, figures, verdicts and parameters."""
    parameters = [(name, str(value)) for name, value in study.parameters.items()]
    command = ""
    config = shipped_config(study.name)
    if config:
        command = f"precbench run {config}"
        if study.smoke:
            command += " --smoke"
    return _page(
        study,
        fact="a study",
        marks=["smoke size"] if study.smoke else [],
        figures=figures,
        ledger=ledger,
        advised=Advised(),
        lead="",
        tables=[_LinkedTable(table) for table in tables],
        protocol="A study, computed in one piece.",
        command=command,
        data=[text_table("Parameters", ["parameter", "value"], parameters)],
        trials=[],
    )


def _page(
    subject: Run | Result,
    fact: str,
    marks: list[str],
    figures: Iterable[Path],
    ledger: Sequence[LedgerRow],
    advised: Advised,
    **content: Any,
) -> Page:
    """Return the page of an experiment or study, without empty sections.

    `fact` and `marks` are fields of `Page`; `content` has further values of the
    template.
    """
    counts = Counter(row.verdict for row in ledger)
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]
    )
    settled = [row for row in ledger if row.verdict.is_settled]
    undecided = [row for row in ledger if not row.verdict.is_settled]
    html = render(
        "page.html.j2",
        subject=subject,
        marks=marks,
        figures=_figures(
            figures, "curves of the methods; the numbers are in the tables of this page"
        ),
        advised=advised,
        length_figures=_figures(
            advised.figures, "curves by the length of the list, as in the table of hits"
        ),
        verdicts=verdicts,
        settled=full_table(settled, "Verdicts"),
        undecided=full_table(undecided, "Without a verdict"),
        **content,
    )
    return Page(
        html, subject.title, subject.source, fact=fact, marks=marks, verdicts=verdicts
    )


def _figures(paths: Iterable[Path], what: str) -> list[Drawing]:
    """Return each SVG drawing among the paths; `what` is shown in all of them."""
    drawings = []
    for path in paths:
        if path.suffix == ".svg" and path.is_file():
            alt = f"{path.stem}: {what} and in {path.stem}.csv"
            drawings.append(Drawing.of(path.stem, path.read_text("utf-8"), alt))
    return drawings


def _data_table(run: Run) -> Table:
    """Lay out the sizes of the data sets that were run, and the numbers of splits."""
    rows = []
    for dataset in run.datasets:
        n_splits = run.n_splits(dataset)
        if n_splits == 0:
            continue
        counts = run.data.get(dataset)
        if counts is None:
            sizes = ["–", "–", "–", "–"]
        else:
            sizes = [
                f"{counts.rows:,}",
                f"{counts.features:,}",
                f"{counts.positives:,}",
                f"{100 * counts.positives / counts.rows:.2f} %",
            ]
        rows.append([run.dataset_title(dataset), *sizes, str(n_splits)])
    header = ["data set", "rows", "features", "positives", "share", "splits run"]
    return text_table("Data", header, rows)
