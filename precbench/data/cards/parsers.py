"""Parsers of card files; the arrays are checked against the card."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.data.cards.card import Card
from precbench.data.dataset import Arrays

# Columns count from 0.
PPI_COLUMNS = 162  # without the label
PPI_DROPPED = slice(20, 97)  # the 77 of the gene ontology; see the note of the card
KDD08_LABEL = 0
KDD08_PATIENT = 4

# Part of a data set's identity: raise it when equal files give other arrays.
VERSION = 1


def parse(card: Card, paths: Sequence[Path]) -> Arrays:
    """Return the rows in the files of a card; refuse other sizes than the card's.

    X is dense unless the format is sparse and at most half of the values are non-zero.
    """
    arrays = _PARSERS[card.format](card, paths)
    n_rows, n_features = arrays.X.shape
    n_positives = int(np.count_nonzero(arrays.y > 0))
    actual = (n_rows, n_features, n_positives)
    expected = (card.rows, card.features, card.positives)
    if actual != expected:
        files = ", ".join(str(path) for path in paths)
        raise InputError(
            f"{card.name}: the files hold {n_rows:,} rows, {n_features:,} features and"
            f" {n_positives:,} positives, but the card says {card.rows:,} rows,"
            f" {card.features:,} features and {card.positives:,} positives; give the"
            f" files of the card in place of {files}"
        )
    if isinstance(arrays.X, np.ndarray):  # the svmlight reader checks sparse ones
        is_finite = np.isfinite(arrays.X).all(axis=1)
        if not is_finite.all():
            row = np.argmin(is_finite) + 1  # the first that is not
            raise InputError(
                f"{card.name}: row {row} of the joined files holds a value"
                " that is not a finite number; get the files again"
            )
    return arrays


# Each parser takes a card and its files, and returns the arrays before they are
# checked.


def _svmlight(card: Card, paths: Sequence[Path]) -> Arrays:
    """Join the rows of several files, such as of a training and a test set."""
    from scipy.sparse import vstack

    from precbench.data.svmlight import dense_if_full, read_svmlight

    matrices = []
    labels = []
    for path in paths:
        X, y = read_svmlight(path, card.features)
        matrices.append(X)
        labels.append(y)
    joined = matrices[0]
    if len(matrices) > 1:
        joined = vstack(matrices, format="csr")
    y = _signs(np.concatenate(labels), card.positive)
    return Arrays(dense_if_full(joined), y)


def _csv(card: Card, paths: Sequence[Path]) -> Arrays:
    """Read files without a header: labels, and the features that the card names.

    A card that names none has all columns but the label as features.
    """
    assert card.label_column is not None
    label = card.label_column - 1  # cards count columns from 1
    separator = "," if card.separator == "comma" else None  # None: blanks

    def sign_of_text(text: str) -> float:
        return 1.0 if text == str(card.positive) else -1.0

    # Labels may be text.
    converters: dict[int | str, Callable[[str], float]] = {label: sign_of_text}
    table = np.concatenate([_table(path, separator, converters) for path in paths])
    if card.feature_columns is None:
        X = np.delete(table, label, axis=1)
    else:
        X = table[:, np.array(card.feature_columns) - 1]
    return Arrays(np.ascontiguousarray(X), table[:, label].copy())


def _kdd08(card: Card, paths: Sequence[Path]) -> Arrays:
    """Take features from the first file, labels and patients from the second.

    Patients are the groups of the rows.
    """
    X = _table(paths[0])
    info = _table(paths[1])
    if len(X) != len(info):
        raise InputError(
            f"{card.name}: {paths[0]} has {len(X):,} rows and {paths[1]} has"
            f" {len(info):,}, but row i of each must be about one candidate; get the"
            " two files again"
        )
    if info.shape[1] <= KDD08_PATIENT:
        raise InputError(
            f"{paths[1]}: expected at least {KDD08_PATIENT + 1} columns (label, ids,"
            f" patient), found {info.shape[1]}; get the file again"
        )
    _, groups = np.unique(info[:, KDD08_PATIENT], return_inverse=True)
    y = _signs(info[:, KDD08_LABEL], card.positive)
    return Arrays(X, y, groups=groups.astype(np.int64))


def _ppi(card: Card, paths: Sequence[Path]) -> Arrays:
    """Take labels from the last column, and drop features of the gene ontology."""
    tables = []
    for path in paths:
        table = _table(path, ",")
        n_columns = table.shape[1]
        if n_columns != PPI_COLUMNS + 1:
            raise InputError(
                f"{path}: expected {PPI_COLUMNS + 1} columns ({PPI_COLUMNS} features"
                f" and a label), found {n_columns}; fetch the file again with"
                " precbench data"
            )
        tables.append(table)
    joined = np.concatenate(tables)
    X = np.delete(joined[:, :PPI_COLUMNS], PPI_DROPPED, axis=1)
    return Arrays(
        np.ascontiguousarray(X), _signs(joined[:, PPI_COLUMNS], card.positive)
    )


_PARSERS = {"svmlight": _svmlight, "csv": _csv, "kdd08": _kdd08, "ppi": _ppi}


def _table(
    path: Path,
    separator: str | None = None,  # None: blanks
    converters: Mapping[int | str, Callable[[str], float]] | None = None,
) -> NDArray[np.float64]:
    """Return the numbers of a text file, always with rows and columns.

    `converters` read the text of some columns, by the number of the column.
    """
    try:
        return np.loadtxt(
            path, delimiter=separator, converters=converters, comments=None, ndmin=2
        )
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path}: not a table of numbers: {error}; get the file again"
        ) from error


def _signs(labels: NDArray[np.float64], positive: object) -> NDArray[np.float64]:
    return np.where(labels == positive, 1.0, -1.0)
