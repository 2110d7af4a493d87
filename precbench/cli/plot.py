"""``precbench plot``."""

import json
from pathlib import Path

from precbench.errors import InputError
from precbench.report.folder import write_report
from precbench.store import Store


def plot_results(results: Path, as_json: bool) -> None:
    """Draw the tables and figures of one experiment, or of every experiment in a folder."""
    folders = [results] if (results / "results.csv").exists() else _experiments(results)
    if not folders:
        raise InputError(
            f"{results} holds no results.csv, and no folder in it does: run an experiment first, "
            "for example precbench run letter"
        )
    for folder in folders:
        Store(folder).refuse_newer()
    written = {str(folder): [str(path) for path in write_report(folder)] for folder in folders}
    if as_json:
        print(json.dumps(written, indent=1))
    else:
        for paths in written.values():
            print("\n".join(paths))


def _experiments(results: Path) -> list[Path]:
    return sorted(path.parent for path in results.glob("*/results.csv"))
