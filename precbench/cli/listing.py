"""``precbench list``."""

import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from precbench.errors import InputError
from precbench.strict_yaml import did_you_mean


def list_members(what: str, as_json: bool) -> None:
    """Print the members of a registry, each with one line about it."""
    if what not in _LISTS:
        known = ", ".join(_LISTS)
        raise InputError(f"nothing to list called {what!r}{did_you_mean(what, _LISTS)}: {known}")
    members = _LISTS[what]()
    if as_json:
        print(json.dumps(members, indent=1))
        return
    width = max(len(str(member["name"])) for member in members)
    for member in members:
        print(f"{member['name']:{width}}  {member['about']}")


def _solvers() -> list[dict[str, Any]]:
    from precbench.solvers import SOLVERS

    return [
        {
            "name": name,
            "about": _first_line(type(solver())) + _preset(solver),
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
        members.append({"name": name, "about": f"{config.title}{source}"})
    return members


_LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "solvers": _solvers,
    "datasets": _datasets,
    "metrics": _metrics,
    "configs": _configs,
}


def _preset(solver: Callable[..., Any]) -> str:
    if not isinstance(solver, partial):
        return ""
    return f" ({', '.join(f'{name}: {value}' for name, value in solver.keywords.items())})"


def _first_line(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]
