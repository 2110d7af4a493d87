"""Kinds of scaling, of numbers, of splits and of files; nothing slow is imported."""

from typing import Literal

Scaling = Literal["none", "standardise", "unit", "unit-norm", "standardise-unit-norm"]
# Of the stored rows
Dtype = Literal["float64", "float32"]
SplitKind = Literal["random", "kfold", "time", "provided", "none"]
# Of files that are read whole
Format = Literal["svmlight", "csv", "tsv", "parquet", "xlsx", "npz"]
# Of files that are read block by block, in any order
StreamFormat = Literal["svmlight", "npy"]
# Suffixes of the lists that are written
LIST_SUFFIXES = (".csv", ".xlsx", ".parquet")
