"""The command line; each command imports what it needs when it runs."""

from typing import Annotated, ClassVar

import typer

from precbench.cli.group import LazyGroup, Listed, MainGroup

_EPILOG = """\
Exit codes: 0 done; 1 a trial failed, folders differ, the disk is full, or another
failure; 2 wrong usage, config or input; 3 data not available; 4 a verdict is worse than
in the reference, or there are no results to judge; 5 the rows have drifted (score
--strict), or there are fewer hits than asked for (evaluate --fail-below); 130
interrupted.
"""


class _Precbench(MainGroup):
    listed: ClassVar = {
        "run": Listed("run:run", "Run experiments."),
        "plot": Listed(
            "report:plot_results",
            "Redraw the tables and figures of finished runs.",
        ),
        "report": Listed(
            "report:write_pages",
            "Write finished runs as HTML pages, to read or to mail.",
        ),
        "check": Listed(
            "check:check_results", "Compare results with the published numbers."
        ),
        "reproduce": Listed(
            "reproduce:reproduce",
            "Decide the published claims about a data set, a paper or a config.",
        ),
        "status": Listed(
            "status:show_status",
            "Show which trials are done, running, failed or pending.",
        ),
        "merge": Listed(
            "merge_folders:merge_results",
            "Merge results of shards, or of several machines.",
        ),
        "diff": Listed(
            "diff:compare_results",
            "Compare two folders of results, cell by cell.",
        ),
        "validate": Listed(
            "validate:validate_configs",
            "Check configs without running anything.",
        ),
        "schema": Listed(
            "validate:print_schema",
            "Print a JSON Schema of configs, for editors.",
        ),
        "doctor": Listed("doctor:examine", "Check the installation."),
        "list": Listed(
            "listing:list_",
            "List solvers, data sets, metrics, configs, claims or deviations.",
        ),
        "example": Listed(
            "example:example", "Write a real list to try the commands on."
        ),
        "compare": Listed(
            "compare:compare",
            "Compare methods on your own file, and recommend one.",
        ),
        "rank": Listed(
            "rank:rank",
            "Rank a method of yours among those that precbench has surveyed.",
        ),
        "profile": Listed(
            "profile_table:profile",
            "Describe a table of yours without training anything.",
        ),
        "fit": Listed("fit:fit", "Fit a ranking model to your own file and save it."),
        "refit": Listed(
            "refit:refit",
            "Fit the recipe of a saved model to new rows, and say what changed.",
        ),
        "score": Listed(
            "score:score",
            "Rank the rows of a file with a model and list the top.",
        ),
        "evaluate": Listed(
            "evaluate:evaluate",
            "Count the hits of a model on new labelled rows against its forecast.",
        ),
        "show": Listed(
            "show:show", "Describe a saved model, or the trial behind a number."
        ),
    }


class _Data(LazyGroup):
    listed: ClassVar = {
        "fetch": Listed(
            "data:fetch_data",
            "Download data sets into the cache and verify them.",
        ),
        "add": Listed(
            "data:add_data",
            "Copy files you obtained yourself (kdd08, ppi) into the cache.",
        ),
        "verify": Listed(
            "data:verify_data", "Check cached files against their checksums."
        ),
        "clean": Listed("data:clean_cache", "Remove files from the cache."),
        "info": Listed("data:describe_data", "Describe a data set and its files."),
    }


class _Claims(LazyGroup):
    listed: ClassVar = {
        "new": Listed(
            "claims:new_claims", "Write claims for a number or a table of a paper."
        )
    }


app = typer.Typer(
    cls=_Precbench,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
app.add_typer(
    typer.Typer(cls=_Data, no_args_is_help=True),
    name="data",
    help="Fetch, add, verify, inspect and clean up data sets.",
)
app.add_typer(
    typer.Typer(cls=_Claims, no_args_is_help=True),
    name="claims",
    help="Write down what a paper printed.",
)


def _version(is_asked: bool) -> None:
    if is_asked:
        from precbench import __version__

        print(f"precbench {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Run, measure and judge published methods for the top of a ranked list.

    \b
    First steps:
      precbench list configs         show the experiments
      precbench run letter           run one; tables and figures in results/letter
      precbench run kdd08 --smoke    try one out in seconds
      precbench report results/      pages to read, to print or to mail
      precbench plot results/        redraw tables and figures
      precbench check results/       compare with the published numbers
      precbench reproduce letter     decide all claims about a data set
      precbench example digits.csv   write a real list to try the rest on
      precbench compare mine.csv --label churned --k 100
      precbench fit mine.csv --label churned --save top.npz
      precbench show top.npz
      precbench score top.npz new.csv --top 100
    """
