"""The card of a data set: its sources, its format, and the sizes that parsing must give.

A card is a YAML file in ``datasets/``, named after its data set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from precbench.yaml.document import load
from precbench.yaml.models import Items, Section, at, matching, refuse, validated

# A name becomes part of a path: no separator, no leading dot, ASCII only.
PlainName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*",
        "should hold letters, digits, '.', '-' and '_' only, the first a letter or digit",
    ),
]
Address = Annotated[str, matching(r"https://.+", "an official address must be https")]
Sha256 = Annotated[str, matching(r"[0-9a-f]{64}", "should be 64 lower-case hexadecimal digits")]
Md5 = Annotated[str, matching(r"[0-9a-f]{32}", "should be 32 lower-case hexadecimal digits")]


class File(Section):
    """One file as its source serves it.

    Attributes
    ----------
    name : str
    urls : tuple of str
        Official addresses, https only, in the order to be tried.
    sha256, md5 : str or None
        Published checksums. A file without any is checked by its rows, features and positives.
    bytes : int or None
        Exact size, when known.
    max_bytes : int or None
        Largest size to accept, when the exact one is not known.
    """

    name: PlainName
    urls: Items[Address] = ()
    sha256: Sha256 | None = None
    md5: Md5 | None = None
    bytes: PositiveInt | None = None
    max_bytes: PositiveInt | None = None

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.bytes is None) == (self.max_bytes is None):
            refuse(at((), ["needs either bytes or max_bytes"]))
        return self

    @property
    def limit(self) -> int:
        """Largest size to accept, in bytes."""
        return self.bytes or self.max_bytes or 0

    @property
    def has_checksum(self) -> bool:
        """Whether a checksum is published."""
        return self.sha256 is not None or self.md5 is not None


class Use(Section):
    """How a paper used the data set."""

    paper: str
    how: str


class StandIn(Section):
    """Parameters of the synthetic substitute.

    Attributes
    ----------
    density : float
        Fraction of non-zero values.
    noise : float
        Standard deviation of the label noise, the linear signal having 1.
    """

    density: Annotated[float, Field(gt=0, le=1)]
    noise: Annotated[float, Field(ge=0)]


class Card(Section):
    """A data set: sources, format and sizes.

    Attributes
    ----------
    name, title : str
        The key in ``DATASETS``, and the name in tables and plots.
    folder : str
        Folder of the files in a cache or a mirror.
    format : {"svmlight", "csv", "kdd08", "ppi", "synthetic"}
    files : tuple of File
        Their rows are joined in this order.
    label_column : int or None
        Column of the label, counted from 1 (csv).
    separator : {"comma", "blanks"}
        Separator of the values in a row (csv).
    feature_columns : tuple of int or None
        Columns that become features, counted from 1 (csv); None means all but the label's.
    positive : str or number or None
        The label of the positive class, as printed in the files.
    generator : {"counterexample", "margin", "signal"} or None
        Generator of a synthetic data set.
    gamma : float or None
        The strong margin of ``generator: margin``.
    non_linear : float or None
        Fraction of the variance of the signal of ``generator: signal`` that no linear function
        sees.
    swapped : int
        Number of positives, and of negatives, whose labels are then swapped.
    rows, features, positives : int
    train_rows : int or None
        The first rows form the provided training set.
    scaling : {"standardise", "unit", "none"}
        Recommended scaling.
    licence, citation : str
    used_by : tuple of Use
    note : str
        Decisions and their reasons.
    stand_in : StandIn or None
        None for synthetic data, which are never missing.
    """

    name: PlainName
    title: str
    folder: PlainName
    format: Literal["svmlight", "csv", "kdd08", "ppi", "synthetic"]
    files: Items[File] = ()
    label_column: PositiveInt | None = None
    separator: Literal["comma", "blanks"] = "comma"
    feature_columns: Items[PositiveInt] | None = None
    positive: str | int | float | None = None
    generator: Literal["counterexample", "margin", "signal"] | None = None
    gamma: Annotated[float, Field(gt=0, lt=2)] | None = None
    non_linear: Annotated[float, Field(ge=0, le=1)] | None = None
    swapped: Annotated[int, Field(ge=0)] = 0
    rows: PositiveInt
    features: PositiveInt
    positives: PositiveInt
    train_rows: PositiveInt | None = None
    scaling: Literal["standardise", "unit", "none"]
    licence: str
    citation: str
    used_by: Items[Use] = ()
    note: str = ""
    stand_in: StandIn | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        needed = {
            "files": self.format != "synthetic",
            "positive": self.format != "synthetic",
            "stand_in": self.format != "synthetic",
            "label_column": self.format == "csv",
            "generator": self.format == "synthetic",
            "gamma": self.generator == "margin",
            "non_linear": self.generator == "signal",
        }
        refuse(
            ((field,), "is missing" if wanted else "has no meaning here")
            for field, wanted in needed.items()
            if (getattr(self, field) not in (None, ())) != wanted
        )
        n_columns = self.features if self.feature_columns is None else len(self.feature_columns)
        checks = (
            (
                ("feature_columns",),
                n_columns == self.features,
                f"lists {n_columns} columns, but the card has {self.features} features",
            ),
            (
                ("positives",),
                self.positives < self.rows,
                f"{self.positives} positives of {self.rows} rows leave no negatives",
            ),
        )
        refuse((place, text) for place, holds, text in checks if not holds)
        return self


def read_card(path: Path) -> Card:
    """Read ``NAME.yaml``; an `InputError` has one line for each mistake in it."""
    document = load(path)
    card = validated(document, Card)
    if card.name != path.stem:
        raise document.refusal(at(("name",), [f"should be the file's name, {path.stem!r}"]))
    return card
