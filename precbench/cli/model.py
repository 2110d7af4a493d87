"""``precbench fit`` and ``precbench score``."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from precbench.data.own import read_own_file, read_table_column
from precbench.data.preprocess import Scaling
from precbench.data.splits import split_rows
from precbench.errors import InputError
from precbench.metrics import auc, precision_at_k
from precbench.model import Model
from precbench.solvers import SOLVERS
from precbench.strict_yaml import did_you_mean


@dataclass(frozen=True)
class FitOptions:
    """The options of the command."""

    label: str | None
    positive: str | None
    groups: str | None
    drop: Sequence[str]
    categorical: Any
    missing: Any
    solver: str
    params: Sequence[str]
    k: str
    scaling: Any
    seed: int


def fit_model(file: Path, save: Path, options: FitOptions, as_json: bool) -> None:
    """Try a solver on a split of the rows, fit it to all of them, and save it."""
    params = _params(options)
    dataset, encoding = read_own_file(
        file,
        label=options.label,
        positive=options.positive,
        groups=options.groups,
        drop=options.drop,
        categorical=options.categorical,
        missing=options.missing,
    )
    sparse = hasattr(dataset.X, "indptr")
    scaling: Scaling = options.scaling or ("none" if sparse else "standardise")
    k = _value(options.k)
    split = split_rows(dataset, "random", 0, n_splits=1, stratified=True, seed=options.seed)
    tried = Model.fit(
        dataset.X[split.train], dataset.y[split.train], options.solver, scaling=scaling, **params
    )
    scores = tried.decision_function(dataset.X[split.test])
    y_test = dataset.y[split.test]
    about = {
        "rows": len(dataset.y),
        "positives": dataset.n_pos,
        "k": k,
        "precision_at_k": precision_at_k(y_test, scores, k),
        "auc": auc(y_test, scores),
        "share_of_positives": dataset.n_pos / len(dataset.y),
    }
    fitted = Model.fit(
        dataset.X, dataset.y, options.solver, scaling=scaling, encoding=encoding, **params
    )
    fitted.about.update(about)
    fitted.save(save)
    if as_json:
        print(json.dumps({"model": str(save), **about}))
        return
    print(f"{len(dataset.y):,} rows, {dataset.X.shape[1]} features, {dataset.n_pos:,} positive")
    print(
        f"on a held-out 30 %: prec@{k} {about['precision_at_k']:.3f} "
        f"(by chance {about['share_of_positives']:.3f}), AUC {about['auc']:.3f}"
    )
    print(f"{options.solver}, fitted to all rows: {save}")


def score_rows(model: Path, file: Path, top: int | None, row_id: str | None, as_json: bool) -> None:
    """Print the ranked rows of a file."""
    loaded = Model.load(model)
    if loaded.encoding is None:
        raise InputError(f"{model} was fitted to arrays, not to a file: score from Python instead")
    X = loaded.encoding.read(file)
    ranking = loaded.rank(X, top)
    if row_id is not None:
        names = read_table_column(file, row_id)
        ranking.insert(2, "id", [names[row - 1] for row in ranking["row"]])
    if as_json:
        print(ranking.to_json(orient="records"))
    else:
        ranking.to_csv(sys.stdout, index=False)


def _params(options: FitOptions) -> dict[str, Any]:
    if options.solver not in SOLVERS:
        nearest = did_you_mean(options.solver, SOLVERS)
        raise InputError(f"unknown solver {options.solver!r}{nearest}: see precbench list solvers")
    known = SOLVERS[options.solver]().get_params()
    params: dict[str, Any] = {"k": _value(options.k), "random_state": options.seed}
    params = {name: value for name, value in params.items() if name in known}
    for given in options.params:
        name, equals, text = given.partition("=")
        if not equals:
            raise InputError(f"--param {given!r}: expected NAME=VALUE, for example epochs=5")
        if name not in known:
            raise InputError(
                f"{options.solver} has no parameter {name!r}{did_you_mean(name, known)}"
            )
        params[name] = _value(text)
    return params


def _value(text: str) -> Any:
    return yaml.safe_load(text)
