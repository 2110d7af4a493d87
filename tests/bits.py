"""The bits of fitted weights, also as a program that imports little."""

import hashlib
import json
import pickle
import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from precbench.data.cards.card import Card
from precbench.data.cards.generated import generate


class Problem(NamedTuple):
    """What has the same bits everywhere: fitted solvers, and generated data."""

    solvers: dict[str, Any]
    matrices: tuple[Any, ...]  # each solver is fitted to each of them
    y: Any
    card: Card


def fingerprints(problem):
    """Return a hash of the weights of each linear solver, and of the card's data."""
    hashes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, solver in problem.solvers.items():
            fits = [clone(solver).fit(X, problem.y) for X in problem.matrices]
            hashes[name] = _fingerprint(*map(_weights, fits))
    hashes["data margin"] = _fingerprint(generate(problem.card).X)
    return hashes


def _weights(solver):
    """Return the weights of a solver, with its intercept if it has one."""
    return np.append(solver.coef_, getattr(solver, "intercept_", []))


def _fingerprint(*arrays):
    """Return 16 digits of a hash of the bits of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.astype("<f8").tobytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    problem = Problem(*pickle.load(sys.stdin.buffer))
    print(json.dumps(fingerprints(problem)))
