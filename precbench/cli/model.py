"""``precbench fit`` and ``precbench score``."""

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from precbench.cli import completion
from precbench.cli.options import (
    Categorical,
    Drop,
    Form,
    Groups,
    Json,
    K,
    Label,
    Missing,
    OwnFile,
    Positive,
    Time,
    takes,
)
from precbench.data.own.encoding import Column, Encoding
from precbench.data.own.read import is_table, read_new_blocks, read_new_rows, read_own_file
from precbench.errors import InputError
from precbench.files import replacing
from precbench.text import without_formula
from precbench.topk import TopK, check_k, resolve_k

_WORDS = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True)
class FitOptions:
    """Options of the command."""

    file: OwnFile
    save: Annotated[Path, typer.Option(help="Model file to write; an existing file is replaced.")]
    label: Label = None
    positive: Positive = None
    groups: Groups = None
    time: Time = None
    drop: Drop = None
    categorical: Categorical = "error"
    missing: Missing = "error"
    form: Form = None
    solver: Annotated[
        str,
        typer.Option(
            help="Name of the solver, see list solvers.", autocompletion=completion.solvers
        ),
    ] = "sgd-avg"
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of the solver, for example epochs=50; repeatable. "
            "See list solvers --json.",
        ),
    ] = None
    k: K = "0.25"
    scaling: Annotated[
        str | None,
        typer.Option(
            help="standardise, unit, unit-norm, standardise-unit-norm or none "
            "[default: standardise; none for sparse rows and for trees]."
        ),
    ] = None
    fourier: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of random Fourier features to use instead of the features, so that a "
            "linear solver can learn a nonlinear ranking.",
        ),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(
            help="Column of weights of the rows, for logistic-regression, linear-svm, "
            "hist-gradient-boosting and lightgbm (tables)."
        ),
    ] = None
    splits: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of splits to measure the quality on.")
    ] = 5
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and of the solver.")] = 0
    as_json: Json = False


@takes(FitOptions)
def fit_model(options: FitOptions) -> None:
    """Fit a ranking model to your own file, estimate its quality, and save it.

    The quality is that of models fitted to 70 % of the rows and measured on the others, where
    k rows are the top; with --time, fitted to all earlier rows and measured on the period that
    follows, a tenth of the rows by default.
    It is a mean over several such splits, ± half the length of its 95 % interval, which takes
    into account that splits share rows. Boosted trees are measured for comparison, if that is
    quick. The saved model is fitted to all rows. During training, solvers cap k at the number of
    positives, with a warning. The columns of label, groups, time and weight are not features;
    other dates (2024-05-31, 2024-05-31T18:00) are converted to days since the earliest one.

    \b
    Examples:
      precbench fit mine.csv --label churned --positive yes --drop id \\
          --categorical one-hot --missing median --save top.npz
      precbench fit payments.parquet --label fraud --time when --k 50 \\
          --save top.npz
      precbench fit mine.svm.gz --solver perceptron-avg --k 100 --save top.npz
      precbench fit mine.csv --label churned --solver hist-gradient-boosting \\
          --save top.npz

    \b
    Formats, recognised by the suffix or given by --format:
      .csv .tsv .parquet             the first line has the column names
      .svm .libsvm .svmlight .txt    LABEL INDEX:VALUE ..., indices from 1
      .npz                           arrays X and y, or data, indices, indptr,
                                     shape (CSR) and y
    """
    from scipy.sparse import issparse

    from precbench.model import Model, make_solver
    from precbench.quality import describe_quality, held_out_quality, held_out_splits
    from precbench.solvers import LinearRanker

    k = check_k(plain_value(options.k))
    params = _params(options, k)
    file, save = options.file, options.save
    form: Any = options.form  # checked as the file is read, as what follows
    treatment: dict[str, Any] = {"categorical": options.categorical, "missing": options.missing}
    check_target(save, file)
    if options.weight is not None and not is_table(file, form):
        raise InputError(f"{file}: --weight names a column of a table, and this file has none")
    dataset, encoding = read_own_file(
        file,
        format=form,
        label=options.label,
        positive=options.positive,
        groups=options.groups,
        time=options.time,
        drop=[*(options.drop or ()), *([options.weight] if options.weight else [])],
        **treatment,
    )
    X, y = dataset.X, dataset.y
    resolve_k(k, dataset.n_pos, len(y))
    is_linear = isinstance(make_solver(options.solver, {}), LinearRanker)
    scales = not issparse(X) and (is_linear or options.fourier is not None)
    scaling: Any = options.scaling or ("standardise" if scales else "none")
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
    if options.as_json:
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
    model: Annotated[Path, typer.Argument(help="Model file, see fit.")],
    file: Annotated[
        Path, typer.Argument(help="Rows to rank, with the same features as the fitted file.")
    ],
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of rows to list [default: all].")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column of row identifiers (tables).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .csv or .parquet; an existing file is replaced."),
    ] = None,
    form: Form = None,
    as_json: Json = False,
) -> None:
    """Rank the rows of a file and list the top, highest score first.

    The output is CSV, or Parquet with --out FILE.parquet, with the columns rank, row, id (with
    --id) and score. Ranks and row numbers start at 1; the header line is not counted. Rows with
    equal scores keep their order. In CSV an id that a spreadsheet would run as a formula gets an
    apostrophe: before =, +, - and @ at its beginning or after a separator, unless it is a number.

    A label column is not needed, and columns unknown to the model are ignored. An svmlight
    row needs some number in place of its label. Tables are read piece by piece, so they may be
    larger than the memory. Values that are filled in, and categories that the fitted rows did not
    have, are counted on stderr.

    \b
    Examples:
      precbench score top.npz new.csv --top 100 --id customer > top.csv
      precbench score top.npz new.parquet --out scores.parquet
    """
    if out is not None:
        _check_out(out, {"the model": model, "the file of the rows": file}, as_json)
    from precbench.model import Model  # which takes long to import

    loaded = Model.load(model)
    if loaded.encoding is None:
        raise InputError(f"{model} was fitted to arrays, not to a file: score rows from Python")
    with _plain_warnings():
        blocks = read_new_blocks(file, loaded.encoding, cast("Any", form), row_id)
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
    for given in options.param or ():
        name, equals, text = given.partition("=")
        if not equals:
            raise InputError(f"--param {given!r}: expected NAME=VALUE, for example epochs=5")
        if name in params:
            raise InputError(f"--param {name} is given twice")
        params[name] = plain_value(text)
    from precbench.model import make_solver

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
