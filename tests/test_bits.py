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
from tests.bits import Problem, fingerprints
from tests.test_laws import LINEAR, MEMBERS, OWN

# Their bits follow LAPACK.
LAPACK = {
    "ir-push",
    "pnorm-push-newton",
    "bbr",
    "bbr-pairs",
    "lcbr",
    "ftrl",
    "ftrl-prec@k",
    "ftrl-pauc",
    "logistic-regression",
    "linear-svm",
}
# Their bits follow the exponential function of the C library.
EXPONENTIALS = {"pnorm-push", "rankboost"}
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


def own_solvers():
    """Return the solvers whose arithmetic is their own, small, by name."""
    solvers = {
        name: MEMBERS[name]() for name in LINEAR if name in OWN and name not in LAPACK
    }
    for objective in ("pauc", "auc", "f1"):
        solvers[f"cutting-plane-{objective}"] = CuttingPlane(objective=objective)
    solvers["cutting-plane-at-least-k"] = CuttingPlane(at_least_k=True)
    for objective in ("prec@k", "f1"):
        solvers[f"psg-{objective}"] = ProjectedSubgradient(objective, radius=0.5)
    return {
        name: laws.quick(lambda solver=solver: solver)
        for name, solver in solvers.items()
    }


def problem(stored=np.float64):
    """Return what has the same bits everywhere.

    The values of the rows are of float32, which may store them.
    """
    grid = np.arange(240)[:, None] * 7919 + np.arange(13) * 104729
    X = ((grid % 1009 - 504) / 256.0).astype(stored)
    few_entries = sparse.csr_matrix(np.where(grid % 3, 0.0, X))
    return Problem(
        solvers=own_solvers(),
        matrices=(X, few_entries),
        y=np.where(X[:, 0] - X[:, 2] + X[:, 4] + X[::-1, 5] > 2, 1, -1),
        card=find_card("margin").model_copy(update={"rows": 300}),
    )


@pytest.mark.promise("R8")
@pytest.mark.parametrize("stored", [np.float64, np.float32])
def test_the_same_bits_on_every_machine(stored):
    hashes = fingerprints(problem(stored))
    assert hashes.keys() - EXPONENTIALS == GOLDEN.keys()
    for name, bits in GOLDEN.items():
        assert hashes[name] == bits, name


@pytest.mark.promise("R8")
def test_the_same_bits_with_an_old_cpu(figure):
    """With its BLAS kernels, with two threads, and without NumPy's extensions."""
    extensions = " ".join(np._core._multiarray_umath.__cpu_dispatch__)
    old_cpu = {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "2",
        "NPY_DISABLE_CPU_FEATURES": extensions,
    }
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.bits"],
        env=os.environ | old_cpu,
        input=pickle.dumps(tuple(problem())),
        stdout=subprocess.PIPE,
        check=True,
    )
    expected = fingerprints(problem())
    assert json.loads(process.stdout) == expected
    figure(f"{len(expected)} solvers with another core of the BLAS")


# --- recorded results depend on the bits of every seed ---


@pytest.mark.promise("R8")
@pytest.mark.parametrize(
    ("key", "seed"),
    [
        pytest.param((0, "letter", 3), 172592944, id="split"),
        pytest.param((1, "kdd08", "folds"), 4047799307, id="folds"),
        pytest.param((0, "é", 2, "x"), 2868167485, id="letter beyond ASCII"),
    ],
)
def test_the_bits_of_the_seed_of_a_trial(key, seed):
    assert trial_seed(*key) == seed


@pytest.mark.promise("R8")
def test_the_bits_of_a_generator():
    integers = generator(0, "letter", 3, "order").integers(2**32, size=2)
    assert integers.tolist() == [723908541, 3607651089]
    assert generator("é").random() == 0.049855712470644464


@pytest.mark.promise("R8")
def test_the_bits_of_a_generator_for_scikit_learn():
    random_state = legacy_generator(7, "letter", 0, "random")
    integers = random_state.randint(0, 2**31 - 1, size=2)
    assert integers.tolist() == [984363542, 755409792]


@pytest.mark.promise("R8")
def test_the_bits_of_a_generator_of_data():
    integers = data_generator("margin").integers(2**32, size=2)
    assert integers.tolist() == [4218941790, 3208356027]


@pytest.mark.promise("R8")
def test_the_bits_of_the_numbers_of_rows():
    numbers = uniforms(np.array([0, 1, 2, 10**12]), 0, "test")
    assert numbers.tolist() == [
        0.24063736945870906,
        0.7346927475664591,
        0.021874732819458398,
        0.525934572177351,
    ]
