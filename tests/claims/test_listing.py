"""``precbench list`` of claims and deviations."""

import json
from itertools import chain, product

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
    keys = ("paper", "place", "verdict")
    for values in product((None, "kar2014"), (None, "table-2"), (None, "not reproduced")):
        wanted = {key: value for key, value in zip(keys, values, strict=True) if value}
        options = [(f"--{key}".replace("place", "table"), value) for key, value in wanted.items()]
        expected = [member for member in everything if wanted.items() <= member.items()]
        assert listed("claims", *chain(*options)) == expected


def test_deviations_are_listed():
    members = {member["name"]: member for member in listed("deviations")}
    deviations = load_deviations()
    assert set(members) == set(deviations)
    about = members["half-scores"]["about"]
    assert "rudin2009" in about and "precbench run rudin2009/tables-1-2" in about
    of_paper = {member["name"] for member in listed("deviations", "--paper", "gultekin")}
    assert of_paper == {name for name, d in deviations.items() if d.paper == "gultekin"}


@pytest.mark.parametrize(("arguments", "what"), [
    (["claims", "--paper", "rudin"], "'rudin' 'rudin2009'"),
    (["claims", "--table", "tabel-3"], "'table-3'"),
    (["claims", "--verdict", "not reprodced"], "'not reproduced'"),
    (["claims", "--verdict", "x"], "'x'"), (["solvers", "--paper", "rudin2009"], "solvers paper"),
    (["deviations", "--verdict", "no data"], "deviations verdict"), (["claim"], "'claim' 'claims'"),
])  # fmt: skip
def test_unknown_values_of_filters(arguments, what):
    refused(["list", *arguments], what)
