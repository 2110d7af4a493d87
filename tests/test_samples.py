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
N_ROWS = len(DENSE)


def dataset(X):
    """Return a data set in which each ninth row is positive."""
    y = np.where(np.arange(X.shape[0]) % 9 == 0, 1.0, -1.0)
    return Dataset("toy", "toy", X, y, "")


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


def tuned_trial(trials, **changes):
    return next(trial for trial in trials(**changes) if trial.candidates)


@pytest.fixture
def trials(small):
    def make(**changes):
        return load_config(small(protocol="{n_splits: 1}", **changes)).trials()

    return make


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("fitted_on", ["train", "all"])
@pytest.mark.parametrize("kind", ["unit", "unit-norm"])
def test_both_parts_are_scaled_alike(trials, X, fitted_on, kind):
    X_given = X.copy()
    [not_scaled, *_others] = trials(scaling="none", scaling_fitted_on=fitted_on)
    [scaled, *_others] = trials(scaling=kind, scaling_fitted_on=fitted_on)
    raw = Rows(not_scaled, dataset(X))
    rows = Rows(scaled, dataset(X))
    scaler = Scaler(kind).fit(raw.training.X if fitted_on == "train" else X)
    for part in ("training", "test"):
        expected = scaler.transform_in_place(raw.part(part).X.copy())
        assert_array_equal(dense(rows.part(part).X), dense(expected))
    assert rows.training.n_rows + rows.test.n_rows == N_ROWS
    assert abs(X - X_given).max() == 0


def test_every_solver_sees_the_same_rows_in_the_same_order(trials):
    assert {bool(trial.candidates) for trial in trials()} == {True, False}
    first, *others = [Rows(trial, dataset(DENSE)) for trial in trials()]
    n_fit = round(0.8 * first.training.n_rows)
    assert first.divisions[0].fit == slice(n_fit)
    for rows in others:
        assert_array_equal(rows.training.X, first.training.X)
        assert rows.divisions == first.divisions


@pytest.mark.parametrize("gamma", [0.3, None])
def test_random_features_follow_the_scaling(trials, gamma):
    [plain, *_others] = trials(scaling="none")
    raw = Rows(plain, dataset(DENSE))
    sampler = RBFSampler(
        gamma=gamma or "scale", n_components=20, random_state=plain.seed
    )
    reference = make_pipeline(StandardScaler(), sampler).fit(raw.training.X)
    fourier = Fourier(n_components=20, gamma=gamma)
    for trial in trials(scaling="standardise"):  # the same features for every solver
        rows = Rows(replace(trial, fourier=fourier), dataset(DENSE))
        for name in ("training", "test"):
            raw_part = raw.part(name)
            part = rows.part(name)
            assert_allclose(part.X, reference.transform(raw_part.X), atol=1e-12)
            assert_array_equal(part.y, raw_part.y)


@pytest.mark.parametrize("gamma", [0.3, None])
def test_random_features_of_sparse_rows(trials, gamma):
    [plain, *_others] = trials(scaling="none")
    mapped = replace(plain, fourier=Fourier(n_components=20, gamma=gamma))
    of_sparse = Rows(mapped, dataset(SPARSE)).training.X
    of_dense = Rows(mapped, dataset(SPARSE.toarray())).training.X
    assert_allclose(of_sparse, of_dense, atol=1e-12)


def test_random_features_of_float32_rows(trials):
    [trial, *_others] = trials(scaling="standardise")
    mapped = replace(trial, fourier=Fourier(n_components=20))
    single = DENSE.astype(np.float32)
    of_single = Rows(mapped, dataset(single)).test.X
    of_double = Rows(mapped, dataset(single.astype(np.float64))).test.X
    assert of_single.dtype == np.float32
    assert_allclose(of_single, of_double, atol=1e-6)


def test_only_float32_that_is_asked_for_is_part_of_the_key(small):
    double = make_plan(load_config(small()))
    single = make_plan(load_config(small(dtype="float32")))
    assert "kept as" not in double.scaling
    assert "kept as float32" in single.scaling
    assert double.datasets["mine"].X.dtype == np.float64
    assert single.datasets["mine"].X.dtype == np.float32
    for (trial, key), (single_trial, single_key) in zip(
        double.trials, single.trials, strict=True
    ):
        preprocessing = trial.description("0")["preprocessing"]
        of_single = single_trial.description("0")["preprocessing"]
        assert of_single == preprocessing | {"dtype": "float32"}
        assert single_key != key


def test_gaps_are_filled_in_from_the_training_rows(trials):
    """In both parts, before they are scaled."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    y = np.where(np.arange(90) % 3, -1.0, 1.0)
    gaps = np.flatnonzero(rng.random(90) < 0.3)
    X[gaps, 1] = np.nan
    imputed = Imputed("mean", (ImputedColumn(1, 2, gaps),))
    X_filled_with_9 = np.nan_to_num(X, nan=9.0)
    mine = Dataset("mine", "Mine", X_filled_with_9, y, "0", imputed=imputed)
    without_features = next(trial for trial in trials() if trial.fourier is None)
    trial = replace(without_features, scaling="standardise")
    split = divide_rows(trial, mine).split

    X_filled = np.nan_to_num(X, nan=np.nanmean(X[split.train, 1]))
    scaler = StandardScaler().fit(X_filled[split.train])
    for part, row_numbers in (("training", split.train), ("test", split.test)):
        assert np.isin(row_numbers, gaps).any()
        expected = scaler.transform(X_filled[row_numbers])
        assert_allclose(Rows(trial, mine).part(part).X, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("n_pos", "n_drawn", "n_drawn_pos"),
    [
        pytest.param(500, 200, 100, id="half are positive"),
        pytest.param(30, 200, 6, id="3 % are positive"),
        pytest.param(6, 200, 4, id="0.6 % are positive, 2 % of the drawn"),
        pytest.param(3, 400, 3, id="all positives, which are less than 2 %"),
        pytest.param(990, 100, 98, id="1 % are negative, 2 % of the drawn"),
        pytest.param(995, 200, 196, id="0.5 % are negative, 2 % of the drawn"),
    ],
)
def test_a_cut_keeps_the_proportions_but_enough_of_a_rare_class(
    n_pos, n_drawn, n_drawn_pos
):
    row_numbers = np.arange(1000.0)
    y = np.where(row_numbers < n_pos, 1.0, -1.0)
    cut = _subsample_rows(Dataset("toy", "Toy", row_numbers[:, None], y, "0"), n_drawn)
    assert cut.n_pos == n_drawn_pos
    assert len(cut.y) == n_drawn
    assert_array_equal(cut.y, np.where(cut.X[:, 0] < n_pos, 1.0, -1.0))


def test_without_folds_there_is_one_division(trials):
    trial = tuned_trial(trials)
    assert len(Rows(trial, dataset(DENSE)).divisions) == 1


def test_folds_hold_every_training_row_once_in_the_proportions_of_the_classes(trials):
    rows = Rows(tuned_trial(trials, tuning="{folds: 4}"), dataset(DENSE))
    y = rows.training.y
    row_numbers = np.arange(len(y))
    folds = [division.validation for division in rows.divisions]
    assert_array_equal(np.sort(np.concatenate(folds)), row_numbers)
    for fit, fold in rows.divisions:
        assert_array_equal(np.sort(np.concatenate([fit, fold])), row_numbers)
        assert abs(np.sum(y[fold] > 0) - np.sum(y > 0) / 4) < 1


def test_folds_are_always_the_same(trials):
    trial = tuned_trial(trials, tuning="{folds: 4}")
    first = Rows(trial, dataset(DENSE)).divisions
    second = Rows(trial, dataset(DENSE)).divisions
    assert len(first) == len(second)
    for division, equal in zip(first, second, strict=True):
        assert_array_equal(division.validation, equal.validation)


@pytest.mark.parametrize("most", [50, 10**6])
def test_candidates_are_compared_on_so_many_rows_in_the_proportion_of_all(trials, most):
    trial = tuned_trial(trials, tuning=f"{{rows: {most}}}")
    all_rows = Rows(replace(trial, tuning_rows=None), dataset(DENSE))
    rows = Rows(trial, dataset(DENSE))
    assert_array_equal(rows.training.X, all_rows.training.X)

    n_train = rows.training.n_rows
    n_tuning = min(most, n_train)
    n_fit = round(0.8 * n_tuning)
    [(fit, validation)] = rows.divisions
    [whole] = all_rows.divisions
    assert range(n_train)[fit] == range(n_fit)
    first_validation = whole.fit.stop
    n_validation = n_tuning - n_fit
    assert range(n_train)[validation] == range(
        first_validation, first_validation + n_validation
    )


GROUPS = np.arange(N_ROWS) // 50


@pytest.mark.parametrize("keeps_groups", [True, False])
def test_folds_keep_groups(trials, keeps_groups):
    trial = tuned_trial(trials, tuning="{folds: 4}")
    data = replace(dataset(DENSE), groups=GROUPS if keeps_groups else None)
    train = divide_rows(trial, data).split.train
    divisions = Rows(trial, data).divisions
    assert len(divisions) == 4
    for fit, fold in divisions:
        shared_groups = np.intersect1d(GROUPS[train[fit]], GROUPS[train[fold]])
        assert (len(shared_groups) == 0) == keeps_groups


@pytest.fixture
def few_positives():
    """Rows of which the first four are positive."""
    return replace(dataset(DENSE), y=np.where(np.arange(N_ROWS) < 4, 1.0, -1.0))


def test_folds_are_no_more_than_the_rows_of_a_class(trials, few_positives):
    rows = Rows(tuned_trial(trials, tuning="{folds: 4}"), few_positives)
    n_pos = int(np.sum(rows.training.y > 0))
    assert n_pos < 4
    assert len(rows.divisions) == n_pos


def test_folds_of_a_class_in_one_group_are_refused(trials, few_positives):
    trial = tuned_trial(trials, tuning="{folds: 4}")
    on_all_rows = replace(trial, split=replace(trial.split, kind="none"))
    with raises(InputError, "toy 0"):
        assert Rows(on_all_rows, replace(few_positives, groups=GROUPS)).divisions


# --- experiments on streamed rows, which are never in memory as a whole ---


SOLVERS = "{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}}}"


@pytest.fixture
def streamed(small, tmp_path):
    """The small experiment on streams of its own rows."""
    table = pd.read_csv(tmp_path / "mine.csv")
    X = table.drop(columns="label").to_numpy()
    y = table["label"].to_numpy()
    np.save(tmp_path / "X.npy", np.ascontiguousarray(X))
    np.save(tmp_path / "y.npy", y)
    lines = []
    for row, label in zip(X, y, strict=True):
        features = [f"{number}:{value}" for number, value in enumerate(row, start=1)]
        lines.append(" ".join([str(label), *features]))
    (tmp_path / "mine.svm").write_text("\n".join(lines))

    def write(**changes):
        sizes = "block_bytes: 1000, buffer_bytes: 4000"
        svmlight = f"{{file: mine.svm, stream: true, {sizes}}}"
        npy = f"{{file: X.npy, labels: y.npy, name: npy, stream: true, {sizes}}}"
        defaults = {"datasets": f"[{svmlight}, {npy}]", "solvers": SOLVERS}
        return small(**defaults | changes)

    return write


@pytest.fixture
def streamed_run(streamed, tmp_path):
    """The results folder of a run, which other runs may resume."""
    succeed("run", streamed(plots="[accuracy-time]"), "--out", tmp_path / "out")
    return tmp_path / "out" / "small"


def test_streams_from_the_config_to_the_plot(streamed_run, tmp_path):
    final = pd.read_csv(streamed_run / "results.csv").query("final")
    n_datasets, n_splits, n_solvers, n_metrics = 2, 2, 2, 2
    assert len(final) == n_datasets * n_splits * n_solvers * n_metrics
    assert set(final["status"]) == {"ok"}
    assert (final[final["metric"] == "auc"]["value"] > 0.8).all()
    assert list((streamed_run / "figures").glob("*.png"))
    for record in Store(streamed_run).records():
        assert 380 < record.n_train < 460
        assert record.fitted["n_iter_"] == 3
        assert record.fitted["n_rows_seen_"] == 3 * record.n_train
        assert str(tmp_path) not in json.dumps(record.to_dict())


def test_a_run_on_streams_resumes(streamed_run, streamed, tmp_path):
    first_records = records(streamed_run)
    assert done_already(run(streamed(), tmp_path / "out").output) == 8
    assert records(streamed_run) == first_records


def test_a_run_on_streams_has_the_same_numbers_on_two_workers(
    streamed_run, streamed, tmp_path
):
    assert run(streamed(), tmp_path / "two", "--jobs", "2").exit_code == 0
    on_two_workers = numbers(tmp_path / "two" / "small")
    pd.testing.assert_frame_equal(
        on_two_workers, numbers(streamed_run), check_exact=True
    )


def test_another_buffer_is_another_trial(streamed_run, streamed, tmp_path):
    larger = "[{file: mine.svm, stream: true, block_bytes: 1000, buffer_bytes: 8000}]"
    assert done_already(run(streamed(datasets=larger), tmp_path / "out").output) == 0


def read_rows(stream):
    return np.concatenate([block for block, _labels in stream.X])


def streamed_parts(config):
    """Return the rows of each trial of sgd-avg on the data set npy."""
    experiment = load_config(config).select(["sgd-avg"], ["npy"])
    return [Rows(trial, read_data(trial.dataset)) for trial in experiment.trials()]


PROTOCOLS = pytest.mark.parametrize(
    "protocol", ["{n_splits: 2}", "{split: kfold, n_splits: 3}", "{split: none}"]
)


@PROTOCOLS
@pytest.mark.parametrize("scaling", ["none", "standardise"])
def test_the_parts_of_a_stream_have_their_rows_and_labels(streamed, protocol, scaling):
    for rows in streamed_parts(streamed(protocol=protocol, scaling=scaling)):
        training = rows.training
        [division] = rows.divisions
        n_fit = training.part(division.fit).n_rows
        n_validation = training.part(division.validation).n_rows
        assert n_fit > 0
        assert n_validation > 0
        assert n_fit + n_validation == training.n_rows
        assert len(training.y) == training.n_rows
        assert len(rows.test.y) == rows.test.n_rows
        if protocol == "{split: none}":
            assert training.n_rows == 600
            assert rows.test.n_rows == 600
        else:
            assert training.n_rows + rows.test.n_rows == 600


@PROTOCOLS
def test_the_training_rows_of_a_stream_are_standardised(streamed, protocol):
    for rows in streamed_parts(streamed(protocol=protocol, scaling="standardise")):
        X = read_rows(rows.training)
        assert_allclose(X.mean(axis=0), 0, atol=1e-9)
        assert_allclose(X.std(axis=0), 1, atol=1e-9)


def test_the_folds_of_a_stream_hold_each_row_once(streamed, tmp_path):
    config = streamed(protocol="{split: kfold, n_splits: 3}", scaling="none")
    X_tested = np.concatenate([read_rows(rows.test) for rows in streamed_parts(config)])
    X = np.load(tmp_path / "X.npy")
    assert_array_equal(X_tested[np.lexsort(X_tested.T)], X[np.lexsort(X.T)])


def test_scores_come_in_as_many_passes_as_memory_asks_for(streamed, monkeypatch):
    trial = load_config(streamed()).trials()[0]
    test = Rows(trial, read_data(trial.dataset)).test
    weights = np.random.default_rng(0).standard_normal((7, 4))
    in_one_pass = list(test.scores(weights))
    assert_allclose(in_one_pass, weights @ read_rows(test).T, rtol=1e-12)
    monkeypatch.setattr(samples, "_SCORES_AT_ONCE", 2 * test.n_rows)
    assert_array_equal(list(test.scores(weights)), in_one_pass)
    with_intercepts = list(test.scores(weights, [1.0] * 7))
    assert_array_equal(with_intercepts, np.array(in_one_pass) + 1)


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
    results = pd.read_csv(tmp_path / "out" / "small-smoke" / "results.csv")
    final = results[results["final"]]
    assert set(final["dataset"]) == {"letter", "letter-streamed"}
    assert final["title"].str.contains("streamed").sum() == 2
    assert set(final["status"]) == {"ok"}


def test_the_provided_split_of_a_stream(streamed):
    trial = load_config(streamed(protocol="{split: provided}")).trials()[0]
    data = read_data(trial.dataset)
    with raises(InputError, "mine random kfold"):
        check_division(trial.split, data)
    divided = replace(data, n_train=400)
    check_division(trial.split, divided)
    assert Rows(trial, divided).training.n_rows == 400
    assert Rows(trial, divided).test.n_rows == 200


def test_the_groups_of_a_stream_cannot_be_kept(streamed):
    trial = load_config(streamed()).trials()[0]
    data = replace(read_data(trial.dataset), groups=np.zeros(600))
    with raises(InputError, "mine groups"):
        check_division(trial.split, data)


def of_mine(options):
    return f"[{{file: mine.svm, {options}}}]"


@pytest.mark.parametrize(
    ("section", "text", "complaint"),
    [
        pytest.param(
            "solvers",
            "{psg: , sgd-avg: }",
            "solvers.psg: psg needs all rows at once, and mine",
            id="a solver that needs all rows",
        ),
        pytest.param(
            "solvers",
            "{sgd-avg: {fourier: {n_components: 9}}}",
            "solvers.sgd-avg.fourier: has no meaning for mine, which is streamed",
            id="random features",
        ),
        pytest.param(
            "tuning",
            "{rows: 9}",
            "tuning.rows: has no meaning for mine, which is streamed",
            id="rows for tuning",
        ),
        pytest.param(
            "tuning",
            "{folds: 9}",
            "tuning.folds: has no meaning for mine, which is streamed",
            id="folds for tuning",
        ),
        pytest.param(
            "protocol",
            "{stratified: true}",
            "protocol.stratified: has no meaning for mine",
            id="stratified parts",
        ),
        pytest.param(
            "protocol",
            "{train_size: 10}",
            "protocol.train_size: has no meaning for mine",
            id="a number of training rows",
        ),
        pytest.param(
            "datasets",
            of_mine("stream: false"),
            "datasets[0].stream",
            id="stream that is false",
        ),
        pytest.param(
            "datasets",
            of_mine("stream: true, drop: [a]"),
            "datasets[0].drop: unknown",
            id="an option of files in memory",
        ),
        pytest.param(
            "datasets",
            of_mine("stream: true, bufer_bytes: 1"),
            "buffer_bytes",
            id="a misspelt option",
        ),
        pytest.param(
            "datasets",
            of_mine("stream: true, buffer_bytes: 0"),
            "buffer_bytes: ",
            id="an empty buffer",
        ),
        pytest.param(
            "datasets",
            "[{file: X.npy, stream: true, labels: z.npy}]",
            "labels: no such file",
            id="a file of labels that is not there",
        ),
        pytest.param(
            "datasets",
            "[{name: lettr, stream: true}]",
            "datasets[0].name: unknown data set",
            id="a misspelt card",
        ),
        pytest.param(
            "datasets",
            "[{name: letter, stream: true, file: a}]",
            "no such file",
            id="a file that is not there",
        ),
        pytest.param(
            "datasets",
            "[{file: X.npy, stream: true}]",
            "the labels are missing",
            id="no labels",
        ),
        pytest.param(
            "datasets",
            "[{file: mine.csv, stream: true}]",
            "can be streamed",
            id="a format that cannot be streamed",
        ),
    ],
)
def test_mistakes_are_reported_before_anything_runs(
    streamed, section, text, complaint, tmp_path
):
    result = run(streamed(**{section: text}), tmp_path / "out")
    assert result.exit_code == 2
    assert complaint in result.output.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_part_without_positives_is_reported(streamed, in_this_process, tmp_path):
    y = np.zeros(600, dtype=int)
    y[0] = 1
    np.save(tmp_path / "y.npy", y)
    config = streamed(protocol="{n_splits: 8}", solvers="{perceptron-avg: }")
    assert run(config, tmp_path / "out").exit_code == 1
    results = pd.read_csv(tmp_path / "out" / "small" / "results.csv")
    reasons = results.loc[results["dataset"] == "npy", "reason"].dropna()
    of_training = [text for text in reasons if "the training set of npy has" in text]
    assert any("0 of them positive" in text for text in of_training)
    assert any(text.startswith("not measured") for text in reasons)


def test_a_stream_without_positives_is_refused(streamed, tmp_path):
    np.save(tmp_path / "y.npy", np.zeros(600))
    with raises(InputError, "class"):
        open_stream(tmp_path / "X.npy", labels=tmp_path / "y.npy")
