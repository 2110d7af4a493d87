"""Studies: figures, tables, lemmas and theorems of papers, computed.

A *study* is a function that returns a tidy table with one number per row, in the last column
``value``; the other columns say which number it is. `STUDIES` maps the kind that a config names
to its function; the parameters in the config are checked against its annotations.
Equal arguments give equal tables, except for times.
"""

from collections.abc import Callable

import pandas as pd

from precbench.papers import (
    costs,
    gultekin,
    kar2014,
    kar2015,
    kar2015_laws,
    kar2015_minima,
    rudin2009,
    rudin2009_theorems,
)

__all__ = ["QUICK", "STUDIES"]

STUDIES: dict[str, Callable[..., pd.DataFrame]] = {
    **rudin2009.STUDIES,
    **rudin2009_theorems.STUDIES,
    **kar2014.STUDIES,
    **kar2015.STUDIES,
    **kar2015_laws.STUDIES,
    **kar2015_minima.STUDIES,
    **gultekin.STUDIES,
    **costs.STUDIES,
}

QUICK = rudin2009.QUICK | kar2015_laws.QUICK
"""Those that need no data and a few seconds at most: computed anew by every check."""
