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


def with_change(old, new):
    """Return the small config with another text in one place."""
    assert old in SMALL
    return SMALL.replace(old, new)


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


@pytest.mark.parametrize("written", ["sgd-avg", "[sgd-avg]"])
def test_solvers_to_highlight_change_no_key(read, written):
    highlighted = read(f"{SMALL}highlight: {written}\n")
    assert highlighted.highlight == ("sgd-avg",)
    assert keys(highlighted) == keys(read(SMALL))


def test_only_solvers_of_the_config_are_highlighted(read):
    [mistake] = mistakes(read, f"{SMALL}highlight: [sgd-avg, sgd-max]\n")
    assert "highlight[1]: " in mistake
    assert "sgd-max" in mistake


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
    assert ours.name == "other"
    assert [entry.name for entry in ours.datasets] == ["german"]
    whole = read(SMALL)
    assert ours.solvers == whole.solvers
    assert ours.metrics == whole.metrics
    assert ours.common == whole.common


MERGED = """\
extends: base.yaml
name: other
metrics: [auc]
common: {epochs: 9}
solvers:
  perceptron-avg:
  sgd-avg: {eta0: 0.5}
  1pmb:
  "svm, soft": {C: 0.2}
"""


def test_mappings_are_merged_null_removes_and_lists_are_replaced(extended, read):
    ours = extended(MERGED)
    whole = read(SMALL)
    assert ours.common == {"k": 0.5, "epochs": 9}
    assert [*ours.solvers] == ["sgd-avg", "svm, soft", "1pmb"]
    assert ours.solvers["sgd-avg"].params == {"eta0": 0.5}
    assert ours.solvers["svm, soft"].params == {"C": 0.2}
    assert ours.solvers["svm, soft"].limit == whole.solvers["svm, soft"].limit
    assert [metric.label for metric in ours.metrics] == ["auc"]
    assert ours.datasets == whole.datasets


def test_a_shipped_config_may_be_extended(extended):
    ours = extended("extends: letter\nname: other\nprotocol: {n_splits: 1}")
    letter = load_config("letter")
    assert ours.extends == letter.name
    assert ours.protocol == letter.protocol.model_copy(update={"n_splits": 1})
    first_of_letter = {key(trial) for trial in letter.trials() if not trial.split.index}
    assert keys(ours) == first_of_letter


@pytest.mark.parametrize(
    ("text", "base", "start_of_complaint"),
    [
        pytest.param(
            "extends: bass.yaml",
            SMALL,
            "c.yaml:1:1: extends: ",
            id="a file that is absent",
        ),
        pytest.param(
            "extends: ../base.yaml",
            SMALL,
            "c.yaml:1:1: extends: ",
            id="a file elsewhere",
        ),
        pytest.param(
            "extends: [base.yaml]", SMALL, "c.yaml:1:1: extends: ", id="a list"
        ),
        pytest.param(
            "extends: base.yaml",
            "extends: c.yaml",
            "c.yaml:1:1: extends: base.yaml",
            id="a base that extends a third file",
        ),
        pytest.param(
            "extends: base.yaml",
            "- 1",
            "c.yaml:1:1: extends: base.yaml",
            id="a base without keys",
        ),
        pytest.param(
            "extends: base.yaml\nnane: x",
            SMALL,
            "c.yaml:2:1: nane: ",
            id="a mistake in the file",
        ),
        pytest.param(
            "extends: lettr",
            SMALL,
            "c.yaml:1:1: extends: there is no lettr beside this file, and no shipped"
            " config of it (did you mean 'letter'?)",
            id="a shipped config that there is not",
        ),
        pytest.param(
            "extends: base.yaml\nname: x\nsolvers:\n  sgd-avg: {eta0: -1}",
            SMALL,
            "c.yaml:4:13: solvers.sgd-avg.eta0: ",
            id="a mistake inside a section of both",
        ),
        pytest.param(
            "extends: base.yaml\nname: x\nsolvers:\n  sgd-avg: {eta0: 1}",
            with_change("C: 0.1", "C: -1"),
            "base.yaml:9:37: solvers.svm, soft.C: ",
            id="a mistake of the base inside a section of both",
        ),
        pytest.param(
            "extends: base.yaml",
            with_change("adult", "adul"),
            "base.yaml:3:20: datasets[1].name: ",
            id="a mistake in the base",
        ),
    ],
)
def test_mistakes_are_reported_in_the_file_that_makes_them(
    extended, tmp_path, text, base, start_of_complaint
):
    lines = [
        line.removeprefix(f"{tmp_path}/") for line in mistakes(extended, text, base)
    ]
    assert any(line.startswith(start_of_complaint) for line in lines), lines


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
    all_tags = set()
    for name in list_configs():
        tags = load_config(name).tags
        if tags:
            text = (ROOT / "configs" / f"{name}.yaml").read_text()
            assert f"\ntags: [{', '.join(tags)}]\n" in text, name
            all_tags.update(tags)
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"call tagged,(\w+)", makefile)) == all_tags


def test_one_config_holds_every_linear_solver():
    entries = load_config("all-solvers").solvers.values()
    linear = {name for name in SOLVERS.built_in if laws.is_linear(SOLVERS[name])}
    assert {entry.solver for entry in entries} == linear


def test_the_headline_follows_the_paper():
    trials = load_config("kdd08").trials()
    assert len(trials) == 10 * 5
    printed = {"k": 0.25, "epochs": 25, "batch_size": 500}
    for trial in trials:
        assert trial.split.kind == "random"
        assert trial.split.test_size == 0.3
        for name, value in printed.items():
            assert trial.params.get(name, value) == value
        assert trial.dataset.on_missing == "stand-in"
        assert trial.limit is None  # so that the order of the times can show


# Mistakes


def test_all_mistakes_are_reported_at_once_and_in_the_order_of_the_file(complaints):
    lines = complaints("""\
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
    assert len(lines) == len(expected)
    for place, words in expected:
        [line] = (line for line in lines if line.startswith(f"c.yaml:{place}: "))
        names(line, words)

    def place_in_file(line):
        _file, row, column, *_complaint = line.split(":")
        return int(row), int(column)

    assert lines == sorted(lines, key=place_in_file)


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        pytest.param(
            "epochs: 3",
            "epoch: 3",
            "5:18 common.epoch",
            id="a parameter that no solver has",
        ),
        pytest.param(
            "epochs: 3",
            "random_state: 0",
            "5:18 common.random_state",
            id="a seed among the parameters",
        ),
        pytest.param(
            "[letter, adult]",
            "[letter, letter]",
            "3:20 datasets[1]",
            id="a data set twice",
        ),
        pytest.param("[letter, adult]", "[]", "3:1 datasets", id="no data set"),
        pytest.param(
            "[letter, adult]",
            "letter",
            "3:1 datasets 'letter'",
            id="a name in place of a list of data sets",
        ),
        pytest.param(
            "tune: [0.1, 1.0]", "tune: [0.1]", "", id="a single value to tune"
        ),
        pytest.param(
            "tune: [0.1, 1.0]", "tune: 0.1", "", id="a value to tune without a list"
        ),
        pytest.param(
            "  perceptron-avg:\n",
            "  perceptron-avg: 3\n",
            "7:3 solvers.perceptron-avg",
            id="a number in place of parameters",
        ),
        pytest.param(
            "n_splits: 2",
            "split: kfold, n_splits: 1",
            "4:26 protocol.n_splits",
            id="one fold",
        ),
        pytest.param(
            "n_splits: 2",
            "split: provided, test_size: 0.3",
            "test_size",
            id="the size of a provided test set",
        ),
        pytest.param(
            "n_splits: 2",
            "n_splits: 100000000000000000",
            "n_splits",
            id="more splits than can be planned",
        ),
        pytest.param(
            "n_splits: 2",
            "split: kfold, n_splits: 99999, repetitions: 99999",
            "9,999,800,001 100,000",
            id="more repetitions than can be planned",
        ),
        pytest.param(
            "auc]\n",
            "auc]\ntimeout: 1.0e+17\n",
            "timeout",
            id="a timeout of many years",
        ),
        pytest.param(
            "n_splits: 2",
            "split: none, stratified: true",
            "stratified",
            id="stratified training on all rows",
        ),
        pytest.param(
            "n_splits: 2",
            "n_splits: 2, splits: [0, 2]",
            "protocol.splits[1] 2",
            id="a split that is not there",
        ),
        pytest.param(
            "n_splits: 2",
            "test_size: 0.5, train_size: 9",
            "train_size test_size",
            id="two sizes of a split",
        ),
        pytest.param(
            "n_splits: 2",
            "repetitions: 2",
            "repetitions",
            id="repetitions of a random split",
        ),
        pytest.param(
            "auc]",
            "auc: 3]",
            "metrics[1].auc 3",
            id="a number in place of the parameters of a metric",
        ),
        pytest.param("auc]", "3]", "metrics[1] 3", id="a number in place of a metric"),
        pytest.param(
            "auc]\n",
            "auc]\nsweep: {kk: [1]}\n",
            "11:9 sweep.kk",
            id="a swept parameter that nothing has",
        ),
        pytest.param(
            "auc]\n",
            "auc]\nsweep: {k: [0.1, 1.5]}\n",
            "11:18 sweep.k[1] 'k'",
            id="a swept value that is refused",
        ),
        pytest.param(
            "{k: 0.5, epochs",
            "{k: 1 percent, epochs",
            "5:10 common.k k '1 percent'",
            id="a share in wrong words",
        ),
        pytest.param(
            "auc]\n",
            'auc]\nsweep: {k: ["5 %", "100"]}\n',
            "11:20 sweep.k[1] k '100'",
            id="a swept value in wrong words",
        ),
        pytest.param(
            "auc]\n",
            "auc]\nsweep: {k: [1], C: [2]}\n",
            "sweep",
            id="two swept parameters",
        ),
        pytest.param(
            "auc]\n",
            "auc]\nplots: [accuracy-sweep]\n",
            "plots[0]",
            id="a figure of a sweep without one",
        ),
        pytest.param(
            "auc]\n",
            "auc]\nsmoke: {sweep: [1]}\n",
            "smoke.sweep",
            id="a small sweep without a sweep",
        ),
        pytest.param(
            "n_splits: 2",
            "n_splits: 2, splits: [0, 1, 0]",
            "4:40 protocol.splits[2] 0",
            id="a split twice",
        ),
        pytest.param("auc]", "auc, auc]", "metrics[2]", id="a metric twice"),
        pytest.param(
            "tune: [0.1, 1.0]", "tune: [.1, 0.1]", "0.1", id="a value to tune twice"
        ),
        pytest.param(
            "auc]\n",
            "auc]\nsweep: {k: [10, 20, 10]}\n",
            "11:21 sweep.k[2] 10",
            id="a swept value twice",
        ),
        pytest.param(
            "auc]\n",
            "auc]\nsweep: {k: [1, 2, 3]}\nsmoke: {sweep: [1, 1]}\n",
            "smoke.sweep[1] 1",
            id="a value of the small sweep twice",
        ),
        pytest.param(
            "auc]\n",
            "{precision_at_k: {k: 9}}]\nsweep: {k: [1, 2]}\n",
            "sweep.k precision_at_k 1",
            id="metrics that a sweep makes equal",
        ),
        pytest.param(
            "auc]\n", "auc]\ncheckpoints: 0\n", "11:1 checkpoints 0", id="no checkpoint"
        ),
        pytest.param(
            "auc]\n",
            "auc]\ncheckpoints: often\n",
            "'often'",
            id="checkpoints in wrong words",
        ),
        pytest.param(
            "auc]\n", "auc]\ncheckpoints: true\n", "", id="a truth value of checkpoints"
        ),
        pytest.param(
            "auc]\n",
            "auc]\ncheckpoints: [0.5, 0.2]\n",
            "0",
            id="checkpoints that descend",
        ),
        pytest.param(
            "perceptron-avg:\n",
            "perceptron-avg: {fourier: {}}\n",
            "n_components",
            id="random features without a number",
        ),
        pytest.param(
            "perceptron-avg:\n",
            "perceptron-avg: {fourier: {n_components: {tune: [9, 0]}}}\n",
            "n_components 1 0",
            id="no random features among the candidates",
        ),
        pytest.param(
            "auc]\n",
            "auc]\nsmoke: {datasets: [adul]}\n",
            "'adul' 'adult'",
            id="a small data set that is not there",
        ),
        pytest.param(
            "auc]\n",
            "auc]\ntuning: {folds: 5, rows: 9}\n",
            "tuning.rows folds",
            id="rows for tuning beside folds",
        ),
        pytest.param(
            "n_splits: 2}\n",
            "split: time}\ntuning: {rows: 9}\n",
            "tuning.rows time",
            id="rows for tuning beside a split by time",
        ),
        pytest.param(
            "n_splits: 2}\n",
            "split: time}\ntuning: {folds: 5}\n",
            "tuning.folds time",
            id="folds for tuning beside a split by time",
        ),
        pytest.param(
            "n_splits: 2",
            "split: time, n_splits: 5",
            "protocol.test_size 5 0.3 0.2",
            id="test sets by time that leave no rows",
        ),
        pytest.param(
            "auc]\n",
            "auc]\ntuning: {draw: 1}\n",
            "draw 2",
            id="a draw of one candidate",
        ),
    ],
)
def test_a_single_mistake_is_a_single_line(complaints, old, new, places):
    [line] = complaints(with_change(old, new))
    names(line, places)


def test_a_count_is_not_the_share_of_the_same_number_in_metrics(read):
    both = "{precision_at_k: {k: 1}}, {precision_at_k: {k: 1.0}}]"
    first, *others = read(with_change("auc]", both)).metrics
    assert first.params == {"k": 0.5}
    assert [metric.params for metric in others] == [{"k": 1}, {"k": 1.0}]


def test_a_count_is_not_the_share_of_the_same_number_in_values_to_tune(read):
    tuned = with_change("perceptron-avg:", "perceptron-avg: {k: {tune: [1, 1.0]}}")
    params = read(tuned).solvers["perceptron-avg"].params
    assert params == {"k": {"tune": [1, 1.0]}}


def test_a_count_is_not_the_share_of_the_same_number_in_a_sweep(read):
    assert len(read(SMALL + "sweep: {k: [1, 1.0]}\n").sweep_points()) == 2


# Trials


def test_trials_interleave_the_contestants(read):
    trials = read(SMALL + "sweep: {k: [1, 1.0]}\n").trials()
    labels = ["perceptron-avg", "sgd-avg", "svm, soft"]
    expected = []
    for split in (0, 1):
        for dataset in ("letter", "adult"):
            for k in (1, 1.0):
                expected += [(split, dataset, k, type(k), label) for label in labels]
    order = []
    for trial in trials:
        parameter, k = trial.sweep
        assert parameter == "k"
        place = trial.split.index, trial.dataset.name, k, type(k), trial.label
        order.append(place)
    assert order == expected


def test_parameters_are_resolved(read):
    first, tuned, svm = read(SMALL).trials()[:3]
    assert first.params.items() >= {"k": 0.5, "epochs": 3, "batch_size": 500}.items()
    assert tuned.candidates == {"eta0": [0.1, 1.0]}
    assert svm.params["C"] == 0.1
    assert not {"k", "random_state"} & {*svm.params}
    assert svm.limit.times_slowest == 5
    assert first.scaling == "standardise"
    assert first.metric.label == "precision_at_k(k=0.5)"
    assert pickle.loads(pickle.dumps(svm)) == svm


def test_metrics_inherit_from_common(read):
    def labels(common, metrics):
        text = with_change("{k: 0.5, epochs: 3}", common)
        text = text.replace("[{precision_at_k: {k: 0.5}}, auc]", metrics)
        return [metric.label for metric in read(text).metrics]

    inherited = "precision_at_k(k=0.25)"
    with_own_k = "precision_at_k(k=3)"
    with_ties = "precision_at_k(k=0.25, ties=worst)"
    assert labels("{k: 0.25}", "[precision_at_k, auc]") == [inherited, "auc"]
    assert labels("{k: 0.25}", "[{precision_at_k: {k: 3}}]") == [with_own_k]
    assert labels("{k: 0.25}", "[{precision_at_k: {ties: worst}}]") == [with_ties]
    with raises(InputError, "k"):
        labels("{k: {tune: [0.1, 0.2]}}", "[precision_at_k]")
    with raises(InputError, "common.k"):
        labels("{k: -1.0}", "[precision_at_k]")


def test_the_sweep_reaches_solvers_and_metrics(read):
    experiment = read(SMALL + "sweep: {k: [0.1, 7]}\n")
    assert experiment.plots == ("accuracy-time", "accuracy-sweep")
    for trial in experiment.trials():
        _parameter, value = trial.sweep
        assert trial.metric.params == {"k": value}
        assert trial.params.get("k", value) == value
        assert experiment.metrics_at(trial.sweep)[0] == trial.metric
    assert read(SMALL).plots == ("accuracy-time", "precision-k")


def test_seeds_follow_from_identity_and_pair_the_solvers(read):
    trials = read(SMALL).trials()
    seeds = {t.seed for t in trials}
    seeds_of_adult = {t.seed for t in trials if t.dataset.name == "adult"}
    assert len({(t.seed, t.dataset.name, t.split.index) for t in trials}) == 4
    assert len(seeds) == 4
    only_adult = with_change("[letter, adult]", "[adult]")
    more_splits = read(only_adult.replace("n_splits: 2", "n_splits: 9")).trials()
    assert {t.seed for t in more_splits} > seeds_of_adult
    other_seed = read(with_change("n_splits: 2", "n_splits: 2, seed: 1")).trials()
    assert seeds.isdisjoint(t.seed for t in other_seed)


def test_each_repetition_has_a_partition_of_its_own(read):
    def folds(protocol):
        experiment = read(with_change("n_splits: 2", protocol))
        return experiment.select(["perceptron-avg"], ["letter"]).trials()

    once = folds("split: kfold, n_splits: 3")
    often = folds("split: kfold, n_splits: 3, repetitions: 4")
    assert [key(t) for t in often[:3]] == [key(t) for t in once]
    assert len({t.split.seed for t in once}) == 1
    assert len({t.seed for t in once}) == 3
    assert [t.split.fold for t in often] == [0, 1, 2] * 4
    seeds = [t.split.seed for t in often]
    assert seeds[::3] == seeds[2::3]
    assert len(set(seeds)) == 4
    assert len({key(t) for t in often}) == 12


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
        pytest.param("name: small", "name: other\nsource: x", id="name and source"),
        pytest.param("A small one", "Another title", id="title"),
        pytest.param(
            "[letter, adult]",
            "[adult, {name: letter, on_missing: stand-in}]",
            id="order of the data sets, and what stands in",
        ),
        pytest.param('"svm, soft"', "svm", id="label"),
        pytest.param("slowest: 5}", "slowest: 50}", id="limit"),
        pytest.param(
            "k: 0.5, epochs: 3", "epochs: 3, k: 0.50", id="order of parameters"
        ),
        pytest.param(
            "  perceptron-avg:\n",
            "  perceptron-avg: {batch_size: 500}\n",
            id="a default that is written out",
        ),
        pytest.param(
            "auc]\n",
            "auc, dcg]\ntimeout: 5\nplots: [roc]\nsmoke: {rows: 100}\n",
            id="other metrics, timeout, figures and smoke size",
        ),
        pytest.param(
            "{n_splits: 2}",
            "{n_splits: 2, split: random, test_size: 0.30, seed: 0}",
            id="defaults of the protocol that are written out",
        ),
        pytest.param(
            "metrics:",
            "scaling_fitted_on: train\nmetrics:",
            id="the default of the scaling that is written out",
        ),
    ],
)
def test_keys_do_not_see_what_changes_no_number(read, old, new):
    assert keys(read(with_change(old, new))) == keys(read(SMALL))


def test_a_data_set_may_keep_its_own_parts(read):
    experiment = read(
        with_change("[letter, adult]", "[letter, {name: a9a, split: provided}]")
    )
    trials = experiment.trials()
    kinds = {(trial.dataset.name, trial.split.kind) for trial in trials}
    assert kinds == {("letter", "random"), ("a9a", "provided")}
    seeds = {trial.seed for trial in trials if trial.dataset.name == "a9a"}
    assert len(seeds) == 2
    assert Plan(experiment, {}, ()).protocol == (
        "70/30 random split, 2 splits; a9a: the provided training and test sets"
    )


def test_a_missing_provided_split_is_reported_before_anything_runs(read):
    experiment = read(
        with_change("[letter, adult]", "[{name: margin, split: provided}]")
    )
    with raises(InputError, "margin provided"):
        make_plan(experiment)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("sections", "most", "places"),
    [
        pytest.param(
            {"metrics": "[{precision_at_k: {k: K}}]"}, 180, "0 180", id="test rows"
        ),
        pytest.param(
            {"metrics": "[auc, {lift_at_k: {k: K}}]"},
            180,
            "lift_at_k 181 180",
            id="the second metric",
        ),
        pytest.param(
            {
                "metrics": "[{recall_at_k: {k: K}}]",
                "solvers": "{sgd-avg: {eta0: {tune: [1, 2]}}}",
            },
            84,
            "0 k 85 84 tuned_by",
            id="validation rows",
        ),
        pytest.param(
            {
                "protocol": "{split: kfold, n_splits: 8}",
                "metrics": "[{precision_at_k: {k: K}}]",
            },
            75,
            "75",
            id="rows of a fold",
        ),
        pytest.param(
            {
                "protocol": "{train_size: 90}",
                "parts": "[training, test]",
                "metrics": "[{precision_at_k: {k: K}}]",
            },
            90,
            "90",
            id="training rows",
        ),
        pytest.param(
            {"protocol": "{split: none}", "metrics": "[{precision_at_k: {k: K}}]"},
            600,
            "600",
            id="all rows",
        ),
        pytest.param({"sweep": "{k: [0.5, K]}"}, 180, "181", id="a swept value"),
    ],
)
def test_a_metric_that_needs_more_rows_than_there_are_is_refused_before_training(
    small, sections, most, places
):
    """In the sections, K stands for the number of rows that the metric needs."""

    def plan(k):
        text = {"solvers": "{perceptron-avg: }"}
        for name, section in sections.items():
            text[name] = section.replace("K", str(k))
        return make_plan(load_config(small(**text)))

    with raises(InputError, places):
        plan(most + 1)
    assert plan(most).trials


def test_random_features_are_part_of_the_key(read):
    def with_fourier(fields):
        entry = f"perceptron-avg: {{fourier: {{{fields}}}}}"
        return read(with_change("perceptron-avg:", entry))

    mapped = with_fourier("n_components: 30")
    finer = with_fourier("n_components: 30, gamma: 0.5")
    tuned = with_fourier("n_components: {tune: [30, 50]}")
    assert len(keys(mapped) & keys(finer)) == 8
    features = "random Fourier features"
    assert Plan(mapped, {}, ()).scaling.endswith(f"perceptron-avg: 30 {features}")
    assert Plan(tuned, {}, ()).scaling.endswith(f"perceptron-avg: 30 or 50 {features}")


def test_a_data_set_may_have_its_own_scaling(read):
    own = (
        "[{name: letter, scaling: standardise-unit-norm}, {name: adult, scaling:"
        " unit-norm}]"
    )
    experiment = read(with_change("[letter, adult]", own))
    trials = experiment.trials()
    scalings = {trial.dataset.name: trial.scaling for trial in trials}
    assert scalings == {"letter": "standardise-unit-norm", "adult": "unit-norm"}
    assert keys(experiment).isdisjoint(keys(read(SMALL)))
    plan = Plan(experiment, {}, tuple((trial, "") for trial in trials))
    assert plan.scaling == (
        "standardised on the training set and each row divided by its norm, "
        "each row divided by its norm"
    )
    on_all = read(with_change("[letter, adult]", own + "\nscaling_fitted_on: all"))
    # there is nothing to learn for adult
    assert len(keys(on_all) & keys(experiment)) == 6


@pytest.mark.parametrize(
    ("old", "new", "n_same", "n_new"),
    [
        pytest.param("n_splits: 2", "n_splits: 3", 12, 6, id="one more split"),
        pytest.param("auc]", "auc]\ncheckpoints: 5", 0, 12, id="checkpoints"),
        pytest.param(
            "  perceptron-avg:\n",
            "  perceptron-avg:\n  1pmb:\n",
            12,
            4,
            id="one more solver",
        ),
        pytest.param("C: 0.1", "C: 0.2", 8, 4, id="a parameter"),
        pytest.param("[0.1, 1.0]", "[0.1, 2.0]", 8, 4, id="values to tune"),
        pytest.param(
            "precision_at_k: {k: 0.5}",
            "precision_at_k: {k: 0.1}",
            8,
            4,
            id="the metric, on which only what is tuned depends",
        ),
        pytest.param("metrics:", "scaling: unit\nmetrics:", 0, 12, id="scaling"),
        pytest.param(
            "perceptron-avg:",
            "perceptron-avg: {fourier: {n_components: 30}}",
            8,
            4,
            id="random features",
        ),
    ],
)
def test_a_changed_config_reruns_only_what_changed(read, old, new, n_same, n_new):
    first_keys = keys(read(SMALL))
    changed_keys = keys(read(with_change(old, new)))
    assert len(changed_keys & first_keys) == n_same
    assert len(changed_keys - first_keys) == n_new


def test_the_key_depends_on_data_version_and_rows(read, monkeypatch):
    trial = read(SMALL).trials()[0]
    own_key = key(trial)
    other_keys = {
        key_of(trial.description("1" * 64)),
        key(trial, rows=100),
        key(trial, seed=1),
    }
    monkeypatch.setattr(PerceptronAtK, "algorithm_version", 99)
    other_keys.add(key(trial))
    assert len(other_keys) == 4
    assert own_key not in other_keys


def test_the_key_does_not_depend_on_names_and_limits(read):
    trial = read(SMALL).trials()[0]
    renamed = {"label": "x", "experiment": "y"}
    assert key(trial, timeout=1.0, limit=None, **renamed) == key(trial)


def test_a_seed_depends_on_nothing_but_names_and_numbers(read, monkeypatch):
    """On the seed of the protocol, the data set and the split.

    A change of keys moves no number.
    """
    seeds = [(trial.seed, trial.split.seed) for trial in read(SMALL).trials()]
    monkeypatch.setattr("precbench.experiment.trial.PREPARATION_VERSION", 99)
    monkeypatch.setattr(PerceptronAtK, "algorithm_version", 99)
    changed = read(with_change("metrics:", "dtype: float32\nmetrics:"))
    assert [(trial.seed, trial.split.seed) for trial in changed.trials()] == seeds
    assert not keys(changed) & keys(read(SMALL))
    assert seeds[0] == (trial_seed(0, "letter", 0),) * 2


GRID = {"eta0": [0.1, 1.0, 10.0], "batch_size": [50, 100, 500], "k": [0.25, 0.5]}


def combinations_of(read, grid, draw, label="sgd-avg", text=SMALL):
    """Return what each trial of a solver tries, by data set and split."""
    values = ", ".join(f"{name}: {{tune: {values}}}" for name, values in grid.items())
    own = text.replace("sgd-avg: {eta0: {tune: [0.1, 1.0]}}", f"{label}: {{{values}}}")
    own += f"tuning: {{draw: {draw}}}\n" if draw else ""
    return [t.combinations() for t in read(own).trials() if t.label == label]


def test_without_a_draw_all_combinations_are_tried_in_order(read):
    whole = combinations_of(read, GRID, None)[0]
    assert len(whole) == 18
    assert whole[0] == {"eta0": 0.1, "batch_size": 50, "k": 0.25}


@pytest.mark.parametrize("draw", [2, 5, 12, 17])
def test_candidates_are_drawn_once_from_the_product_of_their_lists(read, draw):
    whole = combinations_of(read, GRID, None)[0]
    drawn, *of_others = combinations_of(read, GRID, draw)
    assert len(drawn) == draw
    assert [one for one in whole if one in drawn] == drawn
    assert of_others == [drawn] * 3  # on other data sets and splits
    reversed_grid = dict(reversed(GRID.items()))
    assert combinations_of(read, reversed_grid, draw)[0] == drawn
    assert combinations_of(read, GRID, draw, "sgd-max")[0] == drawn
    more_data = with_change("letter, adult", "letter, adult, ijcnn1")
    other_seed = more_data.replace("n_splits: 2", "n_splits: 2, seed: 3")
    assert combinations_of(read, GRID, draw, text=other_seed) == [drawn] * 6


def test_a_draw_depends_on_the_lists(read):
    other_grid = GRID | {"eta0": [0.1, 1.0, 20.0]}
    drawn = combinations_of(read, GRID, 5)[0]
    assert combinations_of(read, other_grid, 5)[0] != drawn


@pytest.mark.parametrize("draw", [18, 19, 500])
def test_a_draw_of_as_many_as_there_are_leaves_none_out(read, draw):
    whole = combinations_of(read, GRID, None)[0]
    assert combinations_of(read, GRID, draw)[0] == whole


def test_each_value_is_drawn_as_often_as_the_others(read):
    """Over many lists, of which each has its own seed."""
    trial = next(t for t in read(SMALL).trials() if t.candidates)
    parameters = "abcd"
    counts = np.zeros((len(parameters), 3))  # by parameter, and place in its list
    for number in range(300):
        values = [number, number + 0.5, number + 0.7]
        lists = {name: {"tune": values} for name in parameters}
        drawing = dataclasses.replace(trial, params=lists, draw=12)
        for combination in drawing.combinations():
            for row, name in enumerate(parameters):
                counts[row, values.index(combination[name])] += 1
    # Of 12 without replacement from 81 the variance is a little below the binomial one.
    assert np.abs(counts - 1200).max() < 4 * np.sqrt(3600 * 2 / 9)


def test_draw_is_part_of_the_key_only_where_it_leaves_something_out(read):
    def keys_with(tuning):
        return keys(read(with_change("[0.1, 1.0]", "[0.1, 1.0, 10.0]") + tuning))

    keys_without_draw = keys_with("")
    assert keys_with("tuning: {draw: 3}\n") == keys_without_draw
    assert len(keys_with("tuning: {draw: 2}\n") & keys_without_draw) == 8


# One's own files


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n")
    return path


def test_a_file_of_the_user_is_a_data_set(read, mine):
    entry = (
        "{file: mine.csv, label: churned, positive: 'yes', groups: customer, drop: [id,"
        " 3], categorical: one-hot, missing: median, format: csv, time: seen}"
    )
    experiment = read(with_change("[letter, adult]", f"[letter, {entry}]"))
    own = experiment.datasets[1]
    assert isinstance(own, FileData)
    assert own.file == mine
    assert own.name == "mine"
    assert own.label == "churned"
    assert own.positive == "yes"
    assert own.drop == ("id", 3)
    trial = experiment.trials()[3]
    assert trial.dataset == own
    assert trial.scaling == "none"
    preprocessing = trial.description("0" * 64)["preprocessing"]
    assert preprocessing["label"] == "churned"
    assert preprocessing["positive"] == "yes"
    assert preprocessing["drop"] == ["id", 3]
    assert preprocessing["missing"] == "median"
    # the hash of the data follows from it
    assert "time" not in preprocessing


def test_mistakes_in_a_file_of_the_user(complaints, mine):
    [line] = complaints(with_change("[letter, adult]", "[{file: mine.cvs}]"))
    names(line, "'mine.csv'")
    [line] = complaints(with_change("[letter, adult]", "[{file: mine.csv, name: a b}]"))
    names(line, "3:29 datasets[0].name")


def test_by_time(read):
    def trials(text):
        return read(with_change("{n_splits: 2}", f"{{split: time, {text}}}")).trials()

    first, *others = trials("seed: 0")
    fields = {"kind": "time", "groups": "keep", "test_size": 0.3, "index": 0}
    assert first.split.description() == fields
    assert {trial.split.index for trial in others} == {0}
    assert key(trials("n_splits: 3")[0]) == key(first)


# Filters and smoke size


def test_select(read):
    experiment = read(SMALL)
    [trial] = experiment.select(
        solvers=["svm, soft"], datasets=["adult"], seeds=[1]
    ).trials()
    assert trial == experiment.trials()[-1]
    assert experiment.select().trials() == experiment.trials()


def test_select_refuses_what_is_not_there(read):
    wrong = {"solvers": ["sgd-agv"], "datasets": ["letter", "lettr"], "seeds": [0, 2]}
    of_solver, of_dataset, of_split = mistakes(lambda: read(SMALL).select(**wrong))
    names(of_solver, "'sgd-agv' 'sgd-avg'")
    names(of_dataset, "'lettr' 'letter'")
    names(of_split, "2 0 1")
    with raises(InputError, "2 3 4 5 6 ..."):
        read(SMALL).select(seeds=[*range(100), 200, 300, 301])


def test_numbers_of_splits_are_sorted_and_single():
    assert split_numbers("4,0-2,1") == [0, 1, 2, 4]


@pytest.mark.parametrize(
    "text", ["0-9999999999", "99999999999999999999-100000000000000000000", "100000"]
)
def test_numbers_of_splits_are_bounded_before_they_are_listed(text):
    with raises(InputError, "100,000"):
        split_numbers(text)


@pytest.mark.parametrize("text", ["", "1,", "3-1", "a", "-1", "5-", "1-2-3"])
def test_what_is_no_list_of_splits_is_refused_with_an_example(text):
    with raises(InputError, "0,2"):
        split_numbers(text)


def test_smoke_size(read):
    smoke = (
        "smoke: {rows: 70, epochs: 1, max_iter: 9, checkpoints: 2, datasets: [adult]}\n"
    )
    experiment = read(SMALL + "sweep: {batch_size: [10, 20, 40]}\n" + smoke)
    trials = experiment.smoke_size().trials()
    assert {t.dataset.name for t in trials} == {"adult"}
    assert {t.split.index for t in trials} == {0}
    assert {t.rows for t in trials} == {70}
    assert {t.checkpoints for t in trials} == {2}
    assert {t.sweep[1] for t in trials} == {10, 40}
    assert {t.params.get("epochs", 1) for t in trials} == {1}
    assert {t.params.get("max_iter", 9) for t in trials} == {9}
    assert experiment.trials()[0].params["epochs"] == 3
    letter = experiment.select(datasets=["letter"]).smoke_size().trials()
    assert {t.dataset.name for t in letter} == {"letter"}


@pytest.mark.parametrize("name", ["shards", "trials", "Shards"])
def test_a_name_may_not_be_that_of_a_folder_of_precbench(complaints, name):
    experiment = with_change("name: small", f"name: {name}")
    study = f"name: {name}\ntitle: A study\nstudy: error-bounds\n"
    for text in (experiment, study):
        line, *_lines_on_parameters = complaints(text)
        names(line, f"c.yaml:1:1 {name}")
