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
    # for numbers of NumPy
    text = np.array(json.dumps(described, default=methodcaller("tolist")))
    with replacing(Path(path)) as unfinished:
        unfinished.write_bytes(pack({**_arrays(model), "description": text}))


def _arrays(model: Any) -> dict[str, NDArray[Any]]:
    # of a `Model`; in `read` of its attributes Return the arrays of a model by names in
    # the file, such as ``coef`` or ``member0_coef``. empty if there are members
    own = Member("", model.coef, model.trees, model.random_features)
    parts: dict[str, dict[str, Any]] = {"scaler": model.scaler.to_arrays()}
    parts |= {
        f"member{i}": member.to_arrays() for i, member in enumerate(model.members)
    }
    parts |= {"calibration": model.calibration.to_arrays()} if model.calibration else {}
    parts |= {"rows": model.training_rows.to_arrays()} if model.training_rows else {}
    arrays = own.to_arrays() | ({} if model.mean is None else {"mean": model.mean})
    return arrays | {
        f"{part}_{name}": array
        for part, named in parts.items()
        for name, array in named.items()
    }


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the attributes of the model in an untrusted file; see `Model.load`."""
    try:
        arrays = unpack(Path(path), kinds="fiU")
        # must be Unicode
        described = json.loads(str(arrays.pop("description")).encode())
        # None: a newer schema, refused below
        schema, attributes = described["schema"], None
        if schema <= _SCHEMA:
            attributes = _attributes(checked(described, _Description), arrays)
            # in only one
            if odd := arrays.keys() ^ _arrays(SimpleNamespace(**attributes)).keys():
                raise ValueError(
                    f"the array {min(odd)} does not fit; fit and save the model again"
                )
    except FileNotFoundError:
        raise InputError(
            f"there is no model {path}; run precbench fit FILE --save {path} to make"
            " the model"
        ) from None
    except Exception as error:  # a damaged file has many ways to fail
        cause = error.__cause__  # what `unpack` has met
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


def _attributes(described: _Description, arrays: dict[str, NDArray]) -> dict[str, Any]:
    """Return the attributes of `Model`.

    Raise an error if the parts do not fit together. Each part checks its own arrays,
    which are named PART_NAME in the file. Arrays without a part in their names belong
    to the model itself, here the part "own".
    """
    parts: dict[str, dict[str, NDArray]] = {"own": {}, "scaler": {}, "mean": {}}
    for full, array in arrays.items():
        part, _, name = full.partition("_")
        is_own = part not in _PARTS and not part.startswith("member")
        parts.setdefault("own" if is_own else part, {})[full if is_own else name] = (
            array
        )
    members = tuple(
        Member.from_arrays(parts[f"member{i}"], **member)
        for i, member in enumerate(described.members)
    )
    own = (
        Member("")
        if members
        else Member.from_arrays(parts["own"], name="", trees=described.trees)
    )
    # refuses several numbers
    [n_features] = {member.n_features for member in members or (own,)}
    scaler = Scaler.from_arrays(described.scaling, parts["scaler"])
    curves, rows = parts.get("calibration"), parts.get("rows")
    encoding = Encoding.from_dict(described.encoding) if described.encoding else None
    mean = parts["mean"].get("")  # the only array of this part, named "mean"
    vectors = [*parts["scaler"].values(), *([] if mean is None else [mean])]
    is_whole = (
        n_features > 0
        and not (members and described.trees)  # trees beside members would be unused
        # an intercept beside trees would be unused
        and not (own.trees and described.intercept)
        and all(is_vector(a) and len(a) == n_features for a in vectors)
        and (scaler.scale is None or (scaler.scale > 0).all())
        # No mean is stored where it is 0 (standardised) or unused (trees).
        and (mean is None) == (scaler.kind == "standardise" or own.trees is not None)
        and (encoding is None or encoding.n_features == n_features)
        # all or none
        and scaler.learns == (scaler.shift is not None) == (scaler.scale is not None)
    )
    if not is_whole:
        raise ValueError(
            "the description does not fit the arrays; fit and save the model again"
        )
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
