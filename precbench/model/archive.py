"""The file of a model: one npz of plain arrays."""

import json
import os
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.files import replacing
from precbench.core.kinds import Scaling
from precbench.core.npz import pack, unpack
from precbench.core.strict_json import Fields, Number, checked
from precbench.data.preprocess import Scaler
from precbench.model.calibration import Calibration
from precbench.model.drift import Profile
from precbench.model.training_rows import TrainingRows
from precbench.solvers.others.members import Member, is_vector
from precbench.tables.encoding import Encoding

if TYPE_CHECKING:
    from precbench.model.model import Model

_SCHEMA = 1
_PARTS = ("scaler", "mean", "calibration", "rows")
_MEND = "fit and save the model again"


class _Description(Fields):
    solver: str
    params: dict[str, Any]
    intercept: Number
    scaling: Scaling
    encoding: dict[str, Any] | None
    about: dict[str, Any]
    profile: Profile | None
    trees: dict[str, Any] | None
    members: list[dict[str, Any]]


def write(model: "Model", path: str | os.PathLike[str]) -> None:
    """Write a model, whole or not at all; see `Model.save`."""
    described = {
        "schema": _SCHEMA,
        "solver": model.solver,
        "params": model.params,
        "intercept": model.intercept,
        "scaling": model.scaler.kind,
        "encoding": model.encoding and model.encoding.to_dict(),
        "about": model.about,
        "profile": model.profile and model.profile.model_dump(),
        "trees": model.trees and model.trees.described,
        "members": [
            {"name": m.name, "weight": m.weight, "trees": m.trees and m.trees.described}
            for m in model.members
        ],
    }
    # Parameters may be numbers of NumPy, which JSON writes as those of Python.
    text = np.array(json.dumps(described, default=methodcaller("tolist")))
    with replacing(Path(path)) as unfinished:
        unfinished.write_bytes(pack({**_arrays(model), "description": text}))


def _arrays(model: Any) -> dict[str, NDArray[Any]]:
    """Return arrays by their names in the file, such as ``coef`` or ``member0_coef``.

    `model` is a `Model`, or in `read` an object with its attributes.
    """
    # A model has its arrays as a member has, or is an ensemble, and only its members
    # have any.
    own = Member(
        name="",
        coef=model.coef,
        trees=model.trees,
        random_features=model.random_features,
    )
    arrays: dict[str, NDArray[Any]] = own.to_arrays()
    if model.mean is not None:
        arrays["mean"] = model.mean
    parts: dict[str, Any] = {"scaler": model.scaler}
    for i, member in enumerate(model.members):
        parts[f"member{i}"] = member
    if model.calibration is not None:
        parts["calibration"] = model.calibration
    if model.training_rows is not None:
        parts["rows"] = model.training_rows
    for part, holder in parts.items():
        for name, array in holder.to_arrays().items():
            arrays[f"{part}_{name}"] = array
    return arrays


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the attributes of the model in an untrusted file; see `Model.load`."""
    try:
        arrays = unpack(Path(path), kinds="fiU")
        # `encode` refuses what is not Unicode.
        described = json.loads(str(arrays.pop("description")).encode())
        schema = described["schema"]
        attributes = None
        if schema <= _SCHEMA:
            attributes = _attributes(checked(described, _Description), arrays)
            _require_all_used(arrays, attributes)
    except FileNotFoundError:
        raise InputError(
            f"there is no model {path}; run precbench fit FILE --save {path} to make"
            " the model"
        ) from None
    except Exception as error:  # a damaged file has many ways to fail
        cause = error.__cause__  # the error that `unpack` has met
        if isinstance(cause, (IsADirectoryError, PermissionError)):
            raise InputError(
                f"{path} cannot be read: {cause.strerror}; name a file that precbench"
                " fit has saved"
            ) from error
        raise InputError(
            f"{path} cannot be read as a model; name a file that precbench fit has"
            " saved, or fit and save the model again"
        ) from error
    if attributes is None:
        raise InputError(
            f"{path} was saved by a newer precbench (schema {schema}, where this"
            f" precbench knows {_SCHEMA}); update precbench"
        )
    return attributes


def _require_all_used(arrays: dict[str, NDArray], attributes: dict[str, Any]) -> None:
    """Require the arrays that a model with these attributes writes, and no others."""
    expected = _arrays(SimpleNamespace(**attributes))
    odd = sorted(arrays.keys() ^ expected.keys())
    if odd:
        raise ValueError(f"the array {odd[0]} does not fit; {_MEND}")


def _attributes(described: _Description, arrays: dict[str, NDArray]) -> dict[str, Any]:
    """Return the attributes of `Model`.

    Raise an error if the parts do not fit together; each part checks its own arrays.
    """
    parts = _by_part(arrays)
    curves = parts.get("calibration")
    rows = parts.get("rows")
    members = tuple(
        Member.from_arrays(parts[f"member{i}"], **member)
        for i, member in enumerate(described.members)
    )
    if members:
        own = Member("")  # has no arrays
        n_features = members[0].n_features
    else:
        own = Member.from_arrays(parts["own"], name="", trees=described.trees)
        n_features = own.n_features
    scaler = Scaler.from_arrays(described.scaling, parts["scaler"])
    encoding = Encoding.from_dict(described.encoding) if described.encoding else None
    mean = parts["mean"].get("")  # its name in the file is that of the part alone
    _require(n_features > 0, "the model has no features")
    for member in members:
        _require(member.n_features == n_features, "members have different features")
    if members:
        _require(not described.trees, "trees beside members would be unused")
    if own.trees:
        _require(not described.intercept, "an intercept beside trees would be unused")
    if encoding is not None:
        _require(encoding.n_features == n_features, "the encoding has other features")
    for name, vector in parts["scaler"].items():
        _require_whole(vector, n_features, f"the {name} of the scaler")
    _require(scaler.learns == (scaler.shift is not None), "the scaler's shift is odd")
    _require(scaler.learns == (scaler.scale is not None), "the scaler's scale is odd")
    if scaler.scale is not None:
        _require(bool((scaler.scale > 0).all()), "a scale is not above 0")
    # The mean is 0 of standardised rows, and unused by trees.
    is_without_mean = scaler.kind == "standardise" or own.trees is not None
    _require((mean is None) == is_without_mean, "the mean is missing, or unused")
    if mean is not None:
        _require_whole(mean, n_features, "the mean")
    if described.profile is not None:
        described.profile.check(encoding)
    return {
        "solver": described.solver,
        "params": described.params,
        "coef": own.coef,
        "scaler": scaler,
        "encoding": encoding,
        "about": described.about,
        "intercept": described.intercept,
        "trees": own.trees,
        "random_features": own.random_features,
        "members": members,
        "calibration": None if curves is None else Calibration.from_arrays(curves),
        "profile": described.profile,
        "training_rows": None if rows is None else TrainingRows.from_arrays(rows),
        "mean": mean,
    }


def _by_part(arrays: dict[str, NDArray]) -> dict[str, dict[str, NDArray]]:
    """Return the arrays of each part, which are named PART_NAME in the file.

    Arrays without a part in their names belong to the model itself, the part "own".
    """
    parts: dict[str, dict[str, NDArray]] = {"own": {}, "scaler": {}, "mean": {}}
    for full_name, array in arrays.items():
        part, _, name = full_name.partition("_")
        if part in _PARTS or part.startswith("member"):
            parts.setdefault(part, {})[name] = array
        else:
            parts["own"][full_name] = array
    return parts


def _require_whole(vector: NDArray, n_features: int, name: str) -> None:
    is_whole = is_vector(vector) and len(vector) == n_features
    _require(is_whole, f"{name} has no number for each feature")


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(f"the description does not fit the arrays: {fault}; {_MEND}")
