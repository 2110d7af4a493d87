"""Random numbers keyed by their purpose, never by the order of calls.

A seed follows from names and numbers alone (experiment seed, data set, split), so that
neither another solver nor another number of workers changes it. Recorded results depend
on these hashes.
"""

import hashlib
import json
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray


def trial_seed(*key: int | str) -> int:
    """Return the 32-bit seed of a trial or of its split, from the key as JSON."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def generator(*key: Hashable) -> np.random.Generator:
    """Return a generator seeded by a key."""
    return np.random.Generator(np.random.PCG64(_seed_sequence(key)))


def legacy_generator(*key: Hashable) -> np.random.RandomState:
    """Return a generator seeded by a key, of the kind that scikit-learn takes."""
    return np.random.RandomState(np.random.MT19937(_seed_sequence(key)))


def data_generator(name: str) -> np.random.Generator:
    """Return a generator for generated data, seeded by their name."""
    digest = _digest((name,))
    seed = int.from_bytes(digest[:16], "little")
    return np.random.Generator(np.random.PCG64(seed))


def uniforms(rows: NDArray[np.int64], *key: Hashable) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each row number, independent of the other rows.

    SplitMix64 gives the n-th number of a sequence without the numbers before. The
    constants are those of Steele, Lea, Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014. Integers are modulo 2**64.
    """
    seed = np.frombuffer(_digest(key)[:8], dtype="<u8")
    gamma = np.uint64(0x9E3779B97F4A7C15)
    # The state after n steps is seed + n * gamma.
    z = rows.astype(np.uint64) * gamma
    z += seed
    # Its bits are mixed.
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    # A float64 has 53 bits.
    high_bits = z >> np.uint64(11)
    return high_bits.astype(np.float64) * 2.0**-53


def _seed_sequence(key: tuple[Hashable, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence(int.from_bytes(_digest(key), "little"))


def _digest(key: tuple[Hashable, ...]) -> bytes:
    """Return 32 bytes that follow from the text of a key."""
    text = "/".join(map(str, key))
    return hashlib.sha256(text.encode()).digest()
