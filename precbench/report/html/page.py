"""The content of the page of an experiment or a study."""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precbench.claims import Evidence, LedgerRow, load_claims, make_ledger
from precbench.claims.verdicts import Verdict
from precbench.report.html.templates import render
from precbench.report.html.trials import Trial, machines, trials_of
from precbench.report.repeat import repeat_command, shipped_config
from precbench.report.table import Table, text_table
from precbench.results import Run
from precbench.studies import Result
from precbench.text import count

_KINDS = {
    "accuracy-time": "Quality against training time",
    "accuracy-rows": "Quality of the iterates",
    "accuracy-share": "Quality against the fraction of the rows",
    "accuracy-sweep": "Quality against the swept parameter",
    "length": "Hits and profit by the length of the list",
    "precision-k": "prec@k against k",
    "roc": "ROC curves",
    "roc-counts": "ROC curves in counts of rows",
}
_PATH = re.compile(rb' d="[^"]*"')
_DIGITS = re.compile(rb"(\d\.\d)\d+")


@dataclass(frozen=True)
class Page:
    html: str
    folder: str
    title: str
    source: str | None
    fact: str = ""  # what is in it
    marks: list[str] = field(default_factory=list)  # warnings
    verdicts: str = ""  # counts of the decided printed numbers


class Advised(NamedTuple):
    """What the page of an experiment says beside its results."""

    choices: Sequence[tuple[str, Sequence[str], Table]] = ()  # data set, sentences, methods
    command: str = ""  # what to type next
    texts: Sequence[str] = ()  # on the length of the list
    lengths: Sequence[Table] = ()
    data: Sequence[Table] = ()
    figures: Sequence[Path] = ()


def ledger_about(evidence: Evidence) -> dict[str, list[LedgerRow]]:
    """Judge the claims about some results, by name of the experiment or study."""
    measured = evidence.outcomes.keys() | evidence.values.keys()
    if not any(map(shipped_config, measured)):
        return {}  # there are no printed numbers for them
    claims = {claim.id: claim for claim in load_claims() if claim.experiment in measured}
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
    trials = trials_of(run)
    marks = ["smoke size: says nothing about the methods"] if run.smoke else []
    marks += [
        f"{dataset}: synthetic data stand in for the real ones"
        for dataset in run.datasets
        if run.is_stand_in(dataset)
    ]
    by_solver = _by_solver(run, trials)
    missing = [dataset for dataset in run.datasets if not run.n_splits(dataset)]
    tables = [table for table in tables if table.dataset not in missing]
    html = render(
        "experiment.html.j2",
        run=run,
        marks=marks,
        missing=missing,
        choices=advised.choices,
        command=advised.command,
        lengths=advised.lengths,
        of_length=advised.texts,
        length_figures=_figures(advised.figures),
        tables=[
            {
                "table": table,
                # The protocol has a place of its own on the page.
                "notes": [note for note in table.notes if note != run.protocol_sentence],
                "dataset": run.datasets.index(table.dataset),
            }
            for table in tables
        ],
        values=[_values(run, table, trials) for table in tables],
        figures=_figures(figures),
        ledger=_by_verdict(ledger),
        decided=_counted(ledger),
        data=[_data_table(run), *advised.data],
        trials=by_solver,
        ids={entry["id"] for entry in by_solver},
        machines=machines(run.folder, trials),
    )
    fact = f"{count(len(run.solvers), 'method')} on {', '.join(run.datasets)}"
    return Page(html, run.folder.name, run.title, run.source, fact, marks, _counted(ledger))


def study_page(
    study: Result,
    tables: Sequence[Table],
    figures: Iterable[Path],
    ledger: Sequence[LedgerRow],
) -> Page:
    marks = ["smoke size"] if study.smoke else []
    rows = [(name, str(value)) for name, value in study.parameters.items()]
    decided = _counted(ledger)
    html = render(
        "study.html.j2",
        about=study,
        marks=marks,
        tables=tables,
        figures=_figures(figures),
        ledger=_by_verdict(ledger),
        decided=decided,
        parameters=text_table("Parameters", ["parameter", "value"], rows),
        config=shipped_config(study.name),
    )
    name = study.folder.name
    return Page(html, name, study.title, study.source, "a study", marks, decided)


def _values(run: Run, table: Table, trials: list[Trial]) -> list[list[list[float | None] | None]]:
    """Return the values of trials by solver, column and split; None for a column of times."""
    here = {
        (trial.solver, trial.sweep, trial.split, trial.seed): trial.values
        for trial in trials
        if trial.dataset == table.dataset
    }
    splits = sorted({(split, seed) for _, _, split, seed in here})

    def value(trial: tuple[str, str, int, int], label: str) -> float | None:
        number = here[trial][label] if trial in here else np.nan
        return float(f"{number:.6g}") if np.isfinite(number) else None

    return [
        [
            [value((solver, sweep, *split), name) for split in splits]
            if name in run.measures
            else None
            for name, sweep in table.columns
        ]
        for solver in run.solvers
    ]


def _figures(paths: Iterable[Path]) -> list[dict[str, str]]:
    """Return the names of the SVG drawings, and each as a data address."""
    drawings = [path for path in paths if path.suffix == ".svg" and path.is_file()]
    return [{"name": _name(path.stem), "data": _address(path.read_bytes())} for path in drawings]


def _name(stem: str) -> str:
    kinds = [kind for kind in _KINDS if stem == kind or stem.startswith(f"{kind}-")]
    if not kinds:  # of a study
        return stem
    kind = max(kinds, key=len)
    return f"{_KINDS[kind]}: {stem[len(kind) + 1 :]}".removesuffix(": ")


def _address(svg: bytes) -> str:
    """Encode a drawing, its lines rounded to 0.1 points: two thirds of the size."""
    coarse = _PATH.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), svg)
    return "data:image/svg+xml;base64," + base64.b64encode(coarse).decode()


def _by_verdict(ledger: Sequence[LedgerRow]) -> list[tuple[bool, list[LedgerRow]]]:
    """Return the rows that results have settled, and the others."""
    return [
        (is_settled, [row for row in ledger if row.verdict.is_settled is is_settled])
        for is_settled in (True, False)
    ]


def _counted(ledger: Sequence[LedgerRow]) -> str:
    counts = Counter(row.verdict for row in ledger)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _data_table(run: Run) -> Table:
    rows = []
    for dataset in filter(run.n_splits, run.datasets):
        counts = run.data.get(dataset)
        sizes = ["–"] * 4
        if counts is not None:
            sizes = [f"{n:,}" for n in (counts.rows, counts.features, counts.positives)]
            sizes.append(f"{100 * counts.positives / counts.rows:.2f} %")
        rows.append([run.dataset_title(dataset), *sizes, str(run.n_splits(dataset))])
    header = ["data set", "rows", "features", "positives", "share", "splits run"]
    return text_table("Data", header, rows)


def _by_solver(run: Run, trials: list[Trial]) -> list[dict[str, Any]]:
    """Return the trials of each data set and solver, with the command that repeats one."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.dataset, trial.solver), []).append(trial)
    return [
        {
            "id": f"d{run.datasets.index(dataset)}s{run.solvers.index(solver)}",
            "dataset": dataset,
            "solver": solver,
            "ok": f"{sum(trial.status == 'ok' for trial in group)} of {len(group)} ok",
            "trials": group,
            "command": repeat_command(
                run.name, solver, dataset, config=run.config, smoke=run.smoke
            ),
            "chosen": any(trial.chosen for trial in group),
        }
        for (dataset, solver), group in groups.items()
    ]
