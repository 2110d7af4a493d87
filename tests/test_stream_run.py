"""Experiments on streamed rows: like any other, but the rows are never in memory as a whole."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from precbench.data import open_stream
from precbench.errors import InputError
from precbench.experiment import load_config, samples
from precbench.experiment.division import check_division
from precbench.experiment.samples import Rows, read_data
from precbench.store import Store
from tests.helpers import numbers, records, run, succeed
from tests.sentences import done_already, raises

SOLVERS = "{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}}"


@pytest.fixture
def streamed(small, tmp_path):
    """The small experiment on streams of its own rows."""
    table = pd.read_csv(tmp_path / "mine.csv")
    X, y = table.drop(columns="label").to_numpy(), table["label"].to_numpy()
    np.save(tmp_path / "X.npy", np.ascontiguousarray(X))
    np.save(tmp_path / "y.npy", y)
    lines = (
        f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        for row, label in zip(X, y, strict=True)
    )
    (tmp_path / "mine.svm").write_text("\n".join(lines))

    def write(**changes):
        sizes = "block_bytes: 1000, buffer_bytes: 4000"
        defaults = {
            "datasets": f"[{{file: mine.svm, stream: true, {sizes}}}, "
            f"{{file: X.npy, labels: y.npy, name: npy, stream: true, {sizes}}}]",
            "solvers": SOLVERS,
        }
        return small(**defaults | changes)

    return write


def test_from_the_config_to_the_plot(streamed, tmp_path):
    succeed("run", streamed(plots="[accuracy-time]"), "--out", tmp_path / "out")
    folder = tmp_path / "out" / "small"
    final = pd.read_csv(folder / "results.csv").query("final")
    assert len(final) == 2 * 2 * 2 * 2 and set(final["status"]) == {"ok"}
    assert (final[final["metric"] == "auc"]["value"] > 0.8).all()
    assert list((folder / "figures").glob("*.png"))
    for record in Store(folder).records():
        assert 380 < record.n_train < 460
        assert record.fitted["n_iter_"] == 3
        assert record.fitted["n_rows_seen_"] == 3 * record.n_train
        assert str(tmp_path) not in json.dumps(record.to_dict())
    before = records(folder)
    assert done_already(run(streamed(), tmp_path / "out").output) == 8
    assert records(folder) == before
    assert run(streamed(), tmp_path / "two", "--jobs", "2").exit_code == 0
    pd.testing.assert_frame_equal(
        numbers(tmp_path / "two" / "small"), numbers(folder), check_exact=True
    )
    larger = "[{file: mine.svm, stream: true, block_bytes: 1000, buffer_bytes: 8000}]"
    again = run(streamed(datasets=larger), tmp_path / "out")
    assert done_already(again.output) == 0  # another buffer is another trial


@pytest.mark.parametrize(
    "protocol", ["{n_splits: 2}", "{split: kfold, n_splits: 3}", "{split: none}"]
)
@pytest.mark.parametrize("scaling", ["none", "standardise"])
def test_the_parts_of_a_stream(streamed, protocol, scaling, tmp_path):
    experiment = load_config(streamed(protocol=protocol, scaling=scaling))
    X = np.load(tmp_path / "X.npy")
    tested = []
    for trial in experiment.trials():
        if trial.dataset.name != "npy" or trial.label != "sgd-avg":
            continue
        data = read_data(trial.dataset)
        parts = Rows(trial, data)
        whole, test = Rows(trial, data).training, Rows(trial, data).test
        [(fitting, validation)] = parts.divisions
        sizes = [parts.training.part(rows).n_rows for rows in (fitting, validation)]
        assert sum(sizes) == whole.n_rows and min(sizes) > 0
        assert len(whole.y) == whole.n_rows and len(test.y) == test.n_rows
        rows = np.concatenate([block for block, _ in whole.X])
        if scaling == "standardise":
            np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-9)
            np.testing.assert_allclose(rows.std(axis=0), 1, atol=1e-9)
        if trial.split.kind == "none":
            assert whole.n_rows == test.n_rows == len(X)
        else:
            assert whole.n_rows + test.n_rows == len(X)
        tested += [block for block, _ in test.X]
    if "kfold" in protocol and scaling == "none":
        found = np.concatenate(tested)
        assert_array_equal(found[np.lexsort(found.T)], X[np.lexsort(X.T)])


def test_scores_come_in_as_many_passes_as_memory_asks_for(streamed, monkeypatch):
    trial = load_config(streamed()).trials()[0]
    test = Rows(trial, read_data(trial.dataset)).test
    weights = np.random.default_rng(0).standard_normal((7, 4))
    together = list(test.scores(weights))
    monkeypatch.setattr(samples, "_SCORES_AT_ONCE", 2 * test.n_rows)
    assert_array_equal(list(test.scores(weights)), together)
    assert_array_equal(list(test.scores(weights, [1.0] * 7)), np.array(together) + 1)
    X = np.concatenate([block for block, _ in test.X])
    np.testing.assert_allclose(together, weights @ X.T, rtol=1e-12)


def test_a_card_is_streamed_from_the_cache(small, in_this_process, tmp_path):
    config = small(
        datasets="[{name: letter, on_missing: stand-in}, "
        "{name: letter, stream: true, on_missing: stand-in, buffer_bytes: 100000}]",
        protocol="{n_splits: 1}",
        solvers="{perceptron-avg: }",
        metrics="[auc]",
        parts="[test, training]",
    )
    succeed("run", config, "--out", tmp_path / "out", "--smoke")
    table = pd.read_csv(tmp_path / "out" / "small-smoke" / "results.csv").query("final")
    assert set(table["dataset"]) == {"letter", "letter-streamed"}
    assert table["title"].str.contains("streamed").sum() == 2
    assert set(table["status"]) == {"ok"}


def test_a_provided_split_and_groups(streamed):
    trial = load_config(streamed(protocol="{split: provided}")).trials()[0]
    data = read_data(trial.dataset)
    with raises(InputError, "mine 'random' 'kfold'"):
        check_division(trial.split, data)
    data = replace(data, n_train=400)
    check_division(trial.split, data)
    assert Rows(trial, data).training.n_rows == 400
    assert Rows(trial, data).test.n_rows == 200
    with raises(InputError, "mine groups"):
        check_division(trial.split, replace(data, groups=np.zeros(600)))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"solvers": "{psg: , sgd-avg: }"}, "solvers.psg: psg needs all rows at once, and mine"),
        (
            {"solvers": "{sgd-avg: {fourier: {n_components: 9}}}"},
            "solvers.sgd-avg.fourier: has no meaning for mine, which is streamed",
        ),
        ({"tuning": "{rows: 9}"}, "tuning.rows: has no meaning for mine, which is streamed"),
        ({"tuning": "{folds: 9}"}, "tuning.folds: has no meaning for mine, which is streamed"),
        ({"protocol": "{stratified: true}"}, "protocol.stratified: has no meaning for mine"),
        ({"protocol": "{train_size: 10}"}, "protocol.train_size: has no meaning for mine"),
        ({"datasets": "[{file: mine.svm, stream: false}]"}, "datasets[0].stream"),
        ({"datasets": "[{file: mine.svm, stream: true, drop: [a]}]"}, "datasets[0].drop: unknown"),
        ({"datasets": "[{file: mine.svm, stream: true, bufer_bytes: 1}]"}, "buffer_bytes"),
        ({"datasets": "[{file: mine.svm, stream: true, buffer_bytes: 0}]"}, "buffer_bytes: "),
        ({"datasets": "[{file: X.npy, stream: true, labels: z.npy}]"}, "labels: no such file"),
        ({"datasets": "[{name: lettr, stream: true}]"}, "datasets[0].name: unknown data set"),
        ({"datasets": "[{name: letter, stream: true, file: a}]"}, "no such file"),
        ({"datasets": "[{file: X.npy, stream: true}]"}, "the labels are missing"),
        ({"datasets": "[{file: mine.csv, stream: true}]"}, "can be streamed"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(streamed, changes, complaint, tmp_path):
    result = run(streamed(**changes), tmp_path / "out")
    assert result.exit_code == 2
    assert complaint in result.output.replace("\n", " ")
    assert "Traceback" not in result.output and not (tmp_path / "out").exists()


def test_a_set_without_positives_is_reported(streamed, in_this_process, tmp_path):
    y = np.zeros(600, dtype=int)
    y[0] = 1
    np.save(tmp_path / "y.npy", y)
    result = run(streamed(protocol="{n_splits: 8}", solvers="{perceptron-avg: }"), tmp_path / "out")
    assert result.exit_code == 1
    table = pd.read_csv(tmp_path / "out" / "small" / "results.csv").query("dataset == 'npy'")
    reasons = set(table["reason"].dropna())
    assert any("the training set of npy has" in r and "0 of them positive" in r for r in reasons)
    assert any(r.startswith("not measured") for r in reasons)
    np.save(tmp_path / "y.npy", np.zeros(600))
    with raises(InputError, "class"):
        open_stream(tmp_path / "X.npy", labels=tmp_path / "y.npy")
