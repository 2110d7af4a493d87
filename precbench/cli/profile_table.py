"""``precbench profile``."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from precbench.cli.options import Json, takes
from precbench.cli.own import OwnRows
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.text import count, one_line

if TYPE_CHECKING:
    from precbench.tables.profile import TableProfile


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(OwnRows):
    as_json: Json = False


@takes(ProfileOptions)
def profile(options: ProfileOptions) -> int:
    """Describe a table.

    Rows, positives, columns, missing values, and what compare would do.

    For each column: type, number of different and of missing values, smallest and
    largest value (for text, the most frequent one), and AUC alone, which reveals leaks.
    Nothing is trained.

    \b
    Examples:
      precbench profile customers.csv --label churned --positive yes
    """
    from precbench.advice.table_description import columns_table
    from precbench.advice.table_description import profile as profile_table

    console = screen(quiet=options.as_json)
    options.checked_worth()  # refuses what compare would refuse
    name = one_line(options.file.name)
    profiled = profile_table(
        options.file,
        k=options.lengths,
        allow=options.allow or (),
        gain_column=options.gain_column,
        **options.reading,
    )
    console.print(f"{name}: {_size_in_words(profiled)}")
    print_table(columns_table(profiled.columns, options.file.name), console)
    values = profiled.to_dict()
    if profiled.refusal is not None:  # compare would raise this error
        values["refusal"] = options.with_remedy("compare", profiled.refusal)
        console.print(f"compare refuses the table: {values['refusal']}")
    elif profiled.outlook is not None:
        console.print(profiled.outlook)
    if options.as_json:
        print(json.dumps(values, indent=1))
    return 0


def _size_in_words(profiled: "TableProfile") -> str:
    parts = [f"{profiled.rows:,} rows"]
    if profiled.positives is not None:
        parts.append(
            f"{profiled.positives:,} positive"
            f" ({profiled.positives / profiled.rows:.2%})"
        )
    if profiled.groups is not None:
        parts.append(count(profiled.groups, "group"))
    if profiled.duplicates:
        parts.append(f"{profiled.duplicates:,} duplicates of an earlier row")
    return ", ".join(parts)
