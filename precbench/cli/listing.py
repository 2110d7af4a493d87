"""``precbench list``."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from precbench.cli.options import Json
from precbench.cli.screen import screen
from precbench.errors import InputError, did_you_mean


def list_members(what: str, as_json: bool, wanted: Mapping[str, str | None]) -> None:
    """Print the selected members of a registry, one line for each."""
    if what not in _LISTS:
        known = ", ".join(_LISTS)
        raise InputError(f"cannot list {what!r}{did_you_mean(what, _LISTS)}; choose from {known}")
    members = _LISTS[what]()
    chosen = {key: value for key, value in wanted.items() if value is not None}
    for key, value in chosen.items():
        _refuse_unknown(members, key, value, what)
    members = [m for m in members if all(m.get(key) == value for key, value in chosen.items())]
    if as_json:
        print(json.dumps(members, indent=1))
        return
    console = screen()
    width = max((len(member["name"]) for member in members), default=0)
    grid = Table.grid(padding=(0, 2))
    for member in members:
        if console.is_terminal:
            grid.add_row(member["name"], member["about"])
        else:
            print(f"{member['name']:{width}}  {member['about']}")
    if console.is_terminal:
        console.print(grid, soft_wrap=False)


def _solvers() -> list[dict[str, Any]]:
    from precbench.solvers import SOLVERS

    return [
        {
            "name": name,
            "about": _first_line(type(solver())) + _preset(solver) + _origin(SOLVERS.package(name)),
            "parameters": {k: v for k, v in solver().get_params().items() if k != "random_state"},
        }
        for name, solver in SOLVERS.items()
    ]


def _metrics() -> list[dict[str, Any]]:
    from precbench.metrics import METRICS

    return [
        {
            "name": name,
            "about": _first_line(metric),
            "parameters": list(inspect.signature(metric).parameters)[2:],
        }
        for name, metric in METRICS.items()
    ]


def _datasets() -> list[dict[str, Any]]:
    from precbench.data import DATASETS

    return [
        {
            "name": name,
            "about": f"{card.title}: {card.rows:,} x {card.features}, "
            f"{card.positives / card.rows:.2%} positive",
            "rows": card.rows,
            "features": card.features,
            "positives": card.positives,
        }
        for name, card in DATASETS.items()
    ]


def _configs() -> list[dict[str, Any]]:
    from precbench.experiment import list_configs, load_config

    members = []
    for name in list_configs():
        config = load_config(name)
        source = f" ({config.source})" if config.source else ""
        members.append({"name": name, "about": f"{config.title}{source}", "tags": config.tags})
    return members


def _claims() -> list[dict[str, Any]]:
    from precbench.claims import load_claims
    from precbench.claims.ledger import read_ledger, reference_path

    path = reference_path()
    verdicts = {row.id: row.verdict for row in read_ledger(path)} if path.exists() else {}
    members = []
    for claim in load_claims():
        verdict = verdicts.get(claim.id, "")
        says = f" ({claim.says})" if claim.says else ""
        members.append(
            {
                "name": claim.id,
                "about": f"{verdict}: {claim.where}: {claim.printed}{says}",
                "verdict": verdict,
                "place": claim.place,
                **claim.model_dump(mode="json", exclude_none=True),
                "paper": claim.paper,
            }
        )
    return members


def _deviations() -> list[dict[str, Any]]:
    from precbench.claims import load_deviations

    return [
        {
            "name": name,
            "about": f"{d.paper}, {d.where}. Paper: {d.says}. Here: {d.ours}. See: {d.evidence}",
            **d.model_dump(),
        }
        for name, d in load_deviations().items()
    ]


def _refuse_unknown(members: Iterable[Mapping[str, Any]], key: str, value: str, what: str) -> None:
    """Refuse a value that no member can have; a possible one may select no member."""
    option = "table" if key == "place" else key
    known = sorted({str(member[key]) for member in members if key in member})
    if not known:
        raise InputError(f"{what} cannot be selected by {option}")
    if key == "verdict":
        from precbench.claims.verdicts import Verdict

        known = [verdict.value for verdict in Verdict]
    if value not in known:
        raise InputError(
            f"unknown {option} {value!r}{did_you_mean(value, known)}; "
            f"choose from {', '.join(known)}"
        )


_LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "solvers": _solvers,
    "datasets": _datasets,
    "metrics": _metrics,
    "configs": _configs,
    "claims": _claims,
    "deviations": _deviations,
}


def _preset(solver: Callable[..., Any]) -> str:
    changed = getattr(solver, "keywords", {})
    listed = ", ".join(f"{name}: {value}" for name, value in changed.items())
    return f" ({listed})" if listed else ""


def _origin(package: str) -> str:
    return f" (package {package})" if package else ""


def _first_line(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def list_(
    what: Annotated[
        str, typer.Argument(help="solvers, datasets, metrics, configs, claims or deviations.")
    ],
    paper: Annotated[
        str | None, typer.Option(help="Only claims of this paper, for example rudin2009.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="Only claims at this place, for example table-3 or section-8."),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(help='Only claims with this verdict, for example "not reproduced".'),
    ] = None,
    as_json: Json = False,
) -> None:
    """List solvers, data sets, metrics, configs, claims or deviations, one line for each.

    Claims are published numbers and sentences, listed with their verdicts in the committed
    reference. Deviations are the places where an implementation deliberately differs from its
    paper, each with the command that shows why.

    With --json the list includes the parameters of solvers (with defaults) and metrics, the
    sizes of data sets, and all details of claims.

    \b
    Examples:
      precbench list configs
      precbench list solvers --json
      precbench list claims --paper rudin2009 --verdict "not reproduced"
    """
    list_members(what, as_json, {"paper": paper, "place": table, "verdict": verdict})
