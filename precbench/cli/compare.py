"""``precbench compare``."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from precbench.cli import completion
from precbench.cli.group import INTERRUPTED
from precbench.cli.options import Json, NoRowHashes, takes
from precbench.cli.own import OwnRows, check_target, write_open
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table, show_length
from precbench.core.errors import InputError
from precbench.core.files import write_whole, writing
from precbench.core.text import count, one_line
from precbench.results.folders import PAGE

if TYPE_CHECKING:
    from precbench.advice.comparison import Comparison
    from precbench.advice.contest import Contest
    from precbench.report.table import Table
    from precbench.tables.own_table import OwnTable


@dataclass(frozen=True, kw_only=True)
class CompareOptions(OwnRows):
    solver: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Method to compare, or FILE.py:CLASS; repeatable [default: the methods"
                " of configs/compare.yaml]."
            ),
            autocompletion=completion.solvers,
        ),
    ] = None
    splits: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "Number of splits into training and test rows [default: 10; 5 with"
                " --time or more than 50,000 rows]."
            ),
        ),
    ] = None
    prefer: Annotated[
        Literal["best", "simple"],
        typer.Option(
            help="Choose the best method, or the simplest within a standard error."
        ),
    ] = "best"
    effort: Annotated[
        Literal["quick", "normal", "thorough"],
        typer.Option(
            help=(
                "quick: three methods on three splits; normal: then all methods, on as"
                " many splits as may change the answer; thorough: all methods on all"
                " splits."
            )
        ),
    ] = "normal"
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the splits and solvers.")
    ] = 0
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Number of trials to run at a time [default: all cores].",
        ),
    ] = None
    out: Annotated[Path, typer.Option(help="Folder to write the results to.")] = Path(
        "results"
    )
    config: Annotated[
        Path | None,
        typer.Option(help="File to write: the config that repeats this comparison."),
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(
            help=(
                "File to write: a model of the recommended method, fitted to all rows;"
                " the report then shows which columns matter."
            )
        ),
    ] = None
    no_row_hashes: NoRowHashes = False
    as_json: Json = False


@takes(CompareOptions)
def compare(options: CompareOptions) -> int:
    """Compare methods for the top of your own list, and recommend one.

    Linear methods, random features, trees and an ensemble are tuned and trained on 70 %
    of the rows, on several random splits. Methods are measured by the hits at the top
    of the other rows (with --time, of the latest rows): the top is as large a share of
    these rows as k is of your list, which has as many rows as the file, or --list-rows
    rows. The best method is the ensemble, unless another method has significantly more
    hits; without an ensemble, the best DCG decides. Each other method is equivalent,
    undecided or worse. The simplest of the best method and its equivalents is
    recommended.

    Three methods on three splits give a first answer. More methods and splits follow
    while they may change it (--effort); Ctrl-C keeps the last answer, and the same
    command goes on from there.

    \b
    Examples:
      precbench compare customers.csv --label churned --positive yes --k 100 \\
          --save top.npz
      precbench compare visits.parquet --label ill --groups patient \\
          --k "1 %" --missing median
    """
    import joblib

    from precbench.advice.comparison import run_contest
    from precbench.advice.stages import Stage
    from precbench.cli.watching import StageProgress
    from precbench.runner.options import Options
    from precbench.tables.own_file import read_amounts

    console = screen(quiet=options.as_json)
    worth = options.checked_worth()
    _check_targets(options)
    own, unlabelled = options.tables()
    amounts = None
    if options.gain_column is not None:
        amounts = read_amounts(own, options.gain_column, "--gain-column")
    contest = _prepared(own, options)
    tables = _tables_of_columns(own, options)  # for the report
    del own  # frees the memory of the table; the contest has the rows
    console.print(f"{one_line(options.file.name)}: {_size_in_words(contest)}")
    run_options = Options(
        jobs=options.jobs or joblib.cpu_count(),
        out=options.out,
        tables=False,  # the report is written once the length is known
    )

    def show_answer(answer: "Comparison", following: Stage | None) -> None:
        _print_answer(answer, contest, options)
        _write_report(answer, options, tables)
        if following is not None:
            console.print("Ctrl-C keeps this answer.", style="bold")

    comparison = run_contest(
        contest,
        run_options,
        observer=StageProgress(console, options.effort),
        on_answer=show_answer,
        prefer=options.prefer,
        effort=options.effort,
        worth=worth,
        amounts=amounts,
        label=options.label,
        positive=options.positive,
        reading=options.reading,
        allow=options.allow or (),
        config=str(options.config or ""),
    )
    if comparison.was_interrupted:
        console.print(f"The last answer stands: {comparison.folder / PAGE}")
        return INTERRUPTED
    console.print(f"Next: {_next_command(comparison, options)}")
    if options.save:
        if comparison.recipe.importance is not None:
            _write_report(comparison, options, tables)
        comparison.fit().save(options.save, row_hashes=not options.no_row_hashes)
        console.print(f"{comparison.recommended}, fitted to all rows: {options.save}")
    if unlabelled is not None:
        console.print(write_open(comparison.fit(), unlabelled, options))
    console.print(
        f"report: {comparison.folder / PAGE}, with tables and records beside it"
    )
    if options.config:
        console.print(f"to repeat the comparison: precbench run {options.config}")
    if options.as_json:
        facts = {
            "folder": str(comparison.folder),
            "model": options.save and str(options.save),
            **comparison.to_dict(),
        }
        print(json.dumps(facts, indent=1))
    return int(comparison.has_failed)


def _check_targets(options: CompareOptions) -> None:
    """Refuse a file to write that cannot be written, or is the file of the rows."""
    others = {"the file of the rows": options.file}
    if options.config:
        check_target("--config", options.config, others)
    if options.save:
        check_target("--save", options.save, others)
    if options.open_list and options.config:
        raise InputError("give either --config or --open, which exclude each other")


def _prepared(own: "OwnTable", options: CompareOptions) -> "Contest":
    """Return the contest on a table; write its config with --config."""
    from precbench.advice.contest import prepare

    with options.suggesting("compare"):
        contest = prepare(
            {"file": own, **options.reading},
            options.lengths,
            folder=options.config.parent if options.config else Path(),
            solvers=options.solver,
            n_splits=options.splits,
            seed=options.seed,
            list_rows=options.list_rows,
            allow=options.allow or (),
        )
    if options.config:
        with writing(options.config, "choose another place", refused=InputError):
            write_whole({options.config: contest.config})
    return contest


def _tables_of_columns(own: "OwnTable", options: CompareOptions) -> list["Table"]:
    """Return a table of the columns for the report; none of a file without columns."""
    from precbench.advice.table_description import columns_table
    from precbench.tables.profile import profile_columns

    if own.frame is None:
        return []
    title = f"The columns of {options.file.name}"
    return [columns_table(profile_columns(own, options.reading), title)]


def _print_answer(
    comparison: "Comparison", contest: "Contest", options: CompareOptions
) -> None:
    """Print what to use, the methods, and the hits by length of the list."""
    from precbench.advice.choice import choice_table

    console = screen(quiet=options.as_json)
    headline, *sentences = comparison.card
    console.print()
    console.print(headline, style="bold")
    console.print(*sentences, "", sep="\n")
    print_table(choice_table(comparison, contest.experiment.title), console)
    assert comparison.length is not None
    show_length(comparison.length, quiet=options.as_json)


def _write_report(
    comparison: "Comparison", options: CompareOptions, tables: list["Table"]
) -> None:
    """Write the report of an answer, with `tables` and the command that comes next."""
    from precbench.advice.comparison import report_length

    assert comparison.length is not None
    command = _next_command(comparison, options)
    report_length(
        comparison.length,
        comparison.folder,
        tables,
        command,
        measured=comparison.recipe.measured,
    )


def _size_in_words(contest: "Contest") -> str:
    """Return the sizes of the data."""
    n_rows, n_features = contest.dataset.X.shape
    n_pos = contest.dataset.n_pos
    sizes = [
        f"{n_rows:,} rows",
        f"{n_features:,} features",
        f"{n_pos:,} positive ({n_pos / n_rows:.2%})",
    ]
    group_of_row = contest.dataset.groups
    if group_of_row is not None:
        sizes.append(count(len(set(group_of_row.tolist())), "group"))
    return ", ".join(sizes)


def _next_command(comparison: "Comparison", options: CompareOptions) -> str:
    """Return what to type next: score with the saved model, or compare with --save."""
    if not options.save:
        changes = [("save", "model.npz"), ("as_json", False)]
        return options.line("compare", changes)
    assert comparison.expected is not None
    new_file = f"NEW{options.file.suffix}"
    k = str(comparison.expected.k)
    words = ["precbench", "score", str(options.save), new_file, "--top", k]
    if options.id:
        # An option may name several columns, but the one of score names one.
        first_id, _comma, _others = options.id[0].partition(",")
        words += ["--id", first_id]
    return shlex.join(words)
