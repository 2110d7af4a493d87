"""The bits of every seed, and of the weights of each solver that promises them."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from precbench.core.seeds import (
    data_generator,
    generator,
    legacy_generator,
    trial_seed,
    uniforms,
)
from precbench.data.cards.catalogue import find_card
from precbench.solvers import CuttingPlane, ProjectedSubgradient
from tests import laws
from tests.bits import fingerprints
from tests.test_laws import LINEAR, MEMBERS, OWN

LAPACK = {
    *("ir-push", "pnorm-push-newton", "bbr", "bbr-pairs", "lcbr"),
    *("ftrl", "ftrl-prec@k", "ftrl-pauc", "logistic-regression", "linear-svm"),
}
EXPONENTIALS = {"pnorm-push", "rankboost"}
"""Bits that follow the exponential function of the C library."""
GOLDEN = {
    "perceptron-avg": "c0571957b6bc55b7",
    "perceptron-max": "877bae8d3c7f7dc5",
    "perceptron-best": "c0571957b6bc55b7",
    "sgd-avg": "b6bf9ce68acd3621",
    "sgd-max": "3f4b95993cb47417",
    "1pmb": "7e3fb5f0b39fa1bc",
    "2pmb": "27f77612f09dc05c",
    "cutting-plane": "dec0ec474529d7fc",
    "psg": "03745758fe7fc250",
    "oam": "d646f74910838382",
    "pgd": "aa35bb66189acb32",
    "adaoam": "4337814fbb5b6eff",
    "spam": "d89c64c908854c1e",
    "toppush": "8b588f9f6ecdb9fd",
    "toppush-k": "94ef41f0768e940f",
    "1pmb-pauc": "cc526bbada6cdbc8",
    "1pmb-auc": "487b72db542cf718",
    "1pmb-f1": "ba5764998a9882d2",
    "2pmb-pauc": "4cb43fcf7078202d",
    "2pmb-auc": "5bf52ea140b1b7de",
    "2pmb-f1": "420cd8807357535f",
    "sgd-ramp": "9436c6368715310d",
    "sgd-struct": "7e3fb5f0b39fa1bc",
    "oam-gradient": "1c03faa9bdc9d51d",
    "adaoam-ball": "9708fa21d56e2690",
    "spam-l1": "46a4b864a47b2c4f",
    "cutting-plane-pauc": "73d6c3ea541f3414",
    "cutting-plane-auc": "1f0e5ea56f6f4b22",
    "cutting-plane-best": "48b9581b771b07b6",
    "cutting-plane-f1": "606000676633c95a",
    "cutting-plane-at-least-k": "ef7e6975ea6c956a",
    "psg-prec@k": "94ff97df5ee9f824",
    "psg-f1": "fff021f2500c0af4",
    "data margin": "bd29d8e79f97d9fe",
}

_RISKS = {
    **{name: {"objective": name} for name in ("pauc", "auc", "f1")},
    "at-least-k": {"at_least_k": True},
}


def problem(stored=np.float64):
    """Return the solvers whose arithmetic is their own, and what they are fitted to.

    The values of the rows are of float32, which may store them.
    """
    grid = np.arange(240)[:, None] * 7919 + np.arange(13) * 104729
    X = (grid % 1009 - 504) / 256.0
    X = X.astype(stored)
    y = np.where(X[:, 0] - X[:, 2] + X[:, 4] + X[::-1, 5] > 2, 1, -1)
    thin = sparse.csr_matrix(np.where(grid % 3, 0.0, X))
    solvers = {
        name: MEMBERS[name]() for name in LINEAR if name in OWN and name not in LAPACK
    }
    solvers |= {
        f"cutting-plane-{name}": CuttingPlane(**risk) for name, risk in _RISKS.items()
    }
    solvers |= {
        f"psg-{n}": ProjectedSubgradient(n, radius=0.5) for n in ("prec@k", "f1")
    }
    quick = {
        name: laws.quick(lambda solver=solver: solver)
        for name, solver in solvers.items()
    }
    return quick, (X, thin), y, find_card("margin").model_copy(update={"rows": 300})


@pytest.mark.promise("R8")
@pytest.mark.parametrize("stored", [np.float64, np.float32])
def test_the_same_bits_on_every_machine(stored):
    found = fingerprints(*problem(stored))
    assert {
        name: bits for name, bits in found.items() if name not in EXPONENTIALS
    } == GOLDEN


@pytest.mark.promise("R8")
def test_the_same_bits_with_an_old_cpu(figure):
    """With its BLAS kernels, with two threads, and without NumPy's extensions."""
    extensions = " ".join(np._core._multiarray_umath.__cpu_dispatch__)
    old = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": extensions}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.bits"],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"} | old,
        input=pickle.dumps(problem()),
        stdout=subprocess.PIPE,
        check=True,
    )
    expected = fingerprints(*problem())
    assert json.loads(done.stdout) == expected
    figure(f"{len(expected)} solvers with another core of the BLAS")


# --- recorded results depend on the bits of every seed ---


@pytest.mark.promise("R8")
def test_the_bits_of_every_scheme():
    assert (
        trial_seed(0, "letter", 3) == 172592944
        and trial_seed(1, "kdd08", "folds") == 4047799307
    )
    assert trial_seed(0, "é", 2, "x") == 2868167485
    split = generator(0, "letter", 3, "order")
    assert split.integers(2**32, size=2).tolist() == [723908541, 3607651089]
    assert generator("é").random() == 0.049855712470644464
    legacy = legacy_generator(7, "letter", 0, "random")
    assert legacy.randint(0, 2**31 - 1, size=2).tolist() == [984363542, 755409792]
    assert data_generator("margin").integers(2**32, size=2).tolist() == [
        4218941790,
        3208356027,
    ]
    assert uniforms(np.array([0, 1, 2, 10**12]), 0, "test").tolist() == [
        0.24063736945870906,
        0.7346927475664591,
        0.021874732819458398,
        0.525934572177351,
    ]
