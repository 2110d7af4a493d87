"""The content of the page of an experiment or a study."""

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

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
class Page:  # of one folder, and what the index of all pages says about this page
    html: str
    title: str
    source: str | None
    fact: str = ""  # what is on the page, for the index of all pages
    # warnings, below the title and in the index
    marks: list[str] = field(default_factory=list)
    verdicts: str = ""  # how many printed numbers have which verdict


class Advised(NamedTuple):
    """What the page of an experiment says beside its results."""

    # data set, sentences, methods
    choices: Sequence[tuple[str, Sequence[str], Table]] = ()
    command: str = ""  # what to type next
    texts: Sequence[str] = ()  # on how long a list to choose
    lengths: Sequence[Table] = ()  # tables below these texts
    data: Sequence[Table] = ()  # about the data sets, below the protocol
    figures: Sequence[Path] = ()  # of the list's length


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
    """Lay out the page of an experiment.

    Results, figures, verdicts, protocol and trials.
    """
    # below the title
    marks = ["smoke size: says nothing about the methods"] if run.smoke else []
    marks += [
        f"{dataset}: synthetic data stand in for the real ones"
        for dataset in filter(run.is_stand_in, run.datasets)
    ]
    trials = trial_groups(run)
    # to the trials
    links = {(group.dataset, group.solver): f"#{group.id}" for group in trials}
    missing = [dataset for dataset in run.datasets if not run.n_splits(dataset)]
    results = [  # pairs: a table, and for each row a link or ""
        (
            # The protocol has a separate section on the page.
            replace(
                table,
                notes=[note for note in table.notes if note != run.protocol_sentence],
            ),
            [links.get((table.dataset, solver), "") for solver in run.solvers],
        )
        for table in tables
        if table.dataset not in missing
    ]
    not_run = f" Not run: {', '.join(missing)}." if missing else ""
    # in the index
    fact = f"{count(len(run.solvers), 'method')} on {', '.join(run.datasets)}"
    return _page(
        run,
        fact=fact,
        marks=marks,
        figures=figures,
        ledger=ledger,
        advised=advised,
        lead=f"Each method leads to its trials.{not_run}",  # above the tables
        tables=results,
        protocol=run.protocol_sentence,
        command="",  # below the protocol; each solver has a command, beside its trials
        data=[_data_table(run), *advised.data, machines(run)],
        trials=trials,
    )


def study_page(
    study: Result,
    tables: Sequence[Table],
    figures: Iterable[Path],
    ledger: Sequence[LedgerRow],
) -> Page:  # results, figures, verdicts and parameters
    rows = [(name, str(value)) for name, value in study.parameters.items()]
    config = shipped_config(study.name)
    smoke = " --smoke" if study.smoke else ""
    return _page(
        study,
        fact="a study",
        marks=["smoke size"] if study.smoke else [],
        figures=figures,
        ledger=ledger,
        advised=Advised(),
        lead="",
        tables=[(table, []) for table in tables],  # rows without links
        protocol="A study, computed in one piece.",
        command=f"precbench run {config}{smoke}" if config else "",
        data=[text_table("Parameters", ["parameter", "value"], rows)],
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
    """Return the page of an experiment or study, without empty sections."""
    # `fact` and `marks` are fields of `Page`; `content` has further values of the
    # template.
    counts = Counter(row.verdict for row in ledger)
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]
    )
    html = render(
        "page.html.j2",
        subject=subject,
        marks=marks,
        figures=_figures(figures),
        advised=advised,
        length_figures=_figures(advised.figures),
        verdicts=verdicts,
        settled=full_table([r for r in ledger if r.verdict.is_settled], "Verdicts"),
        undecided=full_table(
            [r for r in ledger if not r.verdict.is_settled], "Without a verdict"
        ),
        **content,
    )
    return Page(
        html, subject.title, subject.source, fact=fact, marks=marks, verdicts=verdicts
    )


def _figures(paths: Iterable[Path]) -> list[dict[str, str]]:
    """Return the name and data URL of each SVG drawing among the paths."""
    return [
        {
            "name": path.stem,
            "data": (
                f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"
            ),
        }
        for path in paths
        if path.suffix == ".svg" and path.is_file()
    ]


def _data_table(run: Run) -> Table:
    """Lay out the sizes of the data sets, and the number of splits that were run."""
    rows = []
    for dataset in filter(run.n_splits, run.datasets):  # data sets that were run
        counts = run.data.get(dataset)
        sizes = ["–"] * 4  # unknown
        if counts is not None:
            sizes = [
                *(f"{n:,}" for n in (counts.rows, counts.features, counts.positives)),
                f"{100 * counts.positives / counts.rows:.2f} %",
            ]
        rows.append([run.dataset_title(dataset), *sizes, str(run.n_splits(dataset))])
    header = ["data set", "rows", "features", "positives", "share", "splits run"]
    return text_table("Data", header, rows)
