"""The report of a results folder, with what it recommends."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from precbench.advice.choice import Choice, choice_table, choose_method
from precbench.advice.importance import importance_table
from precbench.advice.length import (
    Length,
    length_sheet,
    length_table,
    profit_text,
    read_length,
)
from precbench.advice.pictures import (
    Picture,
    answer_pictures,
    delete_others,
    importance_picture,
    read_measured,
)
from precbench.core.errors import InputError
from precbench.report import folder
from precbench.report.html import Advised, DrawnFiles, ImportantColumns
from precbench.report.html import Choice as ShownChoice
from precbench.results.read import Run


def _advised(run: Run, sources: Sequence[Path]) -> Advised:
    """Return the recommendation for each data set, and what `compare` has stored.

    That is hits by length, with pictures and the command that comes next. A figure that
    is newer than all `sources` is not drawn again.
    """
    stored = read_length(run.folder)
    measured = read_measured(run.folder)
    choices: list[ShownChoice] = []
    pictures: list[Picture] = []
    for dataset in run.datasets:
        # Advice needs test rows that differ between splits, and the real data in full.
        if dataset not in run.test_shares or run.is_stand_in(dataset) or run.smoke:
            continue
        try:
            chosen = choose_method(run, dataset)
        except InputError:  # a run of other metrics, or without a result
            continue
        if stored is not None:
            chosen = _as_answered(chosen, run, dataset, stored.length)
            pictures = answer_pictures(chosen, measured.reliability)
        table = choice_table(chosen, f"Hits among the first {chosen.k:,}")
        title = run.dataset_title(dataset)
        choices.append(ShownChoice(title, sentences=chosen.card, methods=table))
    if stored is None:
        return Advised(choices)
    length = stored.length
    folder_of_figures = run.folder / "figures"
    figures = length_sheet(length).save(
        folder_of_figures / "length", length.table, sources
    )

    def saved(picture: Picture) -> DrawnFiles:
        return DrawnFiles(picture.save(folder_of_figures, sources), picture.alt)

    drawn = [saved(picture) for picture in pictures]
    importance = None
    if measured.importance is not None:
        title = f"What {length.method} ranks by"
        of_columns = importance_picture(measured.importance)
        table = importance_table(measured.importance, title)
        importance = ImportantColumns(table, saved(of_columns))
        pictures = [*pictures, of_columns]
    delete_others(pictures, folder_of_figures)
    texts = [profit_text(length)]
    lengths = [length_table(length)]
    return Advised(
        choices,
        command=stored.command,
        texts=texts,
        lengths=lengths,
        data=stored.tables,
        figures=figures,
        pictures=drawn,
        importance=importance,
    )


def _as_answered(choice: Choice, run: Run, dataset: str, length: Length) -> Choice:
    """Return the choice that `compare` made, with its forecast.

    The forecast is of the recommended method; if it is another one, the user has
    preferred simple methods.
    """
    if choice.recommended != length.method:
        simple = choose_method(run, dataset, prefer="simple")
        if simple.recommended == length.method:
            choice = simple
    return choice.with_length(length)


# `precbench.report.folder.write_report`, with recommendations on the page.
write_report = partial(folder.write_report, advise=_advised)
