"""The theorems of an experiment: ``bounds.csv`` as a table and a figure."""

import os
from pathlib import Path
from typing import Any

import pandas as pd

from precbench.report.figures import LOOK, solver_styles
from precbench.report.tables import Cell, Table, markdown_table, three_digits
from precbench.results import read_csv, read_run

__all__ = ["bounds_table", "write_bounds_report"]

_TEXT = ("theorem", "quantity", "solver", "dataset", "holds")
_SHOWN = ("measured", "bound", "possible", "holds", "constant")
_NUMBERS = ("split", "batch_size", "n_batches", "measured", "bound", "possible", "constant")
_KEYS = ["theorem", "quantity", "solver", "dataset", "batch_size"]


def bounds_table(folder: str | os.PathLike[str]) -> Table:
    """Lay out the theorems: means of measured value and bound over the splits.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>`` with ``bounds.csv``.

    Returns
    -------
    Table
        One row per theorem, quantity, solver, data set and batch length.
    """
    run = read_run(folder)
    rows = []
    for key, of in _bounds(folder).groupby(_KEYS, sort=False):
        theorem, quantity, solver, dataset, size = map(str, key)
        explicit = (of["holds"] != "").any()
        texts = [
            theorem,
            quantity,
            solver,
            dataset,
            f"{float(size):.0f}",
            three_digits(of["measured"].mean()),
            "" if theorem == "Theorem 12" else three_digits(of["bound"].mean()),
            three_digits(of["possible"].mean()) if explicit else "",
            f"{(of['holds'] == 'True').sum()} of {len(of)}" if explicit else "",
            "" if explicit else three_digits(of["constant"].max()),
        ]
        rows.append([Cell(text) for text in texts])
    return Table(
        title=run.title,
        stand_in=False,
        header=["", "quantity", "solver", "data", "b", *_SHOWN],
        rows=rows,
        notes=[
            "Means over the splits; b is the batch length. Theorems 7 and 9, Corollaries 8 and 10 "
            "are explicit: in how many splits they hold, and the most mistakes that the batches "
            "allow, for a larger bound says nothing. The others hold up to a constant that the "
            "paper leaves open: measured and bound leave out the term with it, and the last "
            "column is the largest constant that any split needs. It should stay bounded as b "
            "grows.",
        ],
    )


def write_bounds_report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``bounds.md`` and ``figures/bounds.png`` and ``.pdf``.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>`` with ``bounds.csv``.

    Returns
    -------
    list of pathlib.Path
    """
    from matplotlib import style

    folder = Path(folder)
    text = folder / "bounds.md"
    text.write_text("\n".join(markdown_table(bounds_table(folder))) + "\n", encoding="utf-8")
    paths = [folder / "figures" / f"bounds.{suffix}" for suffix in ("pdf", "png")]
    paths[0].parent.mkdir(exist_ok=True)
    with style.context(["default", LOOK]):
        figure = _drawn(read_run(folder).title, _bounds(folder))
        figure.savefig(paths[0], metadata={"Creator": "precbench", "CreationDate": None})
        figure.savefig(paths[1], metadata={"Software": "precbench"})
    return [text, *paths]


def _bounds(folder: str | os.PathLike[str]) -> pd.DataFrame:
    table = read_csv(Path(folder) / "bounds.csv", _TEXT, _NUMBERS)
    number = table["theorem"].str.extract(r"(\d+)", expand=False).astype(int)
    order = table.assign(number=number).sort_values(["number", *_KEYS[1:]])
    return order.drop(columns="number")


def _drawn(title: str, table: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 5.6), layout="constrained")
    figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
    explicit, open_ended = figure.subplots(1, 2)
    measures = ["measured", "bound", "constant"]
    means = table.groupby(_KEYS, sort=False)[measures].mean().reset_index()
    names = means["theorem"].str.cat(means[["quantity", "solver", "dataset"]], sep=" ")
    means.insert(0, "name", names.str.strip())
    styles = solver_styles(list(dict.fromkeys(means["name"])))
    for name, of in means.groupby("name", sort=False):
        theorem, solver, dataset = of[["theorem", "solver", "dataset"]].iloc[0]
        look = styles[str(name)]._asdict()
        if of["constant"].isna().all():
            label = f"{theorem.replace('Theorem', 'Th.').replace('Corollary', 'Cor.')}, {dataset}"
            ratio = of["measured"] / of["bound"]
            explicit.plot(of["batch_size"], ratio, label=label, **look)
        else:
            what = solver or of["quantity"].iloc[0]
            label = f"{theorem.removeprefix('Theorem ')}: {what}, {dataset}"
            if (of["constant"] > 0).all():  # a log axis has no place for the others
                open_ended.plot(of["batch_size"], of["constant"], label=label, **look)
    explicit.axhline(1, color="black", linewidth=0.8)
    explicit.set_ylabel("mistakes as a share of the bound")
    open_ended.set_ylabel("smallest constant that will do")
    for axes in (explicit, open_ended):
        axes.set(xscale="log", yscale="log", xlabel="batch length (rows)")
        sizes = sorted(means["batch_size"].unique())
        axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
        axes.minorticks_off()
        axes.legend(fontsize=6.5, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
