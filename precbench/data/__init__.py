"""Data sets: cards, files, parsing, splits and scaling."""

from typing import TYPE_CHECKING, Any

from precbench.data.cards.catalogue import DATASETS, find_card
from precbench.data.cards.load import load_dataset
from precbench.data.dataset import Dataset
from precbench.data.row_stream import RowStream, StreamedDataset, stream_dataset

if TYPE_CHECKING:
    from precbench.data.svmlight import read_svmlight

__all__ = [
    "DATASETS",
    "Dataset",
    "RowStream",
    "StreamedDataset",
    "find_card",
    "load_dataset",
    "read_svmlight",
    "stream_dataset",
]


def __getattr__(name: str) -> Any:
    """Import the reader on first use, as few runs need it."""
    if name != "read_svmlight":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from precbench.data.svmlight import read_svmlight

    return read_svmlight
