"""``precbench check``."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from precbench.claims import load_claims, make_ledger, read_evidence
from precbench.claims.kinds import Claim
from precbench.claims.ledger import (
    LedgerRow,
    changes,
    read_ledger,
    reference_path,
    to_csv,
    to_json,
    updated,
)
from precbench.claims.verdicts import Verdict
from precbench.cli.options import Json, refuse_unknown
from precbench.cli.regressions import REGRESSED, report_regressions
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import InputError
from precbench.experiment import Study, list_configs, load_config
from precbench.report.ledger_tables import (
    change_table,
    claims_table,
    counts_table,
    ledger_markdown,
    missing_table,
    open_table,
)
from precbench.results.read import plain_strings
from precbench.results.store import Store


@plain_strings
def check_results(
    results: Annotated[
        list[Path],
        typer.Argument(help="Folders of results, or of single experiments in them."),
    ],
    update_reference: Annotated[
        bool,
        typer.Option(
            "--update-reference", help="Store the verdicts in the --reference CSV."
        ),
    ] = False,
    reference: Annotated[
        Path | None,
        typer.Option(help="CSV of verdicts to compare with [default: shipped CSV]."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Folder to write ledger.csv, .json, .md to [default: first of RESULTS]."
            )
        ),
    ] = None,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all", help="Show all claims, not only claims about these results."
        ),
    ] = False,
    paper: Annotated[
        str | None,
        typer.Option(help="Show only the claims of this paper, for example kar2015."),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            help='Show only the claims with this verdict, for example "not reproduced".'
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Report for each published number whether the results reproduce it.

    Lists the claims that these results concern, best verdicts last; the ledger files
    contain all claims. Numbers that follow from definitions alone are computed on the
    fly. Claims that the results cannot decide (stand-in data, smoke size, too few runs)
    are not compared.

    Exit code 4: a verdict is worse than in the reference, or there are no results.

    \b
    Examples:
      precbench check results/
      precbench check results/ --paper kar2015 --verdict "trend only"
      precbench list claims --paper rudin2009 --verdict "not reproduced"
    """
    claims = load_claims()
    refuse_unknown("paper", paper, sorted({claim.paper for claim in claims}))
    refuse_unknown("verdict", verdict, [*map(str, Verdict)])
    path = reference or reference_path()
    if not path.exists() and not update_reference:
        raise InputError(
            f"reference {path} is missing; add --update-reference to write it"
        )
    old_reference = read_ledger(path) if path.exists() else []
    evidence = read_evidence(results)
    # Names of the experiments and studies in the results; others are added below.
    measured = {*evidence.outcomes, *evidence.values}
    # Numbers that follow from definitions alone need no results.
    evidence.values.update(_quick_studies(claims))
    ledger = make_ledger(claims, evidence)
    # An old verdict stays in the reference where there are too few runs now.
    new_reference = updated(ledger, old_reference)
    compared = new_reference if update_reference else ledger
    changed = list(changes(compared, old_reference))
    files = _write_ledger(ledger, out or results[0])
    if as_json:
        print(to_json(ledger), end="")
    else:
        if show_all or paper is not None or verdict is not None:
            rows = _chosen(ledger, paper, verdict)
        else:
            concerned = {claim.id for claim in claims if claim.experiment in measured}
            rows = [row for row in ledger if row.id in concerned]
        _print_claims(rows, verdict, n_others=len(ledger) - len(rows))
        if changed:
            print_table(change_table(changed))
        for file in files:
            print(f"ledger: {file}")
    if update_reference:
        path.parent.mkdir(parents=True, exist_ok=True)
        Store(path.parent).write_text(path.name, to_csv(new_reference))
        return 0
    if not evidence.has_results:
        places = ", ".join(map(str, results))
        print(
            f"precbench: no results in {places}; run an experiment first",
            file=sys.stderr,
        )
        return REGRESSED
    return report_regressions(changed)


def _write_ledger(ledger: Sequence[LedgerRow], folder: Path) -> list[Path]:
    """Write the ledger as CSV, JSON and Markdown, and return the paths."""
    store = Store(folder)  # writes files whole or not at all
    store.folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "ledger.csv": to_csv(ledger),
        "ledger.json": to_json(ledger),
        "ledger.md": ledger_markdown(ledger),
    }
    for name, text in texts.items():
        store.write_text(name, text)
    return [store.folder / name for name in texts]


def _chosen(
    ledger: Sequence[LedgerRow], paper: str | None, verdict: str | None
) -> list[LedgerRow]:
    """Return the rows of a paper with a verdict; None means any."""
    rows = list(ledger)
    if paper is not None:
        rows = [row for row in rows if row.paper == paper]
    if verdict is not None:
        rows = [row for row in rows if row.verdict == verdict]
    return rows


def _print_claims(
    rows: Sequence[LedgerRow], verdict: str | None, *, n_others: int
) -> None:
    """Print the claims of `rows`, those of one verdict in a single table.

    A line says how many claims are not among them (`n_others`).
    """
    if verdict is None:
        _print_by_kind(rows)
    else:
        title = f"{verdict.capitalize()}: {len(rows)}"
        print_table(claims_table(rows, title))
    if n_others > 0:
        screen().print(
            f"{n_others:,} other claims: list them with --all, --paper or"
            " --verdict, decide them with precbench reproduce"
        )


def _print_by_kind(rows: Sequence[LedgerRow]) -> None:
    """Print the claims that are open, those not measured, and the counts of all."""
    if not rows:
        print("no published claim concerns these results")
        return
    for table in (open_table(rows), missing_table(rows), counts_table(rows)):
        if table.rows:
            print_table(table)


def _quick_studies(claims: Sequence[Claim]) -> dict[str, pd.DataFrame]:
    """Return the values, by name, of the quick studies that claims read.

    A quick study needs no data.
    """
    names = {claim.config for claim in claims if claim.reads_study}
    values = {}
    for name in sorted(names.intersection(list_configs())):
        config = load_config(name)
        if isinstance(config, Study) and config.is_quick:
            values[config.name] = config.compute()
    return values
