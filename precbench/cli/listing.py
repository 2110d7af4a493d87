"""``precbench list``.

A function for each list returns the members, described in "about".
"""

import inspect
import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from precbench.cli.options import Json, refuse_unknown
from precbench.core.errors import InputError
from precbench.core.text import first_line


def _solvers() -> list[dict[str, Any]]:
    from precbench.solvers import SOLVERS

    members = []
    for name, solver in SOLVERS.items():
        parameters = solver().get_params()
        parameters.pop("random_state", None)
        members.append(
            {"name": name, "about": _about_solver(name), "parameters": parameters}
        )
    return members


def _about_solver(name: str) -> str:
    """Return the first line of a solver's docstring, presets and required package."""
    from precbench.solvers import SOLVERS

    # A variant is a functools.partial, without a docstring of its own.
    text = first_line(type(SOLVERS[name]()))
    presets = getattr(SOLVERS[name], "keywords", {})  # those of a variant
    if presets:
        values = [f"{parameter}: {value}" for parameter, value in presets.items()]
        text += f" ({', '.join(values)})"
    package = SOLVERS.package(name)
    if package:
        text += f" (package {package})"
    return text


def _metrics() -> list[dict[str, Any]]:
    from precbench.ranking.metrics import METRICS

    members = []
    for name, metric in METRICS.items():
        _labels, _scores, *parameters = inspect.signature(metric).parameters
        members.append(
            {"name": name, "about": first_line(metric), "parameters": parameters}
        )
    return members


def _datasets() -> list[dict[str, Any]]:
    from precbench.data import DATASETS

    return [
        {
            "name": name,
            "about": (
                f"{card.title}: {card.rows:,} x {card.features}, "
                f"{card.positives / card.rows:.2%} positive"
            ),
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
        title = config.title
        if config.source:
            title = f"{title} ({config.source})"
        members.append({"name": name, "about": title, "tags": config.tags})
    return members


def _claims() -> list[dict[str, Any]]:
    """Return the fields of all claims, with their committed verdicts."""
    from precbench.claims import load_claims
    from precbench.claims.ledger import read_ledger, reference_path

    path = reference_path()
    verdicts: dict[str, str] = {}
    if path.exists():
        verdicts = {row.id: row.verdict for row in read_ledger(path)}
    members = []
    for claim in load_claims():
        verdict = verdicts.get(claim.id, "")
        text = f"{verdict}: {claim.where}: {claim.printed}"
        if claim.says:
            text = f"{text} ({claim.says})"
        # Place and paper are properties, which a dump leaves out.
        members.append(
            {
                "name": claim.id,
                "about": text,
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
            "about": (
                f"{deviation.paper}, {deviation.where}. Paper: {deviation.says}. Here:"
                f" {deviation.ours}. See: {deviation.evidence}"
            ),
            **deviation.model_dump(),
        }
        for name, deviation in load_deviations().items()
    ]


_LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "solvers": _solvers,
    "datasets": _datasets,
    "metrics": _metrics,
    "configs": _configs,
    "claims": _claims,
    "deviations": _deviations,
}


def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="List solvers, datasets, metrics, configs, claims or deviations."
        ),
    ],
    paper: Annotated[
        str | None,
        typer.Option(
            help="Only claims or deviations of this paper, such as rudin2009."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Only claims at this place, for example table-3 or section-8."
        ),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            help='Only claims with this verdict, for example "not reproduced".'
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List solvers, data sets, metrics, configs, claims or deviations, a line for each.

    Claims are published numbers and sentences, listed with their verdicts in the
    committed reference. Deviations are the places where an implementation deliberately
    differs from its paper, each with the command that shows why.

    With --json the list includes the parameters of solvers (with defaults) and metrics,
    the sizes of data sets, and all details of claims.

    \b
    Examples:
      precbench list configs
      precbench list solvers --json
      precbench list claims --paper rudin2009 --verdict "not reproduced"
    """
    refuse_unknown("list", what, _LISTS)
    all_members = _LISTS[what]()
    wanted: dict[str, str] = {}  # values by field
    if paper is not None:
        wanted["paper"] = paper
    if table is not None:
        wanted["place"] = table
    if verdict is not None:
        wanted["verdict"] = verdict
    for field, value in wanted.items():
        _refuse_unknown_value(field, value, all_members, what)
    # A member is listed if each wanted field has the wanted value.
    members = [member for member in all_members if wanted.items() <= member.items()]
    if as_json:
        print(json.dumps(members, indent=1))
        return
    width = max((len(member["name"]) for member in members), default=0)
    for member in members:
        print(f"{member['name']:{width}}  {member['about']}")


def _refuse_unknown_value(
    field: str, value: str, members: list[dict[str, Any]], what: str
) -> None:
    """Raise if no member of the list `what` has, or can have, a value of a field."""
    option = "table" if field == "place" else field
    known = sorted({str(member[field]) for member in members if field in member})
    if not known:
        raise InputError(
            f"the option --{option} selects claims, not {what}; leave it out"
        )
    if field == "verdict":
        from precbench.claims.verdicts import Verdict

        known = list(map(str, Verdict))  # also those that no claim has now
    refuse_unknown(option, value, known)
