"""The command line; a command imports what it needs when it is run."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from precbench.cli import completion
from precbench.cli.streams import harmless_streams
from precbench.errors import PrecbenchError
from precbench.files import disk_full, is_full
from precbench.interrupts import INTERRUPTED, ignore, interruptible

_EPILOG = """\
Exit codes: 0 done; 1 a trial failed, folders differ, the disk is full, or another failure; 2 wrong
usage, config or input; 3 data not available; 4 a verdict is worse than in the reference, or there
is none to compare; 130 interrupted.
"""


class _Group(TyperGroup):
    """Reports an error in one line and ends with the documented exit code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with harmless_streams():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        try:
            with interruptible():
                return super().invoke(ctx)
        except PrecbenchError as error:
            print(f"precbench: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            print("precbench: interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if is_full(error):
                print(f"precbench: {disk_full(error.filename or 'a file')}", file=sys.stderr)
                raise typer.Exit(1) from None
            if error.filename is None:
                raise
            print(f"precbench: {error.filename}: {error.strerror}", file=sys.stderr)
            raise typer.Exit(2) from None


class _InGroups(TyperCommand):
    """Shows the options in groups, those of one panel under its title."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (shown := param.get_help_record(ctx)) is not None:
                is_argument = param.param_type_name == "argument"
                panel = getattr(param, "rich_help_panel", None) or "Options"
                groups.setdefault("Arguments" if is_argument else panel, []).append(shown)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
data_app = typer.Typer(
    no_args_is_help=True, help="Fetch, add, verify, inspect and clean up data sets."
)
app.add_typer(data_app, name="data")

JSON = "Print JSON instead of text."
MIRROR = (
    "Folder or http address to try before the official addresses of the data "
    "[default: $PRECBENCH_MIRROR]."
)
Json = Annotated[bool, typer.Option("--json", help=JSON)]
Mirror = Annotated[str | None, typer.Option(help=MIRROR)]
Form = Annotated[
    str | None,
    typer.Option("--format", help="svmlight, csv, tsv, parquet or npz [default: from the suffix]."),
]
OwnFile = Annotated[
    Path, typer.Argument(help="svmlight, CSV, TSV, Parquet or npz; text may be .gz, .bz2, .xz.")
]
Label = Annotated[str | None, typer.Option(help="Label column (required for tables).")]
Positive = Annotated[str | None, typer.Option(help="Positive label; not needed for 0/1 and -1/1.")]
Groups = Annotated[
    str | None,
    typer.Option(help="Column (npz: array) of groups; rows of a group stay together in the split."),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="Column (npz: array) of the time of each row, numbers or ISO dates; the quality "
        "is measured on the latest rows."
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column to leave out of the features; repeatable.")
]
Categorical = Annotated[str, typer.Option(help="Treatment of text columns: error or one-hot.")]
Missing = Annotated[
    str, typer.Option(help="Treatment of missing values: error, mean, median or most-frequent.")
]
K = Annotated[
    str,
    typer.Option(
        "--k",
        help="Length of the top of the list: a number of rows (100), a fraction of the positives "
        '(0.25), or a fraction of the rows ("1 %").',
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
      precbench list configs         show the experiments
      precbench run letter           run one; tables and figures in results/letter
      precbench run kdd08 --smoke    try one out in seconds
      precbench report results/      pages to read, to print or to mail
      precbench plot results/        redraw tables and figures
      precbench check results/       compare with the published numbers
      precbench reproduce letter     decide all claims about a data set
      precbench compare mine.csv --label churned --k 100
      precbench fit mine.csv --label churned --save top.npz
      precbench show top.npz
      precbench score top.npz new.csv --top 100
    """


_CHOICE, _WORKERS = "What to run", "How to run"
_FILES, _SCREEN = "Data and results", "What to show"


@app.command(cls=_InGroups, short_help="Run experiments.")
def run(
    configs: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG",
            help="Names (see list configs) or files.",
            autocompletion=completion.configs,
        ),
    ],
    solver: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only the solvers with this label, or a pattern such as sgd-*; repeatable.",
            autocompletion=completion.labels,
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            help="Leave these solvers out, likewise; repeatable.",
            autocompletion=completion.labels,
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only these data sets, likewise; repeatable.",
            autocompletion=completion.datasets,
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    splits: Annotated[
        str | None,
        typer.Option(
            "--splits",
            "--seeds",
            help="Run only these splits, for example 0,2 or 0-4.",
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Run the I-th of N even shards, in OUT/shards/I-of-N; merge combines them.",
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke", help="Run at the smoke size of the config.", rich_help_panel=_CHOICE
        ),
    ] = False,
    rerun: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS",
            help="Run again only the trials with this status: timeout, crashed, interrupted, "
            "failed (which includes these three), diverged or skipped; with "
            "changed-code also what other code of the same versions has trained; repeatable.",
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Repeat finished trials.", rich_help_panel=_CHOICE)
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Number of trials to run at a time.", rich_help_panel=_WORKERS
        ),
    ] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Run the trials on a Dask cluster: address or file of its scheduler, or local:N.",
            rich_help_panel=_WORKERS,
        ),
    ] = None,
    cluster_wait: Annotated[
        float,
        typer.Option(
            min=0,
            help="Seconds to wait for the scheduler and for workers.",
            rich_help_panel=_WORKERS,
        ),
    ] = 30.0,
    timing: Annotated[
        bool,
        typer.Option(
            "--timing",
            help="Run one trial at a time; repeat trials that ran in parallel, or on another "
            "machine than others of their split.",
            rich_help_panel=_WORKERS,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="List what would run, how long, and what data to fetch.",
            rich_help_panel=_WORKERS,
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for the results.", rich_help_panel=_FILES)
    ] = Path("results"),
    mirror: Annotated[str | None, typer.Option(help=MIRROR, rich_help_panel=_FILES)] = None,
    no_stand_in: Annotated[
        bool,
        typer.Option(
            "--no-stand-in",
            help="Fail if data are missing; never leave them out or use synthetic data instead.",
            rich_help_panel=_FILES,
        ),
    ] = False,
    no_plots: Annotated[
        bool, typer.Option("--no-plots", help="Draw no figures.", rich_help_panel=_FILES)
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print trials that are not ok, and nothing else.",
            rich_help_panel=_SCREEN,
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Print a line for each trial.", rich_help_panel=_SCREEN
        ),
    ] = False,
    events: Annotated[
        Path | None,
        typer.Option(
            help="File to which a line of JSON is added at each step of the run.",
            rich_help_panel=_SCREEN,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=JSON, rich_help_panel=_SCREEN)] = False,
) -> None:
    """Run experiments: train the missing trials, then write tables and figures.

    A run that was stopped resumes; after a change to a config only the affected trials run again.
    Figures are drawn again only if the results have changed; plot draws them in any case. If
    nothing has changed since the last run, its tables are shown again.

    With --json the final values are printed, means over the splits.

    \b
    Examples:
      precbench run configs/letter.yaml --jobs 2
      precbench run letter --solver 'sgd-*' --splits 0-1
      precbench run kdd08 --timing --mirror ~/mirror
      precbench run letter --rerun timeout --rerun crashed
    """
    from precbench.cli.run import RunOptions, rerun_statuses, run_configs, split_numbers
    from precbench.experiment.shard import Shard

    options = RunOptions(
        solvers=solver,
        datasets=dataset,
        skip=skip or [],
        splits=split_numbers(splits),
        rerun=rerun_statuses(rerun or []),
        jobs=jobs,
        cluster=cluster,
        cluster_wait=cluster_wait,
        smoke=smoke,
        dry_run=dry_run,
        timing=timing,
        out=out,
        force=force,
        mirror=mirror,
        stand_ins=not no_stand_in,
        plots=not no_plots,
        quiet=quiet,
        verbose=verbose,
        events=events,
        shard=None if shard is None else Shard.parse(shard),
        as_json=as_json,
    )
    raise typer.Exit(run_configs(configs, options))


@app.command(short_help="Redraw the tables and figures of finished runs.")
def plot(
    results: Annotated[Path, typer.Argument(help="Folder of results, or of one experiment.")],
    as_json: Json = False,
) -> None:
    """Redraw the tables and figures of finished runs from their CSV files.

    \b
    Examples:
      precbench plot results/letter
      precbench plot results/
    """
    from precbench.cli.plot import plot_results

    plot_results(results, as_json)


@app.command(short_help="Write finished runs as HTML pages, to read or to mail.")
def report(
    results: Annotated[Path, typer.Argument(help="Folder of results, or of one experiment.")],
    as_json: Json = False,
) -> None:
    """Write finished runs as HTML pages, to read or to mail.

    report.html in each folder of results holds tables, figures, protocol, verdicts on the published
    numbers, and the trials behind each number with the command that repeats it. It is one file that
    loads nothing. A folder of several gets an index.html.

    \b
    Examples:
      precbench report results/letter
      precbench report results/
    """
    from precbench.cli.report import write_pages

    write_pages(results, as_json)


@app.command(short_help="Compare results with the published numbers.")
def check(
    results: Annotated[
        list[Path], typer.Argument(help="Folders of results, or of single experiments.")
    ],
    update_reference: Annotated[
        bool, typer.Option("--update-reference", help="Replace the reference with these verdicts.")
    ] = False,
    reference: Annotated[
        Path | None, typer.Option(help="Ledger to compare with [default: the committed one].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for ledger.csv, .json and .md [default: the first folder]."),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show all claims, not only those about these results.")
    ] = False,
    paper: Annotated[
        str | None, typer.Option(help="Show the claims of this paper, for example kar2015.")
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(help='List the claims with this verdict, for example "not reproduced".'),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report for each published number whether the results reproduce it.

    Lists the claims that these results bear on, best verdicts last; the ledger files contain all
    claims. Numbers that follow from definitions alone are computed on the fly. Claims that the
    results do not cover or cannot decide (stand-in data, smoke size, too few runs) are not
    compared.

    Exit code 4: a verdict is worse than in the reference, or there are no results.

    \b
    Examples:
      precbench check results/
      precbench check results/ --paper kar2015 --verdict "trend only"
      precbench list claims --paper rudin2009 --verdict "not reproduced"
    """
    from precbench.cli.check import CheckOptions, check_results

    options = CheckOptions(
        out=out,
        reference=reference,
        update_reference=update_reference,
        as_json=as_json,
        show_all=show_all,
        paper=paper,
        verdict=verdict,
    )
    raise typer.Exit(check_results(results, options))


@app.command(short_help="Decide the published claims about a data set, a paper or a config.")
def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="Data sets, papers (for example kar2015) or configs; see list claims.",
        ),
    ],
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Number of trials to run at a time, where no times are compared."
        ),
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run, and about how long.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    mirror: Mirror = None,
    as_json: Json = False,
) -> None:
    """Decide the published claims about a data set, a paper or a config.

    Prints which parts of which configs will run and how long they will take, runs the missing
    trials, and then prints the verdict on each of the claims. Only real data are used: data sets
    that cannot be obtained are left out, with a note on how to provide them.

    Exit code 3: none of the data can be obtained; 4: a verdict is worse than in the reference.

    \b
    Examples:
      precbench data add kdd08 training_data.zip
      precbench reproduce kdd08 --dry-run
      precbench reproduce kdd08 --jobs 2
      precbench reproduce kar2015/counterexample
    """
    from precbench.cli.reproduce import reproduce_claims
    from precbench.cli.run import RunOptions

    options = RunOptions(jobs=jobs, out=out, dry_run=dry_run, mirror=mirror, as_json=as_json)
    raise typer.Exit(reproduce_claims(targets, options))


@app.command(short_help="Show which trials are done, running, failed or pending.")
def status(
    results: Annotated[
        Path, typer.Argument(help="Folder of results, or of one experiment.")
    ] = Path("results"),
    as_json: Json = False,
) -> None:
    """Show which trials are done, running, failed or pending, also during a run.

    Counts the trials requested by the last run of each experiment. The remaining time is estimated
    from the trials that this run has finished.

    \b
    Examples:
      precbench status
      precbench status results/letter --json
    """
    from precbench.cli.status import show_status

    show_status(results, as_json)


@app.command(short_help="Merge results of shards, or of several machines.")
def merge(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of results, or of single experiments.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results; what it holds stays.")],
    keep: Annotated[
        Path | None,
        typer.Option(help="The folder whose records are kept in case of conflict."),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(help="Config of an experiment that is not shipped; repeatable."),
    ] = None,
    mirror: Mirror = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no figures.")] = False,
    as_json: Json = False,
) -> None:
    """Merge results of shards, or of several machines, and make tables and figures.

    A trial with the same numbers in several folders becomes one record, that of OUT or else of the
    first folder. A result replaces a trial that was skipped or failed, and nothing else is
    overwritten. Folders may be merged in any order, before or after they are complete, and more
    than once; an interrupted merge can simply be repeated. Studies, which have no trials, are left
    out.

    Exit code 1: a trial has different numbers in two folders, and nothing was written.

    \b
    Examples:
      precbench merge results/shards/* --out results
      precbench merge one/results another/results --out all --keep one/results
    """
    from precbench.cli.merge import MergeOptions, merge_results

    merge_results(
        MergeOptions(
            folders=folders,
            out=out,
            keep=keep,
            configs=config or [],
            mirror=mirror,
            plots=not no_plots,
            as_json=as_json,
        )
    )


@app.command(short_help="Compare two folders of results, cell by cell.")
def diff(
    first: Annotated[Path, typer.Argument(help="Folder of results, or of one experiment.")],
    second: Annotated[Path, typer.Argument(help="Another one, of the same experiments.")],
    tolerance: Annotated[
        float,
        typer.Option(
            min=0,
            help="Count numbers as equal that differ by no more than this share of the larger.",
        ),
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Compare two folders of results, cell by cell.

    Counts the final numbers that are the same, bit for bit or to within a tolerance, and for the
    others shows the means, their difference and its paired interval. Times are compared only for
    trials that ran alone, on the same kind of machine.

    Exit code 1: the numbers differ, or one folder has some that the other lacks.

    \b
    Examples:
      precbench diff results other-machine/results
      precbench diff results/letter before/letter --json
      precbench diff results other-blas/results --tolerance 1e-9
    """
    from precbench.cli.diff import compare_results

    raise typer.Exit(compare_results(first, second, tolerance, as_json))


@app.command(short_help="Check configs without running anything.")
def validate(
    configs: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG",
            help="Names (see list configs) or files.",
            autocompletion=completion.configs,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Check configs, or files of claims, without running anything, and without their data.

    Every mistake of every config is reported with its line, and what may have been meant.

    Exit code 2: there is a mistake.

    \b
    Examples:
      precbench validate churn.yaml
      precbench validate configs/*.yaml --json
    """
    from precbench.cli.validate import validate_configs

    raise typer.Exit(validate_configs(configs, as_json))


@app.command(short_help="Print a JSON Schema of configs, for editors.")
def schema() -> None:
    """Print a JSON Schema of configs, for completion and validation in editors.

    \b
    Example, with the first line of a config as many editors read it:
      precbench schema > precbench.schema.json
      # yaml-language-server: $schema=precbench.schema.json
    """
    import json

    from precbench.experiment.schema import config_schema

    print(json.dumps(config_schema(), indent=1))


@app.command(short_help="Check the installation.")
def doctor(as_json: Json = False) -> None:
    """Check the installation; paste the output into bug reports.

    Checks compiled kernels, BLAS, versions, extras, the cache, the mirror and free disk space.
    No user name, host name or address is printed.

    Exit code 1: something is missing.

    \b
    Example:
      precbench doctor
    """
    from precbench.cli.doctor import examine

    raise typer.Exit(examine(as_json))


@app.command("list", short_help="List solvers, data sets, metrics, configs, claims or deviations.")
def list_(
    what: Annotated[
        str, typer.Argument(help="solvers, datasets, metrics, configs, claims or deviations.")
    ],
    paper: Annotated[
        str | None, typer.Option(help="Only claims of this paper, for example rudin2009.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="Only claims at this place, for example table-3 or section-8."),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(help='Only claims with this verdict, for example "not reproduced".'),
    ] = None,
    as_json: Json = False,
) -> None:
    """List solvers, data sets, metrics, configs, claims or deviations, one line for each.

    Claims are published numbers and sentences, listed with their verdicts in the committed
    reference. Deviations are the places where an implementation deliberately differs from its
    paper, each with the command that shows why.

    With --json the list includes the parameters of solvers (with defaults) and metrics, the
    sizes of data sets, and all details of claims.

    \b
    Examples:
      precbench list configs
      precbench list solvers --json
      precbench list claims --paper rudin2009 --verdict "not reproduced"
    """
    from precbench.cli.listing import list_members

    list_members(what, as_json, {"paper": paper, "place": table, "verdict": verdict})


@app.command(short_help="Compare methods on your own file, and recommend one.")
def compare(
    file: OwnFile,
    label: Label = None,
    k: K = "0.25",
    positive: Positive = None,
    groups: Groups = None,
    time: Time = None,
    drop: Drop = None,
    categorical: Categorical = "error",
    missing: Missing = "error",
    form: Form = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare this method; repeatable [default: those of configs/compare.yaml].",
            autocompletion=completion.solvers,
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of splits [default: 10; 5 with --time or more than 50,000 rows]."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and solvers.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Number of trials to run at a time [default: all cores]."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    config: Annotated[
        Path | None, typer.Option(help="Also write the config that repeats the comparison.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Fit the best method to all rows, and write the model to this file."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare methods for the top of your own list, and recommend one.

    Linear methods, random features and boosted trees are trained on 70 % of the rows, with
    parameters chosen on some of them, and ranked by the hits among the first k of the other
    rows; this is repeated on several random splits, or on the latest rows with --time. Differences
    within the noise of the splits are called ties. An interrupted comparison resumes where it left
    off.

    \b
    Examples:
      precbench compare customers.csv --label churned --positive yes --k 100 \\
          --save top.npz
      precbench compare visits.parquet --label ill --groups patient \\
          --k "1 %" --missing median
    """
    from precbench.cli.compare import CompareOptions, compare_methods
    from precbench.contest import cores

    data = {
        "file": file,
        "format": form,
        "label": label,
        "positive": positive,
        "groups": groups,
        "time": time,
        "drop": drop,
        "categorical": None if categorical == "error" else categorical,
        "missing": None if missing == "error" else missing,
    }
    options = CompareOptions(
        k=k,
        solvers=solver or [],
        n_splits=splits,
        seed=seed,
        jobs=jobs or cores(),
        out=out,
        config=config,
        save=save,
        as_json=as_json,
    )
    raise typer.Exit(compare_methods(data, options))


@app.command(short_help="Fit a ranking model to your own file and save it.")
def fit(
    file: OwnFile,
    save: Annotated[Path, typer.Option(help="Model file to write; an existing file is replaced.")],
    label: Label = None,
    positive: Positive = None,
    groups: Groups = None,
    time: Time = None,
    drop: Drop = None,
    categorical: Categorical = "error",
    missing: Missing = "error",
    form: Form = None,
    solver: Annotated[
        str,
        typer.Option(
            help="Name of the solver, see list solvers.", autocompletion=completion.solvers
        ),
    ] = "sgd-avg",
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of the solver, for example epochs=50; repeatable. "
            "See list solvers --json.",
        ),
    ] = None,
    k: K = "0.25",
    scaling: Annotated[
        str | None,
        typer.Option(
            help="standardise, unit, unit-norm, standardise-unit-norm or none "
            "[default: standardise; none for sparse rows and for trees]."
        ),
    ] = None,
    fourier: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of random Fourier features to use instead of the features, so that a "
            "linear solver can learn a nonlinear ranking.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            help="Column of weights of the rows, for logistic-regression, linear-svm, "
            "hist-gradient-boosting and lightgbm (tables)."
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of splits to measure the quality on.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and of the solver.")] = 0,
    as_json: Json = False,
) -> None:
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
    from precbench.cli.model import FitOptions, fit_model

    options = FitOptions(
        format=form,
        label=label,
        positive=positive,
        groups=groups,
        time=time,
        weight=weight,
        drop=drop or [],
        categorical=categorical,
        missing=missing,
        solver=solver,
        params=param or [],
        k=k,
        scaling=scaling,
        fourier=fourier,
        splits=splits,
        seed=seed,
    )
    fit_model(file, save, options, as_json)


@app.command(short_help="Rank the rows of a file with a model and list the top.")
def score(
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
    from precbench.cli.model import score_rows

    score_rows(model, file, form, top, row_id, out, as_json)


@app.command(short_help="Describe a saved model, or a trial behind a number.")
def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="Model file (see fit), key of a trial or its beginning, or DATASET/SOLVER/SPLIT.",
        ),
    ],
    results: Annotated[
        Path, typer.Option(help="Folder of results, or of one experiment, with the trial.")
    ] = Path("results"),
    as_json: Json = False,
) -> None:
    """Describe a saved model, or a trial behind a number of a table.

    For a model: its solver, rows, columns and measured quality. Weights are those of the scaled
    features. With --json all columns are listed.

    For a trial: what ran, on which data, what was chosen, its metrics, times and warnings, the
    machine, whether it would run again, and the command that repeats it. Keys are in the `key`
    column of results.csv.

    \b
    Examples:
      precbench show top.npz
      precbench show letter/sgd-avg/0
      precbench show 000bda98 --results results/letter
    """
    from precbench.cli.show import show

    show(what, results, as_json)


@data_app.command(short_help="Download data sets into the cache and verify them.")
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(help="Data sets, see list datasets.", autocompletion=completion.datasets),
    ],
    mirror: Mirror = None,
    as_json: Json = False,
) -> None:
    """Download data sets from the mirror or the official addresses into the cache.

    Checksums are verified, and the rows are compared with the card. The cache is the folder
    $PRECBENCH_CACHE, by default one in the user's cache folder. Exit code 3: no source has the
    files.

    \b
    Examples:
      precbench data fetch letter adult
      precbench data fetch letter --mirror ~/mirror
    """
    from precbench.cli.data import fetch_data

    fetch_data(names, mirror, as_json)


@data_app.command(short_help="Copy files you obtained yourself (kdd08, ppi) into the cache.")
def add(
    name: Annotated[
        str,
        typer.Argument(
            help="Data set that the files belong to.", autocompletion=completion.datasets
        ),
    ],
    files: Annotated[
        list[Path], typer.Argument(help="Files that you obtained yourself; data info lists them.")
    ],
    as_json: Json = False,
) -> None:
    """Copy files that cannot be downloaded (kdd08, ppi) into the cache.

    A file with a wrong checksum is refused: it is kept in the cache as NAME.rejected and
    overwrites nothing.

    \b
    Example:
      precbench data add kdd08 training_data.zip
    """
    from precbench.cli.data import add_data

    add_data(name, files, as_json)


@data_app.command(short_help="Check cached files against their checksums.")
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets [default: all].", autocompletion=completion.datasets),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the cached files of data sets against their checksums.

    Exit code 2: a file is damaged. Exit code 3: a named data set lacks a file.

    \b
    Examples:
      precbench data verify
      precbench data verify letter --json
    """
    from precbench.cli.data import verify_data

    raise typer.Exit(verify_data(names, as_json))


@data_app.command(short_help="Remove files from the cache.")
def clean(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets whose files are removed, too [default: none]."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove prepared arrays, rejected files and unfinished downloads from the cache.

    Everything removed can be rebuilt or downloaded again, except files you added yourself.
    Downloaded and added files are removed only for data sets you name.

    \b
    Examples:
      precbench data clean --dry-run
      precbench data clean covtype
    """
    from precbench.cli.data import clean_cache

    clean_cache(names or [], dry_run, as_json)


@data_app.command(short_help="Describe a data set and its files.")
def info(
    name: Annotated[
        str, typer.Argument(help="Data set, see list datasets.", autocompletion=completion.datasets)
    ],
    as_json: Json = False,
) -> None:
    """Describe a data set: its card, and which of its files are in the cache.

    \b
    Example:
      precbench data info kdd08
    """
    from precbench.cli.data import describe_data

    describe_data(name, as_json)


def main() -> None:
    """Run the command line."""
    try:
        app()
    finally:
        ignore()
