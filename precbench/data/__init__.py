"""Data sets: cards, files, parsing, splits and scaling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from precbench.data.cards.load import load_dataset
from precbench.data.cards.registry import DATASETS, find_card
from precbench.data.dataset import Dataset
from precbench.data.stream.row_stream import RowStream, StreamedDataset, stream_dataset

if TYPE_CHECKING:
    from precbench.data.stream.files import open_stream
    from precbench.data.svmlight import read_svmlight

__all__ = [
    "DATASETS",
    "Dataset",
    "RowStream",
    "StreamedDataset",
    "find_card",
    "load_dataset",
    "open_stream",
    "read_svmlight",
    "stream_dataset",
]

_READERS = {"open_stream": "stream.files", "read_svmlight": "svmlight"}  # imported on first use


def __getattr__(name: str) -> Any:  # called for names that are not in the module yet
    if name not in _READERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_READERS[name]}"), name)
