"""Cards of data sets, ``datasets/NAME.yaml``: sources, format and expected sizes."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from precbench.core.yaml.document import load
from precbench.core.yaml.models import Items, Section, at, matching, refuse, validated

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
        if self.packing in ("zip", "tar.gz") and self.member is None:
            refuse([(("member",), f"is missing: which file of the {self.packing}")])
        if self.packing not in ("zip", "tar.gz") and self.member is not None:
            refuse(
                [(("member",), f"has no meaning for {self.packing}: it holds one file")]
            )
        if (self.packing == "tar.gz") != (self.max_unpacked_bytes is not None):
            refuse([(("max_unpacked_bytes",), "is for tar.gz, which needs it")])
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
    label_column: PositiveInt | None = None  # csv, from 1
    separator: Literal["comma", "blanks"] = "comma"  # csv
    # csv, from 1; None: all but the label
    feature_columns: Items[PositiveInt] | None = None
    positive: str | int | float | None = None  # label of the positive class, as printed
    generator: Literal["counterexample", "margin", "signal"] | None = None
    # margin of ``generator: margin``
    gamma: Annotated[float, Field(gt=0, lt=2)] | None = None
    # Fraction of the variance of ``generator: signal`` that no linear function
    # explains.
    non_linear: Annotated[float, Field(ge=0, le=1)] | None = None
    # positives, and as many negatives, that swap labels
    swapped: Annotated[int, Field(ge=0)] = 0
    rows: PositiveInt
    features: PositiveInt
    positives: PositiveInt
    # the first rows are the provided training set
    train_rows: PositiveInt | None = None
    scaling: Literal["standardise", "unit", "none"]  # recommended
    licence: str
    # to accept before the files are fetched from their addresses
    terms: str | None = None
    citation: str
    used_by: Items[Use] = ()
    note: str = ""  # decisions and their reasons
    stand_in: StandIn | None = None  # not for synthetic data

    @property
    def fetch_command(self) -> str:
        """The command that downloads the files."""
        command = f"precbench data fetch {self.name}"
        return command if self.terms is None else f"{command} --accept-terms"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Refuse missing keys, keys without meaning, and wrong counts."""
        is_synthetic = self.format == "synthetic"
        kind = self.generator if is_synthetic and self.generator else self.format
        is_needed = {  # whether a key is needed; otherwise it has no meaning
            "files": not is_synthetic,
            "positive": not is_synthetic,
            "stand_in": not is_synthetic,
            "label_column": self.format == "csv",
            "generator": is_synthetic,
            "gamma": self.generator == "margin",
            "non_linear": self.generator == "signal",
        }
        wrong_keys = []
        for field, needed in is_needed.items():
            is_given = getattr(self, field) not in (None, ())
            if needed and not is_given:
                wrong_keys.append(((field,), "is missing"))
            if is_given and not needed:
                wrong_keys.append(((field,), f"has no meaning for {kind}"))
        refuse(wrong_keys)
        wrong_counts = []
        columns = self.feature_columns
        if columns is not None and len(columns) != self.features:
            text = (
                f"lists {len(columns)} columns, but the card has {self.features}"
                " features"
            )
            wrong_counts.append((("feature_columns",), text))
        if self.positives >= self.rows:
            text = f"{self.positives} positives of {self.rows} rows leave no negatives"
            wrong_counts.append((("positives",), text))
        refuse(wrong_counts)
        return self


def read_card(path: Path) -> Card:
    """Return the checked card of ``NAME.yaml``.

    The error has one line for each mistake.
    """
    document = load(path)
    card = validated(document, Card)  # checks the types and rules of the keys
    if card.name != path.stem:
        # With `at`, the error names the line of the key `name`.
        raise document.refusal(
            at(("name",), [f"should be the file's name, {path.stem!r}"])
        )
    return card
