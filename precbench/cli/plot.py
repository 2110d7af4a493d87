"""``precbench plot``."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from precbench.advice.report import write_report
from precbench.cli.options import Json
from precbench.errors import InputError
from precbench.report.repeat import shipped_config
from precbench.store import Store, result_folders, stores
from precbench.text import count

_MARKS = ("results.csv", "illustration.json")


def plot_results(
    results: Annotated[Path, typer.Argument(help="Folder of results, or of one experiment.")],
    as_json: Json = False,
) -> None:
    """Redraw the tables and figures of finished runs from their CSV files.

    \b
    Examples:
      precbench plot results/letter
      precbench plot results/
    """
    folders = finished_folders(results)
    for folder in folders:
        Store(folder).load()
    written = {}
    for folder in folders:
        paths = [str(path) for path in write_report(folder).files]
        written[str(folder)] = paths
        if not as_json:
            print("\n".join(paths), flush=True)
    if as_json:
        print(json.dumps(written, indent=1))


def finished_folders(results: Path) -> list[Path]:
    """Return the folder if it holds results, or those in it that do.

    Raises
    ------
    InputError
        If there is none.
    """
    folders = result_folders(results, *_MARKS)
    if not folders:
        _refuse_unfinished(results)
        raise InputError(
            f"neither {results} nor a folder in it has a {' or '.join(_MARKS)}: "
            "run an experiment first, for example precbench run letter"
        )
    return folders


def _refuse_unfinished(results: Path) -> None:
    """Raise if there are trials of a run that was interrupted."""
    try:
        found = stores(results)
    except InputError:
        return
    folder = found[0].folder
    name = folder.name.removesuffix("-smoke")
    command = ["precbench", "run", shipped_config(name) or "CONFIG"]
    if name != folder.name:
        command.append("--smoke")
    command += ["--out", str(folder.parent)]
    n_trials = count(sum(len(store.keys()) for store in found), "trial")
    raise InputError(
        f"{results} holds {n_trials} of a run that has not ended, and no tables: run the same "
        f"command again, which goes on where it stopped ({shlex.join(command)})"
    )
