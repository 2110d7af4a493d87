"""Random numbers keyed by their purpose, never by the order of calls."""

# A seed follows from names and numbers alone (experiment seed, data set, split), so
# that neither another solver nor another number of workers changes it. Recorded results
# depend on these hashes.

import hashlib
import json
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray


def trial_seed(*key: int | str) -> int:
    """Return the 32-bit seed of a trial or of its split, from the key as JSON."""
    return int.from_bytes(hashlib.sha256(json.dumps(key).encode()).digest()[:4], "big")


def generator(*key: Hashable) -> np.random.Generator:  # seeded by the key
    return np.random.Generator(np.random.PCG64(_seed_sequence(key)))


def legacy_generator(*key: Hashable) -> np.random.RandomState:
    # for splits of scikit-learn
    return np.random.RandomState(np.random.MT19937(_seed_sequence(key)))


def data_generator(name: str) -> np.random.Generator:
    # for generated data, seeded by `name`
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(_digest((name,))[:16], "little"))
    )


def uniforms(rows: NDArray[np.int64], *key: Hashable) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each row number, independent of the other rows."""
    # Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014:
    # SplitMix64 gives the n-th number without the numbers before. All constants are
    # from there. n steps at once, modulo 2**64
    z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    # the seed: 8 bytes of the hash of the key
    z += np.frombuffer(_digest(key)[:8], dtype="<u8")
    # mix the bits, in three lines
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    # keep 53 bits, as many as a float64 has
    z = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
    return z.astype(np.float64) * 2.0**-53


def _seed_sequence(key: tuple[Hashable, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence(int.from_bytes(_digest(key), "little"))


def _digest(key: tuple[Hashable, ...]) -> bytes:  # 32 bytes
    return hashlib.sha256("/".join(map(str, key)).encode()).digest()
