"""``precbench check``."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from precbench.claims import load_claims, make_ledger, read_evidence
from precbench.claims.kinds import BoundClaim, Claim, ExactClaim
from precbench.claims.ledger import (
    changes,
    read_ledger,
    reference_path,
    rewritten,
    to_csv,
    to_json,
    updated,
)
from precbench.cli.screen import screen
from precbench.errors import InputError
from precbench.experiment import Study, list_configs, load_config
from precbench.report.ledger import (
    change_table,
    counts_table,
    ledger_markdown,
    missing_table,
    open_tables,
)
from precbench.report.tables import console_table
from precbench.store import Store

_REGRESSED = 4
_WIDTH_IN_A_PIPE = 190


@dataclass(frozen=True)
class CheckOptions:
    """The options of the command."""

    out: Path | None
    reference: Path | None
    update_reference: bool
    as_json: bool


def check_results(folders: Sequence[Path], options: CheckOptions) -> int:
    """Judge the results in these folders, compare with the reference, return the exit code."""
    path = options.reference or reference_path()
    if not path.exists() and not options.update_reference:
        raise InputError(f"there is no reference {path}: --update-reference creates one")
    reference = read_ledger(path) if path.exists() else []
    claims, evidence = load_claims(), read_evidence(folders)
    evidence.values.update(_computed(claims))
    ledger = make_ledger(claims, evidence)
    new_reference = updated(ledger, reference)
    if options.update_reference:
        changed = rewritten(new_reference, reference) if reference else []
    else:
        changed = changes(ledger, reference)

    out = Store(options.out or folders[0])
    out.folder.mkdir(parents=True, exist_ok=True)
    texts = {"csv": to_csv(ledger), "json": to_json(ledger), "md": ledger_markdown(ledger)}
    for suffix, text in texts.items():
        out.write_text(f"ledger.{suffix}", text)
    if options.as_json:
        print(texts["json"], end="")
    else:
        tables = [*open_tables(ledger), missing_table(ledger), counts_table(ledger)]
        for table in [*tables, change_table(changed)] if changed else tables:
            screen(width_in_a_pipe=_WIDTH_IN_A_PIPE).print(console_table(table))
        print("\n".join(f"ledger: {out.folder / f'ledger.{suffix}'}" for suffix in texts))
    if options.update_reference:
        path.parent.mkdir(parents=True, exist_ok=True)
        Store(path.parent).write_text(path.name, to_csv(new_reference))
        return 0
    if not evidence.found:
        names = ", ".join(map(str, folders))
        print(f"precbench: nothing was measured: {names} holds no results", file=sys.stderr)
        return _REGRESSED
    worse = [change for change in changed if change.worse]
    for change in worse:
        print(f"precbench: {change.id} was {change.before}, is {change.after}", file=sys.stderr)
    return _REGRESSED if worse else 0


def _computed(claims: Sequence[Claim]) -> dict[str, pd.DataFrame]:
    """Return the tables of the studies that are quick and need no data, by name."""
    wanted = {claim.config for claim in claims if isinstance(claim, ExactClaim | BoundClaim)}
    configs = (load_config(name) for name in sorted(wanted & set(list_configs())))
    quick = (config for config in configs if isinstance(config, Study) and config.is_quick)
    return {config.name: config.compute() for config in quick}
