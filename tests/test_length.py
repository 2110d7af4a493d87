"""How long a list should be: counted by hand and by brute force, simulated, and from a command."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression

import precbench
from precbench.advice.length import (
    Length,
    Worth,
    measure_length,
    profit_text,
    read_length,
)
from precbench.advice.quality import held_out_quality, held_out_splits
from precbench.advice.report import write_report
from precbench.data import Dataset
from precbench.errors import InputError
from precbench.model.calibration import Calibration
from precbench.model.model import Model
from precbench.report.folder import PAGE
from precbench.statistics import expected_hits, expected_total, share_interval
from precbench.strict_json import checked
from precbench.topk import HeldOut, sums_at
from tests.helpers import invoke, succeed
from tests.sentences import raises, refused, tells

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
    orders = [o for o in itertools.permutations(range(len(scores))) if _falls(scores[[*o]])]
    return np.mean([values[[*order]][:count].sum() for order in orders])


def _falls(scores):
    return (np.diff(scores) <= 0).all()


def test_sums_are_means_over_the_orders_of_tied_rows():
    rng = np.random.default_rng(0)
    for _ in range(5):
        values, scores = rng.random(6), rng.integers(0, 3, 6).astype(float)
        found = sums_at(values, scores, range(7))
        assert found == pytest.approx([over_orders(values, scores, n) for n in range(7)])


def test_every_length_of_a_tiny_list():
    """Of as many new rows as were held out, so that a length is a depth."""
    length = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20, list_rows=10, method="m")
    curve = length.table.set_index("length")
    assert [*curve.index] == [*range(1, 11)]
    calibration = Calibration.fit([HeldOut(Y, SCORES)], 0.5)
    probabilities = calibration.probabilities(SCORES)
    for k, row in curve.iterrows():
        hits = float(sums_at(probabilities, SCORES, [k])[0])
        assert row["hits"] == pytest.approx(hits)
        assert row["precision"] == pytest.approx(hits / k)
        assert row["recall"] == pytest.approx(hits / probabilities.sum())
        assert row["lift"] == pytest.approx(hits / k / probabilities.mean())
        assert row["low"] <= hits <= row["high"]
    assert probabilities.sum() == pytest.approx(np.count_nonzero(Y > 0), abs=0.2)
    assert (length.k, length.rows, length.splits) == ([3], 10, 1)


def test_lengths_of_a_longer_list_are_shares_of_it():
    lists = [HeldOut(Y, SCORES), HeldOut(Y[::-1].copy(), SCORES)]
    length = measure_length(lists, 0.5, [0.5, "10 %", 40], 8, 20, list_rows=100)
    assert length.k == [20, 10, 40] and length.curve["length"][-1] == 100
    row = length.table.set_index("length").loc[40]
    assert row["hits"] == pytest.approx(40 / row["lift"] * row["lift"] * row["precision"])
    assert row["recall"] == pytest.approx(0.4 * row["lift"])
    with raises(InputError, "101 100"):
        measure_length(lists, 0.5, [101], 8, 20, list_rows=100)


@pytest.mark.parametrize("n", [300, 8000])
def test_a_length_and_a_list_are_forecast_by_one_function(n):
    """`score` of the held-out rows says what `compare` and `fit` say of as many new ones."""
    rng = np.random.default_rng(0)
    lists = [drawn(rng, n) for _ in range(4)]
    scores = -np.sort(-np.concatenate([of.scores for of in lists]))
    length = measure_length(lists, 0.3, [40], 10, n, list_rows=4 * n)
    row = length.table.set_index("length").loc[40, ["hits", "low", "high"]]
    expected = Calibration.fit(lists, 0.3).expected(scores[:40], 4 * n)
    assert row.tolist() == pytest.approx([*expected])


def test_the_gain_table_by_hand():
    """Ten groups of one row, of which tied ones are in one: sizes 1, 3, 3, 2 and 1; 4 hits."""
    groups = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20).groups
    curve = Calibration.fit([HeldOut(Y, SCORES)], 0.5).probabilities
    expected = {
        "group": [1, 2, 3, 4, 5],
        "share": [0.1, 0.4, 0.7, 0.9, 1.0],
        "least_probability": curve([9, 8, 5, 2, 1]),
        "response_rate": [1, 2 / 3, 1 / 3, 0, 0],
        "lift": [2.5, 5 / 3, 5 / 6, 0, 0],
        "cumulative_lift": [2.5, 3 / 1.6, 4 / 2.8, 4 / 3.6, 1],
        "capture_rate": [0.25, 0.5, 0.25, 0, 0],
        "cumulative_capture": [0.25, 0.75, 1, 1, 1],
        "gain": [150, 200 / 3, -50 / 3, -100, -100],
        "mean_probability": curve([9, 8, 5, 2, 1]),
    }
    assert groups.keys() == expected.keys()
    for name, values in expected.items():
        assert groups[name] == pytest.approx(values), name
    rows = measure_length([drawn(np.random.default_rng(0))], 0.5, [3], 8, 600).groups
    assert rows["share"] == pytest.approx(np.arange(1, 11) / 10)


def profits(lists, gains, cost):
    """Return the mean profit at each depth, row by row."""
    totals = []
    for of, gain in zip(lists, gains, strict=True):
        order = np.argsort(-of.scores, kind="stable")
        totals.append(np.cumsum(np.where(of.y[order] > 0, gain[order], 0) - cost))
    return np.mean(totals, axis=0)


@pytest.mark.parametrize("column", [False, True])
def test_the_most_profitable_length_by_enumeration(column):
    rng = np.random.default_rng(1)
    lists = [drawn(rng, 80, 0.3) for _ in range(4)]
    gains = [rng.lognormal(1, 1, 80) if column else np.full(80, 7.0) for _ in lists]
    if column:
        lists = [of._replace(amounts=gain) for of, gain in zip(lists, gains, strict=True)]
    worth = Worth(None if column else 7.0, "amount" if column else None, 3.0)
    length = measure_length(lists, 0.25, [5], 60, 320, list_rows=80, worth=worth)
    curve, found = length.table, length.profit
    at = curve["length"].to_numpy(int)
    by_row = profits(lists, gains, 3.0)
    if not column:  # of probabilities, which are those of score
        scores = np.concatenate([of.scores for of in lists])
        probabilities = np.sort(Calibration.fit(lists, 0.25).probabilities(scores))[::-1]
        lists = [HeldOut(np.ones(80), -np.arange(80.0))]
        gains = [7 * probabilities.reshape(80, 4).mean(axis=1)]
        by_row = profits(lists, gains, 3.0)
    assert curve["profit"].to_numpy() == pytest.approx(by_row[at - 1])
    assert found.best == at[np.argmax(by_row[at - 1])]
    assert found.profit == pytest.approx(max(by_row[at - 1]))
    assert found.low <= found.best <= found.high and found.low < found.high
    assert (curve["profit_low"] < curve["profit"]).all()
    assert (curve["profit"] < curve["profit_high"]).all()
    for wrong, times in zip(found.wrong, (2 / 3, 4 / 3), strict=True):
        then = np.append(0, profits(lists, [g * times for g in gains], 3.0)[at - 1])
        assert wrong.best == np.append(0, at)[np.argmax(then)]
        assert wrong.lost == pytest.approx(then.max() - then[1 + np.argmax(by_row[at - 1])])
        assert wrong.lost >= 0
    assert f"The most profitable length is {found.best}, " in profit_text(length)
    if not column:
        assert curve["profit_low"].tolist() == pytest.approx((7 * curve["low"] - 3 * at).tolist())


def test_where_no_length_pays():
    length = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20, worth=Worth(1.0, None, 50.0))
    assert (length.profit.best, length.profit.profit) == (0, 0)
    assert profit_text(length).startswith("No length pays with a gain of 1 for each hit and")
    assert profit_text(length).endswith("a cost of 50 for each row.")
    free = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20, worth=Worth(0.0))
    assert free.profit.best == 0


def test_the_band_holds_new_lists():
    """Lists of a known distribution; scores that no training disturbs share no error."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(30):
        curve = measure_length([drawn(rng) for _ in range(5)], 0.01, [10], 45, 300).table
        for _ in range(10):
            new = drawn(rng)
            hits = sums_at(new.y > 0, new.scores, curve["length"])
            held.append((curve["low"] <= hits) & (hits <= curve["high"]))
    shares = np.mean(held, axis=0)
    assert shares.min() > 0.94 and np.mean(shares) < 0.995


@pytest.mark.parametrize("column", [False, True])
def test_the_profit_and_its_best_length_hold(column):
    rng = np.random.default_rng(0)
    many = drawn(rng, 200_000)
    amounts = [rng.lognormal(0, 0.5, len(many.y)) if column else np.ones(len(many.y))]
    truth = measure_length(
        [many._replace(amounts=amounts[0])], 0.01, [10], 45, 300, worth=Worth(None, "a", 0.3)
    )
    held, best = [], []
    for _ in range(60):
        lists = [drawn(rng) for _ in range(5)]
        lists = [
            of._replace(amounts=rng.lognormal(0, 0.5, 300) if column else np.ones(300))
            for of in lists
        ]
        worth = Worth(None, "a", 0.3)
        found = measure_length(lists, 0.01, [10], 45, 300, worth=worth).profit
        new = drawn(rng)
        gain = rng.lognormal(0, 0.5, 300) if column else np.ones(300)
        profit = float(sums_at(np.where(new.y > 0, gain, 0), new.scores, [found.best])[0])
        held.append(found.profit_low <= profit - 0.3 * found.best <= found.profit_high)
        best.append(found.low <= truth.profit.best <= found.high)
    assert np.mean(held) > 0.9 and np.mean(best) > 0.9


def test_an_amount_of_one_for_each_hit_is_expected_as_the_hits_are():
    values = [0.3, 0.4, 0.35, 0.42]
    hits = expected_hits(values, 100, 0.3, 2000)
    total = expected_total(values, 0.3675 * 0.6325, 100, 0.3, 2000)
    assert total == pytest.approx(hits, rel=0.02)
    mean = expected_total(values, 0.2, 100, 0.3, None)
    assert mean.mean == np.mean(values) and mean.high - mean.low < np.ptp(total[1:]) / 2000


def test_probabilities_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    lists, new = [drawn(rng, 400) for _ in range(3)], rng.normal(-2, 3, 50)
    calibration = Calibration.fit(lists, 0.3)
    together = HeldOut(*map(np.concatenate, zip(*(of[:2] for of in lists), strict=True)))
    n_pos = np.mean([np.count_nonzero(of.y > 0) for of in lists])
    for of, curve in zip((together, *lists), calibration.curves(new), strict=True):
        target = np.where(of.y > 0, (n_pos + 1) / (n_pos + 2), 1 / (400 - n_pos + 2))
        by_hand = IsotonicRegression(out_of_bounds="clip").fit(of.scores, target)
        assert curve == pytest.approx(by_hand.predict(new), abs=1e-12)
    probabilities, hits = calibration.probabilities(new), calibration.expected(new, 1000)
    assert hits.mean == pytest.approx(probabilities.sum()) and hits.low < hits.mean < hits.high


def test_probabilities_of_a_ranking_by_chance_are_the_share_of_positives():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.1, 1.0, -1.0)
    for scores in (np.zeros(300), -y):
        found = Calibration.fit([HeldOut(y, scores)], 0.3).probabilities(np.array([-9.0, 9.0]))
        assert found == pytest.approx([(y > 0).mean()] * 2, abs=0.001)


def test_no_probability_is_0_or_1():
    """Three positives above all others are not certain."""
    y = np.repeat([1.0, -1.0], [3, 60])
    found = Calibration.fit([HeldOut(y, y + np.linspace(0, 0.1, 63))], 0.3)
    assert found.probabilities(np.array([-9.0, 9.0])) == pytest.approx([1 / 62, 4 / 5])


def test_the_expected_hits_of_a_list_hold_those_of_new_lists():
    """Also where the new list has more hits than the old ones, as its scores say."""
    rng = np.random.default_rng(0)
    held, sums = [], []
    for _ in range(25):
        calibration = Calibration.fit([drawn(rng, 600, noise=0) for _ in range(5)], 0.01)
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


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.where(X[:, 0] + rng.standard_normal(200) > 1, 1.0, -1.0)
    return Model.fit(X, y, "logistic-regression"), X


@pytest.mark.parametrize("n", [400, 8000])
def test_a_saved_model_keeps_its_probabilities(model, tmp_path, n):
    plain, X = model
    rng = np.random.default_rng(0)
    calibrated = plain.calibrated([drawn(rng, n), drawn(rng, n)], 0.3)
    calibrated.save(tmp_path / "m.npz")
    loaded = Model.load(tmp_path / "m.npz")
    found = loaded.predict_proba(X)
    assert np.array_equal(found, calibrated.predict_proba(X))
    assert found.sum(axis=1) == pytest.approx(np.ones(200))
    assert loaded.calibration.expected(found[:9, 1], 90) == calibrated.calibration.expected(
        found[:9, 1], 90
    )
    plain.save(tmp_path / "m.npz")  # as a version without probabilities does
    old = Model.load(tmp_path / "m.npz")
    assert old.calibration is None
    with raises(InputError, "precbench fit"):
        old.predict_proba(X)


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
    _, lists, share = held_out_quality(dataset, held_out_splits(dataset, 5, 0), 100, how)
    model = Model.fit(X[known], y[known], **how)
    found = model.calibrated(lists, share, X[known])
    scores = found.decision_function(X[new])
    top = np.argsort(-scores)[:1000]
    hits = np.count_nonzero(y[new][top] > 0)
    assert found.calibration.expected(scores[top], 20000).mean == pytest.approx(hits, rel=0.1)
    as_it_was = model.calibrated(lists, share).probabilities(scores)
    assert np.array_equal(as_it_was, found.probabilities(scores)) == (solver[0] == "l")


def card_precision(table, k):
    """The handbook's loop over days and cards, which forgets the cards that were found."""
    found, values = [], []
    for _, day in table.groupby("day"):
        cards = day[~day["card"].isin(found)].groupby("card").agg({"score": "max", "fraud": "max"})
        top = cards.sort_values("score", ascending=False).head(k)
        found += [*top.index[top["fraud"] == 1]]
        values.append(top["fraud"].sum() / k)
    return np.mean(values)


def test_the_first_of_each_day():
    rng = np.random.default_rng(0)
    lists, tables = [], []
    for _ in range(3):
        of = drawn(rng, 200, 0.2)
        days, cards = np.sort(rng.integers(0, 8, 200)), rng.integers(0, 40, 200)
        lists.append(of._replace(days=days, entities=cards))
        table = {"day": days, "card": cards, "score": of.scores, "fraud": (of.y > 0) * 1}
        tables.append(pd.DataFrame(table))
    rows, cards = measure_length(lists, 0.1, [5, 0.1, 5, 26], 300, 2000).by_day
    of_rows = [card_precision(t.assign(card=range(200)), 5) for t in tables]
    expected = share_interval(of_rows, 0.1)
    assert [rows.precision, *rows.interval] == pytest.approx([*expected])
    of_cards = [card_precision(table, 5) for table in tables]
    expected = share_interval(of_cards, 0.1)
    assert [cards.precision, *cards.interval] == pytest.approx([*expected])
    assert (rows.k, rows.days, rows.of_entities, cards.of_entities) == (5, 8, False, True)


def test_days_of_dates_and_of_numbers(payments, monkeypatch):
    monkeypatch.chdir(payments)
    table = pd.read_csv("payments.csv").assign(card=np.arange(1200) // 2)
    moments = pd.Timestamp("2026-01-01T12:00") + pd.to_timedelta(np.arange(1200) // 40, unit="D")
    found = []
    for name, times in (("dates", moments.astype(str)), ("numbers", np.arange(1200) // 40)):
        table.assign(when=times).to_csv(f"{name}.csv", index=False)
        given = [*GIVEN, "--time", "when", "--groups", "card", "--k", 10, "--splits", 2]
        result = succeed("fit", f"{name}.csv", *given, "--save", f"{name}.npz")
        about = json.loads(succeed("show", f"{name}.npz", "--json").stdout)
        found.append(about["quality"]["length"]["by_day"])
        assert (
            "The first 10 entities of each day, each counted until it is found: " in result.stdout
        )
    assert found[0] == found[1]
    assert [of["days"] for of in found[0]] == [8, 8]  # a quarter of thirty days


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
    assert "Hits by length of the list, from 2,000 new rows" in text and "20 (k)" in text
    assert "The most profitable length is " in text
    about = json.loads(succeed("show", "m.npz", "--json").stdout)
    length = about["quality"]["length"]
    assert about["quality"]["k"] == 20 and length["k"] == [20, 100]
    shown = succeed("show", "m.npz").stdout
    assert "Gain table" in shown and "The most profitable length is " in shown
    plain = succeed("score", "m.npz", "payments.csv", "--top", 50)
    assert plain.stdout.startswith("rank,row,score\n")
    scored = succeed("score", "m.npz", "payments.csv", "--top", 50, "--probability", "--json")
    rows = pd.DataFrame(json.loads(scored.stdout))
    assert [*rows] == ["rank", "row", "score", "probability"]
    hits = rows["probability"].sum()
    tells(scored.stderr, "expect about")
    assert f"expect about {hits:.1f} hits among the listed rows (" in scored.stderr
    assert 0.8 < hits / (50 * length["curve"]["precision"][8]) < 1.25
    assert rows["probability"].is_monotonic_decreasing


def test_compare_says_how_long_and_reports_it(payments, monkeypatch):
    monkeypatch.chdir(payments)
    given = ["payments.csv", *GIVEN, "--k", 10, "--k", 30, "--splits", 3, "--jobs", 1]
    worth = ["--gain", 200, "--cost", 15]
    text = succeed("compare", *given, *worth, "--save", "c.npz").stdout
    assert "\nNext: precbench score c.npz NEW.csv --top 10\n" in text
    assert "30 (k)" in text and "The most profitable length is " in text
    found = json.loads(succeed("compare", *given, *worth, "--json").stdout)
    length = found["length"]
    assert (found["k"], length["k"]) == (3, [10, 30])
    curve = pd.DataFrame(length["curve"]).set_index("length")
    of_list = found["list"]
    assert curve.loc[10, ["hits", "low", "high"]].tolist() == pytest.approx(
        [of_list["hits"], of_list["low"], of_list["high"]]
    )
    folder = payments / found["folder"]
    page = (folder / PAGE).read_text()
    assert f"about {of_list['hits']:.0f} hits in 10 ({of_list['low']:.0f} to" in page
    assert "How long a list" in page and "The most profitable length is " in page
    assert "The columns of payments.csv" in page
    assert "cumulative capture" in page and "<figcaption>length</figcaption>" in page
    stored, *_ = read_length(folder)
    assert stored.model_dump(exclude={"of", "tables", "command"}) == length
    csv = pd.read_csv(folder / "figures" / "length.csv")
    assert csv["hits"].tolist() == pytest.approx(curve["hits"].tolist())
    assert Model.load("c.npz").predict_proba(np.ones((2, 2))).shape == (2, 2)
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
    assert choice.length.profit.column == "gain" and choice.length.profit.cost == 15
    assert json.loads(json.dumps(choice.to_dict()))["length"]["rows"] == 1200
    for wrong, places in (
        ({"k": []}, "k"),
        ({"k": [10, 0]}, "0"),
        ({"k": 10, "cost": 3.0}, "cost"),
        ({"k": 10, "gain": -1.0}, "gain -1.0"),
        ({"k": 10, "gain": 1e308}, "gain 1e+308"),
        ({"k": 10, "gain": np.full(1200, np.nan)}, "gain"),
        ({"k": 10, "gain": np.ones(3)}, "gain"),
        ({"k": 10, "gain": ["much"] * 1200}, "gain"),
        ({"k": 10, "gain": "much"}, "gain much"),
    ):
        with raises(InputError, places):
            precbench.compare(X, y, **wrong, **options)


def test_wrong_options_are_refused(payments, monkeypatch):
    monkeypatch.chdir(payments)
    pd.read_csv("payments.csv").assign(amount=lambda t: t["amount"] - 20).to_csv(
        "owed.csv", index=False
    )
    np.savez("rows.npz", X=np.ones((9, 2)), y=np.arange(9) % 2)
    fit = ["fit", "payments.csv", *GIVEN, "--save", "x.npz"]
    for more, places in (
        (["--cost", 15], "cost"),
        (["--gain", "nan"], "gain nan"),
        (["--gain", -3], "gain -3.0"),
        (["--gain", 3, "--cost", "inf"], "cost inf"),
        (["--gain", 3, "--gain-column", "amount"], "gain column"),
        (["--gain-column", "amuont"], "payments.csv amuont"),
        (["--k", 10, "--k", "ten"], "ten"),
        (["--k", 10, "--k", 1300], "1300"),
        (["--k", 10, "--list-rows", 9], "10 9"),
    ):
        refused([*fit, *more], places)
    refused(["compare", "payments.csv", *GIVEN, *more], places)
    refused(["fit", "owed.csv", *GIVEN, "--save", "x.npz", "--gain-column", "amount"], "amount row")
    refused(["compare", "rows.npz", "--gain-column", "amount"], "rows.npz --gain-column")
    Model.fit(np.ones((9, 2)), np.arange(9) % 2, "logistic-regression").save("bare.npz")
    succeed("fit", "payments.csv", *GIVEN, "--save", "old.npz")
    replace(Model.load("old.npz"), calibration=None).save("old.npz")
    refused(["score", "old.npz", "payments.csv", "--probability"], "probabilities")
    assert invoke("score", "old.npz", "payments.csv", "--top", 1).exit_code == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["curve"].pop("hits"),
        lambda a: a["curve"]["hits"].append(0.5),
        lambda a: a["groups"].pop("lift"),
        lambda a: a["k"].append(21),
        lambda a: a["k"].clear(),
        lambda a: a["curve"]["length"].__setitem__(0, 0),
        lambda a: a.update(profit={}),
    ],
)
def test_damaged_lengths_are_refused(change):
    about = measure_length([HeldOut(Y, SCORES)], 0.5, [3], 8, 20).model_dump()
    assert checked(about, Length)
    change(about)
    with pytest.raises(ValueError):
        checked(about, Length)
