"""The schema for editors: it accepts the shipped configs, and sees the mistakes of one key."""

import copy
import json

import jsonschema
import pytest

from precbench.experiment import list_configs
from precbench.experiment.schema import config_schema
from precbench.locations import shipped
from precbench.yaml.document import load
from tests.helpers import invoke


@pytest.fixture(scope="module")
def validator():
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def config(name):
    return load(shipped("configs") / f"{name}.yaml").data


def test_shipped_configs_are_accepted(validator):
    for name in list_configs():
        assert [error.message for error in validator.iter_errors(config(name))] == [], name


def test_the_command_prints_it():
    assert json.loads(invoke("schema").stdout) == config_schema()


@pytest.mark.parametrize(("place", "value"), [
    (("protocl",), {}), (("datasets", 0), "leter"),
    (("datasets", 0), {"name": "letter", "on_mising": "skip"}),
    (("metrics", 0), {"precision_at_k": {"kk": 3}}), (("solvers", "sgd-avg"), {"eta": 1}),
    (("solvers", "sgd-agv"), None), (("solvers", "mine"), {"solver": "bbr", "eta0": 1}),
    (("solvers",), {}), (("protocol", "n_splits"), 0),
])  # fmt: skip
def test_mistakes_are_seen(place, value, validator):
    document = copy.deepcopy(config("letter"))
    *path, last = place
    parent = document
    for key in path:
        parent = parent.setdefault(key, {}) if isinstance(parent, dict) else parent[key]
    parent[last] = value
    assert not validator.is_valid(document)
