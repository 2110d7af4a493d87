"""The rows of a trial: gathered once, scaled from the training set, the same for every solver."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precbench.data import Dataset
from precbench.data.dataset import Imputed
from precbench.data.preprocess import Scaler
from precbench.errors import InputError
from precbench.experiment import load_config
from precbench.experiment.division import divide_rows
from precbench.experiment.plan import make_plan
from precbench.experiment.samples import Rows, _subsample_rows
from precbench.experiment.sections import Fourier
from tests.sentences import raises

RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((9000, 7))
SPARSE = csr_matrix(np.where(RNG.random(DENSE.shape) < 0.2, DENSE, 0.0))


def dataset(X):
    y = np.where(np.arange(X.shape[0]) % 9 == 0, 1.0, -1.0)
    return Dataset("toy", "toy", X, y, "")


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
    plain, scaled = (trials(scaling=how, scaling_fitted_on=fitted_on)[0] for how in ("none", kind))
    raw, part = (
        [Rows(trial, dataset(X)).part(name) for name in ("training", "test")]
        for trial in (plain, scaled)
    )
    scaler = Scaler(kind).fit(raw[0].X if fitted_on == "train" else X)
    for found, rows in zip(part, raw, strict=True):
        assert_array_equal(dense(found.X), dense(scaler.transform_in_place(rows.X.copy())))
    assert sum(len(rows.y) for rows in part) == len(DENSE) and abs(X - before).max() == 0


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
    raw, raw_test = (Rows(plain, dataset(DENSE)).part(name) for name in ("training", "test"))
    sampler = RBFSampler(gamma=gamma or "scale", n_components=20, random_state=plain.seed)
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
    found, expected = (Rows(trial, dataset(X)).test.X for X in (single, single.astype(np.float64)))
    assert found.dtype == np.float32
    assert_allclose(found, expected, atol=1e-6)


def test_only_float32_that_is_asked_for_is_part_of_the_key(small):
    plain, asked = (make_plan(load_config(small(**how))) for how in ({}, {"dtype": "float32"}))
    assert "kept as float32" in asked.scaling and "kept as" not in plain.scaling
    assert {plan.datasets["mine"].X.dtype.name for plan in (plain, asked)} == {"float64", "float32"}
    for (old, key), (new, new_key) in zip(plain.trials, asked.trials, strict=True):
        before, after = (trial.description("0")["preprocessing"] for trial in (old, new))
        assert after == before | {"dtype": "float32"} and new_key != key


def test_gaps_are_filled_in_from_the_training_rows(trials):
    """In both parts, before they are scaled."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 2)), np.where(np.arange(90) % 3, -1.0, 1.0)
    gaps = np.flatnonzero(rng.random(90) < 0.3)
    holed = X.copy()
    holed[gaps, 1] = np.nan
    imputed = Imputed("mean", ((1, 2, gaps),))
    mine = Dataset("mine", "Mine", np.nan_to_num(holed, nan=9.0), y, "0", imputed=imputed)
    trial = replace(next(t for t in trials() if t.fourier is None), scaling="standardise")
    split, _ = divide_rows(trial, mine)
    fill = np.nanmean(holed[split.train, 1])
    known = np.nan_to_num(holed, nan=fill)
    scaler = StandardScaler().fit(known[split.train])
    for part, rows in (("train", split.train), ("test", split.test)):
        assert np.isin(rows, gaps).any()
        assert_allclose(Rows(trial, mine).part(part).X, scaler.transform(known[rows]), atol=1e-12)


@pytest.mark.parametrize(
    ("n_pos", "rows", "kept"),
    [(500, 200, 100), (30, 200, 6), (6, 200, 4), (3, 400, 3), (990, 100, 98), (995, 200, 196)],
)
def test_a_cut_keeps_the_proportions_but_enough_of_a_rare_class(n_pos, rows, kept):
    y = np.where(np.arange(1000) < n_pos, 1.0, -1.0)
    cut = _subsample_rows(Dataset("toy", "Toy", np.arange(1000.0)[:, None], y, "0"), rows)
    assert (cut.n_pos, len(cut.y)) == (kept, rows)
    assert np.array_equal(cut.y, np.where(cut.X[:, 0] < n_pos, 1.0, -1.0))


def test_folds_hold_every_training_row_once_in_the_proportions_of_the_classes(trials):
    trial = next(t for t in trials(tuning="{folds: 4}") if t.candidates)
    assert len(Rows(replace(trial, folds=None), dataset(DENSE)).divisions) == 1
    rows = Rows(trial, dataset(DENSE))
    held = [part for _, part in rows.divisions]
    assert_array_equal(np.sort(np.concatenate(held)), np.arange(rows.training.n_rows))
    for fitted, part in rows.divisions:
        assert len(np.union1d(fitted, part)) == len(fitted) + len(part) == rows.training.n_rows
        assert abs(np.sum(rows.training.y[part] > 0) - np.sum(rows.training.y > 0) / 4) < 1
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
    assert (fitting.start or 0, held.start) == (0, most.stop)


def test_folds_keep_groups_and_are_no_more_than_a_class_has(trials):
    trial = next(t for t in trials(tuning="{folds: 4}") if t.candidates)
    grouped = replace(dataset(DENSE), groups=np.arange(len(DENSE)) // 50)
    for ids in (grouped.groups, None):
        both = replace(grouped, groups=ids)
        train = divide_rows(trial, both)[0].train
        parts = Rows(trial, both).divisions
        for fitted, part in parts:
            shared = np.intersect1d(grouped.groups[train[fitted]], grouped.groups[train[part]])
            assert (len(shared) == 0) == (ids is not None)
        assert len(parts) == 4
    y = np.where(np.arange(len(DENSE)) < 4, 1.0, -1.0)
    few = replace(dataset(DENSE), y=y)
    n_pos = int(np.sum(Rows(trial, few).training.y > 0))
    assert len(Rows(trial, few).divisions) == n_pos < 4
    whole = replace(trial, split=replace(trial.split, kind="none"))
    with raises(InputError, "toy 0"):
        assert Rows(whole, replace(few, groups=np.arange(len(DENSE)) // 50)).divisions
