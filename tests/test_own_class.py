"""A solver from a file, ``mine.py:RidgeTop``: where it is imported, and where not."""

import json
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import yaml

import precbench
from precbench.core.errors import InputError
from precbench.results.read import read_run
from precbench.solvers import SOLVERS
from tests.helpers import invoke, run, succeed

RIDGE = """
from pathlib import Path
import numpy as np
from precbench.solvers import LinearRanker
from precbench.solvers.common.parameters import POSITIVE, Allowed

with Path("imported.txt").open("a") as log:
    log.write("imported")


class RidgeTop(LinearRanker):
    \"\"\"A ridge regression of the labels.\"\"\"

    allowed = Allowed(alpha=POSITIVE)

    def __init__(self, *, alpha=1.0):
        self.alpha = alpha

    def _fit(self, X, labels, trace):
        rows = X if isinstance(X, np.ndarray) else X.toarray()
        self._start(rows.shape[1])
        trace(self)
        gram = rows.T @ rows + self.alpha * np.eye(rows.shape[1])
        self.coef_ = np.linalg.solve(gram, rows.T @ labels)
        self.n_iter_ = 1
        self.n_rows_seen_ = len(labels)
        trace(self)
"""
NEIGHBOURS = """
from sklearn.neighbors import KNeighborsClassifier


class Near(KNeighborsClassifier):
    def __init__(self, n_neighbors=7):
        super().__init__(n_neighbors=n_neighbors)


class Fitless:
    pass


a_number = 3
"""
CONFIG = {
    "name": "own",
    "title": "A class in a file",
    "datasets": [{"file": "rows.csv", "label": "hit"}],
    "protocol": {"n_splits": 2},
    "solvers": {
        "sgd-avg": {"epochs": 2},
        "ridge": {"solver": "mine.py:RidgeTop", "alpha": {"tune": [0.1, 10.0]}},
        "near.py:Near": None,
    },
    "metrics": [{"precision_at_k": {"k": 20}}, "auc"],
    "checkpoints": 2,
}


def forget():
    """Forget all classes of files, as a new process knows none."""
    for name in [*SOLVERS._own]:
        del SOLVERS._loaded[name], SOLVERS._own[name]
    for name in [name for name in sys.modules if name.startswith("precbench_own_")]:
        del sys.modules[name]


@pytest.fixture
def here(tmp_path, monkeypatch):
    forget()
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    rows["hit"] = (X @ [1.0, -1.0, 0.5] + rng.standard_normal(300) > 1.5).astype(int)
    rows.to_csv("rows.csv", index=False)
    (tmp_path / "mine.py").write_text(RIDGE)
    (tmp_path / "near.py").write_text(NEIGHBOURS)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


def test_a_config_runs_classes_in_files_in_workers(here):
    result = run("own.yaml", "out", "--jobs", 2, "--no-plots")
    assert result.exit_code == 0, result.output
    of_run = read_run(here / "out" / "own")
    assert {*of_run.results["status"]} == {"ok"}
    assert {*of_run.results["solver"]} == {"sgd-avg", "ridge", "near.py:Near"}
    again = run("own.yaml", "out", "--jobs", 2, "--no-plots")
    assert "6 trials, 6 of them done already" in again.output


def test_records_name_the_file_but_no_folder(here):
    run("own.yaml", "out", "--no-plots")
    texts = [path.read_text() for path in (here / "out" / "own").rglob("*.json")]
    solvers = {json.loads(text).get("solver") for text in texts}
    assert any(str(name).startswith("mine.py:RidgeTop@") for name in solvers)
    assert not any(str(here) in text for text in texts)


def test_a_changed_file_trains_again(here):
    run("own.yaml", "out", "--no-plots")
    (here / "mine.py").write_text(RIDGE.replace("alpha=1.0", "alpha=2.0"))
    again = run("own.yaml", "out", "--no-plots")
    assert "6 trials, 4 of them done already" in again.output


def test_results_are_read_without_the_file(here):
    run("own.yaml", "out")
    (here / "imported.txt").unlink()
    forget()
    for command in (
        "plot out",
        "report out",
        "status own --out out",
        "show rows/ridge/0 --results out",
        "diff out out",
    ):
        invoke(*command.split())
        assert not SOLVERS._own, command
    assert not (here / "imported.txt").exists()
    succeed("plot", "out")


def test_compare_takes_a_class_in_a_file(here):
    options = "--label hit --k 20 --splits 2 --effort quick --jobs 2"
    (here / "lists").mkdir()
    shutil.copy("rows.csv", "lists/rows.csv")
    result = succeed(
        *f"compare rows.csv {options} --solver mine.py:RidgeTop".split(),
        *["--solver", "sgd-avg", "--config", "lists/c.yaml", "--save", "top.npz"],
    )
    assert "mine.py:RidgeTop" in result.output
    written = yaml.safe_load((here / "lists" / "c.yaml").read_text())
    assert written["solvers"]["mine.py:RidgeTop"]["solver"] == "../mine.py:RidgeTop"
    succeed("validate", "lists/c.yaml")


def test_fit_saves_a_class_with_weights_and_score_does_not_import_it(here):
    options = "--label hit --k 20 --splits 2"
    succeed(
        *f"fit rows.csv {options} --solver mine.py:RidgeTop --param alpha=2".split(),
        *["--save", "top.npz"],
    )
    (here / "imported.txt").unlink()
    forget()
    succeed("score", "top.npz", "rows.csv", "--top", 3)
    assert "mine.py:RidgeTop" in succeed("show", "top.npz").output
    assert not (here / "imported.txt").exists()


def test_a_model_does_not_import_its_class_to_be_fitted_again(here):
    model = precbench.fit(
        "rows.csv", label="hit", k=20, n_splits=2, solver="mine.py:RidgeTop"
    )
    model.save("top.npz")
    forget()
    (here / "imported.txt").unlink()
    with pytest.raises(InputError, match=r"unknown solver 'mine\.py:RidgeTop@"):
        precbench.refit("top.npz", "rows.csv")
    assert not (here / "imported.txt").exists()


def test_a_class_without_weights_cannot_be_saved(here):
    with pytest.raises(InputError, match="neither weights nor trees to save"):
        precbench.fit("rows.csv", label="hit", k=20, solver="near.py:Near")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.py:RidgeTop", "absent.py cannot be read: No such file"),
        (
            "mine.py:RidgeTip",
            "mine.py has no class RidgeTip (did you mean",
        ),
        ("near.py:Fitless", "Fitless in near.py has no method fit"),
        ("near.py:a_number", "a_number in near.py is no class"),
        ("broken.py:X", "broken.py cannot be imported (SyntaxError: "),
    ],
    ids=["no file", "no class", "no fit", "a number", "broken"],
)
def test_a_class_that_cannot_be_used_is_one_sentence(here, name, message):
    (here / "broken.py").write_text("def (")
    fitted = invoke(*f"fit rows.csv --label hit --solver {name} --save m.npz".split())
    compared = invoke(*f"compare rows.csv --label hit --k 20 --solver {name}".split())
    ranked = invoke("rank", name)
    solvers = {"sgd-avg": None, "x": {"solver": name}}
    (here / "own.yaml").write_text(yaml.safe_dump({**CONFIG, "solvers": solvers}))
    of_run = invoke("run", "own.yaml")
    for result in (fitted, compared, ranked, of_run):
        assert result.exit_code == 2
        assert message in result.output
        assert "Traceback" not in result.output
    assert "own.yaml:" in of_run.output


def test_merge_imports_no_class(here):
    result = invoke("merge", "out", "--config", "own.yaml", "--out", "all")
    assert result.exit_code == 2
    assert "mine.py:RidgeTop is a class in a file, which only compare" in result.output
    assert not (here / "imported.txt").exists()
