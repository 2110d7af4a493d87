"""``python -m precbench.survey RESULTS``: take the means of the survey into its reference."""

import argparse
from pathlib import Path

from precbench.errors import InputError
from precbench.survey.choice import REFERENCE, collect


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m precbench.survey", description=__doc__)
    parser.add_argument("results", type=Path)
    try:
        means = collect(parser.parse_args().results)
    except InputError as error:
        parser.error(str(error))
    means.to_csv(REFERENCE, index=False, lineterminator="\n", float_format="%.5g")


if __name__ == "__main__":
    main()
