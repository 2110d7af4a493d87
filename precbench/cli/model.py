"""``precbench fit`` and ``precbench score``."""

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from precbench.data.own.encoding import Column, Encoding
from precbench.data.own.read import is_table, read_new_blocks, read_new_rows, read_own_file
from precbench.data.preprocess import Scaling
from precbench.errors import InputError
from precbench.files import replacing
from precbench.model import Model, make_solver
from precbench.quality import describe_quality, held_out_quality, held_out_splits
from precbench.solvers import LinearRanker
from precbench.text import without_formula
from precbench.topk import TopK, check_k, resolve_k

_WORDS = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True)
class FitOptions:
    """Options of the command."""

    format: Any
    label: str | None
    positive: str | None
    groups: str | None
    time: str | None
    weight: str | None
    drop: Sequence[str]
    categorical: Any
    missing: Any
    solver: str
    params: Sequence[str]
    k: str
    scaling: Any
    fourier: int | None
    splits: int
    seed: int


def fit_model(file: Path, save: Path, options: FitOptions, as_json: bool) -> None:
    """Measure a solver on splits of the rows, fit it to all rows, and save the model."""
    k = check_k(plain_value(options.k))
    params = _params(options, k)
    check_target(save, file)
    if options.weight is not None and not is_table(file, options.format):
        raise InputError(f"{file}: --weight names a column of a table, and this file has none")
    dataset, encoding = read_own_file(
        file,
        format=options.format,
        label=options.label,
        positive=options.positive,
        groups=options.groups,
        time=options.time,
        drop=[*options.drop, *([options.weight] if options.weight else [])],
        categorical=options.categorical,
        missing=options.missing,
    )
    X, y = dataset.X, dataset.y
    resolve_k(k, dataset.n_pos, len(y))
    is_linear = isinstance(make_solver(options.solver, {}), LinearRanker)
    scales = not issparse(X) and (is_linear or options.fourier is not None)
    scaling: Scaling = options.scaling or ("standardise" if scales else "none")
    how: dict[str, Any] = {"solver": options.solver, "scaling": scaling, **params}
    if options.fourier is not None:
        how["fourier"] = {"n_components": options.fourier, "random_state": options.seed}
    weights = None if options.weight is None else _weights(file, options.weight, encoding)
    with _plain_warnings():
        splits = held_out_splits(dataset, options.splits, options.seed)
    fewest = min(len(split.test) for split in splits)
    if isinstance(k, int) and k > fewest:
        raise InputError(
            f"--k {k} exceeds the {fewest} held-out rows on which the quality is measured; "
            f'give a percentage of the rows instead: --k "{100 * k / len(y):.3g} %"'
        )
    quality = held_out_quality(dataset, splits, k, how, weights)
    with _plain_warnings():
        fitted = Model.fit(X, y, encoding=encoding, sample_weight=weights, **how)
    fitted.about.update(quality.to_dict() | {"weight": options.weight})
    fitted.save(save)
    about = fitted.about
    if as_json:
        print(json.dumps({"model": str(save), "solver": options.solver, **about}))
        return
    print("{rows:,} rows, {features:,} features, {positives:,} positive".format(**about))
    dates = [f"{c.name} (from {c.origin})" for c in encoding.columns if c.origin is not None]
    if dates:
        print(f"date columns converted to days: {', '.join(dates)}")
    print(*describe_quality(quality), sep="\n")
    print(f"{options.solver}, fitted to all rows: {save}")


def _weights(file: Path, column: str, encoding: Encoding) -> NDArray[np.float64]:
    """Read the weights of the rows of a table."""
    alone = replace(encoding, n_features=1, columns=(Column(column),))
    weights = np.asarray(read_new_rows(file, alone, encoding.format))[:, 0]
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise InputError(
            f"{file}: column {column!r}, row {row + 1}: a weight is at least 0, found "
            f"{weights[row]:g}"
        )
    return weights


def check_target(save: Path, file: Path) -> None:
    """Refuse a name for the model that is the file of the rows, or that cannot be written."""
    if not save.parent.is_dir():
        raise InputError(f"--save {save}: there is no folder {save.parent}")
    if save.is_dir():
        raise InputError(f"--save {save}: it is a folder; choose another place")
    if not os.access(save.parent, os.W_OK):
        raise InputError(f"--save {save}: no permission to write to {save.parent}")
    if save.exists() and file.exists() and save.samefile(file):
        raise InputError(f"--save {save} is the file of the rows: give the model another name")


def score_rows(
    model: Path,
    file: Path,
    form: Any,
    top: int | None,
    row_id: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the ranked rows of a file, or write them to one."""
    if out is not None:
        _check_out(out, {"the model": model, "the file of the rows": file}, as_json)
    loaded = Model.load(model)
    if loaded.encoding is None:
        raise InputError(f"{model} was fitted to arrays, not to a file: score rows from Python")
    with _plain_warnings():
        blocks = read_new_blocks(file, loaded.encoding, form, row_id)
        ranking, n_rows = loaded.rank_blocks(blocks, top, n_jobs=-1)
    if as_json:
        print(json.dumps(ranking.to_dict("records")))
    elif out is None:
        _without_formulas(ranking).to_csv(sys.stdout, index=False)
    else:
        _write(ranking, out)
    place = "" if out is None else f": {out}"
    print(f"{n_rows:,} rows ranked, {len(ranking):,} listed{place}", file=sys.stderr)


def _check_out(out: Path, others: dict[str, Path], as_json: bool) -> None:
    if as_json:
        raise InputError("--json prints the rows and --out writes them: give one of the two")
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: the name should end with .csv or .parquet")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and not out.is_file():
        raise InputError(f"--out {out} is not a regular file: name another")
    if out.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"--out {out}: Parquet files need pyarrow; install precbench[parquet]")
    for what, path in others.items():
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"--out {out} is {what}: give the ranking another name")


def _write(ranking: pd.DataFrame, out: Path) -> None:
    """Write a ranking as CSV or Parquet, whole or not at all."""
    with replacing(out) as unfinished:
        if out.suffix == ".csv":
            _without_formulas(ranking).to_csv(unfinished, index=False)
        else:
            ranking.to_parquet(unfinished, index=False)


def _without_formulas(ranking: pd.DataFrame) -> pd.DataFrame:
    if "id" not in ranking:
        return ranking
    return ranking.assign(id=[without_formula(name) for name in ranking["id"]])


def _params(options: FitOptions, k: TopK) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for given in options.params:
        name, equals, text = given.partition("=")
        if not equals:
            raise InputError(f"--param {given!r}: expected NAME=VALUE, for example epochs=5")
        if name in params:
            raise InputError(f"--param {name} is given twice")
        params[name] = plain_value(text)
    known = make_solver(options.solver, params).get_params()
    own_options = {"k": ("--k", k), "random_state": ("--seed", options.seed)}
    for name, (option, value) in own_options.items():
        if name in params:
            raise InputError(f"--param {name}: give {option} instead")
        if name in known:
            params[name] = value
    return params


def plain_value(text: str) -> Any:
    """Return the number, truth value or None that a text of the command line means, else itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return _WORDS.get(text.lower(), text)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print each warning in one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        print(f"precbench: warning: {text}", file=sys.stderr)
