"""Cards of data sets, ``datasets/NAME.yaml``: sources, format and expected sizes."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from precbench.core.yaml.document import load
from precbench.core.yaml.models import (
    Items,
    Problem,
    Section,
    at,
    matching,
    refuse,
    validated,
)

# A name becomes part of a path: no separator, no leading dot, ASCII only.
PlainName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*",
        "should hold letters, digits, '.', '-' and '_' only, the first a letter or"
        " digit",
    ),
]
Address = Annotated[str, matching(r"https://.+", "an official address must be https")]
Sha256 = Annotated[
    str, matching(r"[0-9a-f]{64}", "should be 64 lower-case hexadecimal digits")
]
Md5 = Annotated[
    str, matching(r"[0-9a-f]{32}", "should be 32 lower-case hexadecimal digits")
]


Packing = Literal["gz", "bz2", "xz", "zip", "tar.gz"]


class Archive(Section):
    """A place where a file of a card is published in packed form."""

    url: Address
    packing: Packing
    member: str | None = None  # of a zip or tar.gz: the path of the file in it
    sha256: Sha256 | None = None  # of the archive
    md5: Md5 | None = None
    max_bytes: PositiveInt  # of the archive
    # A member of a tar.gz is read after all those before it.
    max_unpacked_bytes: PositiveInt | None = None

    @model_validator(mode="after")
    def _fits_its_packing(self) -> Self:
        """Refuse keys that the packing lacks, or has no use for."""
        holds_several_files = self.packing in ("zip", "tar.gz")
        has_member = self.member is not None
        if holds_several_files and not has_member:
            text = f"is missing: which file of the {self.packing}"
            refuse(at(("member",), [text]))
        if has_member and not holds_several_files:
            text = f"has no meaning for {self.packing}: it holds one file"
            refuse(at(("member",), [text]))
        has_bound = self.max_unpacked_bytes is not None
        if has_bound != (self.packing == "tar.gz"):
            refuse(at(("max_unpacked_bytes",), ["is for tar.gz, which needs it"]))
        return self

    @property
    def name(self) -> str:
        """The name of the archive, which is the end of its address."""
        return self.url.rsplit("/", 1)[-1]


class File(Section):
    """A file of a data set.

    Size and checksums are those of the file when it is unpacked.
    """

    name: PlainName
    urls: Items[Address] = ()  # of the file as it is, in the order to try
    archives: Items[Archive] = ()  # tried after `urls`, in this order
    sha256: Sha256 | None = None
    md5: Md5 | None = None
    bytes: PositiveInt | None = None
    max_bytes: PositiveInt | None = None  # if the exact size is not known

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.bytes is None) == (self.max_bytes is None):
            refuse(at((), ["needs exactly one of bytes and max_bytes"]))
        return self

    @property
    def limit(self) -> int:
        """The exact size, else the largest one allowed."""
        return self.bytes or self.max_bytes or 0

    @property
    def checksum(self) -> str | None:
        """The published checksum, if any.

        Without a checksum the parsed sizes are checked.
        """
        return self.sha256 or self.md5


class Use(Section):
    """How a paper uses the data set."""

    paper: str
    how: str


class StandIn(Section):
    """Synthetic rows in place of missing files."""

    density: Annotated[float, Field(gt=0, le=1)]  # fraction of non-zero values
    noise: Annotated[float, Field(ge=0)]  # standard deviation; that of the signal is 1


class Card(Section):
    """A data set: where its files are, how they are read, and what they hold."""

    name: PlainName
    title: str  # in tables and plots
    folder: PlainName  # in a cache or a mirror
    format: Literal["svmlight", "csv", "kdd08", "ppi", "synthetic"]
    files: Items[File] = ()  # their rows are joined in this order
    # Of csv; columns count from 1. Without `feature_columns`: all but the label.
    label_column: PositiveInt | None = None
    separator: Literal["comma", "blanks"] = "comma"
    feature_columns: Items[PositiveInt] | None = None
    positive: str | int | float | None = None  # label of the positive class, as printed
    generator: Literal["counterexample", "margin", "signal"] | None = None
    # Of ``generator: margin``: the margin
    gamma: Annotated[float, Field(gt=0, lt=2)] | None = None
    # Of ``generator: signal``: the fraction of the variance that no linear function
    # explains
    non_linear: Annotated[float, Field(ge=0, le=1)] | None = None
    # So many positives, and as many negatives, swap their labels.
    swapped: Annotated[int, Field(ge=0)] = 0
    rows: PositiveInt
    features: PositiveInt
    positives: PositiveInt
    # So many of the first rows are the provided training set.
    train_rows: PositiveInt | None = None
    scaling: Literal["standardise", "unit", "none"]  # recommended
    licence: str
    # To be accepted before the files are fetched from their addresses
    terms: str | None = None
    citation: str
    used_by: Items[Use] = ()
    note: str = ""  # decisions and their reasons
    stand_in: StandIn | None = None  # not for synthetic data

    @property
    def fetch_command(self) -> str:
        """The command that downloads the files."""
        command = f"precbench data fetch {self.name}"
        if self.terms is None:
            return command
        return f"{command} --accept-terms"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Refuse missing keys and keys without meaning, then wrong counts."""
        is_synthetic = self.format == "synthetic"
        refuse(
            [
                *self._check_key("files", is_needed=not is_synthetic),
                *self._check_key("positive", is_needed=not is_synthetic),
                *self._check_key("stand_in", is_needed=not is_synthetic),
                *self._check_key("label_column", is_needed=self.format == "csv"),
                *self._check_key("generator", is_needed=is_synthetic),
                *self._check_key("gamma", is_needed=self.generator == "margin"),
                *self._check_key("non_linear", is_needed=self.generator == "signal"),
            ]
        )
        refuse([*self._check_columns(), *self._check_positives()])
        return self

    def _check_key(self, key: str, *, is_needed: bool) -> list[Problem]:
        """Return the problem of a key that is missing, or given where not needed."""
        is_given = getattr(self, key) not in (None, ())
        if is_needed and not is_given:
            return at((key,), ["is missing"])
        if is_given and not is_needed:
            kind: str = self.format
            if self.format == "synthetic" and self.generator is not None:
                kind = self.generator
            return at((key,), [f"has no meaning for {kind}"])
        return []

    def _check_columns(self) -> list[Problem]:
        """Return the problem of feature columns, if they are not `features` many."""
        columns = self.feature_columns
        if columns is None or len(columns) == self.features:
            return []
        text = (
            f"lists {len(columns)} columns, but the card has {self.features} features"
        )
        return at(("feature_columns",), [text])

    def _check_positives(self) -> list[Problem]:
        """Return the problem of positives that leave no negatives."""
        if self.positives < self.rows:
            return []
        text = f"{self.positives} positives of {self.rows} rows leave no negatives"
        return at(("positives",), [text])


def read_card(path: Path) -> Card:
    """Return the card of ``NAME.yaml``, or raise with a line for each mistake."""
    document = load(path)
    card = validated(document, Card)
    if card.name != path.stem:
        text = f"should be the file's name, {path.stem!r}"
        raise document.refusal(at(("name",), [text]))
    return card
