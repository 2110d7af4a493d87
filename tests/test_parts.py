"""Rows in partitions: the fit is that of the rows in memory, on any number of workers."""

import os
import pickle
import random
import re
import shlex
import shutil
import signal
import time

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import KilledWorker, LocalCluster
from scipy import sparse

from precbench import BBR, Model, SGDAtK, TopPush
from precbench.data.parts import find_parts
from precbench.data.preprocess import Scaler
from precbench.errors import InputError, PrecbenchError
from precbench.runner import parted
from precbench.runner.cluster import Cluster
from precbench.solvers import SOLVERS
from precbench.solvers.rows import PartedRows, as_rows, linear_scores, weighted_sum
from tests.helpers import ROOT, succeed
from tests.sentences import raises, refused, tells

N, D = 900, 4
CUTS = [(0, 250), (250, 251), (251, 600), (600, N)]  # the second has one row
JOINING = ["cutting-plane", "psg", "pnorm-push", "rankboost", "toppush", "toppush-k", "bbr"]


class Here(PartedRows):
    """Partitions in this process."""

    def __init__(self, X, cuts=CUTS):
        self.shape, self.X, self.cuts = X.shape, X, cuts

    def each(self, function, *by_row, shared=()):
        return [
            function(as_rows(self.X[start:stop]), *(v[start:stop] for v in by_row), *shared)
            for start, stop in self.cuts
        ]


def rows(kind="dense", n=N):
    """Return rows and labels; the second partition has no positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D)) + np.array([0, 1, 5, -2])
    y = X[:, 0] + X[:, 1] + rng.standard_normal(n) > 2.5
    y[250] = False
    if kind == "csr":
        return sparse.csr_matrix(np.where(X > 0, X, 0)), y
    return X.astype(np.float32) if kind == "float32" else X, y


@pytest.mark.parametrize("kind", ["dense", "float32", "csr"])
@pytest.mark.parametrize("name", JOINING)
def test_partitions_give_the_weights_of_the_whole(name, kind):
    X, y = rows(kind)
    short = {"max_iter": 20} if name != "bbr" else {}
    whole, one, parted_, again = (
        SOLVERS[name](**short).fit(of, y) for of in (X, Here(X, [(0, N)]), Here(X), Here(X))
    )
    np.testing.assert_allclose(parted_.coef_, whole.coef_, rtol=1e-7, atol=1e-10)
    assert (one.coef_ == whole.coef_).all() and one.threshold_ == whole.threshold_
    assert (again.coef_ == parted_.coef_).all()
    assert parted_.n_rows_seen_ == whole.n_rows_seen_
    np.testing.assert_allclose(parted_.threshold_, whole.threshold_, rtol=1e-7)


@pytest.mark.parametrize(
    "params", [{"loss": "logistic"}, {"push": "both", "bottom_weight": 2.0}, {"push": "bottom"}]
)
def test_each_push_joins(params):
    X, y = rows()
    whole, other = (SOLVERS["pnorm-push"](max_iter=5, **params).fit(of, y) for of in (X, Here(X)))
    np.testing.assert_allclose(other.coef_, whole.coef_, rtol=1e-9)


def test_a_product_is_summed_in_the_order_of_the_partitions():
    X, _ = rows()
    v = np.random.default_rng(1).standard_normal(N)
    expected = np.zeros(D)
    for start, stop in CUTS:
        expected = expected + weighted_sum(as_rows(X[start:stop]), v[start:stop], D)
    assert (weighted_sum(as_rows(Here(X)), v, D) == expected).all()
    assert (linear_scores(as_rows(Here(X)), v[:D]) == linear_scores(as_rows(X), v[:D])).all()


def test_only_the_listed_solvers_join():
    assert [name for name in SOLVERS if SOLVERS[name]().joins] == JOINING


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("sgd-avg", {}),
        ("1pmb", {}),
        ("pnorm-push", {"method": "newton"}),
        ("bbr", {"accumulate": "pairs"}),
        ("hist-gradient-boosting", {}),
    ],
)
def test_what_does_not_join_is_refused(name, params):
    X, y = rows()
    with raises(InputError, " ".join(JOINING)):
        SOLVERS[name](**params).fit(Here(X), y)


# --- files ---


@pytest.fixture
def files(tmp_path):
    """Write the same rows in each format, in partitions of different sizes."""
    X, y = rows()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(np.int8))
    np.save(tmp_path / "both.npy", np.column_stack([y, X]))
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(hit=np.where(y, "yes", "no"))
    table.insert(1, "id", range(N))
    table.index = np.arange(N)[::-1]  # is written, and is no column
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=40)
    (tmp_path / "csr").mkdir()
    for i, (start, stop) in enumerate(CUTS):
        M = sparse.csr_matrix(X[start:stop])
        parts = {"data": M.data, "indices": M.indices, "indptr": M.indptr, "shape": M.shape}
        np.savez(tmp_path / "csr" / f"{i}.npz", **parts, y=y[start:stop])
    return tmp_path


FORMATS = {
    "npy": ("X.npy", {"labels": "y.npy"}, 10),
    "column": ("both.npy", {"label": 0}, 10),
    "parquet": ("rows.parquet", {"label": "hit", "drop": ["id"]}, 8),  # of three groups, at least
    "csr": ("csr", {}, 4),
    "pattern": ("csr/[0-9].npz", {}, 4),
}


def opened(files, kind):
    """Return the partitions of a format, and the positive label."""
    source, how, _ = FORMATS[kind]
    if "labels" in how:
        how = how | {"labels": files / how["labels"]}
    return find_parts(files / source, **how), "yes" if kind == "parquet" else None


@pytest.mark.parametrize("kind", FORMATS)
def test_workers_read_the_rows_of_each_format(files, kind):
    X, y = rows()
    parts, positive = opened(files, kind)
    assert len(parts) == FORMATS[kind][2]
    with Cluster("local:2", trials=False) as cluster:
        found = cluster.rows(parts, positive)
        assert found.shape == X.shape and (found.y == np.where(y, 1, -1)).all()
        assert (linear_scores(as_rows(found), np.arange(4.0)) == X @ np.arange(4.0)).mean() > 0.5
        fitted = TopPush(top_negatives=9, max_iter=9).fit(found, found.y)
        assert [c.name for c in found.encoding.columns] == list("abcd") * (kind == "parquet")
    expected = TopPush(top_negatives=9, max_iter=9).fit(X, y).coef_
    np.testing.assert_allclose(fitted.coef_, expected, rtol=1e-7)


def fitted_on(where, files, watch=None):
    """Return a push fitted to scaled partitions."""
    with Cluster(where, 5, trials=False) as cluster:
        found = cluster.rows(find_parts(files / "X.npy", labels=files / "y.npy"))
        scaler, scaled = found.scaled("standardise")
        solver = SOLVERS["pnorm-push"](max_iter=4).fit(scaled, found.y, trace=watch)
        return scaler, solver.coef_


def test_any_number_of_workers_gives_the_same_bits(files, monkeypatch):
    """And any order in which they finish."""
    scaler, coef = fitted_on("local:1", files)
    assert (fitted_on("local:2", files)[1] == coef).all()
    applied, waits = parted._applied, random.Random(0)

    def late(*arguments):
        time.sleep(waits.random() / 200)
        return applied(*arguments)

    monkeypatch.setattr(parted, "_applied", late)
    assert (fitted_on("local:3", files)[1] == coef).all()
    X, y = rows()
    expected = Scaler("standardise").fit(X)
    np.testing.assert_allclose([scaler.shift, scaler.scale], [expected.shift, expected.scale])
    whole = SOLVERS["pnorm-push"](max_iter=4).fit(expected.transform_in_place(X.copy()), y)
    np.testing.assert_allclose(coef, whole.coef_, rtol=1e-9)


def test_a_constant_is_scaled_as_in_memory(files):
    X, y = rows()
    X[:, 1] = 0.1
    with Cluster("local:1", trials=False) as cluster:
        scaler, _ = cluster.rows([(X[:300], y[:300]), (X[300:], y[300:])]).scaled("standardise")
    assert scaler.scale[1] == Scaler("standardise").fit(X).scale[1] == 1


def test_a_lost_worker_reads_again(files):
    """The rows that it held are read by another."""
    _, coef = fitted_on("local:1", files)
    soon = dask.config.set({"distributed.comm.timeouts.connect": "3s"})  # given up, not after 30
    with soon, LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        victims = [nanny.pid for nanny in local.workers.values()]

        def kill(solver):
            if solver.n_iter_ == 2:
                os.kill(victims.pop(), signal.SIGKILL)

        assert (fitted_on(local.scheduler_address, files, kill)[1] == coef).all()
        assert len(victims) == 1


def test_without_workers_a_fit_ends(files):
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as local:

        def leave(solver):
            local.scale(0)

        with raises(PrecbenchError, "5 again", words=False):
            fitted_on(local.scheduler_address, files, leave)


def test_a_partition_that_ends_workers_is_given_up(files, monkeypatch):
    def kill(*_, **__):
        raise KilledWorker("task", None, 3)

    with Cluster("local:1", trials=False) as cluster:
        monkeypatch.setattr(cluster._client, "gather", kill)
        with raises(PrecbenchError, "local:1 partition"):
            cluster.rows(find_parts(files / "X.npy", labels=files / "y.npy"))


def test_to_move_rows_is_to_read_them_again(files):
    part = find_parts(files / "X.npy", labels=files / "y.npy")[0]
    content = pickle.dumps(parted._Held(part, None))
    assert len(content) < 1000
    assert (pickle.loads(content).rows.data == rows()[0][:90].ravel()).all()


def test_blocks_of_a_dask_collection(files):
    X, y = rows()
    blocks = [dask.delayed((X[a:b], y[a:b])) for a, b in CUTS]
    with Cluster("local:2", trials=False) as cluster:
        found = cluster.rows(blocks)
        np.testing.assert_allclose(BBR().fit(found, found.y).coef_, BBR().fit(X, y).coef_)


def test_a_model_is_fitted_and_scores_on_a_cluster(files):
    X, y = rows()
    with Cluster("local:2", trials=False) as cluster:
        found = cluster.rows(find_parts(files / "X.npy", labels=files / "y.npy"))
        for scaling in ("none", "standardise", "unit-norm", "standardise-unit-norm"):
            how = {"solver": "toppush-k", "scaling": scaling, "max_iter": 9}
            one, other = Model.fit(X, y, **how), Model.fit(found, found.y, **how)
            np.testing.assert_allclose(other.coef, one.coef, rtol=1e-6)
            assert (other.decision_function(found) == other.decision_function(X)).all()
            if one.mean is not None:
                np.testing.assert_allclose(other.mean, one.mean)
        with raises(InputError, "standardise"):
            Model.fit(found, found.y, "toppush", scaling="unit")
        with raises(InputError, "random"):
            Model.fit(found, found.y, "toppush", fourier=5)


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (lambda X, y: (X[:, :3], y), "partition 2 3 4"),
        (lambda X, y: (np.where(X > 6, np.nan, X), y), "partition"),
        (lambda X, y: (X, y + 7), "positive"),
    ],
)
def test_partitions_that_do_not_go_together(change, places):
    X, y = rows()
    with Cluster("local:1", trials=False) as cluster, raises(InputError, places):
        cluster.rows([(X[:300], y[:300]), change(X[300:], y[300:])])


def test_sparse_rows_cannot_be_standardised(files):
    with Cluster("local:1", trials=False) as cluster, raises(InputError, "unit-norm"):
        cluster.rows(find_parts(files / "csr")).scaled("standardise")


@pytest.mark.parametrize(
    ("source", "how", "places"),
    [
        ("nothing.npy", {}, "nothing.npy"),
        ("*", {"label": 0}, "X.npy"),
        ("X.npy", {}, "labels label"),
        ("X.npy", {"label": 4}, "4"),
        ("X.npy", {"label": "hit"}, "hit"),
        ("rows.parquet", {}, "label"),
        ("rows.parquet", {"label": "nothing"}, "nothing"),
        ("damaged.parquet", {"label": "hit"}, "damaged.parquet"),
    ],
)
def test_files_that_are_refused(files, source, how, places):
    (files / "damaged.parquet").write_bytes(b"PAR1")
    with raises(InputError, places, words=not source.startswith("damaged")):
        find_parts(files / source, **how)


def test_columns_of_text_and_labels_of_other_rows_are_refused(files):
    np.save(files / "short.npy", np.zeros(3))
    with raises(InputError, "short.npy 900"):
        find_parts(files / "X.npy", labels=files / "short.npy")
    with raises(InputError, "hit"):
        find_parts(files / "rows.parquet", label="id")[0].read()
    np.savez(files / "bare.npz", X=np.ones((3, 2)))
    with raises(InputError, "bare.npz y"):
        find_parts(files / "bare.npz")[0].read()


def test_a_file_that_has_changed_is_refused(files):
    parts = find_parts(files / "X.npy", labels=files / "y.npy")
    shutil.copy(files / "both.npy", files / "X.npy")
    with raises(InputError, "X.npy"):
        parts[0].read()


# --- the command ---


def test_a_table_is_fitted_on_a_cluster(files):
    model = files / "m.npz"
    how = ["--solver", "toppush-k", "--param", "max_iter=9"]
    where = [*how, "--cluster", "local:2", "--save", model]
    about = ["--label", "hit", "--positive", "yes", "--id", "id"]
    done = succeed("fit", files / "rows.parquet", *about, *where)
    assert f"{N} rows, 4 features" in done.output
    assert "1 split, 120 held-out rows" in done.output  # the last but one of eight partitions
    succeed("fit", files / "rows.parquet", *about, *where[:4], "--save", files / "one.npz")
    one, other = Model.load(files / "one.npz"), Model.load(model)
    np.testing.assert_allclose(other.coef, one.coef, rtol=1e-6)
    ranked = succeed("score", model, files / "rows.parquet", "--top", 5)
    assert "hits" in ranked.output


def test_a_quality_that_cannot_be_measured_has_a_reason(files):
    X, y = rows()
    np.savez(files / "one.npz", X=X, y=y)
    command = ["fit", files / "one.npz", "--solver", "bbr", "--cluster", "local:1", "--save"]
    done = succeed(*command, files / "m.npz")
    tells(done.stderr, "quality partition")
    assert "prec@" not in done.stdout
    np.savez(files / "csr" / "2a.npz", X=X[:9], y=np.zeros(9))
    one_class = ["fit", files / "csr", "--solver", "bbr", "--cluster", "local:1", "--save"]
    tells(succeed(*one_class, files / "m.npz").stderr, "quality labels")


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (["--solver", "sgd-avg"], "SGDAtK"),
        ([], "HistGradientBoosting"),
        (["--solver", "bbr", "--fourier", "9"], "--fourier"),
        (["--solver", "bbr", "--format", "npz"], "--format"),
    ],
)
def test_options_that_a_cluster_refuses(files, options, places):
    command = ["fit", files / "X.npy", "--labels", files / "y.npy", "--cluster", "local:1"]
    refused([*command, *options, "--save", files / "m.npz"], places)


def test_labels_of_their_own_are_for_a_cluster(files):
    command = ["fit", files / "X.npy", "--labels", files / "y.npy", "--save", files / "m.npz"]
    refused(command, "--labels")


def test_page_does_what_it_shows(tmp_path, monkeypatch):
    """Follow the section of docs/cluster.md."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "cluster.md").read_text()
    section = page[page.index("## One fit") : page.index("### How far it goes")]
    [program], [lines] = (
        re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        for language in ("python", "sh")
    )
    exec(program, {})
    succeed(*shlex.split(lines)[1:])
    X, y = np.load("X.npy"), np.load("y.npy")
    for part in find_parts("X.npy", labels="y.npy"):  # as said there of methods in turn
        ranker = SGDAtK().partial_fit(*part.read(), classes=[0, 1])
    assert ranker.n_rows_seen_ == 3000 and len(X) == len(y) == 30_000
