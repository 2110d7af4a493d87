"""Changes at random to files of every untrusted kind, as bytes or in their parts."""

import contextlib
import io
import json
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

NUMBERS = [
    b"",
    b"\0",
    b"-1",
    b"0",
    b"1",
    b"2147483647",
    b"2147483648",
    b"9223372036854775808",
    b"1e308",
    b"1e309",
    b"-1e-400",
    b"5e-324",
    b"nan",
    b"inf",
    b"0x10",
    b"1_0",
    b"9" * 400,
]
SEPARATORS = [b"\n", b"\r\n", b"\r", b",", b"\t", b" ", b":", b"#", b'"', b'""', b"'"]
OTHERS = [
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3\x28",
    b"qid:1",
    b"true",
    b"2024-01-01",
    b"[",
    b"{",
    b"\\",
    b"\x1b[31m",
]
TOKENS = [*NUMBERS, *SEPARATORS, *OTHERS]  # that are put into any file
JSON_SCALARS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    10**400,
    0.5,
    1e308,
    -1e-320,
    "",
    "a",
    "\0",
    "1",
]
JSON_TREES = [[], [[]], [None], {}, {"a": 1}, [1, 2]]
JSON_VALUES = [*JSON_SCALARS, *JSON_TREES, "x" * 300, "../x", "ok", "nan", 1.5e300]
WORDS = ["a", "b", "é", "", "1", "1e3", "nan", "-", "TRUE", " 2", "x" * 300, "\x1b[2J"]
ARRAY_TYPES = ["f4", "f2", "i8", "u1", "c16", "?", "M8[ns]", "U5", "S3", ">f8", "O"]
ARRAY_VALUES = [np.nan, np.inf, -np.inf, 1e308, 5e-324, -1, 0, 2**31 - 1, 2**40]
ARRAY_CHANGES = ["type", "shape", "slice", "twice", "size", "value", "value"]
COLUMN_KINDS = [
    "word",
    "float",
    "bytes",
    "list",
    "mapping",
    "decimal",
    "date",
    "truth",
    "integer",
]


def changed_bytes(rng: random.Random, content: bytes) -> bytes:
    """Replace, insert or remove slices in up to four places, or cut the end off."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(changed) + 1)
        start_of_copy = rng.randrange(len(changed) + 1)
        length = rng.choice([0, 1, 1, 2, 8, 64])
        copied = bytes(changed[start_of_copy : start_of_copy + length])
        byte = rng.randbytes(1)
        token = rng.choice(TOKENS)
        other_token = rng.choice(TOKENS)
        new = rng.choice([b"", copied, byte, token, other_token])
        changed[start : start + length] = new
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)


def changed_json(rng: random.Random, value: Any) -> Any:
    """Replace, remove or add one value somewhere in a tree."""
    is_tree = isinstance(value, (dict, list)) and len(value) > 0
    if not is_tree or rng.random() >= 0.9:
        return rng.choice(JSON_VALUES)
    items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    name = rng.choice(list(items))
    change = rng.randrange(8)
    if change == 0:
        del items[name]
    elif change == 1:
        new = rng.choice(JSON_VALUES)
        items[rng.choice(["x", 99, name])] = new
    else:
        items[name] = changed_json(rng, items[name])
    return items if isinstance(value, dict) else list(items.values())


def changed_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Change values, the type or the shape, if that can be done."""
    change = rng.choice(ARRAY_CHANGES)
    failures = (ValueError, TypeError, IndexError, RuntimeError, OverflowError)
    with np.errstate(all="ignore"), contextlib.suppress(*failures):
        match change:
            case "type":
                return array.astype(rng.choice(ARRAY_TYPES))
            case "shape":
                return array.reshape(rng.choice([(-1,), (1, -1), (-1, 1), (1, -1, 1)]))
            case "slice":
                return array[rng.choice([slice(0), slice(1, None), slice(-1), ...])]
            case "twice":
                return np.concatenate([array, array])
            case "size":
                return np.resize(array, (rng.randrange(4), rng.randrange(4)))
            case "value":
                changed = array.copy()
                value = rng.choice(ARRAY_VALUES)
                changed.flat[rng.randrange(changed.size)] = value
                return changed
    return array


def changed_npz(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of an archive, or an array in it."""
    if rng.random() < 0.3:
        return changed_bytes(rng, content)
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    n_changes = min(rng.randint(1, 2), len(arrays))
    for name in rng.sample(list(arrays), n_changes):
        if name == "description" and rng.random() < 0.9:
            description = changed_json(rng, json.loads(str(arrays[name])))
            arrays[name] = np.array(json.dumps(description))
        elif rng.random() < 0.1:
            arrays.pop(name)
        else:
            arrays[name] = changed_array(rng, arrays[name])
    if not arrays:
        arrays = {"x": np.zeros(1)}
    stream = io.BytesIO()
    save = rng.choice([np.savez, np.savez, np.savez, np.savez_compressed])
    save(stream, **arrays)
    return stream.getvalue()


def value_of_kind(rng: random.Random, kind: str) -> Any:
    """Return a value at random, of one of `COLUMN_KINDS`."""
    match kind:
        case "word":
            return rng.choice(WORDS)
        case "float":
            return rng.choice([None, 1.0, float("inf"), float("nan"), 1e308])
        case "bytes":
            return rng.choice([b"\0", b"1"])
        case "list":
            return [1, 2]
        case "mapping":
            return {"a": 1}
        case "decimal":
            return Decimal(rng.choice(["1.5", "-2"]))
        case "date":
            year = rng.randint(1900, 2100)
            return datetime(year, 1, 1, tzinfo=rng.choice([None, UTC]))
        case "truth":
            return rng.choice([True, False, None])
    return rng.choice([2**63 - 1, -5])


def changed_table(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of a Parquet file, or write it with a column of another type."""
    if rng.random() < 0.5:
        return changed_bytes(rng, content)
    table = pd.read_parquet(io.BytesIO(content))
    n_rows = len(table)
    kind = rng.choice(COLUMN_KINDS)
    name = rng.choice([*table.columns, "new", "é", ""])
    table[name] = pd.Series([value_of_kind(rng, kind) for _ in range(n_rows)])
    with contextlib.suppress(TypeError):  # lists and mappings have no categories
        if rng.random() < 0.2:
            table[name] = table[name].astype("category")
    n_written = rng.choice([n_rows, n_rows, 1, 0])
    stream = io.BytesIO()
    table.iloc[:n_written].to_parquet(stream, index=False)
    return stream.getvalue()


def changed_json_file(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of a JSON file, or up to three values in it."""
    if rng.random() < 0.3:
        return changed_bytes(rng, content)
    value = json.loads(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        value = changed_json(rng, value)
    return json.dumps(value).encode()
