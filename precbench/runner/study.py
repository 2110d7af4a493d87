"""Computation of a study."""

import json

from precbench.data import load_dataset
from precbench.experiment import Study
from precbench.results.records import SCHEMA
from precbench.results.store import Store


def run_study(
    study: Study, store: Store, *, smoke: bool = False, mirror: str | None = None
) -> None:
    """Compute a study; write values and description to the folder of `store`."""
    sized = study.smoke_size() if smoke else study
    for name in sized.parameters.get("datasets", ()):
        load_dataset(name, mirror=mirror)  # into the cache, from which the study reads
    fields = sized.model_dump(include={"name", "title", "source", "kind", "parameters"})
    description = {"schema": SCHEMA, **fields, "smoke": smoke}
    values = sized.compute().to_csv(index=False, lineterminator="\n")
    store.write_text("values.csv", values)
    store.write_text("illustration.json", json.dumps(description, indent=1) + "\n")
