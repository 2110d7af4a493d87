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
from scripts import power as power_of_tables
from tests.claims.helpers import REPRODUCED, write_results
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
    if claim.reads_study or isinstance(config, Study):
        study = isinstance(config, Study) and claim.reads_study
        return "" if study else f"{claim.config} has no values of this kind"
    if lacks := set(claim.data) - {entry.name for entry in config.datasets}:
        return f"no data set {', '.join(sorted(lacks))}"
    if isinstance(claim, FactClaim):
        return ""
    if lacks := set(claim.labels) - set(config.solvers):
        return f"no solver {', '.join(sorted(lacks))}"
    metrics = Counter(
        m.label for p in config.sweep_points() for m in config.metrics_at(p)
    )
    swept = [getattr(claim, name, "") for name in ("at", "worse_at")]
    if (
        isinstance(claim, VariationClaim)
        or getattr(claim, "of", "") == "variation"
        or any(swept)
    ):
        [(name, values)] = config.sweep.items()
        named = {*filter(None, swept), *getattr(claim, "points", ())}
        if lacks := named - {f"{name}={value}" for value in values}:
            return f"no point {', '.join(sorted(lacks))}"
    elif isinstance(claim, RatioClaim) or claim.metric == WALL_SECONDS:
        return "times of several points of a sweep" if config.sweep is not None else ""
    elif (
        metrics[claim.metric] != 1 or getattr(claim, "part", "test") not in config.parts
    ):
        return f"{metrics[claim.metric]} times the metric {claim.metric} on that part"
    places = config.checkpoints if isinstance(config.checkpoints, tuple) else ()
    for name in ("checkpoint", "worse_checkpoint"):
        checkpoint = getattr(claim, name, None)
        if checkpoint not in (None, "last") and checkpoint > len(places):
            return f"no checkpoint {checkpoint}"
    return ""


def test_every_testable_claim_has_a_config_that_could_decide_it(claims):
    configs = {name: load_config(name) for name in list_configs()}
    assert {c.id: why for c in claims if (why := obstacle(c, configs))} == {}
    for c in claims:
        assert c.config not in configs or configs[c.config].name == c.experiment


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
                assert re.search(rf"def test_\w*{word}", (ROOT / file).read_text()), (
                    name
                )
            case other:
                pytest.fail(f"{name}: {other}")


def test_reference_matches_the_claims(claims, reference):
    assert list(reference) == [c.id for c in claims]
    for c in claims:
        row = reference[c.id]
        for name in ("paper", "where", "kind", "printed"):
            assert getattr(row, name) == getattr(c, name), c.id
        # Of the readings that a number allows at most the one counts that agreed.
        names, more = (
            set(row.deviation.split()),
            set(c.all_deviations()) - set(c.deviations),
        )
        assert set(c.deviations) <= names <= set(c.deviations) | more, c.id
        assert len(names - set(c.deviations)) <= isinstance(c, ExactClaim), c.id
        assert row.verdict is not (
            Verdict.REPRODUCED if names else Verdict.WITH_DEVIATION
        ), c.id
        assert row.verdict.rank is not None or row.reason, c.id
        statement = isinstance(c, StatementClaim) and not c.untested
        assert (row.verdict is Verdict.NOT_TESTABLE) == statement, c.id
        assert (row.verdict is Verdict.NO_CONFIG) == bool(c.untested), c.id
        if isinstance(c, MeanClaim) and row.verdict.rank is not None:
            assert row.runs >= (MIN_REPETITIONS if c.is_one_draw else MIN_SPLITS)
        if (
            isinstance(c, OrderClaim)
            and row.verdict.rank is not None
            and not c.deterministic
        ):
            assert row.runs >= MIN_SPLITS
        assert not (c.after_results and row.verdict.holds), c.id


def test_a_quotient_of_printed_times_is_not_printed(claims):
    """A ratio in words, or of two printed times, is our reading.

    A number has to be quoted.
    """
    for c in claims:
        if isinstance(c, RatioClaim) and c.read_as is None:
            assert re.search(rf"(?<![\d.]){re.escape(c.printed)}(?![\d.])", c.says), (
                c.id
            )


# The error that would be ours if the other reading were the right one.
OTHER_READINGS = {
    "medv-is-a-feature": "without MEDV",
    "absolute-derivative": "signed derivative",
}


def test_no_reading_is_one_that_printed_tables_decide():
    power = (
        pd.read_csv(power_of_tables.REFERENCE).groupby("wrong")["rows_that_tell"].sum()
    )
    for name, deviation in load_deviations().items():
        undecided = (
            power[OTHER_READINGS[name]] == 0 if name in OTHER_READINGS else False
        )
        assert deviation.reading == undecided, name


PROGRAMS = {"kar2014": "our-programs-in-2014", "kar2015": "our-cutting-plane"}


def test_claims_about_other_programs_than_the_authors_say_so(claims):
    """Where chance is left; with a single minimum any program has to find it."""
    baselines = re.compile(r"(cutting-plane|psg)(-|$)")
    counts = Counter()
    for c in claims:
        ours = any(map(baselines.match, c.labels)) and not getattr(
            c, "deterministic", False
        )
        assert (PROGRAMS.get(c.paper) in c.deviations) == ours, c.id
        planes = {label for label in c.labels if label.startswith("cutting-plane")}
        if planes and ours:  # and where the minimum of its problem lies
            assert c.minimum is not None and {c.minimum.solver} == planes, c.id
            config = load_config(c.minimum.config)
            assert config.name == c.minimum.study
            at_hand = set(c.data) - {"kdd08", "ppi"}
            assert at_hand <= set(config.parameters["datasets"]), c.id
        counts[c.paper] += ours
    assert counts["kar2014"] >= 60
    assert counts["kar2015"] >= 100
    assert len(counts) == 6


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
        assert (row.verdict in REPRODUCED) == (row.id != "kar2015/appendix-a/case-i"), (
            row
        )


def test_powers_dropped_in_print_are_those_of_our_values(claims, reference):
    """Else no distance between logarithms could be small.

    Each is within a factor of 100.
    """
    for c in claims:
        row = reference[c.id]
        if isinstance(c, MeanClaim) and float(row.measured or 0):
            quotient = parse_printed(c.printed, c.power_of_ten).value / float(
                row.measured
            )
            assert 0.01 < quotient < 100, c.id


# --- which wrong implementations the printed tables of rudin2009 would detect ---


def test_wrong_draws_are_detected(tmp_path, monkeypatch):
    """Table 5 as printed, with small common errors and smaller ones of columns."""
    rng = np.random.default_rng(0)
    cells = {}
    for row in power.printed_rows("table-5"):
        level = 1 + 0.02 * rng.standard_normal(101)
        for claim in row:
            value = claim.scaled(claim.printed)
            value = np.exp(value) if claim.logarithm else value
            draws = value * level * (1 + 0.005 * rng.standard_normal(101))
            cells[claim.dataset, claim.solver, claim.metric, "test"] = draws
    evidence = read_evidence(
        [write_results(tmp_path, cells, name="rudin2009-table-5-housing")]
    )
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
