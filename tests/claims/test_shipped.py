"""The shipped claims: what could decide them, and their verdicts in the reference."""

import re
import shlex
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from precbench.claims import load_deviations, make_ledger, read_evidence
from precbench.claims.evidence import WALL_SECONDS, Evidence
from precbench.claims.kinds.mean import MeanClaim
from precbench.claims.kinds.measured import (
    FactClaim,
    OrderClaim,
    RatioClaim,
    VariationClaim,
)
from precbench.claims.kinds.stated import ExactClaim, StatementClaim
from precbench.claims.verdicts import (
    MIN_REPETITIONS,
    MIN_SPLITS,
    Verdict,
    parse_printed,
)
from precbench.data import DATASETS
from precbench.experiment import Study, list_configs, load_config
from precbench.solvers import SOLVERS
from scripts import power
from tests.claims.helpers import HOUSING, REPRODUCED, write_results
from tests.helpers import ROOT


@pytest.mark.parametrize("name", [name for name in list_configs() if "/" in name])
def test_a_column_is_of_the_parameter_that_its_label_names(name):
    config = load_config(name)
    names = {"K": "top_negatives", "r": "radius"}
    for label, entry in getattr(config, "solvers", {}).items():
        params = SOLVERS[entry.solver]().get_params() | entry.params
        if entry.solver == "rankboost":
            params["p"] = 1.0
        for written, value in re.findall(r"(\w+) ?= ?([0-9.]+)\b(?! %)", label):
            assert params[names.get(written, written)] == float(value), label


def obstacle(claim, configs):
    """Return why no results of the claim's config could decide it, or nothing."""
    if claim.untested or isinstance(claim, StatementClaim):
        return claim.untested
    config = configs.get(claim.config)
    if config is None:
        return f"there is no config {claim.config}"
    if isinstance(config, Study) != claim.reads_study:
        return f"{claim.config} has no values of this kind"
    if isinstance(config, Study):
        return ""
    lacks = set(claim.data) - {entry.name for entry in config.datasets}
    if lacks:
        return f"no data set {', '.join(sorted(lacks))}"
    if isinstance(claim, FactClaim):
        return ""
    lacks = set(claim.labels) - set(config.solvers)
    if lacks:
        return f"no solver {', '.join(sorted(lacks))}"
    if compares_points(claim):
        lacks = points_of(claim) - points_in(config)
        if lacks:
            return f"no point {', '.join(sorted(lacks))}"
        return lacking_checkpoint(claim, config)
    if isinstance(claim, RatioClaim) or claim.metric == WALL_SECONDS:
        return "times of several points of a sweep" if config.sweep is not None else ""
    n = number_of_times(claim.metric, config)
    if n != 1:
        return f"{n} times the metric {claim.metric}"
    part = getattr(claim, "part", "test")
    if part not in config.parts:
        return f"no {part} part"
    return lacking_checkpoint(claim, config)


def compares_points(claim):
    """Return whether a claim is about points of a sweep."""
    return (
        isinstance(claim, VariationClaim)
        or getattr(claim, "of", "") == "variation"
        or bool(points_of(claim))
    )


def points_of(claim):
    """Return the points of a sweep that a claim names."""
    points = {getattr(claim, "at", ""), getattr(claim, "worse_at", "")}
    points.update(getattr(claim, "points", ()))
    return points - {""}


def points_in(config):
    [(name, values)] = config.sweep.items()
    return {f"{name}={value}" for value in values}


def number_of_times(metric, config):
    """Return how often a config measures a metric, at any point of its sweep."""
    labels = [
        measured.label
        for point in config.sweep_points()
        for measured in config.metrics_at(point)
    ]
    return labels.count(metric)


def lacking_checkpoint(claim, config):
    places = config.checkpoints if isinstance(config.checkpoints, tuple) else ()
    for field in ("checkpoint", "worse_checkpoint"):
        checkpoint = getattr(claim, field, None)
        if checkpoint not in (None, "last") and checkpoint > len(places):
            return f"no checkpoint {checkpoint}"
    return ""


@pytest.fixture(scope="module")
def configs():
    return {name: load_config(name) for name in list_configs()}


def test_every_testable_claim_has_a_config_that_could_decide_it(claims, configs):
    obstacles = {c.id: obstacle(c, configs) for c in claims}
    assert {name: why for name, why in obstacles.items() if why} == {}


def test_the_experiment_of_a_claim_is_that_of_its_config(claims, configs):
    for c in claims:
        if c.config in configs:
            assert configs[c.config].name == c.experiment, c.id


def test_deviations_are_used_and_their_evidence_exists(claims):
    deviations = load_deviations()
    assert {name for c in claims for name in c.all_deviations()} == set(deviations)
    papers = {(name, c.paper) for c in claims for name in c.all_deviations()}
    for name, deviation in deviations.items():
        assert (name, deviation.paper) in papers
        match shlex.split(deviation.evidence):
            case ["precbench", "run", config] | [
                "precbench",
                "run",
                config,
                "--timing",
            ]:
                assert config in list_configs(), name
            case ["precbench", "data", "info", dataset]:
                assert dataset in DATASETS, name
            case ["python", "-c", code]:
                compile(code, name, "exec")
            case ["pytest", file, "-k", word]:
                text = (ROOT / file).read_text()
                assert re.search(rf"def test_\w*{word}", text), name
            case other:
                pytest.fail(f"{name}: {other}")


def test_reference_has_the_claims_in_their_order(claims, reference):
    assert list(reference) == [c.id for c in claims]


def test_reference_quotes_the_claims(claims, reference):
    for c in claims:
        row = reference[c.id]
        assert row.paper == c.paper, c.id
        assert row.where == c.where, c.id
        assert row.kind == c.kind, c.id
        assert row.printed == c.printed, c.id


def test_deviations_in_the_reference_are_those_of_the_claims(claims, reference):
    for c in claims:
        row = reference[c.id]
        names = set(row.deviation.split())
        assert names >= set(c.deviations), c.id
        assert names <= set(c.all_deviations()), c.id
        # Of the readings that a number allows at most the one counts that agreed.
        n_readings = len(names - set(c.deviations))
        assert n_readings <= (1 if isinstance(c, ExactClaim) else 0), c.id
        if names:
            assert row.verdict is not Verdict.REPRODUCED, c.id
        else:
            assert row.verdict is not Verdict.WITH_DEVIATION, c.id


def test_what_the_reference_does_not_decide_has_a_reason(claims, reference):
    for c in claims:
        row = reference[c.id]
        if row.verdict.rank is None:
            assert row.reason, c.id
        is_statement = isinstance(c, StatementClaim) and not c.untested
        assert (row.verdict is Verdict.NOT_TESTABLE) == is_statement, c.id
        assert (row.verdict is Verdict.NO_CONFIG) == bool(c.untested), c.id


def needed_runs(claim):
    """Return without how many runs nothing is decided."""
    if isinstance(claim, MeanClaim):
        return MIN_REPETITIONS if claim.is_one_draw else MIN_SPLITS
    if isinstance(claim, OrderClaim) and not claim.deterministic:
        return MIN_SPLITS
    return 0


def test_decisions_in_the_reference_rest_on_enough_runs(claims, reference):
    for c in claims:
        row = reference[c.id]
        if row.verdict.rank is not None:
            assert row.runs >= needed_runs(c), c.id


def test_no_claim_that_was_chosen_after_the_results_holds(claims, reference):
    for c in claims:
        if c.after_results:
            assert not reference[c.id].verdict.holds, c.id


def test_a_quotient_of_printed_times_is_not_printed(claims):
    """A ratio in words, or of two printed times, is our reading.

    A number has to be quoted.
    """
    for c in claims:
        if isinstance(c, RatioClaim) and c.read_as is None:
            number = rf"(?<![\d.]){re.escape(c.printed)}(?![\d.])"
            assert re.search(number, c.says), c.id


# The error that would be ours if the other reading were the right one.
OTHER_READINGS = {
    "medv-is-a-feature": "without MEDV",
    "absolute-derivative": "signed derivative",
}


def test_no_reading_is_one_that_printed_tables_decide():
    table = pd.read_csv(power.REFERENCE)
    n_deciding_rows = table.groupby("wrong")["rows_that_tell"].sum()
    for name, deviation in load_deviations().items():
        is_undecided = False
        if name in OTHER_READINGS:
            is_undecided = n_deciding_rows[OTHER_READINGS[name]] == 0
        assert deviation.reading == is_undecided, name


PROGRAMS = {"kar2014": "our-programs-in-2014", "kar2015": "our-cutting-plane"}


def test_claims_about_other_programs_than_the_authors_say_so(claims):
    counts = Counter()
    for c in claims:
        is_of_ours = is_about_a_program_of_ours(c)
        assert (PROGRAMS.get(c.paper) in c.deviations) == is_of_ours, c.id
        counts[c.paper] += is_of_ours
    assert counts["kar2014"] >= 60
    assert counts["kar2015"] >= 100
    assert len(counts) == 6


def is_about_a_program_of_ours(claim):
    baselines = re.compile(r"(cutting-plane|psg)(-|$)")
    return any(map(baselines.match, claim.labels)) and not getattr(
        claim, "deterministic", False
    )


def test_claims_about_the_cutting_plane_say_where_its_minimum_lies(claims):
    for c in claims:
        planes = {label for label in c.labels if label.startswith("cutting-plane")}
        if planes and is_about_a_program_of_ours(c):
            assert c.minimum is not None, c.id
            assert {c.minimum.solver} == planes, c.id
            config = load_config(c.minimum.config)
            assert config.name == c.minimum.study, c.id
            at_hand = set(c.data) - {"kdd08", "ppi"}
            assert at_hand <= set(config.parameters["datasets"]), c.id


def test_only_data_sets_that_are_not_at_hand_leave_claims_without_data(
    claims, reference
):
    lacking = [c for c in claims if reference[c.id].verdict is Verdict.NO_DATA]
    assert lacking
    for c in lacking:
        assert {"kdd08", "ppi"}.intersection(c.data), c.id


def test_deterministic_tables_are_measured_now(claims, computed, reference):
    exact = [c for c in claims if isinstance(c, ExactClaim) and not c.untested]
    rows = make_ledger(exact, Evidence(values=computed))
    assert len(rows) >= 110
    for row in rows:
        assert row.verdict is reference[row.id].verdict, row
        is_wrong_in_print = row.id == "kar2015/appendix-a/case-i"
        assert (row.verdict in REPRODUCED) != is_wrong_in_print, row


def test_powers_dropped_in_print_are_those_of_our_values(claims, reference):
    """Else no distance between logarithms could be small.

    Each is within a factor of 100.
    """
    for c in claims:
        row = reference[c.id]
        if isinstance(c, MeanClaim) and float(row.measured or 0):
            printed = parse_printed(c.printed, c.power_of_ten).value
            quotient = printed / float(row.measured)
            assert 0.01 < quotient < 100, c.id


# --- which wrong implementations the printed tables of rudin2009 would detect ---


def test_wrong_draws_are_detected(tmp_path, monkeypatch):
    """Table 5 as printed, with small common errors and smaller ones of columns."""
    rng = np.random.default_rng(0)
    cells = {}
    for row in power.printed_rows("table-5"):
        common = 1 + 0.02 * rng.standard_normal(101)
        for claim in row:
            printed = claim.scaled(claim.printed)
            value = np.exp(printed) if claim.logarithm else printed
            own = 1 + 0.005 * rng.standard_normal(101)
            cell = (claim.dataset, claim.solver, claim.metric, "test")
            cells[cell] = value * common * own
    evidence = read_evidence([write_results(tmp_path, cells, name=HOUSING)])
    monkeypatch.setattr(power, "PAPERS", 5)
    names = [
        "none",
        "p has no effect",
        "columns p = 2 and 4 change places",
        "AUC 1 % too high",
    ]
    powers = power.collect(evidence, ("table-5",), names).set_index("wrong")
    assert list(powers.index) == names
    assert list(powers["rows_that_tell"] > 0) == [False, True, True, False]
    assert powers.loc["none", "power"] < 0.5
    assert powers.loc["p has no effect", "power"] == 1
    assert len(power.power_rows(powers.reset_index())) == 4
