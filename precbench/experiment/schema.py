"""A JSON Schema of config files, for completion and validation in editors."""

from typing import Any

from precbench.core.text import first_line
from precbench.data import DATASETS
from precbench.experiment.config import Experiment, Study
from precbench.experiment.sections import solver_defaults
from precbench.ranking.metrics import METRICS
from precbench.solvers import SOLVERS

_TEXT = {"type": "string"}
_LABELLED = {"$ref": "#/$defs/LabelledSolver"}


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config file.

    It has the members of all registries, and accepts what `load_config` accepts, which
    alone checks what depends on several keys, or data.
    """
    # Pydantic's schemas know types only. Other forms and the registries' names are
    # added to them.
    experiment = Experiment.model_json_schema()
    study = Study.model_json_schema()
    card_names = {"enum": list(DATASETS)}

    definitions = experiment.pop("$defs")
    definitions["Metric"] = _metric()
    definitions["NamedData"]["properties"]["name"] = card_names
    definitions["StreamedCard"]["properties"]["name"] = card_names
    for name in ("FileData", "StreamedFile"):
        definitions[name]["required"].remove("name")  # by default the name of the file
    # a list of any items
    definitions["Protocol"]["properties"]["splits"] = {"type": ["array", "null"]}
    shared = definitions.pop("SolverEntry")["properties"]
    del shared["params"]
    definitions["LabelledSolver"] = _labelled(shared)  # a label with the key `solver`

    properties = experiment["properties"]
    mappings = properties["datasets"]["items"]["anyOf"]
    properties["datasets"] = _listed({"anyOf": [card_names, *mappings]})
    properties["metrics"] = _listed({"$ref": "#/$defs/Metric"})
    properties["solvers"] = {
        "type": "object",
        "minProperties": 1,
        "description": (
            "Labels, with the solver (by default the label) and its parameters."
        ),
        "properties": {name: _solver(name, shared) for name in SOLVERS},
        "additionalProperties": _LABELLED,  # a label that is no name of a solver
    }
    properties["highlight"] |= {"anyOf": [_TEXT, _listed(_TEXT)]}
    for key in ("type", "items"):
        del properties["highlight"][key]
    properties["extends"] = _TEXT | {
        "description": (
            "A file beside this one, or a shipped config, whose keys hold here unless"
            " this file has them; null removes one."
        )
    }
    experiment["required"] = []  # keys may be in the file that this file extends
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "precbench config",
        "$defs": definitions,
        "if": {"required": ["study"]},
        "then": study,
        "else": experiment,
    }


def _listed(items: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "minItems": 1, "items": items}


def _metric() -> dict[str, Any]:
    """Return the schema of a metric: a name, or ``{name: {parameters}}``."""
    with_parameters = {}
    for name, spec in METRICS.items():
        parameters = {key: _default(value) for key, value in spec.parameters.items()}
        with_parameters[name] = {
            "type": "object",
            "properties": parameters,
            "additionalProperties": False,
            "description": first_line(spec.function),
        }
    names = {"enum": list(METRICS)}
    mapping = {
        "type": "object",
        "properties": with_parameters,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }
    return {"anyOf": [names, mapping]}


def _solver(name: str, shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema below a solver's name, where `solver` may name another."""
    parameters = {
        param: _default(value) for param, value in solver_defaults(name).items()
    }
    return {
        "description": first_line(type(SOLVERS[name]())),
        "if": {"type": "object", "required": ["solver"]},
        "then": _LABELLED,
        "else": {
            "type": ["object", "null"],
            "properties": shared | parameters,
            "additionalProperties": False,
        },
    }


def _labelled(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema below any label: `solver`, shared keys, and parameters."""
    cases = []
    for name in SOLVERS:
        names_solver = {
            "properties": {"solver": {"const": name}},
            "required": ["solver"],
        }
        keys: dict[str, Any] = {key: {} for key in (*shared, *solver_defaults(name))}
        has_its_keys = {"properties": keys, "additionalProperties": False}
        cases.append({"if": names_solver, "then": has_its_keys})
    own_class = {"type": "string", "pattern": r"\.py:[A-Za-z_]\w*$"}
    solvers = [{"enum": list(SOLVERS)}, own_class]
    return {
        "type": "object",
        "properties": shared | {"solver": {"anyOf": solvers}},
        "required": ["solver"],
        "allOf": cases,
    }


def _default(value: Any) -> dict[str, Any]:
    """Return the default in a schema, {} where it is no plain value."""
    if isinstance(value, str | int | float | bool | None):
        return {"default": value}
    return {}
