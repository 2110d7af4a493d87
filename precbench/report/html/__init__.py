"""A results folder as one HTML file that loads nothing: to read, to mail, to print."""

from precbench.report.html.page import (
    Advised,
    Choice,
    Drawing,
    DrawnFiles,
    ImportantColumns,
    Page,
    experiment_page,
    ledger_about,
    study_page,
)
from precbench.report.html.templates import render

__all__ = [
    "Advised",
    "Choice",
    "Drawing",
    "DrawnFiles",
    "ImportantColumns",
    "Page",
    "experiment_page",
    "ledger_about",
    "render",
    "study_page",
]
