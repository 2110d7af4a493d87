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


def _solvers() -> list[dict[str, Any]]:  # for precbench list solvers
    from precbench.solvers import SOLVERS

    return [
        {
            "name": name,
            "about": _about_solver(name),
            "parameters": {
                k: v for k, v in solver().get_params().items() if k != "random_state"
            },
        }
        for name, solver in SOLVERS.items()
    ]


def _about_solver(name: str) -> str:
    """Describe a solver.

    First line of the docstring, preset parameters, and required package.
    """
    from precbench.solvers import SOLVERS

    preset = getattr(SOLVERS[name], "keywords", {})  # a variant is a functools.partial
    details = [
        ", ".join(f"{parameter}: {value}" for parameter, value in preset.items()),
        f"package {package}" if (package := SOLVERS.package(name)) else "",
    ]
    # A variant has no docstring of its own: the class of an instance has the docstring.
    return first_line(type(SOLVERS[name]())) + "".join(
        f" ({text})" for text in details if text
    )


def _metrics() -> list[dict[str, Any]]:  # for precbench list metrics
    from precbench.ranking.metrics import METRICS

    return [
        {
            "name": name,
            "about": first_line(metric),
            # after labels, scores
            "parameters": list(inspect.signature(metric).parameters)[2:],
        }
        for name, metric in METRICS.items()
    ]


def _datasets() -> list[dict[str, Any]]:  # for precbench list datasets
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


def _configs() -> list[dict[str, Any]]:  # for precbench list configs
    from precbench.experiment import list_configs, load_config

    configs = {name: load_config(name) for name in list_configs()}
    return [
        {
            "name": name,
            "about": config.title + (f" ({config.source})" if config.source else ""),
            "tags": config.tags,
        }
        for name, config in configs.items()
    ]


def _claims() -> list[dict[str, Any]]:
    """Return the fields of all claims, with their committed verdicts."""
    from precbench.claims import load_claims
    from precbench.claims.ledger import read_ledger, reference_path

    path = reference_path()
    verdicts = (
        {row.id: row.verdict for row in read_ledger(path)} if path.exists() else {}
    )
    return [
        {
            "name": claim.id,
            "about": (
                f"{verdicts.get(claim.id, '')}: {claim.where}: {claim.printed}"
                + (f" ({claim.says})" if claim.says else "")
            ),
            "verdict": verdicts.get(claim.id, ""),
            "place": claim.place,
            **claim.model_dump(mode="json", exclude_none=True),
            "paper": claim.paper,  # a property, like place: the dump contains neither
        }
        for claim in load_claims()
    ]


def _deviations() -> list[dict[str, Any]]:  # for precbench list deviations
    from precbench.claims import load_deviations

    return [
        {
            "name": name,
            "about": (
                f"{d.paper}, {d.where}. Paper: {d.says}. Here: {d.ours}. See:"
                f" {d.evidence}"
            ),
            **d.model_dump(),
        }
        for name, d in load_deviations().items()
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
    all_members = members = _LISTS[what]()
    for option, value in {"paper": paper, "table": table, "verdict": verdict}.items():
        if value is None:
            continue
        # name of the value in each member
        key = "place" if option == "table" else option
        known = sorted({str(member[key]) for member in all_members if key in member})
        if not known:
            raise InputError(
                f"the option --{option} selects claims, not {what}; leave it out"
            )
        if option == "verdict":  # also verdicts that no claim has now
            from precbench.claims.verdicts import Verdict

            known = [*map(str, Verdict)]
        refuse_unknown(option, value, known)
        members = [member for member in members if member[key] == value]
    if as_json:
        print(json.dumps(members, indent=1))
        return
    width = max((len(member["name"]) for member in members), default=0)
    for member in members:
        print(f"{member['name']:{width}}  {member['about']}")
