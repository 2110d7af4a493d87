"""``precbench fit``."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precbench.cli import completion
from precbench.cli.options import Json, takes
from precbench.cli.own import OwnRows, check_target, numbers_in, plain_value, plain_warnings
from precbench.cli.tables import show_length
from precbench.data.own.read import is_table, read_own_file
from precbench.errors import InputError
from precbench.topk import TopK, resolve_k

if TYPE_CHECKING:
    from precbench.advice.model import Model
    from precbench.advice.quality import Quality


@dataclass(frozen=True, kw_only=True)
class FitOptions(OwnRows):
    """Options of the command."""

    save: Annotated[Path, typer.Option(help="Model file to write; an existing file is replaced.")]
    solver: Annotated[
        str | None,
        typer.Option(
            help="Name of the solver, see list solvers [default: hist-gradient-boosting; sgd-avg "
            "for sparse rows and with --fourier].",
            autocompletion=completion.solvers,
        ),
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of the solver, for example epochs=50; repeatable. "
            "See list solvers --json.",
        ),
    ] = None
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
def fit(options: FitOptions) -> None:
    """Fit a ranking model to your own file, estimate its quality, and save it.

    The quality is that of models fitted to 70 % of the rows and measured on the others, where
    k rows are the top; with --time, fitted to all earlier rows and measured on the period that
    follows, a tenth of the rows by default.
    It is a mean over several such splits, ± half the length of its 95 % interval, which takes
    into account that splits share rows. Boosted trees are measured beside any other solver, if that
    is quick. So is how much each column matters, which show prints. The saved model is fitted to
    all rows. During training, solvers cap k at the number of positives, with a warning. The columns
    of label, groups, time and weight are not features; other dates (2024-05-31, 2024-05-31T18:00)
    are converted to days since the earliest one.

    \b
    Examples:
      precbench fit mine.csv --label churned --positive yes --drop id \\
          --categorical one-hot --missing median --save top.npz
      precbench fit payments.parquet --label fraud --time when --k 50 \\
          --save top.npz
      precbench fit mine.svm.gz --solver perceptron-avg --k 100 --save top.npz

    \b
    Formats, recognised by the suffix or given by --format:
      .csv .tsv .parquet .xlsx       the first line has the column names
      .svm .libsvm .svmlight .txt    LABEL INDEX:VALUE ..., indices from 1
      .npz                           arrays X and y, or data, indices, indptr,
                                     shape (CSR) and y
    """
    from scipy.sparse import issparse

    from precbench.advice.length import measure_length
    from precbench.advice.model import Model, make_solver
    from precbench.advice.quality import RECOMMENDED, held_out_quality, held_out_splits

    ks, worth = options.lengths, options.worth
    k = ks[0]
    file = options.file
    if options.solver is not None:
        _params(options, options.solver, k)  # refuses before the file is read
    check_target(options.save, file)
    reading, amounts, weights = options.reading, options.amounts(), None
    if options.weight is not None and is_table(file, reading.get("format")):
        reading["drop"] = [*reading.get("drop", ()), options.weight]
    with options.corrected("fit"):
        dataset, encoding = read_own_file(file, **reading, allow=options.allow or ())
    if options.weight is not None:
        weights = numbers_in(file, "--weight", options.weight, options.form)
    X, y = dataset.X, dataset.y
    for each in ks:
        resolve_k(each, dataset.n_pos, options.list_rows or len(y))
    is_sparse, is_mapped = issparse(X), options.fourier is not None
    solver = options.solver or ("sgd-avg" if is_sparse or is_mapped else RECOMMENDED)
    params = _params(options, solver, k)
    is_scaled = (is_mapped or not hasattr(make_solver(solver, {}), "to_trees")) and not is_sparse
    scaling = options.scaling or ("standardise" if is_scaled else "none")
    how: dict[str, Any] = {"solver": solver, "scaling": scaling, **params}
    if is_mapped:
        how["fourier"] = {"n_components": options.fourier, "random_state": options.seed}
    with plain_warnings():
        splits = held_out_splits(dataset, options.splits, options.seed)
    fewest = min(len(split.test) for split in splits)
    if isinstance(k, int) and k > fewest:
        raise InputError(
            f"--k {k} exceeds the {fewest} held-out rows on which the quality is measured; "
            f'give a percentage of the rows instead: --k "{100 * k / len(y):.3g} %"'
        )
    quality, lists, share = held_out_quality(dataset, splits, k, how, weights, amounts, encoding)
    length = measure_length(
        lists,
        share,
        ks,
        dataset.n_pos,
        len(y),
        method=solver,
        list_rows=options.list_rows,
        worth=worth,
    )
    quality = quality.model_copy(update={"length": length})
    with plain_warnings():
        fitted = Model.fit(X, y, encoding=encoding, sample_weight=weights, **how)
        fitted = fitted.calibrated(lists, share, X).profiled(X, lists, dataset.imputed)
    fitted.about.update(quality.to_dict() | {"weight": options.weight})
    _finish(options, fitted, solver, quality)


def _finish(options: FitOptions, fitted: "Model", solver: str, quality: "Quality | None") -> None:
    """Save a model, and tell of it."""
    from precbench.advice.quality import describe_quality

    fitted.save(options.save)
    about = fitted.about
    if options.as_json:
        print(json.dumps({"model": str(options.save), "solver": solver, **about}))
        return
    print("{rows:,} rows, {features:,} features, {positives:,} positive".format(**about))
    columns = fitted.encoding.columns if fitted.encoding else ()
    dates = [f"{c.name} (from {c.origin})" for c in columns if c.origin is not None]
    if dates:
        print(f"date columns converted to days: {', '.join(dates)}")
    if quality is not None and quality.length is not None:
        print(*describe_quality(quality), sep="\n")
        show_length(quality.length)
    print(f"{solver}, fitted to all rows: {options.save}")


def _params(options: FitOptions, solver: str, k: TopK) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for given in options.param or ():
        name, equals, text = given.partition("=")
        if not equals:
            raise InputError(f"--param {given!r}: expected NAME=VALUE, for example epochs=5")
        if name in params:
            raise InputError(f"--param {name} is given twice")
        params[name] = plain_value(text)
    from precbench.advice.model import make_solver

    known = make_solver(solver, params).get_params()
    own_options = {"k": ("--k", k), "random_state": ("--seed", options.seed)}
    for name, (option, value) in own_options.items():
        if name in params:
            raise InputError(f"--param {name}: give {option} instead")
        if name in known:
            params[name] = value
    return params
