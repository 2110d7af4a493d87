"""From the name of a data set to its rows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from precbench.data.cards import parsers, stand_in, synthetic
from precbench.data.cards.array_cache import load_prepared, store_prepared
from precbench.data.cards.card import Card
from precbench.data.cards.fetch import fetch
from precbench.data.cards.registry import find_card
from precbench.data.dataset import Arrays, Dataset, Dtype, stored
from precbench.errors import DataUnavailableError, InputError


def load_dataset(
    name: str,
    mirror: str | os.PathLike[str] | None = None,
    on_missing: Literal["error", "stand-in"] = "error",
    dtype: Dtype = "float64",
) -> Dataset:
    """Load a data set: from the cache, a mirror, or its official addresses.

    Parameters
    ----------
    name : str
        A key of ``DATASETS``.
    mirror : str or path, optional
        As in `precbench.data.cards.fetch.fetch`.
    on_missing : {"error", "stand-in"}
        What to do when the files cannot be obtained; a stand-in is synthetic, and its title says
        so.
    dtype : {"float64", "float32"}
        Type of the values of X; the sums of the solvers are of float64 either way.

    Returns
    -------
    Dataset
        Its arrays are read-only; where the cache can be written they are memory maps, which
        processes share.

    Raises
    ------
    DataUnavailableError
        The files cannot be obtained, and ``on_missing="error"``.
    InputError
        An unknown name, or files that do not match the card.

    Examples
    --------
    >>> from precbench import load_dataset
    >>> data = load_dataset("synthetic-linear-1-in-10")
    >>> data.X.shape, int((data.y > 0).sum())
    ((30000, 20), 3000)
    """
    source = _find(name, mirror, on_missing)
    arrays = load_prepared(name, source.sha256, dtype)
    if arrays is None:
        made = load_prepared(name, source.sha256) or source.make()
        made = made._replace(X=stored(made.X, dtype, name))
        store_prepared(name, source.sha256, made, dtype)
        arrays = load_prepared(name, source.sha256, dtype) or _read_only(made)
    title = source.card.title
    return Dataset(
        name=name,
        title=f"{title} (stand-in, synthetic)" if source.is_stand_in else title,
        sha256=source.sha256,
        stand_in=source.is_stand_in,
        n_train=source.card.train_rows,
        **arrays._asdict(),
    )


class _Source(NamedTuple):
    """What a data set is made of."""

    card: Card
    sha256: str
    is_stand_in: bool
    make: Callable[[], Arrays]


def _find(
    name: str, mirror: str | os.PathLike[str] | None, on_missing: Literal["error", "stand-in"]
) -> _Source:
    if on_missing not in ("error", "stand-in"):
        raise InputError(f"on_missing must be 'error' or 'stand-in', found {on_missing!r}")
    card = find_card(name)
    is_stand_in = False
    identity: dict[str, Any]
    if card.format == "synthetic":
        wanted = {"name", "generator", "gamma", "swapped", "rows", "features", "positives"}
        identity = {
            "synthetic": synthetic.VERSION,
            **card.model_dump(include=wanted),
            **card.model_dump(include={"non_linear"}, exclude_defaults=True),
        }
        make = partial(synthetic.generate, card)
    else:
        try:
            files = fetch(card, mirror)
            identity = {
                "parser": parsers.VERSION,
                "files": [file.sha256 for file in files],
                **card.model_dump(include={"format", "label_column", "positive", "features"}),
                **card.model_dump(include={"separator", "feature_columns"}, exclude_defaults=True),
            }
            make = partial(parsers.parse, card, [file.path for file in files])
        except DataUnavailableError:
            if on_missing == "error":
                raise
            is_stand_in = True
            wanted = {"name", "format", "rows", "features", "positives", "stand_in"}
            identity = {"generator": stand_in.VERSION, **card.model_dump(include=wanted)}
            make = partial(stand_in.generate_stand_in, card)

    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return _Source(card, hashlib.sha256(canonical.encode()).hexdigest(), is_stand_in, make)


def _read_only(arrays: Arrays) -> Arrays:
    X = arrays.X
    parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    for array in (*parts, arrays.y, arrays.groups, arrays.optimum):
        if array is not None:
            array.flags.writeable = False
    return arrays
