"""The rows of a trial.

Gathered once, scaled from the training set, the same for every solver.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precbench.core.errors import InputError
from precbench.data import Dataset
from precbench.data.dataset import Imputed, ImputedColumn
from precbench.data.preprocess import Scaler
from precbench.experiment import load_config, samples
from precbench.experiment.division import check_division, divide_rows
from precbench.experiment.plan import make_plan
from precbench.experiment.samples import Rows, _subsample_rows, read_data
from precbench.experiment.sections import Fourier
from precbench.results.store import Store
from precbench.tables.streamed_files import open_stream
from tests.helpers import numbers, records, run, succeed
from tests.sentences import done_already, raises

RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((9000, 7))
SPARSE = csr_matrix(np.where(RNG.random(DENSE.shape) < 0.2, DENSE, 0.0))


def dataset(X):
    return Dataset(
        "toy", "toy", X, np.where(np.arange(X.shape[0]) % 9 == 0, 1.0, -1.0), ""
    )


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


@pytest.fixture
def trials(small):
    def make(**changes):
        return load_config(small(protocol="{n_splits: 1}", **changes)).trials()

    return make


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("fitted_on", ["train", "all"])
@pytest.mark.parametrize("kind", ["unit", "unit-norm"])
def test_both_parts_are_scaled_alike(trials, X, fitted_on, kind):
    before = X.copy()
    plain, scaled = (
        trials(scaling=how, scaling_fitted_on=fitted_on)[0] for how in ("none", kind)
    )
    raw, part = (
        [Rows(trial, dataset(X)).part(name) for name in ("training", "test")]
        for trial in (plain, scaled)
    )
    scaler = Scaler(kind).fit(raw[0].X if fitted_on == "train" else X)
    for found, rows in zip(part, raw, strict=True):
        assert_array_equal(
            dense(found.X), dense(scaler.transform_in_place(rows.X.copy()))
        )
    assert sum(len(rows.y) for rows in part) == len(DENSE)
    assert abs(X - before).max() == 0


def test_every_solver_sees_the_same_rows_in_the_same_order(trials):
    parts = [Rows(trial, dataset(DENSE)) for trial in trials()]
    assert {bool(trial.candidates) for trial in trials()} == {True, False}
    for part in parts[1:]:
        assert_array_equal(part.training.X, parts[0].training.X)
        assert part.divisions == parts[0].divisions
        assert part.divisions[0][0] == slice(round(0.8 * part.training.n_rows))


@pytest.mark.parametrize("gamma", [0.3, None])
def test_random_features_follow_the_scaling(trials, gamma):
    [plain, *_] = trials(scaling="none")
    fourier = Fourier(n_components=20, gamma=gamma)
    mapped = [replace(t, fourier=fourier) for t in trials(scaling="standardise")]
    raw, raw_test = (
        Rows(plain, dataset(DENSE)).part(name) for name in ("training", "test")
    )
    sampler = RBFSampler(
        gamma=gamma or "scale", n_components=20, random_state=plain.seed
    )
    twin = make_pipeline(StandardScaler(), sampler).fit(raw.X)
    for trial in mapped:  # the same features for every solver
        for name, rows in (("training", raw), ("test", raw_test)):
            part = Rows(trial, dataset(DENSE)).part(name)
            assert_allclose(part.X, twin.transform(rows.X), atol=1e-12)
            assert_array_equal(part.y, rows.y)
    sparse = Rows(replace(plain, fourier=fourier), dataset(SPARSE)).training.X
    filled = Rows(replace(plain, fourier=fourier), dataset(SPARSE.toarray())).training.X
    assert_allclose(sparse, filled, atol=1e-12)


def test_random_features_of_float32_rows(trials):
    [trial, *_] = trials(scaling="standardise")
    trial = replace(trial, fourier=Fourier(n_components=20))
    single = DENSE.astype(np.float32)
    found, expected = (
        Rows(trial, dataset(X)).test.X for X in (single, single.astype(np.float64))
    )
    assert found.dtype == np.float32
    assert_allclose(found, expected, atol=1e-6)


def test_only_float32_that_is_asked_for_is_part_of_the_key(small):
    plain, asked = (
        make_plan(load_config(small(**how))) for how in ({}, {"dtype": "float32"})
    )
    assert "kept as float32" in asked.scaling
    assert "kept as" not in plain.scaling
    assert {plan.datasets["mine"].X.dtype.name for plan in (plain, asked)} == {
        "float64",
        "float32",
    }
    for (old, key), (new, new_key) in zip(plain.trials, asked.trials, strict=True):
        before, after = (
            trial.description("0")["preprocessing"] for trial in (old, new)
        )
        assert after == before | {"dtype": "float32"}
        assert new_key != key


def test_gaps_are_filled_in_from_the_training_rows(trials):
    """In both parts, before they are scaled."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 2)), np.where(np.arange(90) % 3, -1.0, 1.0)
    gaps = np.flatnonzero(rng.random(90) < 0.3)
    holed = X.copy()
    holed[gaps, 1] = np.nan
    imputed = Imputed("mean", (ImputedColumn(1, 2, gaps),))
    mine = Dataset(
        "mine", "Mine", np.nan_to_num(holed, nan=9.0), y, "0", imputed=imputed
    )
    trial = replace(
        next(t for t in trials() if t.fourier is None), scaling="standardise"
    )
    split, _ = divide_rows(trial, mine)
    known = np.nan_to_num(holed, nan=np.nanmean(holed[split.train, 1]))
    scaler = StandardScaler().fit(known[split.train])
    for part, rows in (("train", split.train), ("test", split.test)):
        assert np.isin(rows, gaps).any()
        assert_allclose(
            Rows(trial, mine).part(part).X, scaler.transform(known[rows]), atol=1e-12
        )


@pytest.mark.parametrize(
    ("n_pos", "rows", "kept"),
    [
        (500, 200, 100),
        (30, 200, 6),
        (6, 200, 4),
        (3, 400, 3),
        (990, 100, 98),
        (995, 200, 196),
    ],
)
def test_a_cut_keeps_the_proportions_but_enough_of_a_rare_class(n_pos, rows, kept):
    y = np.where(np.arange(1000) < n_pos, 1.0, -1.0)
    cut = _subsample_rows(
        Dataset("toy", "Toy", np.arange(1000.0)[:, None], y, "0"), rows
    )
    assert cut.n_pos == kept
    assert len(cut.y) == rows
    assert np.array_equal(cut.y, np.where(cut.X[:, 0] < n_pos, 1.0, -1.0))


def test_folds_hold_every_training_row_once_in_the_proportions_of_the_classes(trials):
    trial = next(t for t in trials(tuning="{folds: 4}") if t.candidates)
    assert len(Rows(replace(trial, folds=None), dataset(DENSE)).divisions) == 1
    rows = Rows(trial, dataset(DENSE))
    held = [part for _, part in rows.divisions]
    assert_array_equal(np.sort(np.concatenate(held)), np.arange(rows.training.n_rows))
    for fitted, part in rows.divisions:
        assert (
            len(np.union1d(fitted, part))
            == len(fitted) + len(part)
            == rows.training.n_rows
        )
        assert (
            abs(np.sum(rows.training.y[part] > 0) - np.sum(rows.training.y > 0) / 4) < 1
        )
    again = Rows(trial, dataset(DENSE)).divisions
    assert all(map(np.array_equal, held, (part for _, part in again)))


@pytest.mark.parametrize("rows", [50, 10**6])
def test_candidates_are_compared_on_so_many_rows_in_the_proportion_of_all(trials, rows):
    trial = next(t for t in trials(tuning=f"{{rows: {rows}}}") if t.candidates)
    all_rows = Rows(replace(trial, tuning_rows=None), dataset(DENSE))
    part = Rows(trial, dataset(DENSE))
    assert_array_equal(part.training.X, all_rows.training.X)
    [(fitting, held)], [(most, _)] = part.divisions, all_rows.divisions
    sizes = [len(range(*of.indices(part.training.n_rows))) for of in (fitting, held)]
    n = min(rows, part.training.n_rows)
    assert sizes == [round(0.8 * n), n - round(0.8 * n)]
    assert (fitting.start or 0) == 0
    assert held.start == most.stop


def test_folds_keep_groups_and_are_no_more_than_a_class_has(trials):
    trial = next(t for t in trials(tuning="{folds: 4}") if t.candidates)
    grouped = replace(dataset(DENSE), groups=np.arange(len(DENSE)) // 50)
    for ids in (grouped.groups, None):
        both = replace(grouped, groups=ids)
        train = divide_rows(trial, both)[0].train
        parts = Rows(trial, both).divisions
        for fitted, part in parts:
            shared = np.intersect1d(
                grouped.groups[train[fitted]], grouped.groups[train[part]]
            )
            assert (len(shared) == 0) == (ids is not None)
        assert len(parts) == 4
    few = replace(dataset(DENSE), y=np.where(np.arange(len(DENSE)) < 4, 1.0, -1.0))
    n_pos = int(np.sum(Rows(trial, few).training.y > 0))
    assert len(Rows(trial, few).divisions) == n_pos < 4
    whole = replace(trial, split=replace(trial.split, kind="none"))
    with raises(InputError, "toy 0"):
        assert Rows(whole, replace(few, groups=np.arange(len(DENSE)) // 50)).divisions


# --- experiments on streamed rows, which are never in memory as a whole ---


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
            "datasets": (
                f"[{{file: mine.svm, stream: true, {sizes}}}, "
                f"{{file: X.npy, labels: y.npy, name: npy, stream: true, {sizes}}}]"
            ),
            "solvers": SOLVERS,
        }
        return small(**defaults | changes)

    return write


def test_from_the_config_to_the_plot(streamed, tmp_path):
    succeed("run", streamed(plots="[accuracy-time]"), "--out", tmp_path / "out")
    folder = tmp_path / "out" / "small"
    final = pd.read_csv(folder / "results.csv").query("final")
    assert len(final) == 2 * 2 * 2 * 2
    assert set(final["status"]) == {"ok"}
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
    two = numbers(tmp_path / "two" / "small")
    pd.testing.assert_frame_equal(two, numbers(folder), check_exact=True)
    larger = "[{file: mine.svm, stream: true, block_bytes: 1000, buffer_bytes: 8000}]"
    # Another buffer is another trial.
    assert done_already(run(streamed(datasets=larger), tmp_path / "out").output) == 0


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
        assert sum(sizes) == whole.n_rows
        assert min(sizes) > 0
        assert len(whole.y) == whole.n_rows
        assert len(test.y) == test.n_rows
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
    with raises(InputError, "mine random kfold"):
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
        (
            {"solvers": "{psg: , sgd-avg: }"},
            "solvers.psg: psg needs all rows at once, and mine",
        ),
        (
            {"solvers": "{sgd-avg: {fourier: {n_components: 9}}}"},
            "solvers.sgd-avg.fourier: has no meaning for mine, which is streamed",
        ),
        (
            {"tuning": "{rows: 9}"},
            "tuning.rows: has no meaning for mine, which is streamed",
        ),
        (
            {"tuning": "{folds: 9}"},
            "tuning.folds: has no meaning for mine, which is streamed",
        ),
        (
            {"protocol": "{stratified: true}"},
            "protocol.stratified: has no meaning for mine",
        ),
        (
            {"protocol": "{train_size: 10}"},
            "protocol.train_size: has no meaning for mine",
        ),
        ({"datasets": "[{file: mine.svm, stream: false}]"}, "datasets[0].stream"),
        (
            {"datasets": "[{file: mine.svm, stream: true, drop: [a]}]"},
            "datasets[0].drop: unknown",
        ),
        (
            {"datasets": "[{file: mine.svm, stream: true, bufer_bytes: 1}]"},
            "buffer_bytes",
        ),
        (
            {"datasets": "[{file: mine.svm, stream: true, buffer_bytes: 0}]"},
            "buffer_bytes: ",
        ),
        (
            {"datasets": "[{file: X.npy, stream: true, labels: z.npy}]"},
            "labels: no such file",
        ),
        (
            {"datasets": "[{name: lettr, stream: true}]"},
            "datasets[0].name: unknown data set",
        ),
        ({"datasets": "[{name: letter, stream: true, file: a}]"}, "no such file"),
        ({"datasets": "[{file: X.npy, stream: true}]"}, "the labels are missing"),
        ({"datasets": "[{file: mine.csv, stream: true}]"}, "can be streamed"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(
    streamed, changes, complaint, tmp_path
):
    result = run(streamed(**changes), tmp_path / "out")
    assert result.exit_code == 2
    assert complaint in result.output.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_set_without_positives_is_reported(streamed, in_this_process, tmp_path):
    y = np.zeros(600, dtype=int)
    y[0] = 1
    np.save(tmp_path / "y.npy", y)
    result = run(
        streamed(protocol="{n_splits: 8}", solvers="{perceptron-avg: }"),
        tmp_path / "out",
    )
    assert result.exit_code == 1
    table = pd.read_csv(tmp_path / "out" / "small" / "results.csv").query(
        "dataset == 'npy'"
    )
    reasons = set(table["reason"].dropna())
    assert any(
        "the training set of npy has" in r and "0 of them positive" in r
        for r in reasons
    )
    assert any(r.startswith("not measured") for r in reasons)
    np.save(tmp_path / "y.npy", np.zeros(600))
    with raises(InputError, "class"):
        open_stream(tmp_path / "X.npy", labels=tmp_path / "y.npy")
