"""Changes at random to files of every untrusted kind, as bytes or in the parts they
consist of.
"""

import contextlib
import io
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

TOKENS = [
    *(
        b"",
        b"\0",
        b"-1",
        b"0",
        b"1",
        b"2147483647",
        b"2147483648",
        b"9223372036854775808",
    ),
    *(
        b"1e308",
        b"1e309",
        b"-1e-400",
        b"5e-324",
        b"nan",
        b"inf",
        b"0x10",
        b"1_0",
        b"9" * 400,
    ),
    *(
        b"\n",
        b"\r\n",
        b"\r",
        b",",
        b"\t",
        b" ",
        b":",
        b"#",
        b'"',
        b'""',
        b"'",
        b"\xef\xbb\xbf",
    ),
    *(
        b"\xff\xfe",
        b"\xc3\x28",
        b"qid:1",
        b"true",
        b"2024-01-01",
        b"[",
        b"{",
        b"\\",
        b"\x1b[31m",
    ),
]
VALUES = [
    *(
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
    ),
    *([], [[]], [None], {}, {"a": 1}, [1, 2], "x" * 300, "../x", "ok", "nan", 1.5e300),
]
WORDS = ["a", "b", "é", "", "1", "1e3", "nan", "-", "TRUE", " 2", "x" * 300, "\x1b[2J"]


def changed_bytes(rng: random.Random, content: bytes) -> bytes:
    """Replace, insert or remove slices in up to four places, or cut the end off."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, other = rng.randrange(len(changed) + 1), rng.randrange(len(changed) + 1)
        length = rng.choice([0, 1, 1, 2, 8, 64])
        copied = bytes(changed[other : other + length])
        new = rng.choice(
            [b"", copied, rng.randbytes(1), *(rng.choice(TOKENS) for _ in range(2))]
        )
        changed[at : at + length] = new
    return bytes(
        changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.1 else changed
    )


def changed_json(rng: random.Random, value: Any) -> Any:
    """Replace, remove or add one value somewhere in a tree."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
        name = rng.choice(list(items))
        match rng.randrange(8):
            case 0:
                del items[name]
            case 1:
                items[rng.choice(["x", 99, name])] = rng.choice(VALUES)
            case _:
                items[name] = changed_json(rng, items[name])
        return items if isinstance(value, dict) else list(items.values())
    return rng.choice(VALUES)


def changed_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Change values, the type or the shape, if that can be done."""
    kinds = ["f4", "f2", "i8", "u1", "c16", "?", "M8[ns]", "U5", "S3", ">f8", "O"]
    special = [np.nan, np.inf, -np.inf, 1e308, 5e-324, -1, 0, 2**31 - 1, 2**40]

    def with_special() -> np.ndarray:
        changed = array.copy()
        changed.flat[rng.randrange(changed.size)] = rng.choice(special)
        return changed

    changes: list[Callable[[], np.ndarray]] = [
        lambda: array.astype(rng.choice(kinds)),
        lambda: array.reshape(rng.choice([(-1,), (1, -1), (-1, 1), (1, -1, 1)])),
        lambda: array[rng.choice([slice(0), slice(1, None), slice(-1), ...])],
        lambda: np.concatenate([array, array]),
        lambda: np.resize(array, (rng.randrange(4), rng.randrange(4))),
        with_special,
        with_special,
    ]
    failures = (ValueError, TypeError, IndexError, RuntimeError, OverflowError)
    with np.errstate(all="ignore"), contextlib.suppress(*failures):
        return rng.choice(changes)()
    return array


def changed_npz(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of an archive, or an array in it."""
    if rng.random() < 0.3:
        return changed_bytes(rng, content)
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    for name in rng.sample(list(arrays), min(rng.randint(1, 2), len(arrays))):
        if name == "description" and rng.random() < 0.9:
            arrays[name] = np.array(
                json.dumps(changed_json(rng, json.loads(str(arrays[name]))))
            )
        elif rng.random() < 0.1:
            arrays.pop(name)
        else:
            arrays[name] = changed_array(rng, arrays[name])
    arrays = arrays or {"x": np.zeros(1)}
    stream = io.BytesIO()
    rng.choice([np.savez, np.savez, np.savez, np.savez_compressed])(stream, **arrays)
    return stream.getvalue()


def changed_table(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of a Parquet file, or write it with columns of other types."""
    if rng.random() < 0.5:
        return changed_bytes(rng, content)
    table = pd.read_parquet(io.BytesIO(content))
    n_rows = len(table)
    odd: list[Callable[[], Any]] = [
        lambda: rng.choice(WORDS),
        lambda: rng.choice([None, 1.0, float("inf"), float("nan"), 1e308]),
        lambda: rng.choice([b"\0", b"1"]),
        lambda: [1, 2],
        lambda: {"a": 1},
        lambda: Decimal(rng.choice(["1.5", "-2"])),
        lambda: datetime(rng.randint(1900, 2100), 1, 1, tzinfo=rng.choice([None, UTC])),
        lambda: rng.choice([True, False, None]),
        lambda: rng.choice([2**63 - 1, -5]),
    ]
    make, name = rng.choice(odd), rng.choice([*table.columns, "new", "é", ""])
    table[name] = pd.Series([make() for _ in range(n_rows)])
    with contextlib.suppress(TypeError):  # lists and mappings have no categories
        if rng.random() < 0.2:
            table[name] = table[name].astype("category")
    stream = io.BytesIO()
    table.iloc[: rng.choice([n_rows, n_rows, 1, 0])].to_parquet(stream, index=False)
    return stream.getvalue()


def changed_json_file(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of a JSON file, or up to three values in it."""
    if rng.random() < 0.3:
        return changed_bytes(rng, content)
    value = json.loads(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        value = changed_json(rng, value)
    return json.dumps(value).encode()
