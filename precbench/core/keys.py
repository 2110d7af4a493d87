"""Keys of descriptions, equal for equal descriptions on any machine."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def key_of(description: Mapping[str, Any]) -> str:
    """Return the sha256 of a description as canonical JSON."""
    return hashlib.sha256(canonical_json(description)).hexdigest()


def canonical_json(value: Any) -> bytes:
    """Return equal bytes for equal values."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False
    ).encode()
