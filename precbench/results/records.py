"""Records of trials, and what a run was asked for, as strict JSON."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, model_validator

from precbench.core.keys import key_of
from precbench.core.strict_json import Count, Fields, Number

SCHEMA = 1
SHARDS = "shards"  # folder of the shards in a folder of results
# Names that no experiment may have: in a folder of results they would be taken for the
# folder of the shards, or for the records of one experiment
RESERVED = (SHARDS, "trials")
# How a shard is written, as a regular expression: its number, and how many there are
SHARD = r"^([1-9]\d{0,3})/([1-9]\d{0,3})$"
Status = Literal[
    "ok", "skipped", "failed", "timeout", "crashed", "diverged", "interrupted"
]
STATUSES: tuple[str, ...] = get_args(Status)
HAVE_NUMBERS = ("ok", "diverged")
# Trials that ended like this run again in the next run
RETRIED = ("failed", "timeout", "crashed", "interrupted")

Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_NotNegative = Annotated[Number, Field(ge=0)]
_Scalar = bool | Annotated[int, Field(ge=-(2**63), lt=2**63)] | Number | None
_Value = _Scalar | str


class Record(Fields):
    """The record of a trial; without numbers it has no description and no arrays."""

    model_config = ConfigDict(extra="allow")

    key: Key
    status: Status
    experiment: str = ""
    dataset: str = ""
    title: str = ""
    stand_in: bool = False
    label: str = ""
    solver: str = ""
    split: Count = 0
    seed: Count = 0
    sweep: tuple[str, _Value] | None = None
    # What the numbers of the trial depend on; its hash is the key of the record
    description: dict[str, Any] = Field(default_factory=dict)
    reason: str = ""  # why there is no result
    before: str = ""  # how the trial ended last time
    warnings: list[str] = Field(default_factory=list)
    timing: str = ""  # "sequential" or "parallel"
    environment: str = ""  # id of the machine
    run: str = ""  # id of the run
    code: str = ""  # hash of the code that ran
    stopped: str = ""  # by which limit; "" if by none
    limit: dict[str, bool | Number | None] | None = None
    limit_passes: _NotNegative | None = None  # passes over the rows
    n_train: Count | None = None
    fitted: dict[str, _Scalar] = Field(default_factory=dict)
    seconds: _NotNegative | None = None
    chosen: dict[str, _Value] = Field(default_factory=dict)
    tuning_seconds: _NotNegative | None = None
    arrays: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _require_complete(self) -> Self:
        """Require the hash of the description as key, and arrays where needed."""
        if self.description and key_of(self.description) != self.key:
            raise ValueError("key is not the hash of description")
        if self.status in HAVE_NUMBERS and not (self.description and self.arrays):
            raise ValueError(
                f"status is {self.status}, but description or arrays are empty"
            )
        return self

    @property
    def sweep_point(self) -> str:
        """The swept parameter and its value: ``k=0.25``; empty without a sweep."""
        if self.sweep is None:
            return ""
        name, value = self.sweep
        return f"{name}={value}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that the file has."""
        return self.model_dump(exclude_unset=True)


class Head(Fields):
    """What is read first, as a newer schema may have other fields."""

    version: Count = Field(alias="schema")


class Request(Fields):
    """What the last run of an experiment was asked to run."""

    keys: list[Key]
    started: Number = 0.0
    shards: list[Annotated[str, Field(pattern=SHARD)]] = Field(default_factory=list)
