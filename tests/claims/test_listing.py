"""``precbench list`` of claims and deviations."""

import json
from itertools import product

import pytest

from precbench.claims import load_deviations
from tests.helpers import succeed
from tests.sentences import refused


def listed(*options):
    result = succeed("list", *options, "--json")
    return json.loads(result.stdout)


def test_claims_are_listed_by_paper_place_and_verdict(claims, reference, monkeypatch):
    monkeypatch.setattr("precbench.claims.load_claims", lambda: claims)
    everything = listed("claims")
    assert [member["name"] for member in everything] == [c.id for c in claims]
    for member in everything:
        assert member["verdict"] == reference[member["name"]].verdict
        assert (member["paper"], member["place"]) == tuple(member["name"].split("/")[:2])
        assert member["printed"] in member["about"] and member["where"] in member["about"]
    for options in product((None, "kar2014"), (None, "table-2"), (None, "not reproduced")):
        keys = ("paper", "place", "verdict")
        wanted = {key: str(value) for key, value in zip(keys, options, strict=True) if value}
        expected = [m for m in everything if wanted.items() <= m.items()]
        given_options = [
            part
            for key, value in wanted.items()
            for part in ("--table" if key == "place" else f"--{key}", value)
        ]
        assert listed("claims", *given_options) == expected
    assert len(listed("claims", "--paper", "rudin2009", "--table", "table-2")) == 90


def test_deviations_are_listed():
    members = {member["name"]: member for member in listed("deviations")}
    assert set(members) == set(load_deviations())
    about = members["half-scores"]["about"]
    assert "rudin2009" in about and "precbench run rudin2009/tables-1-2" in about
    of_paper = listed("deviations", "--paper", "gultekin")
    theirs = [d for d in load_deviations().values() if d.paper == "gultekin"]
    assert {member["paper"] for member in of_paper} == {"gultekin"}
    assert len(of_paper) == len(theirs)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["claims", "--paper", "rudin"], "'rudin' 'rudin2009'"),
        (["claims", "--table", "tabel-3"], "'table-3'"),
        (["claims", "--verdict", "not reprodced"], "'not reproduced'"),
        (["claims", "--verdict", "x"], "'x'"),
        (["solvers", "--paper", "rudin2009"], "solvers paper"),
        (["deviations", "--verdict", "no data"], "deviations verdict"),
        (["claim"], "'claim' 'claims'"),
    ],
)
def test_unknown_values_of_filters(arguments, what):
    refused(["list", *arguments], what)
