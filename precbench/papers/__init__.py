"""What papers show and prove beside their experiments, as tidy tables.

`ILLUSTRATIONS` maps the name that configs use to a function, whose annotations are what a config
is checked against. It returns a table with one number per row, in the last column ``value``; the
other columns say which number it is. Equal arguments give equal tables, but for times.
"""

from collections.abc import Callable

import pandas as pd

from precbench.papers import gultekin, kar2014, rudin2009

__all__ = ["ILLUSTRATIONS", "QUICK"]

ILLUSTRATIONS: dict[str, Callable[..., pd.DataFrame]] = {
    **rudin2009.KINDS,
    **kar2014.KINDS,
    **gultekin.KINDS,
}

QUICK = frozenset(rudin2009.KINDS)
"""Those that need seconds at most, and no data: made anew whenever they are judged."""
