"""Recorded results depend on the bits of every seed."""

import numpy as np
import pytest

from precbench.seeds import data_generator, generator, legacy_generator, trial_seed, uniforms


@pytest.mark.promise("R8")
def test_the_bits_of_every_scheme():
    assert trial_seed(0, "letter", 3) == 172592944
    assert trial_seed(1, "kdd08", "folds") == 4047799307
    assert trial_seed(0, "é", 2, "x") == 2868167485
    split = generator(0, "letter", 3, "order")
    assert split.integers(2**32, size=2).tolist() == [723908541, 3607651089]
    assert generator("é").random() == 0.049855712470644464
    legacy = legacy_generator(7, "letter", 0, "random")
    assert legacy.randint(0, 2**31 - 1, size=2).tolist() == [984363542, 755409792]
    data = data_generator("margin")
    assert data.integers(2**32, size=2).tolist() == [4218941790, 3208356027]
    assert uniforms(np.array([0, 1, 2, 10**12]), 0, "test").tolist() == [
        0.24063736945870906, 0.7346927475664591, 0.021874732819458398, 0.525934572177351
    ]  # fmt: skip
