"""How long a list should be.

Counted by hand and by brute force, simulated, and from a command.
"""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

import precbench
from precbench.advice.advised_report import write_report
from precbench.advice.length import (
    Length,
    Worth,
    measure_length,
    profit_text,
    read_length,
)
from precbench.advice.quality import held_out_quality, held_out_splits
from precbench.core.errors import InputError
from precbench.core.strict_json import checked
from precbench.data import Dataset
from precbench.model.calibration import Calibration
from precbench.model.model import Model
from precbench.ranking.topk import HeldOut, sums_at
from precbench.results.folders import PAGE
from tests.helpers import invoke, reloaded, succeed
from tests.sentences import raises, refused

pytestmark = pytest.mark.usefixtures("in_this_process")

Y = np.array([1, -1, 1, 1, -1, -1, 1, -1, -1, -1], dtype=float)
SCORES = np.array([9, 8, 8, 8, 5, 5, 5, 2, 2, 1], dtype=float)


def drawn(rng, n=300, share=0.1, noise=1.0):
    """Return a list whose scores are log odds plus noise; hits are drawn."""
    odds = rng.normal(np.log(share), 1.5, n)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    return HeldOut(y, odds + noise * rng.standard_normal(n))


def over_orders(values, scores, count):
    """Return the mean sum over all orders that the scores allow."""
    orders = [
        o for o in itertools.permutations(range(len(scores))) if _falls(scores[[*o]])
    ]
    return np.mean([values[[*order]][:count].sum() for order in orders])


def _falls(scores):
    return (np.diff(scores) <= 0).all()


def test_sums_are_means_over_the_orders_of_tied_rows():
    rng = np.random.default_rng(0)
    for _ in range(5):
        values, scores = rng.random(6), rng.integers(0, 3, 6).astype(float)
        sums = sums_at(values, scores, range(7))
        assert sums == pytest.approx([over_orders(values, scores, n) for n in range(7)])


def test_every_length_of_a_tiny_list():
    """Of as many new rows as were held out, so that a length is a depth."""
    length = measure_length(
        [HeldOut(Y, SCORES)], 0.5, [3], 8, 20, list_rows=10, method="m"
    )
    curve = length.table.set_index("length")
    assert [*curve.index] == [*range(1, 11)]
    probabilities = Calibration.fit([HeldOut(Y, SCORES)], 0.5).probabilities(SCORES)
    for k, row in curve.iterrows():
        hits = float(sums_at(probabilities, SCORES, [k])[0])
        assert row["hits"] == pytest.approx(hits)
        assert row["precision"] == pytest.approx(hits / k)
        assert row["recall"] == pytest.approx(hits / probabilities.sum())
        assert row["lift"] == pytest.approx(hits / k / probabilities.mean())
        assert row["low"] <= hits <= row["high"]
    assert length.k == [3]
    assert length.rows == 10
    assert length.splits == 1


def test_lengths_of_a_longer_list_are_shares_of_it():
    lists = [HeldOut(Y, SCORES), HeldOut(Y[::-1].copy(), SCORES)]
    length = measure_length(lists, 0.5, [0.5, "10 %", 40], 8, 20, list_rows=100)
    assert length.k == [20, 10, 40]
    assert length.curve["length"][-1] == 100
    row = length.table.set_index("length").loc[40]
    assert row["hits"] == pytest.approx(40 * row["precision"])
    assert row["recall"] == pytest.approx(0.4 * row["lift"])
    with raises(InputError, "101 100"):
        measure_length(lists, 0.5, [101], 8, 20, list_rows=100)


def test_a_length_is_forecast_as_score_forecasts_the_held_out_lists():
    """The hits that `compare` and `fit` say are the mean of what `score` says of each
    list.
    """
    rng = np.random.default_rng(0)
    lists = [drawn(rng) for _ in range(4)]
    calibration = Calibration.fit(lists, 0.3)
    by_score = [
        calibration.expected(np.sort(held_out.scores)[-40:], 300) for held_out in lists
    ]
    curve = measure_length(lists, 0.3, [40], 10, 300).table.set_index("length")
    assert curve.loc[40, "hits"] == pytest.approx(
        np.mean([hits.mean for hits in by_score])
    )


def test_that_the_scores_of_a_new_list_are_not_known_makes_its_interval_wider():
    widths, widths_by_score = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        lists = [drawn(rng) for _ in range(4)]
        calibration = Calibration.fit(lists, 0.3)
        curve = measure_length(lists, 0.3, [40], 10, 300).table.set_index("length")
        widths.append(curve.loc[40, "high"] - curve.loc[40, "low"])
        for held_out in lists:
            top_scores = np.sort(held_out.scores)[-40:]
            hits = calibration.expected(top_scores, 300)
            widths_by_score.append(hits.high - hits.low)
    assert np.mean(widths) > np.mean(widths_by_score)


def test_a_list_with_low_scores_counts_as_much_as_the_others():
    """Four lists are full of hits at the top, and the fifth has none, whose scores are
    lower.
    """
    strong = HeldOut(np.repeat([1.0, -1.0], [50, 50]), np.linspace(9, 1, 100))
    weak = HeldOut(np.repeat([-1.0, 1.0], [98, 2]), np.linspace(0.9, 0.1, 100))
    curve = measure_length(
        [strong] * 4 + [weak], 0.3, [40], 202, 500, list_rows=100
    ).table
    row = curve.set_index("length").loc[40]
    assert row["hits"] == pytest.approx(0.8 * 40, abs=1.5)
    assert row["low"] <= 20
    assert row["high"] == 40


def profits(lists, gains, cost):
    """Return the mean profit at each depth, row by row."""
    totals = []
    for held_out, gain in zip(lists, gains, strict=True):
        order = np.argsort(-held_out.scores, kind="stable")
        totals.append(np.cumsum(np.where(held_out.y[order] > 0, gain[order], 0) - cost))
    return np.mean(totals, axis=0)


@pytest.mark.parametrize("column", [False, True])
def test_the_most_profitable_length_by_enumeration(column):
    rng = np.random.default_rng(1)
    lists = [drawn(rng, 80, 0.3) for _ in range(4)]
    gains = [rng.lognormal(1, 1, 80) if column else np.full(80, 7.0) for _ in lists]
    if column:
        lists = [
            held_out._replace(amounts=gain)
            for held_out, gain in zip(lists, gains, strict=True)
        ]
    worth = Worth(None if column else 7.0, "amount" if column else None, 3.0)
    length = measure_length(lists, 0.25, [5], 60, 320, list_rows=80, worth=worth)
    curve, profit = length.table, length.profit
    at = curve["length"].to_numpy(int)
    by_row = profits(lists, gains, 3.0)
    if not column:  # of probabilities, which are those of score
        calibration = Calibration.fit(lists, 0.25)
        gains = [7 * calibration.probabilities(held_out.scores) for held_out in lists]
        by_row = profits(
            [held_out._replace(y=np.ones(80)) for held_out in lists], gains, 3.0
        )
    assert curve["profit"].to_numpy() == pytest.approx(by_row[at - 1])
    assert profit.best == at[np.argmax(by_row[at - 1])]
    assert profit.profit == pytest.approx(max(by_row[at - 1]))
    assert profit.low <= profit.best <= profit.high
    assert profit.low < profit.high
    assert (curve["profit_low"] < curve["profit"]).all()
    assert (curve["profit"] < curve["profit_high"]).all()
    assert f"The most profitable length is {profit.best}, " in profit_text(length)
    if not column:
        assert curve["profit_low"].tolist() == pytest.approx(
            (7 * curve["low"] - 3 * at).tolist()
        )


def test_where_no_length_pays():
    length = measure_length(
        [HeldOut(Y, SCORES)], 0.5, [3], 8, 20, worth=Worth(1.0, None, 50.0)
    )
    assert (length.profit.best, length.profit.profit) == (0, 0)
    assert profit_text(length).startswith(
        "No length pays with a gain of 1 for each hit and"
    )
    assert profit_text(length).endswith("a cost of 50 for each row.")
    free = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20, worth=Worth(0.0))
    assert free.profit.best == 0


def test_the_band_holds_new_lists():
    """Lists of a known distribution.

    Scores that no training disturbs share no error.
    """
    rng = np.random.default_rng(0)
    held = []
    for _ in range(30):
        curve = measure_length(
            [drawn(rng) for _ in range(5)], 0.01, [10], 45, 300
        ).table
        for _ in range(10):
            new = drawn(rng)
            hits = sums_at(new.y > 0, new.scores, curve["length"])
            held.append((curve["low"] <= hits) & (hits <= curve["high"]))
    shares = np.mean(held, axis=0)
    assert shares.min() > 0.94
    assert np.mean(shares) < 0.995


def test_the_band_of_recall_holds_new_lists():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(30):
        lists = [drawn(rng) for _ in range(5)]
        curve = measure_length(lists, 0.01, [10], 45, 300).table
        for _ in range(10):
            new = drawn(rng)
            recall = sums_at(new.y > 0, new.scores, curve["length"])
            recall /= np.count_nonzero(new.y > 0)
            # Sums may differ in their last bits.
            is_above = recall >= curve["recall_low"] - 1e-9
            held.append(is_above & (recall <= curve["recall_high"] + 1e-9))
    shares = np.mean(held, axis=0)
    assert shares.min() > 0.94
    assert np.mean(shares) < 0.997


@pytest.mark.parametrize("column", [False, True])
def test_the_profit_and_its_best_length_hold(column):
    rng, worth = np.random.default_rng(0), Worth(None, "a", 0.3)

    def paid(n=300):
        amounts = rng.lognormal(0, 0.5, n) if column else np.ones(n)
        return drawn(rng, n)._replace(amounts=amounts)

    truth = measure_length([paid(200_000)], 0.01, [10], 45, 300, worth=worth).profit
    held, best = [], []
    for _ in range(60):
        estimate = measure_length(
            [paid() for _ in range(5)], 0.01, [10], 45, 300, worth=worth
        ).profit
        new = paid()
        profit = float(
            sums_at(np.where(new.y > 0, new.amounts, 0), new.scores, [estimate.best])[0]
        )
        held.append(
            estimate.profit_low <= profit - 0.3 * estimate.best <= estimate.profit_high
        )
        best.append(estimate.low <= truth.best <= estimate.high)
    assert np.mean(held) > 0.9
    assert np.mean(best) > 0.9


def smoothed_labels(held_out, n_pos, n_rows):
    """Return the labels of Platt, for lists of a mean number of positives and rows."""
    label_of_hit = (n_pos + 1) / (n_pos + 2)
    label_of_miss = 1 / (n_rows - n_pos + 2)
    return np.where(held_out.y > 0, label_of_hit, label_of_miss)


def together(lists):
    """Return lists as one."""
    return HeldOut(
        np.concatenate([held_out.y for held_out in lists]),
        np.concatenate([held_out.scores for held_out in lists]),
    )


def isotonic_of_scikit_learn(held_out, n_pos, n_rows):
    labels = smoothed_labels(held_out, n_pos, n_rows)
    return IsotonicRegression(out_of_bounds="clip").fit(held_out.scores, labels)


def test_the_curves_of_single_lists_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    lists = [drawn(rng, 400) for _ in range(3)]
    new_scores = rng.normal(-2, 3, 50)
    _pooled, *curves = Calibration.fit(lists, 0.3).curves(new_scores)
    n_pos = np.mean([np.count_nonzero(held_out.y > 0) for held_out in lists])
    for held_out, curve in zip(lists, curves, strict=True):
        isotonic = isotonic_of_scikit_learn(held_out, n_pos, 400)
        assert curve == pytest.approx(isotonic.predict(new_scores), abs=1e-12)


def test_expected_hits_are_the_sum_of_probabilities():
    rng = np.random.default_rng(0)
    calibration = Calibration.fit([drawn(rng, 400) for _ in range(3)], 0.3)
    new_scores = rng.normal(-2, 3, 50)
    hits = calibration.expected(new_scores, 1000)
    assert hits.mean == pytest.approx(calibration.probabilities(new_scores).sum())
    assert hits.low < hits.mean < hits.high


def test_probabilities_rise_with_the_scores():
    """Also where an isotonic curve has steps."""
    rng = np.random.default_rng(0)
    lists = [drawn(rng, 400) for _ in range(3)]
    scores = np.sort(together(lists).scores)
    probabilities = Calibration.fit(lists, 0.3).probabilities(scores)
    assert (np.diff(probabilities) > 0).all()
    isotonic = isotonic_of_scikit_learn(together(lists), 40, 400)
    assert len(set(isotonic.predict(scores))) < 50


def test_probabilities_are_nearer_to_the_truth_than_isotonic_ones():
    """At the top of 30 lists whose true probabilities are known, with the same sum."""
    errors, errors_of_isotonic, sums = [], [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lists = [drawn(rng, 600, noise=0) for _ in range(4)]
        odds = drawn(rng, 600, noise=0).scores
        truth = 1 / (1 + np.exp(-odds))
        top = np.argsort(-odds)[:50]
        probabilities = Calibration.fit(lists, 0.3).probabilities(odds)
        n_pos = np.mean([np.count_nonzero(held_out.y > 0) for held_out in lists])
        isotonic = isotonic_of_scikit_learn(together(lists), n_pos, 600)
        errors.append(np.abs(probabilities - truth)[top].mean())
        errors_of_isotonic.append(np.abs(isotonic.predict(odds) - truth)[top].mean())
        sums.append(probabilities.sum() / isotonic.predict(odds).sum())
    assert np.mean(errors) < 0.95 * np.mean(errors_of_isotonic)
    assert np.mean(sums) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("shift_of_hits", "at_bottom", "at_top"),
    [
        pytest.param(0.0, 1 / 21, 1 / 21, id="by chance"),
        # Of three hits above all other rows, none is certain.
        pytest.param(1.0, 1 / 62, 4 / 5, id="perfect"),
    ],
)
def test_probabilities_of_a_ranking_by_chance_and_of_a_perfect_one(
    shift_of_hits, at_bottom, at_top
):
    y = np.repeat([1.0, -1.0], [3, 60])
    scores = shift_of_hits * y + shift_of_hits * np.linspace(0, 0.1, 63)
    calibration = Calibration.fit([HeldOut(y, scores)], 0.3)
    low, high = calibration.probabilities(np.array([-9.0, 9.0]))
    assert low == pytest.approx(at_bottom, abs=0.01)
    assert high == pytest.approx(at_top, abs=0.01)


def test_the_expected_hits_of_a_list_hold_those_of_new_lists():
    """Also where the new list has more hits than the old ones, as its scores say."""
    rng = np.random.default_rng(0)
    held, sums = [], []
    for _ in range(25):
        calibration = Calibration.fit(
            [drawn(rng, 600, noise=0) for _ in range(5)], 0.01
        )
        for share in (0.1, 0.2) * 3:
            new = drawn(rng, 600, share, noise=0)
            top = np.argsort(-new.scores)[:50]
            hits = np.count_nonzero(new.y[top] > 0)
            expected = calibration.expected(new.scores[top], 600)
            held.append(expected.low <= hits <= expected.high)
            sums.append((expected.mean, hits))
    assert np.mean(held) >= 0.95
    means = np.mean(sums, axis=0)
    assert means[0] == pytest.approx(means[1], rel=0.05)


def test_the_interval_of_a_short_list_is_as_wide_as_its_hits_vary():
    """The hits of 10 rows at the top, of 1,000 with known chances, and forecasts of 100
    models.
    """
    n_rows, k, share = 1000, 10, 0.3

    def draw_rows(seed):
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal(n_rows)
        y = np.where(rng.random(n_rows) < 1 / (1 + np.exp(2.5 - 2 * scores)), 1.0, -1.0)
        return rng, scores, y

    def top_hits(scores, y):
        return np.count_nonzero(y[np.argsort(-scores)[:k]] > 0)

    hits = [top_hits(*draw_rows(10_000 + seed)[1:]) for seed in range(1000)]
    low, high = np.quantile(hits, [0.025, 0.975])
    is_inside, widths = [], []
    for seed in range(100):
        rng, scores, y = draw_rows(seed)
        lists = []
        for _ in range(5):
            rows = rng.permutation(n_rows)[: round(share * n_rows)]
            lists.append(HeldOut(y[rows], scores[rows]))
        _rng, new_scores, new_y = draw_rows(20_000 + seed)
        top_scores = np.sort(new_scores)[-k:]
        forecast = Calibration.fit(lists, share).expected(top_scores, n_rows)
        is_inside.append(forecast.low <= top_hits(new_scores, new_y) <= forecast.high)
        widths.append(forecast.high - forecast.low)
    assert np.mean(is_inside) >= 0.95
    assert np.mean(widths) <= 2 * (high - low)


def test_a_saved_model_keeps_its_probabilities(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    plain = Model.fit(X, X[:, 0] > 1, "logistic-regression")
    calibrated = plain.calibrated([drawn(rng, 400), drawn(rng, 400)], 0.3)
    loaded = reloaded(calibrated, tmp_path / "m.npz")
    probabilities = loaded.predict_proba(X)
    assert np.array_equal(probabilities, calibrated.predict_proba(X))
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(200))
    first = probabilities[:9, 1], 90
    assert loaded.calibration.expected(*first) == calibrated.calibration.expected(
        *first
    )
    with raises(InputError, "precbench fit"):
        plain.predict_proba(X)


@pytest.mark.parametrize("solver", ["1pmb", "logistic-regression"])
def test_hits_are_expected_of_scores_whose_scale_follows_the_number_of_rows(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((23000, 8))
    odds = np.exp(1.5 * X[:, 0] + X[:, 1] - 3)
    y = np.where(rng.random(23000) < odds / (1 + odds), 1.0, -1.0)
    known, new = slice(3000), slice(3000, None)
    dataset = Dataset("mine", "mine", X[known], y[known], sha256="")
    how = {"solver": solver, "scaling": "standardise"}
    how |= {} if solver[0] == "l" else {"random_state": 0}
    _, lists, share = held_out_quality(
        dataset, held_out_splits(dataset, 5, 0), 100, how
    )
    model = Model.fit(X[known], y[known], **how)
    calibrated = model.calibrated(lists, share, X[known])
    scores = calibrated.decision_function(X[new])
    top = np.argsort(-scores)[:1000]
    hits = np.count_nonzero(y[new][top] > 0)
    assert calibrated.calibration.expected(scores[top], 20000).mean == pytest.approx(
        hits, rel=0.1
    )
    as_it_was = model.calibrated(lists, share).probabilities(scores)
    assert np.array_equal(as_it_was, calibrated.probabilities(scores)) == (
        solver[0] == "l"
    )


@pytest.fixture(scope="module")
def payments(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 1200
    amount, hour = rng.lognormal(3, 1, n).round(2), rng.integers(0, 24, n)
    odd = np.log(amount) + 2 * (hour < 5) + rng.standard_normal(n)
    fraud = (odd > np.quantile(odd, 0.9)).astype(int)
    folder = tmp_path_factory.mktemp("payments")
    table = pd.DataFrame({"amount": amount, "hour": hour, "fraud": fraud})
    table.to_csv(folder / "payments.csv", index=False)
    return folder


GIVEN = ["--label", "fraud", "--solver", "logistic-regression"]


def test_fit_show_and_score_say_how_long(payments, monkeypatch):
    monkeypatch.chdir(payments)
    ks = ["--k", 20, "--k", "5 %", "--k", 20, "--list-rows", 2000]
    worth = ["--gain-column", "amount", "--cost", 15]
    text = succeed("fit", "payments.csv", *GIVEN, *ks, *worth, "--save", "m.npz").stdout
    assert "Hits by length of the list, from 2,000 new rows" in text
    assert "20 (k)" in text
    quality = json.loads(succeed("show", "m.npz", "--json").stdout)["quality"]
    length = quality["length"]
    assert quality["k"] == 20
    assert length["k"] == [20, 100]
    for printed in (text, succeed("show", "m.npz").stdout):
        assert "The most profitable length is " in printed
    scored = succeed(
        "score", "m.npz", "payments.csv", "--top", 50, "--probability", "--json"
    )
    rows = pd.DataFrame(json.loads(scored.stdout))
    assert [*rows] == ["rank", "row", "score", "probability"]
    hits = rows["probability"].sum()
    assert f"expect about {hits:.1f} hits among the listed rows (" in scored.stderr
    assert 0.8 < hits / (50 * length["curve"]["precision"][8]) < 1.25
    assert rows["probability"].is_monotonic_decreasing


def test_compare_says_how_long_and_reports_it(payments, monkeypatch):
    monkeypatch.chdir(payments)
    options = ["payments.csv", *GIVEN, "--k", 10, "--k", 30, "--splits", 3, "--jobs", 1]
    worth = ["--gain", 200, "--cost", 15]
    text = succeed("compare", *options, *worth, "--save", "c.npz").stdout
    assert "\nNext: precbench score c.npz NEW.csv --top 10\n" in text
    assert "30 (k)" in text
    assert "The most profitable length is " in text
    choice = json.loads(succeed("compare", *options, *worth, "--json").stdout)
    length = choice["length"]
    assert (choice["k"], length["k"]) == (3, [10, 30])
    curve = pd.DataFrame(length["curve"]).set_index("length")
    of_list = [choice["list"][name] for name in ("hits", "low", "high")]
    assert curve.loc[10, ["hits", "low", "high"]].tolist() == pytest.approx(of_list)
    folder = payments / choice["folder"]
    page = (folder / PAGE).read_text()
    shown = [
        "about {:.0f} hits in 10 ({:.0f} to".format(*of_list),
        "The most profitable length is ",
    ]
    shown += ["The columns of payments.csv", 'alt="length: ']
    assert [words for words in shown if words not in page] == []
    stored, *_ = read_length(folder)
    assert stored.model_dump(exclude={"of", "tables", "command"}) == length
    csv = pd.read_csv(folder / "figures" / "length.csv")
    assert csv["hits"].tolist() == pytest.approx(curve["hits"].tolist())
    write_report(folder)
    assert (folder / PAGE).read_text() == page
    results = (folder / "results.csv").read_text()
    (folder / "results.csv").write_text(results + results.splitlines()[-1] + "\n")
    assert read_length(folder) is None  # of other results
    (folder / "results.csv").write_text(results)
    (folder / "length.json").write_text("{}")
    with raises(InputError, "length.json"):
        write_report(folder)


def test_compare_in_python_says_how_long(payments):
    table = pd.read_csv(payments / "payments.csv")
    X, y = table[["amount", "hour"]], table["fraud"]
    options = {"solvers": ["logistic-regression"], "n_splits": 2, "n_jobs": 1}
    choice = precbench.compare(
        X, y, k=[10, np.int64(30)], gain=table["amount"], cost=np.int64(15), **options
    )
    assert (choice.k, choice.length.k) == (3, [10, 30])
    assert choice.length.profit.column == "gain"
    assert choice.length.profit.cost == 15
    assert json.loads(json.dumps(choice.to_dict()))["length"]["rows"] == 1200
    for wrong, places in (
        ({"k": []}, "k"),
        ({"k": [10, 0]}, "0"),
        ({"k": 10, "gain": 1e308}, "gain 1e+308"),
        ({"k": 10, "gain": np.full(1200, np.nan)}, "gain"),
        ({"k": 10, "gain": np.ones(3)}, "gain"),
        ({"k": 10, "gain": ["much"] * 1200}, "gain"),
    ):
        with raises(InputError, places):
            precbench.compare(X, y, **wrong, **options)


def test_wrong_options_are_refused(payments, monkeypatch):
    monkeypatch.chdir(payments)
    owed = pd.read_csv("payments.csv").assign(amount=lambda t: t["amount"] - 20)
    owed.to_csv("owed.csv", index=False)
    np.savez("rows.npz", X=np.ones((9, 2)), y=np.arange(9) % 2)
    fit = ["fit", "payments.csv", *GIVEN, "--save", "x.npz"]
    for more, places in (
        (["--cost", 15], "cost"),
        (["--gain", "nan"], "gain nan"),
        (["--gain", 3, "--cost", -3], "cost -3.0"),
        (["--gain", 3, "--gain-column", "amount"], "gain column"),
        (["--gain-column", "amuont"], "payments.csv amuont"),
        (["--k", 10, "--k", "ten"], "ten"),
        (["--k", 10, "--k", 1300], "1300"),
        (["--k", 10, "--list-rows", 9], "10 9"),
    ):
        refused([*fit, *more], places)
    short = ["--k", 10, "--list-rows", 9]
    refused(["compare", "payments.csv", *GIVEN, *short], "10 9")
    refused(
        ["fit", "owed.csv", *GIVEN, "--save", "x.npz", "--gain-column", "amount"],
        "amount row",
    )
    for value in ("", "inf", "so"):  # no command is proposed
        pd.read_csv("payments.csv").assign(gain=[value] + ["7"] * 1199).to_csv(
            "own.csv"
        )
        gains = ["own.csv", *GIVEN[:2], "--missing", "median", "--gain-column", "gain"]
        messages = refused(
            ["fit", *gains, "--save", "x.npz"], f"'gain' row 1 {value or 'value'}"
        )
        messages += json.loads(succeed("profile", *gains, "--json").stdout)["refusal"]
        assert "accepted" not in messages
        assert messages.count("row 1:") == 2
    refused(
        ["compare", "rows.npz", "--gain-column", "amount"], "rows.npz --gain-column"
    )
    succeed("fit", "payments.csv", *GIVEN, "--save", "old.npz")
    replace(Model.load("old.npz"), calibration=None).save("old.npz")
    refused(["score", "old.npz", "payments.csv", "--probability"], "probabilities")
    assert invoke("score", "old.npz", "payments.csv", "--top", 1).exit_code == 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda a: a["curve"].pop("hits"), id="no hits"),
        pytest.param(lambda a: a["curve"]["hits"].append(0.5), id="a hit too many"),
        pytest.param(lambda a: a["k"].append(21), id="a k beyond the list"),
        pytest.param(lambda a: a["k"].clear(), id="no k"),
        pytest.param(
            lambda a: a["curve"]["length"].__setitem__(0, 0), id="a list of no rows"
        ),
        pytest.param(lambda a: a.update(profit={}), id="an empty profit"),
    ],
)
def test_damaged_lengths_are_refused(change):
    length = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20).model_dump()
    assert checked(length, Length)
    change(length)
    with pytest.raises(ValueError):
        checked(length, Length)
