"""Computes an illustration and leaves its numbers in a folder."""

import json

from precbench.data import load_dataset
from precbench.experiment import Illustration
from precbench.store import SCHEMA, Store

__all__ = ["illustrate"]


def illustrate(
    illustration: Illustration, store: Store, *, smoke: bool = False, mirror: str | None = None
) -> int:
    """Compute an illustration and write ``values.csv`` and ``illustration.json``.

    Parameters
    ----------
    illustration : Illustration
    store : Store
        Locked by the caller.
    smoke : bool, default=False
        Take the smoke size.
    mirror : str, optional
        Folder or address that is asked for data before the official addresses.

    Returns
    -------
    int
        The number of values.

    Raises
    ------
    DataUnavailableError
        If a data set can't be had.
    PrecbenchError
        If the disk is full, or the parameters do not go together.
    """
    sized = illustration.smoke_size() if smoke else illustration
    for name in sized.parameters.get("datasets", ()):
        load_dataset(name, mirror=mirror)  # into the cache
    values = sized.compute()
    description = {
        "schema": SCHEMA,
        "name": sized.name,
        "title": sized.title,
        "source": sized.source,
        "kind": sized.illustration,
        "parameters": sized.parameters,
        "smoke": smoke,
    }
    store.write_text("values.csv", values.to_csv(index=False, lineterminator="\n"))
    store.write_text("illustration.json", json.dumps(description, indent=1) + "\n")
    return len(values)
