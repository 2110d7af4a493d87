"""``precbench example``."""

from pathlib import Path
from typing import Annotated

import typer

from precbench.core.errors import InputError
from precbench.core.files import writing

_N_LABELLED = 1200


def example(
    file: Annotated[Path, typer.Argument(help="CSV file to write.")] = Path(
        "digits.csv"
    ),
) -> None:
    """Write a real list to try the commands on: digits, one in ten of them an eight.

    FILE gets the first 1,200 of scikit-learn's 1,797 handwritten digits, with the
    column "eight". The other digits go to a second file, whose name ends with -new.
    Existing files are kept.

    \b
    Examples:
      precbench example digits.csv
      precbench compare digits.csv --label eight --k 40 --save eights.npz
      precbench score eights.npz digits-new.csv --top 40
    """
    from sklearn.datasets import load_digits

    digits = load_digits(as_frame=True)
    rows = digits.data.astype(int).assign(eight=(digits.target == 8).astype(int))
    parts = {
        file: rows[:_N_LABELLED],
        file.with_stem(f"{file.stem}-new"): rows[_N_LABELLED:],
    }
    for path in parts:
        if path.exists():
            raise InputError(f"{path} exists; give the name of a new file")
    for path, part in parts.items():
        with writing(path, "choose another place", refused=InputError):
            part.to_csv(path, index=False)
        print(
            f"{path}: {len(part):,} digits of 8 x 8 pixels, {part['eight'].sum()} of"
            " them eights"
        )
    print(f"Next: precbench compare {file} --label eight --k 40 --save eights.npz")
