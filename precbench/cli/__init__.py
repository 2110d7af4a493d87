"""The command line. Nothing heavy is imported before a command needs it."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from precbench.errors import PrecbenchError
from precbench.files import disk_full, is_full

_EPILOG = """\
Exit codes: 0 done; 1 some trial failed or the disk is full; 2 wrong usage, config or input;
3 data not to be had; 4 a published number regressed; 130 interrupted.
"""


class _Group(TyperGroup):
    """Turns our errors into one sentence and the documented exit code."""

    def invoke(self, ctx: Any) -> Any:
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            return super().invoke(ctx)
        except PrecbenchError as error:
            print(f"precbench: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print("precbench: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except OSError as error:
            if not is_full(error):
                raise
            print(f"precbench: {disk_full(error.filename or 'a file')}", file=sys.stderr)
            raise typer.Exit(1) from None


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
data_app = typer.Typer(no_args_is_help=True, help="Fetch, add, verify and describe data sets.")
app.add_typer(data_app, name="data")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        help="Folder or http address that is asked for data files before the official addresses "
        "[default: $PRECBENCH_MIRROR]."
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format", help="svmlight, csv, tsv, parquet or npz [default: told by the suffix]."
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        from precbench import __version__

        print(f"precbench {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run, measure and judge published methods for precision at the top of a ranked list.

    \b
    First steps:
      precbench run letter           run an experiment; plots in results/letter
      precbench run kdd08 --smoke    the same at a size of seconds
      precbench plot results/        draw tables and figures again
      precbench check results/       compare with the published numbers
      precbench list claims          what there is (solvers, datasets, configs)
      precbench fit mine.csv --label churned --save top.npz
      precbench score top.npz new.csv --top 100
    """


@app.command()
def run(
    configs: Annotated[
        list[str], typer.Argument(metavar="CONFIG...", help="Names (see list configs) or files.")
    ],
    solver: Annotated[
        list[str] | None, typer.Option(help="Only this solver (its label); repeatable.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this data set; repeatable.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Only these splits, for example 0,2 or 0-4.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Trials at a time.")] = 1,
    smoke: Annotated[bool, typer.Option("--smoke", help="The config's smoke size.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run, and run nothing.")
    ] = False,
    timing: Annotated[
        bool,
        typer.Option("--timing", help="One trial at a time; repeat trials timed beside others."),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    force: Annotated[bool, typer.Option("--force", help="Run also what is done.")] = False,
    mirror: Mirror = None,
    no_stand_in: Annotated[
        bool, typer.Option("--no-stand-in", help="Missing data are an error, not replaced.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run experiments: train what is not done yet, then tables and plots.

    A run that was stopped goes on where it was; a changed config re-runs only what changed.

    \b
    Examples:
      precbench run configs/letter.yaml --jobs 2
      precbench run letter --solver sgd-avg --seeds 0-1
      precbench run kdd08 --timing --mirror ~/mirror
    """
    from precbench.cli.run import RunOptions, run_configs

    options = RunOptions(
        solvers=solver,
        datasets=dataset,
        seeds=seeds,
        jobs=jobs,
        smoke=smoke,
        dry_run=dry_run,
        timing=timing,
        out=out,
        force=force,
        mirror=mirror,
        stand_ins=not no_stand_in,
        as_json=as_json,
    )
    raise typer.Exit(run_configs(configs, options))


@app.command()
def plot(
    results: Annotated[Path, typer.Argument(help="A folder of results, or one experiment in it.")],
    as_json: Json = False,
) -> None:
    """Draw the tables and figures of finished runs again, from their tables of values alone."""
    from precbench.cli.plot import plot_results

    plot_results(results, as_json)


@app.command(short_help="Compare results with the published numbers.")
def check(
    results: Annotated[
        list[Path], typer.Argument(help="Folders of results, or experiments in them.")
    ],
    update_reference: Annotated[
        bool, typer.Option("--update-reference", help="Make these verdicts the reference.")
    ] = False,
    reference: Annotated[
        Path | None, typer.Option(help="The ledger to compare with [default: the committed one].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where ledger.csv, .json and .md go [default: the first folder]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say of every published number whether these results reproduce it.

    Numbers that follow from definitions alone are computed on the spot. Claims that the results
    do not touch, or that stand-ins, smoke sizes and too few runs can't decide, are not compared.

    Exit code 4: a verdict is worse than in the reference, or there were no results at all.

    \b
    Examples:
      precbench check results/
      precbench list claims --paper rudin2009 --verdict "not reproduced"
    """
    from precbench.cli.check import CheckOptions, check_results

    options = CheckOptions(
        out=out, reference=reference, update_reference=update_reference, as_json=as_json
    )
    raise typer.Exit(check_results(results, options))


@app.command("list", short_help="List solvers, datasets, metrics, configs or claims.")
def list_(
    what: Annotated[
        str, typer.Argument(help="solvers, datasets, metrics, configs, claims or deviations.")
    ],
    paper: Annotated[
        str | None, typer.Option(help="Claims of this paper, for example rudin2009.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Claims of this place, for example table-3 or section-8.")
    ] = None,
    verdict: Annotated[
        str | None, typer.Option(help='Claims with this verdict, for example "not reproduced".')
    ] = None,
    as_json: Json = False,
) -> None:
    """List what there is, with one line about each.

    Claims are the published numbers and sentences, with their verdicts in the committed reference;
    deviations say where we knowingly do not what a paper says, and which command shows why.

    With --json also the parameters of solvers (with their defaults) and of metrics, the sizes of
    data sets, and all that is known of a claim.
    """
    from precbench.cli.listing import list_members

    list_members(what, as_json, {"paper": paper, "place": table, "verdict": verdict})


@app.command(short_help="Fit a ranking to a file of your own and save it.")
def fit(
    file: Annotated[
        Path, typer.Argument(help="svmlight, CSV, TSV, Parquet or npz; text may be .gz, .bz2, .xz.")
    ],
    save: Annotated[Path, typer.Option(help="The model file to write; replaced if it exists.")],
    label: Annotated[
        str | None, typer.Option(help="Column of the labels (tables need it).")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The positive label; not needed for 0/1 and -1/1.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column (of an npz: array) whose equal values stay together in the trial split."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column that is no feature; repeatable.")
    ] = None,
    categorical: Annotated[
        str, typer.Option(help="What to do with columns of text: error or one-hot.")
    ] = "error",
    missing: Annotated[
        str, typer.Option(help="Missing values: error, mean, median or most-frequent.")
    ] = "error",
    form: Form = None,
    solver: Annotated[str, typer.Option(help="See list solvers.")] = "sgd-avg",
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of the solver, for example epochs=50; repeatable; see list solvers "
            "--json.",
        ),
    ] = None,
    k: Annotated[
        str,
        typer.Option(
            "--k",
            help="Top of the list: a share of the positives (1.0 is all), or a count of rows "
            "(1 is the first).",
        ),
    ] = "0.25",
    scaling: Annotated[
        str | None,
        typer.Option(
            help="standardise, unit or none [default: standardise; none for sparse rows]."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the trial split and the solver.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit a ranking to a file of your own, say how good it is, and save it.

    The measures come from a trial: fitted to 70 % of the rows, measured on the others (a count k
    is cut to the positives that a part has). The saved model is then fitted to all rows.

    \b
    Examples:
      precbench fit mine.csv --label churned --positive yes --drop id \\
          --categorical one-hot --missing median --save top.npz
      precbench fit mine.svm.gz --solver perceptron-avg --k 100 --save top.npz

    \b
    Files, told by their suffix or by --format:
      .csv .tsv .parquet             the first line has the column names
      .svm .libsvm .svmlight .txt    LABEL INDEX:VALUE ..., indices from 1
      .npz                           arrays X and y, or data, indices, indptr,
                                     shape (CSR) and y
    """
    from precbench.cli.model import FitOptions, fit_model

    options = FitOptions(
        format=form,
        label=label,
        positive=positive,
        groups=groups,
        drop=drop or [],
        categorical=categorical,
        missing=missing,
        solver=solver,
        params=param or [],
        k=k,
        scaling=scaling,
        seed=seed,
    )
    fit_model(file, save, options, as_json)


@app.command(short_help="Rank the rows of a file by a model and list the top.")
def score(
    model: Annotated[Path, typer.Argument(help="A model file, see fit.")],
    file: Annotated[
        Path, typer.Argument(help="Rows to rank, of the kind that the model was fitted to.")
    ],
    top: Annotated[
        int | None, typer.Option(min=1, help="How many rows to list; default all.")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows (tables).")
    ] = None,
    form: Form = None,
    as_json: Json = False,
) -> None:
    """Rank the rows of a file and list the top, the highest score first.

    The answer is CSV: rank and row (both from 1; the line of column names is no row), id if asked
    for, score. Of equal scores the earlier row comes first.

    A label column is not needed, and columns that the model does not know are left out. A svmlight
    row needs a number in the place of its label; any will do.

    \b
    Example:
      precbench score top.npz new.csv --top 100 --id customer > top.csv
    """
    from precbench.cli.model import score_rows

    score_rows(model, file, form, top, row_id, as_json)


@data_app.command(short_help="Get data sets into the cache, verified.")
def fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets, see list datasets.")],
    mirror: Mirror = None,
    as_json: Json = False,
) -> None:
    """Get data sets from the mirror or the official addresses, verified, into the cache.

    What comes out is compared with the card. The cache is the folder $PRECBENCH_CACHE, else the
    user's cache folder. Exit code 3: no source has the files.
    """
    from precbench.cli.data import fetch_data

    fetch_data(names, mirror, as_json)


@data_app.command(short_help="Take files of your own (kdd08, ppi) into the cache.")
def add(
    name: Annotated[str, typer.Argument(help="The data set that the files belong to.")],
    files: Annotated[
        list[Path], typer.Argument(help="Files that you brought yourself; data info names them.")
    ],
    as_json: Json = False,
) -> None:
    """Copy files that must be brought by hand (kdd08, ppi) into the cache, verified.

    A file with a wrong checksum is refused, set aside as NAME.rejected in the cache, and
    overwrites nothing.
    """
    from precbench.cli.data import add_data

    add_data(name, files, as_json)


@data_app.command(short_help="Check cached files against their checksums.")
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; default all.")] = None,
    as_json: Json = False,
) -> None:
    """Check the cached files of data sets against their checksums.

    Exit code 2: a file is damaged. Exit code 3: a data set that was named lacks a file.
    """
    from precbench.cli.data import verify_data

    raise typer.Exit(verify_data(names, as_json))


@data_app.command(short_help="Describe a data set and its files.")
def info(
    name: Annotated[str, typer.Argument(help="A data set.")],
    as_json: Json = False,
) -> None:
    """Say what a data set is: its card, and which files are at hand."""
    from precbench.cli.data import describe_data

    describe_data(name, as_json)


def main() -> None:
    """Run the command line."""
    app()
