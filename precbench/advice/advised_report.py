"""The report of a results folder, with what it recommends."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from precbench.advice.choice import choice_table, choose_method
from precbench.advice.length import length_sheet, length_table, profit_text, read_length
from precbench.core.errors import InputError
from precbench.report import folder
from precbench.report.html import Advised, Choice
from precbench.results.read import Run


def _advised(run: Run, sources: Sequence[Path]) -> Advised:
    """Return the recommendation for each data set, and what `compare` has stored.

    That is hits by length, with the command that comes next. A figure that is newer
    than all `sources` is not drawn again.
    """
    stored = read_length(run.folder)
    choices: list[Choice] = []
    for dataset in run.datasets:
        # Advice needs test rows that differ between splits, and the real data in full.
        if dataset not in run.test_shares or run.is_stand_in(dataset) or run.smoke:
            continue
        try:
            chosen = choose_method(run, dataset)
        except InputError:  # a run of other metrics, or without a result
            continue
        if stored is not None:
            chosen = chosen.with_length(stored.length)
        table = choice_table(chosen, f"Hits among the first {chosen.k:,}")
        title = run.dataset_title(dataset)
        choices.append(Choice(title, sentences=chosen.card, methods=table))
    if stored is None:
        return Advised(choices)
    length = stored.length
    figures = length_sheet(length).save(
        run.folder / "figures" / "length", length.table, sources
    )
    texts = [profit_text(length)]
    lengths = [length_table(length)]
    return Advised(
        choices,
        command=stored.command,
        texts=texts,
        lengths=lengths,
        data=stored.tables,
        figures=figures,
    )


# `precbench.report.folder.write_report`, with recommendations on the page.
write_report = partial(folder.write_report, advise=_advised)
