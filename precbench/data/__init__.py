"""Data sets: cards, files, parsing, splits and scaling."""

from precbench.data.cards.load import load_dataset
from precbench.data.cards.registry import DATASETS, find_card
from precbench.data.dataset import Dataset
from precbench.data.stream.files import open_stream
from precbench.data.stream.row_stream import RowStream, StreamedDataset, stream_dataset
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
