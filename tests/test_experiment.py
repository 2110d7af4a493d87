"""Configs: what they may say, how mistakes are reported, and which trials come out."""

import dataclasses
import json
import pickle
import re

import numpy as np
import pytest

from precbench.cli.runs import split_numbers
from precbench.core.errors import InputError
from precbench.core.seeds import trial_seed
from precbench.experiment import Experiment, FileData, list_configs, load_config
from precbench.experiment.plan import Plan, make_plan
from precbench.results.records import SCHEMA
from precbench.results.store import key_of
from precbench.solvers import SOLVERS, PerceptronAtK
from tests import laws
from tests.helpers import ROOT, shipped_config, shipped_configs
from tests.sentences import mistakes, names, raises

SMALL = """\
name: small
title: A small one
datasets: [letter, adult]
protocol: {n_splits: 2}
common: {k: 0.5, epochs: 3}
solvers:
  perceptron-avg:
  sgd-avg: {eta0: {tune: [0.1, 1.0]}}
  "svm, soft": {solver: linear-svm, C: 0.1, limit: {times_slowest: 5}}
metrics: [{precision_at_k: {k: 0.5}}, auc]
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "c.yaml"
        path.write_text(text)
        return load_config(path)

    return read


@pytest.fixture
def complaints(read, tmp_path):
    def complaints(text):
        return [line.removeprefix(f"{tmp_path}/") for line in mistakes(read, text)]

    return complaints


def key(trial, **changes):
    return key_of(dataclasses.replace(trial, **changes).description("0" * 64))


def keys(experiment):
    return {key(trial) for trial in experiment.trials()}


@pytest.mark.parametrize("written", ["letter", "configs/letter.yaml", "letter.yaml"])
def test_a_shipped_config_has_the_name_of_its_place(written, read, work_folder):
    """Outside the repository, too; a file of the user comes first."""
    assert load_config(written) == load_config("letter")
    if written != "letter":
        (work_folder / "configs").mkdir()
        (work_folder / written).write_text(SMALL)
        assert load_config(written) == read(SMALL)


# A config that extends another


@pytest.fixture
def extended(tmp_path):
    def extended(text, base=SMALL):
        (tmp_path / "base.yaml").write_text(base)
        (tmp_path / "c.yaml").write_text(text)
        return load_config(tmp_path / "c.yaml")

    return extended


def test_a_config_may_extend_another(extended, read):
    ours = extended("extends: base.yaml\nname: other\ndatasets: [german]\n")
    assert (ours.name, [entry.name for entry in ours.datasets]) == ("other", ["german"])
    whole = read(SMALL)
    assert (ours.solvers, ours.metrics, ours.common) == (
        whole.solvers,
        whole.metrics,
        whole.common,
    )


WRONGLY_EXTENDED = {
    "absent": ("extends: bass.yaml", SMALL, "c.yaml:1:1: extends: "),
    "elsewhere": ("extends: ../base.yaml", SMALL, "c.yaml:1:1: extends: "),
    "a list": ("extends: [base.yaml]", SMALL, "c.yaml:1:1: extends: "),
    "a third": (
        "extends: base.yaml",
        "extends: c.yaml",
        "c.yaml:1:1: extends: base.yaml",
    ),
    "no keys": ("extends: base.yaml", "- 1", "c.yaml:1:1: extends: base.yaml"),
    "ours": ("extends: base.yaml\nnane: x", SMALL, "c.yaml:2:1: nane: "),
    "theirs": (
        "extends: base.yaml",
        SMALL.replace("adult", "adul"),
        "base.yaml:3:20: datasets[1].name: ",
    ),
}


@pytest.mark.parametrize("case", WRONGLY_EXTENDED)
def test_mistakes_are_reported_in_the_file_that_makes_them(extended, tmp_path, case):
    text, base, complaint = WRONGLY_EXTENDED[case]
    lines = [
        line.removeprefix(f"{tmp_path}/") for line in mistakes(extended, text, base)
    ]
    assert any(line.startswith(complaint) for line in lines), lines


# Shipped configs


def test_every_experiment_has_trials_of_its_own_and_a_small_size():
    assert not [name for name in list_configs() if "published" in name]
    experiments = [shipped_config(name) for name in shipped_configs(Experiment)]
    assert len({experiment.name for experiment in experiments}) == len(experiments)
    for experiment in experiments:
        assert 0 < len(experiment.smoke_size().trials()) <= len(experiment.trials())


def test_the_makefile_finds_the_configs_by_their_tags():
    """It searches their lines.

    A tag must stand where it looks, and be one that it knows.
    """
    tagged = {name: tags for name in list_configs() if (tags := load_config(name).tags)}
    for name, tags in tagged.items():
        text = (ROOT / "configs" / f"{name}.yaml").read_text()
        assert f"\ntags: [{', '.join(tags)}]\n" in text, name
    known = set(re.findall(r"call tagged,(\w+)", (ROOT / "Makefile").read_text()))
    assert known == {tag for tags in tagged.values() for tag in tags}


def test_one_config_holds_every_linear_solver():
    held = {entry.solver for entry in load_config("all-solvers").solvers.values()}
    assert held == {name for name in SOLVERS.built_in if laws.is_linear(SOLVERS[name])}


def test_the_headline_follows_the_paper():
    trials = load_config("kdd08").trials()
    assert len(trials) == 10 * 5
    printed = {"k": 0.25, "epochs": 25, "batch_size": 500}
    for trial in trials:
        assert (trial.split.kind, trial.split.test_size) == ("random", 0.3)
        assert all(
            trial.params.get(name, value) == value for name, value in printed.items()
        )
        assert trial.dataset.on_missing == "stand-in"
        assert trial.limit is None  # so that the order of the times can show


# Mistakes


def test_all_mistakes_are_reported_at_once_and_in_the_order_of_the_file(complaints):
    found = complaints("""\
name: let ter
titel: x
datasets: [lettr, {name: letter, on_missing: standin}, {file: nope.csv, labell: 3}]
scaling: standardize
protocol: {split: kfol, n_splits: 1.5, seeds: 4}
solvers:
  perceptron-agv:
  sgd-avg: {eta: 1, eta0: {tune: [1, -1]}, k: true, random_state: 3, limit: {times_slow: 3}}
metrics: [{precision_at_k: {k: 25.0}}, acu, {partial_auc: {}}]
""")  # noqa: E501 (the mistakes have columns)
    expected = [
        ("1:1", "name 'let ter'"),
        ("2:1", "titel 'title'"),
        ("3:12", "datasets[0].name 'lettr' 'letter'"),
        ("3:34", "on_missing 'standin' 'stand-in'"),
        ("3:57", "datasets[2].file"),
        ("3:73", "datasets[2].labell 'label'"),
        ("4:1", "'standardise'"),
        ("5:12", "'kfold'"),
        ("5:25", "protocol.n_splits 1.5"),
        ("5:40", "protocol.seeds 'seed'"),
        ("7:3", "'perceptron-agv' 'perceptron-avg'"),
        ("8:13", "'eta0'"),
        ("8:21", "0.0 -1"),
        ("8:44", "solvers.sgd-avg.k"),
        ("8:53", "solvers.sgd-avg.random_state"),
        ("8:78", "limit.times_slow 'times_slowest'"),
        ("9:12", "k 25.0"),
        ("9:40", "'acu' 'auc'"),
        ("9:46", "partial_auc"),
    ]
    assert len(found) == len(expected)
    for place, words in expected:
        [text] = (text for text in found if text.startswith(f"c.yaml:{place}: "))
        names(text, words)
    assert found == sorted(found, key=lambda t: tuple(map(int, t.split(":")[1:3])))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("epochs: 3", "epoch: 3", "5:18 common.epoch"),
        ("epochs: 3", "random_state: 0", "5:18 common.random_state"),
        ("[letter, adult]", "[letter, letter]", "3:20 datasets[1]"),
        ("[letter, adult]", "[]", "3:1 datasets"),
        ("[letter, adult]", "letter", "3:1 datasets 'letter'"),
        ("tune: [0.1, 1.0]", "tune: [0.1]", ""),
        ("tune: [0.1, 1.0]", "tune: 0.1", ""),
        ("  perceptron-avg:\n", "  perceptron-avg: 3\n", "7:3 solvers.perceptron-avg"),
        ("n_splits: 2", "split: kfold, n_splits: 1", "4:26 protocol.n_splits"),
        ("n_splits: 2", "split: provided, test_size: 0.3", "test_size"),
        ("n_splits: 2", "n_splits: 100000000000000000", "n_splits"),
        (
            "n_splits: 2",
            "split: kfold, n_splits: 99999, repetitions: 99999",
            "9,999,800,001 100,000",
        ),
        ("auc]\n", "auc]\ntimeout: 1.0e+17\n", "timeout"),
        ("n_splits: 2", "split: none, stratified: true", "stratified"),
        ("n_splits: 2", "n_splits: 2, splits: [0, 2]", "protocol.splits[1] 2"),
        ("n_splits: 2", "test_size: 0.5, train_size: 9", "train_size test_size"),
        ("n_splits: 2", "repetitions: 2", "repetitions"),
        ("auc]", "auc: 3]", "metrics[1].auc 3"),
        ("auc]", "3]", "metrics[1] 3"),
        ("auc]\n", "auc]\nsweep: {kk: [1]}\n", "11:9 sweep.kk"),
        ("auc]\n", "auc]\nsweep: {k: [0.1, 1.5]}\n", "11:18 sweep.k[1] 'k'"),
        ("{k: 0.5, epochs", "{k: 1 percent, epochs", "5:10 common.k k '1 percent'"),
        ("auc]\n", 'auc]\nsweep: {k: ["5 %", "100"]}\n', "11:20 sweep.k[1] k '100'"),
        ("auc]\n", "auc]\nsweep: {k: [1], C: [2]}\n", "sweep"),
        ("auc]\n", "auc]\nplots: [accuracy-sweep]\n", "plots[0]"),
        ("auc]\n", "auc]\nsmoke: {sweep: [1]}\n", "smoke.sweep"),
        ("n_splits: 2", "n_splits: 2, splits: [0, 1, 0]", "4:40 protocol.splits[2] 0"),
        ("auc]", "auc, auc]", "metrics[2]"),
        ("tune: [0.1, 1.0]", "tune: [.1, 0.1]", "0.1"),
        ("auc]\n", "auc]\nsweep: {k: [10, 20, 10]}\n", "11:21 sweep.k[2] 10"),
        (
            "auc]\n",
            "auc]\nsweep: {k: [1, 2, 3]}\nsmoke: {sweep: [1, 1]}\n",
            "smoke.sweep[1] 1",
        ),
        (
            "auc]\n",
            "{precision_at_k: {k: 9}}]\nsweep: {k: [1, 2]}\n",
            "sweep.k precision_at_k 1",
        ),
        ("auc]\n", "auc]\ncheckpoints: 0\n", "11:1 checkpoints 0"),
        ("auc]\n", "auc]\ncheckpoints: often\n", "'often'"),
        ("auc]\n", "auc]\ncheckpoints: true\n", ""),
        ("auc]\n", "auc]\ncheckpoints: [0.5, 0.2]\n", "0"),
        ("perceptron-avg:\n", "perceptron-avg: {fourier: {}}\n", "n_components"),
        (
            "perceptron-avg:\n",
            "perceptron-avg: {fourier: {n_components: {tune: [9, 0]}}}\n",
            "n_components 1 0",
        ),
        ("auc]\n", "auc]\nsmoke: {datasets: [adul]}\n", "'adul' 'adult'"),
        ("auc]\n", "auc]\ntuning: {folds: 5, rows: 9}\n", "tuning.rows folds"),
        ("n_splits: 2}\n", "split: time}\ntuning: {rows: 9}\n", "tuning.rows time"),
        ("n_splits: 2}\n", "split: time}\ntuning: {folds: 5}\n", "tuning.folds time"),
        ("n_splits: 2", "split: time, n_splits: 5", "protocol.test_size 5 0.3 0.2"),
        ("auc]\n", "auc]\ntuning: {draw: 1}\n", "draw 2"),
    ],
)
def test_a_single_mistake_is_a_single_line(complaints, old, new, expected):
    assert old in SMALL
    [text] = complaints(SMALL.replace(old, new))
    names(text, expected)


def test_a_count_is_not_the_share_of_the_same_number(read):
    both = read(
        SMALL.replace(
            "auc]\n", "{precision_at_k: {k: 1}}, {precision_at_k: {k: 1.0}}]\n"
        )
    )
    assert [metric.params for metric in both.metrics] == [
        {"k": 0.5},
        {"k": 1},
        {"k": 1.0},
    ]
    choice = SMALL.replace(
        "perceptron-avg:\n", "perceptron-avg: {k: {tune: [1, 1.0]}}\n"
    )
    assert read(choice).solvers["perceptron-avg"].params == {"k": {"tune": [1, 1.0]}}
    assert len(read(SMALL + "sweep: {k: [1, 1.0]}\n").sweep_points()) == 2


# Trials


def test_trials_interleave_the_contestants(read):
    trials = read(SMALL + "sweep: {k: [1, 1.0]}\n").trials()
    order = [(t.split.index, t.dataset.name, t.sweep, t.label) for t in trials]
    assert order[:4] == [
        (0, "letter", ("k", 1), "perceptron-avg"),
        (0, "letter", ("k", 1), "sgd-avg"),
        (0, "letter", ("k", 1), "svm, soft"),
        (0, "letter", ("k", 1.0), "perceptron-avg"),
    ]
    assert len(order) == 2 * 2 * 2 * 3
    assert order == sorted(
        order, key=lambda o: (o[0], o[1] == "adult", isinstance(o[2][1], float))
    )


def test_parameters_are_resolved(read):
    first, tuned, svm = read(SMALL).trials()[:3]
    assert first.params.items() >= {"k": 0.5, "epochs": 3, "batch_size": 500}.items()
    assert tuned.candidates == {"eta0": [0.1, 1.0]}
    assert svm.params["C"] == 0.1 and not {"k", "random_state"} & {*svm.params}
    assert svm.limit.times_slowest == 5 and first.scaling == "standardise"
    assert (
        first.metric.label == "precision_at_k(k=0.5)"
        and pickle.loads(pickle.dumps(svm)) == svm
    )


def test_metrics_inherit_from_common(read):
    def labels(common, metrics):
        text = SMALL.replace("{k: 0.5, epochs: 3}", common)
        text = text.replace("[{precision_at_k: {k: 0.5}}, auc]", metrics)
        return [metric.label for metric in read(text).metrics]

    assert labels("{k: 0.25}", "[precision_at_k, auc]") == [
        "precision_at_k(k=0.25)",
        "auc",
    ]
    assert labels("{k: 0.25}", "[{precision_at_k: {k: 3}}]") == ["precision_at_k(k=3)"]
    worst = "precision_at_k(k=0.25, ties=worst)"
    assert labels("{k: 0.25}", "[{precision_at_k: {ties: worst}}]") == [worst]
    with raises(InputError, "k"):
        labels("{k: {tune: [0.1, 0.2]}}", "[precision_at_k]")
    with raises(InputError, "common.k"):
        labels("{k: -1.0}", "[precision_at_k]")


def test_the_sweep_reaches_solvers_and_metrics(read):
    experiment = read(SMALL + "sweep: {k: [0.1, 7]}\n")
    assert experiment.plots == ("accuracy-time", "accuracy-sweep")
    for trial in experiment.trials():
        value = trial.sweep[1]
        assert (
            trial.metric.params == {"k": value}
            and trial.params.get("k", value) == value
        )
        assert experiment.metrics_at(trial.sweep)[0] == trial.metric
    assert read(SMALL).plots == ("accuracy-time", "precision-k")


def test_seeds_follow_from_identity_and_pair_the_solvers(read):
    trials = read(SMALL).trials()
    assert len({(t.seed, t.dataset.name, t.split.index) for t in trials}) == 4
    assert len({t.seed for t in trials}) == 4
    other = read(
        SMALL.replace("[letter, adult]", "[adult]").replace(
            "n_splits: 2", "n_splits: 9"
        )
    )
    assert {t.seed for t in other.trials()} > {
        t.seed for t in trials if t.dataset.name == "adult"
    }
    moved = read(SMALL.replace("n_splits: 2", "n_splits: 2, seed: 1"))
    assert not {t.seed for t in moved.trials()} & {t.seed for t in trials}


def test_each_repetition_has_a_partition_of_its_own(read):
    def folds(protocol):
        trials = read(SMALL.replace("n_splits: 2", protocol)).trials()
        return [
            t
            for t in trials
            if t.dataset.name == "letter" and t.solver == "perceptron-avg"
        ]

    once = folds("split: kfold, n_splits: 3")
    often = folds("split: kfold, n_splits: 3, repetitions: 4")
    assert [key(t) for t in often[:3]] == [key(t) for t in once]
    assert len({t.split.seed for t in once}) == 1 and len({t.seed for t in once}) == 3
    assert [t.split.fold for t in often] == [0, 1, 2] * 4
    seeds = [t.split.seed for t in often]
    assert (
        seeds[::3] == seeds[2::3]
        and len(set(seeds)) == 4
        and len({key(t) for t in often}) == 12
    )


def test_the_description_is_strict_json_and_complete(read):
    first, tuned, _ = read(SMALL).trials()[:3]
    description = tuned.description("ab" * 32)
    assert json.loads(json.dumps(description, allow_nan=False)) == description
    assert description == {
        "schema": SCHEMA,
        "dataset": "letter",
        "data_sha256": "ab" * 32,
        "rows": None,
        "preprocessing": {
            "scaling": "standardise",
            "dtype": "float64",
            "fitted_on": "train",
        },
        "split": {
            "kind": "random",
            "seed": tuned.seed,
            "test_size": 0.3,
            "stratified": False,
            "groups": "keep",
            "validation_size": 0.2,
        },
        "solver": "sgd-avg",
        "algorithm_version": {"solver": 1, "preparation": 1, "tuning": 1},
        "params": {n: v for n, v in tuned.params.items() if n != "eta0"},
        "tuning": {
            "candidates": {"eta0": [0.1, 1.0]},
            "metric": {"name": "precision_at_k", "params": {"k": 0.5}, "package": ""},
            **dict.fromkeys(["folds", "rows", "draw"]),
        },
        "checkpoints": 20,
        "seed": tuned.seed,
    }
    assert first.description("ab" * 32)["tuning"] is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: small", "name: other\nsource: x"),
        ("A small one", "Another title"),
        ("[letter, adult]", "[adult, {name: letter, on_missing: stand-in}]"),
        ('"svm, soft"', "svm"),
        ("slowest: 5}", "slowest: 50}"),
        ("k: 0.5, epochs: 3", "epochs: 3, k: 0.50"),
        ("  perceptron-avg:\n", "  perceptron-avg: {batch_size: 500}\n"),
        ("auc]\n", "auc, dcg]\ntimeout: 5\nplots: [roc]\nsmoke: {rows: 100}\n"),
        ("{n_splits: 2}", "{n_splits: 2, split: random, test_size: 0.30, seed: 0}"),
        ("metrics:", "scaling_fitted_on: train\nmetrics:"),
    ],
)
def test_keys_do_not_see_what_changes_no_number(read, old, new):
    assert old in SMALL and keys(read(SMALL.replace(old, new))) == keys(read(SMALL))


def test_a_data_set_may_keep_its_own_parts(read):
    experiment = read(
        SMALL.replace("[letter, adult]", "[letter, {name: a9a, split: provided}]")
    )
    kinds = {(trial.dataset.name, trial.split.kind) for trial in experiment.trials()}
    assert kinds == {("letter", "random"), ("a9a", "provided")}
    assert (
        len(
            {trial.seed for trial in experiment.trials() if trial.dataset.name == "a9a"}
        )
        == 2
    )
    words = Plan(experiment, {}, ()).protocol
    assert (
        words
        == "70/30 random split, 2 splits; a9a: the provided training and test sets"
    )


def test_a_missing_provided_split_is_reported_before_anything_runs(read):
    experiment = read(
        SMALL.replace("[letter, adult]", "[{name: margin, split: provided}]")
    )
    with raises(InputError, "margin provided"):
        make_plan(experiment)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"metrics": "[{precision_at_k: {k: 181}}]"}, "0 180"),
        ({"metrics": "[auc, {lift_at_k: {k: 181}}]"}, "lift_at_k 181 180"),
        (
            {
                "metrics": "[{recall_at_k: {k: 85}}]",
                "solvers": "{sgd-avg: {eta0: {tune: [1, 2]}}}",
            },
            "0 k 85 84 tuned_by",
        ),
        (
            {
                "protocol": "{split: kfold, n_splits: 8}",
                "metrics": "[{precision_at_k: {k: 76}}]",
            },
            "75",
        ),
        (
            {
                "protocol": "{train_size: 90}",
                "parts": "[training, test]",
                "metrics": "[{precision_at_k: {k: 91}}]",
            },
            "90",
        ),
        (
            {"protocol": "{split: none}", "metrics": "[{precision_at_k: {k: 601}}]"},
            "600",
        ),
        ({"sweep": "{k: [0.5, 181]}"}, "181"),
    ],
)
def test_a_metric_that_needs_more_rows_than_there_are_is_refused_before_training(
    small, changes, refusal
):
    text = {"solvers": "{perceptron-avg: }"} | changes
    with raises(InputError, refusal):
        make_plan(load_config(small(**text)))
    text = {name: value.replace("181", "180") for name, value in text.items()}
    for beyond, fits in (("85", "84"), ("76", "75"), ("91", "90"), ("601", "600")):
        text["metrics"] = text.get("metrics", "[auc]").replace(
            f"k: {beyond}", f"k: {fits}"
        )
    assert make_plan(load_config(small(**text))).trials


def test_random_features_are_part_of_the_key(read):
    with_fourier = "perceptron-avg: {fourier: {n_components: 30}}"
    mapped = read(SMALL.replace("perceptron-avg:", with_fourier))
    finer = read(
        SMALL.replace("perceptron-avg:", with_fourier.replace("30", "30, gamma: 0.5"))
    )
    assert len(keys(mapped) & keys(finer)) == 8
    several = read(
        SMALL.replace("perceptron-avg:", with_fourier.replace("30", "{tune: [30, 50]}"))
    )
    for experiment, number in ((mapped, "30"), (several, "30 or 50")):
        words = Plan(experiment, {}, ()).scaling
        assert words.endswith(f"perceptron-avg: {number} random Fourier features")


def test_a_data_set_may_have_its_own_scaling(read):
    own = (
        "[{name: letter, scaling: standardise-unit-norm}, {name: adult, scaling:"
        " unit-norm}]"
    )
    experiment = read(SMALL.replace("[letter, adult]", own))
    found = {trial.dataset.name: trial.scaling for trial in experiment.trials()}
    assert found == {"letter": "standardise-unit-norm", "adult": "unit-norm"}
    assert keys(experiment).isdisjoint(keys(read(SMALL)))
    plan = Plan(experiment, {}, tuple((trial, "") for trial in experiment.trials()))
    assert (
        plan.scaling
        == "standardised on the training set and each row divided by its norm, "
        "each row divided by its norm"
    )
    on_all = read(SMALL.replace("[letter, adult]", own + "\nscaling_fitted_on: all"))
    # there is nothing to learn for adult
    assert len(keys(on_all) & keys(experiment)) == 6


@pytest.mark.parametrize(
    ("old", "new", "kept", "added"),
    [
        ("n_splits: 2", "n_splits: 3", 12, 6),
        ("auc]", "auc]\ncheckpoints: 5", 0, 12),
        ("  perceptron-avg:\n", "  perceptron-avg:\n  1pmb:\n", 12, 4),
        ("C: 0.1", "C: 0.2", 8, 4),
        ("[0.1, 1.0]", "[0.1, 2.0]", 8, 4),
        # Only what is tuned depends on the metric.
        ("precision_at_k: {k: 0.5}", "precision_at_k: {k: 0.1}", 8, 4),
        ("metrics:", "scaling: unit\nmetrics:", 0, 12),
        ("perceptron-avg:", "perceptron-avg: {fourier: {n_components: 30}}", 8, 4),
    ],
)
def test_a_changed_config_reruns_only_what_changed(read, old, new, kept, added):
    before, after = keys(read(SMALL)), keys(read(SMALL.replace(old, new)))
    assert (len(after & before), len(after - before)) == (kept, added)


def test_the_key_depends_on_data_version_and_rows(read, monkeypatch):
    trial = read(SMALL).trials()[0]
    found = {key(trial), key_of(trial.description("1" * 64)), key(trial, rows=100)}
    found |= {key(trial, seed=1)}
    monkeypatch.setattr(PerceptronAtK, "algorithm_version", 99)
    found |= {key(trial)}
    assert len(found) == 5
    monkeypatch.undo()
    assert key(trial, timeout=1.0, limit=None, label="x", experiment="y") == key(trial)


def test_a_seed_depends_on_nothing_but_names_and_numbers(read, monkeypatch):
    """On the seed of the protocol, the data set and the split.

    A change of keys moves no number.
    """
    before = [(trial.seed, trial.split.seed) for trial in read(SMALL).trials()]
    monkeypatch.setattr("precbench.experiment.trial.PREPARATION_VERSION", 99)
    monkeypatch.setattr(PerceptronAtK, "algorithm_version", 99)
    changed = read(SMALL.replace("metrics:", "dtype: float32\nmetrics:"))
    assert [(trial.seed, trial.split.seed) for trial in changed.trials()] == before
    assert (
        not keys(changed) & keys(read(SMALL))
        and before[0] == (trial_seed(0, "letter", 0),) * 2
    )


GRID = {"eta0": [0.1, 1.0, 10.0], "batch_size": [50, 100, 500], "k": [0.25, 0.5]}


def drawn(read, grid, draw, label="sgd-avg", text=SMALL):
    """Return what trials of that solver try, for each data set and split."""
    values = ", ".join(f"{name}: {{tune: {values}}}" for name, values in grid.items())
    own = text.replace("sgd-avg: {eta0: {tune: [0.1, 1.0]}}", f"{label}: {{{values}}}")
    own += f"tuning: {{draw: {draw}}}\n" if draw else ""
    return [t.combinations() for t in read(own).trials() if t.label == label]


def test_candidates_are_drawn_once_from_the_product_of_their_lists(read):
    whole, *_ = drawn(read, GRID, None)
    assert len(whole) == 18 and whole[0] == {"eta0": 0.1, "batch_size": 50, "k": 0.25}
    for draw in (2, 5, 12, 17):
        first, *others = drawn(read, GRID, draw)
        # data sets and splits
        assert len(others) == 3 and all(other == first for other in others)
        assert [one for one in whole if one in first] == first and len(first) == draw
        assert drawn(read, dict(reversed(GRID.items())), draw)[0] == first
        assert drawn(read, GRID, draw, "sgd-max")[0] == first
        more = SMALL.replace("letter, adult", "letter, adult, ijcnn1")
        more = more.replace("n_splits: 2", "n_splits: 2, seed: 3")
        assert drawn(read, GRID, draw, text=more) == [first] * 6
    other = drawn(read, GRID | {"eta0": [0.1, 1.0, 20.0]}, 5)[0]
    assert other != drawn(read, GRID, 5)[0]
    for draw in (18, 19, 500):  # as many as there are
        assert drawn(read, GRID, draw)[0] == whole


def test_each_value_is_drawn_as_often_as_the_others(read):
    """Over many lists, of which each has its own seed."""
    trial = next(t for t in read(SMALL).trials() if t.candidates)
    times = np.zeros((4, 3))
    for n in range(300):
        lists = {name: {"tune": [n, n + 0.5, n + 0.7]} for name in "abcd"}
        for one in dataclasses.replace(trial, params=lists, draw=12).combinations():
            for row, name in enumerate("abcd"):
                times[row, lists[name]["tune"].index(one[name])] += 1
    # Of 12 without replacement from 81 the variance is a little below the binomial one.
    assert np.abs(times - 1200).max() < 4 * np.sqrt(3600 * 2 / 9)


def test_draw_is_part_of_the_key_only_where_it_leaves_something_out(read):
    def key_of_draw(tuning):
        return keys(read(SMALL.replace("[0.1, 1.0]", "[0.1, 1.0, 10.0]") + tuning))

    before = key_of_draw("")
    assert key_of_draw("tuning: {draw: 3}\n") == before
    assert len(key_of_draw("tuning: {draw: 2}\n") & before) == 8


# One's own files


def test_own_files(read, complaints, tmp_path):
    (tmp_path / "mine.csv").write_text("a,b\n")
    entry = (
        "{file: mine.csv, label: churned, positive: 'yes', groups: customer, drop: [id,"
        " 3], categorical: one-hot, missing: median, format: csv, time: seen}"
    )
    experiment = read(SMALL.replace("[letter, adult]", f"[letter, {entry}]"))
    own = experiment.datasets[1]
    assert isinstance(own, FileData) and own.file == tmp_path / "mine.csv"
    assert (own.name, own.label, own.positive, own.drop) == (
        "mine",
        "churned",
        "yes",
        ("id", 3),
    )
    trial = experiment.trials()[3]
    assert trial.dataset == own and trial.scaling == "none"
    description = trial.description("0" * 64)
    read_by = {
        "label": "churned",
        "positive": "yes",
        "drop": ["id", 3],
        "missing": "median",
    }
    assert description["preprocessing"].items() >= read_by.items()
    # the hash of the data follows from it
    assert "time" not in description["preprocessing"]
    [text] = complaints(SMALL.replace("[letter, adult]", "[{file: mine.cvs}]"))
    names(text, "'mine.csv'")
    [text] = complaints(
        SMALL.replace("[letter, adult]", "[{file: mine.csv, name: a b}]")
    )
    names(text, "3:29 datasets[0].name")


def test_by_time(read):
    def trials(text):
        return read(SMALL.replace("{n_splits: 2}", f"{{split: time, {text}}}")).trials()

    first, *others = trials("seed: 0")
    fields = {"kind": "time", "groups": "keep", "test_size": 0.3, "index": 0}
    assert first.split.description() == fields and {
        trial.split.index for trial in others
    } == {0}
    assert key(trials("n_splits: 3")[0]) == key(first)


# Filters and smoke size


def test_select(read):
    experiment = read(SMALL)
    [trial] = experiment.select(
        solvers=["svm, soft"], datasets=["adult"], seeds=[1]
    ).trials()
    assert (
        trial == experiment.trials()[-1]
        and experiment.select().trials() == experiment.trials()
    )


def test_select_refuses_what_is_not_there(read):
    wrong = {"solvers": ["sgd-agv"], "datasets": ["letter", "lettr"], "seeds": [0, 2]}
    lines = mistakes(lambda: read(SMALL).select(**wrong))
    places = ("'sgd-agv' 'sgd-avg'", "'lettr' 'letter'", "2 0 1")
    for line, words in zip(lines, places, strict=True):
        names(line, words)
    with raises(InputError, "2 3 4 5 6 ..."):
        read(SMALL).select(seeds=[*range(100), 200, 300, 301])


def test_numbers_of_splits_are_bounded_before_they_are_listed():
    assert split_numbers("4,0-2,1") == [0, 1, 2, 4]
    for text in (
        "0-9999999999",
        "99999999999999999999-100000000000000000000",
        "100000",
    ):
        with raises(InputError, "100,000"):
            split_numbers(text)
    for text in ("", "1,", "3-1", "a", "-1", "1-2-3"):
        with raises(InputError, "0,2"):
            split_numbers(text)


def test_smoke_size(read):
    smoke = (
        "smoke: {rows: 70, epochs: 1, max_iter: 9, checkpoints: 2, datasets: [adult]}\n"
    )
    experiment = read(SMALL + "sweep: {batch_size: [10, 20, 40]}\n" + smoke)
    trials = experiment.smoke_size().trials()
    found = {(t.dataset.name, t.split.index, t.rows, t.checkpoints) for t in trials}
    assert found == {("adult", 0, 70, 2)} and {t.sweep[1] for t in trials} == {10, 40}
    assert {t.params.get("epochs", 1) for t in trials} == {1}
    assert {t.params.get("max_iter", 9) for t in trials} == {9}
    assert experiment.trials()[0].params["epochs"] == 3
    letter = experiment.select(datasets=["letter"]).smoke_size().trials()
    assert {t.dataset.name for t in letter} == {"letter"}


@pytest.mark.parametrize("name", ["shards", "trials", "Shards"])
def test_a_name_may_not_be_that_of_a_folder_of_precbench(complaints, name):
    study = "name: {}\ntitle: A study\nstudy: error-bounds\n"
    for text in (SMALL.replace("name: small", f"name: {name}"), study.format(name)):
        line, *_of_parameters = complaints(text)
        names(line, f"c.yaml:1:1 {name}")
