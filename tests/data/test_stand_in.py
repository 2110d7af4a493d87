"""Stand-ins have the published sizes of the card, and labels that can be learnt."""

import numpy as np
import pytest
from scipy.sparse import issparse

from precbench.data import DATASETS
from precbench.data.cards.generated import generate_stand_in

NAMES = [name for name in DATASETS if DATASETS[name].stand_in]
SMALL = {"rows": 5000, "positives": 200}


def small(name):
    return DATASETS[name].model_copy(update=SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_rows_features_positives_and_density(name):
    card = small(name)
    X, y, _, _ = generate_stand_in(card)
    assert X.shape == (5000, card.features)
    assert np.count_nonzero(y == 1) == 200
    assert np.count_nonzero(y == -1) == 4800
    sparse = card.format == "svmlight" and card.stand_in.density <= 0.5
    assert issparse(X) == sparse
    n_nonzero = X.nnz if sparse else np.count_nonzero(X)
    assert n_nonzero / (5000 * card.features) == pytest.approx(card.stand_in.density, rel=0.03)
    if sparse:
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert set(X.data) == {1.0}


def test_the_name_determines_the_seed():
    one, same, other = (generate_stand_in(small(name)) for name in ("kdd08", "kdd08", "ppi"))
    assert np.array_equal(one.X, same.X)
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X[:, :85], other.X)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "w8a"])  # 300 features: slow
def test_the_noise_is_that_of_the_card(name):
    """The signal has unit variance, and noise takes its share of the correlation with the label."""
    card, seen = DATASETS[name], {}
    for noise in (0.0, card.stand_in.noise):
        changes = {"rows": 20_000, "positives": 10_000}
        changes["stand_in"] = card.stand_in.model_copy(update={"noise": noise})
        X, y, _, _ = generate_stand_in(card.model_copy(update=changes))
        X = X.toarray() if issparse(X) else X
        X = X - X.mean(axis=0)
        seen[noise] = np.corrcoef(X @ np.linalg.lstsq(X, y, rcond=None)[0], y)[0, 1]
    share = seen[card.stand_in.noise] / seen[0.0]
    assert share == pytest.approx(1 / np.sqrt(1 + card.stand_in.noise**2), rel=0.03)


def test_frequencies_of_binary_columns_fall_as_zipf_says():
    """They go with 1 / rank, but none is above 0.9."""
    X = generate_stand_in(DATASETS["w8a"].model_copy(update={"rows": 40_000, "positives": 99})).X
    frequency = np.sort(np.asarray(X.mean(axis=0)).ravel())[::-1]
    assert frequency[0] == pytest.approx(0.9, abs=0.01)
    ranks = np.arange(4, 40)
    assert frequency[ranks - 1] * ranks == pytest.approx(frequency[99] * 100, rel=0.15)
