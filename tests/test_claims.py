"""The ledger of published numbers: its statistics, each verdict, the shipped claims, the command.

Results are written by hand (`write_results`), so that every verdict can be reached without
training; two runs are real.
"""

import importlib
import io
import json
import math
import re
import shlex
import shutil
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from precbench import metrics
from precbench.claims import load_claims, load_deviations, make_ledger, published, read_evidence
from precbench.claims.evidence import WALL_SECONDS, Evidence
from precbench.claims.kinds import (
    BoundClaim,
    ConsistencyClaim,
    ExactClaim,
    FactClaim,
    MeanClaim,
    OrderClaim,
    RatioClaim,
    Reading,
    SpreadClaim,
    StatementClaim,
    VariationClaim,
)
from precbench.claims.ledger import (
    LedgerRow,
    changes,
    read_ledger,
    reference_path,
    rewritten,
    to_csv,
    updated,
)
from precbench.claims.verdicts import (
    MIN_REPETITIONS,
    MIN_SPLITS,
    MIN_TIMED_SPLITS,
    Verdict,
    agrees,
    beyond_all_others,
    has_spread,
    mean_test,
    parse_printed,
    place,
    prediction_error,
    sign_test,
)
from precbench.data import DATASETS
from precbench.errors import InputError
from precbench.experiment import Study, list_configs, load_config
from precbench.report.ledger import counts_table, ledger_markdown, missing_table, open_tables
from tests.helpers import ROOT, invoke, refused, run

check_command = importlib.import_module("precbench.cli.check")  # hidden by the function
REPRODUCED = {Verdict.REPRODUCED, Verdict.WITH_DEVIATION}
HOUSING = "rudin2009-table-5-housing"


# --- printed numbers ---


@pytest.mark.parametrize(
    ("text", "power", "value", "unit"),
    [
        ("33", 0, 33, 1),
        ("17,160.17", 0, 17160.17, 0.01),
        ("2.73*10^3", 0, 2730, 10),
        ("2.056 * 10^4", 0, 20560, 10),
        ("6.5515", 10, 6.5515e10, 1e6),
        ("90%", -2, 0.90, 0.01),
        ("9.57 %", 0, 9.57, 0.01),
        ("-0.50", 0, -0.5, 0.01),
        ("56.50*10^7", 2, 5.65e10, 1e7),
        ("16.5K", 0, 16500, 100),
    ],
)
def test_printed_numbers(text, power, value, unit):
    assert parse_printed(text, power) == pytest.approx((value, unit), rel=1e-15)


@pytest.mark.parametrize("text", ["", "f_1", "0.83.70", "close to 1", "10^", "1.5e3", ".5", "1 2"])
def test_invalid_printed_numbers(text):
    with pytest.raises(InputError, match="not a printed number"):
        parse_printed(text)


@given(st.integers(1, 10**9), st.integers(0, 6), st.integers(-3, 12), st.floats(-3, 3))
def test_a_number_agrees_within_half_a_unit(digits, decimals, power, units):
    """In exact arithmetic, away from the edge, where rounding may decide."""
    assume(abs(abs(units) - 0.5) > 1e-3)
    whole, rest = divmod(digits, 10**decimals)
    text = f"{whole:,}" + (f".{rest:0{decimals}}" if decimals else "")
    exact = Fraction(digits) * Fraction(10) ** (power - decimals)
    printed = parse_printed(text, power)
    assert printed.value == float(exact)
    unit = Fraction(10) ** (power - decimals)
    measured = float(exact + Fraction(units) * unit)
    assert agrees(printed, measured) == (abs(units) < 0.5)
    assume(abs(units) > 1e-3 and abs(units - 1) > 1e-3)
    assert agrees(printed, measured, truncated=True) == (0 <= units < 1)


def test_edges_of_agreement():
    tie = parse_printed("0.1")
    assert agrees(tie, 0.15) and agrees(tie, 0.05) and not agrees(tie, 0.150001)
    assert agrees(parse_printed("1.56*10^5"), 156_638, truncated=True)
    assert not agrees(parse_printed("1.56*10^5"), 156_638)
    assert not agrees(parse_printed("1.56*10^5"), 155_999, truncated=True)
    assert not agrees(tie, math.nan) and not agrees(tie, math.inf)


# --- where printed values lie among our repetitions ---


def quantile(values, q):
    """Interpolate between the two neighbours, in plain Python."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def distance(value, column):
    return abs(value - quantile(column, 0.5)) / (quantile(column, 0.75) - quantile(column, 0.25))


def mahalanobis(row, others):
    away = row - others.mean(axis=0)
    return float(away @ np.linalg.inv(np.atleast_2d(np.cov(others.T))) @ away)


def literal(rows):
    """Return p, p of all rows, and the limit of the distance of each row."""
    scores = [
        ([mahalanobis(row, np.delete(samples, i, axis=0)) for i, row in enumerate(samples)], here)
        for printed, samples in rows
        for here in [mahalanobis(printed, samples)]
    ]

    def scaled(value, each):
        logs = np.log(each).tolist()
        return (math.log(value) - quantile(logs, 0.5)) / (
            quantile(logs, 0.95) - quantile(logs, 0.5)
        )

    farthest = np.max([[scaled(value, each) for value in each] for each, _ in scores], axis=0)
    n = len(farthest)
    # What is above it has, with itself, at most 5 % of all n + 1 as far out.
    threshold = min(f for f in farthest if 1 + sum(g > f for g in farthest) <= 0.05 * (n + 1))
    for each, here in scores:
        logs = np.log(each).tolist()
        spread = quantile(logs, 0.95) - quantile(logs, 0.5)
        yield (
            (1 + sum(e >= here for e in each)) / (n + 1),
            (1 + sum(f >= scaled(here, each) for f in farthest)) / (n + 1),
            math.exp(quantile(logs, 0.5) + threshold * spread),
        )


@pytest.mark.parametrize("seed", range(3))
def test_placement_follows_its_definition(seed):
    rng = np.random.default_rng(seed)
    samples = rng.standard_t(3, (37 + seed, 4)) * [1, 10, 0.1, 5] + [0, 100, 0, -3]
    samples[:, 1] += 20 * samples[:, 0]
    printed = np.array([0, 100, 0, -3]) + rng.standard_normal(4)
    printed[1] = samples[5, 1]
    rows = [(printed[part], samples[:, part]) for part in (slice(0, 3), slice(3, 4))]
    placed = place(rows)
    for (values, ours), found, (p, p_of_all, limit) in zip(
        rows, placed, literal(rows), strict=True
    ):
        columns = ours.T.tolist()
        expected = [distance(v, c) for v, c in zip(values, columns, strict=True)]
        np.testing.assert_allclose(found.distance, expected)
        below = [
            100 * (sum(x < v for x in c) + 0.5 * sum(x == v for x in c)) / len(c)
            for v, c in zip(values, columns, strict=True)
        ]
        np.testing.assert_allclose(found.percentile, below)
        assert (found.p, found.p_of_all) == pytest.approx((p, p_of_all))
        for error, unit in zip(found.smallest_error, np.eye(len(values)), strict=True):
            away = ours.mean(axis=0) + error * unit
            assert mahalanobis(away, ours) == pytest.approx(limit)


def tables(n_tables, n, seed):
    """Draw tables of three rows: columns that follow each other closely, as ours do.

    From column to column a value changes little, in most draws hardly at all and in some by a
    jump (a kurtosis of 20 and more, like the average reciprocal rank of MAGIC); levels are heavy
    in the tails, or logarithms that span powers of ten, or go by small steps.
    """
    rng = np.random.default_rng(seed)
    for _ in range(n_tables):
        shared = rng.standard_normal((n, 1))
        levels = [rng.standard_t(2, (n, 1)), 2 * shared, rng.binomial(30, 0.5, (n, 1)) / 30]
        steps = [
            0.1 * rng.standard_t(2.5, (n, 4)),
            np.log(np.exp(shared) + rng.exponential(1, (n, 4))),
            0.001 * rng.standard_normal((n, 4)) + (rng.random((n, 4)) < 0.03),
        ]
        yield [np.cumsum(np.hstack(row), axis=1) for row in zip(levels, steps, strict=True)]


def is_found(placed):
    return any(row.p_of_all <= 0.05 for row in placed)


def test_no_false_alarm():
    """If printed values are a draw like ours, at most about 5 % of the papers have a wrong row."""
    n_tables, alarms = 300, 0
    for table in tables(n_tables, MIN_REPETITIONS + 1, seed=7):
        alarms += is_found(place([(row[0], row[1:]) for row in table]))
    assert binomtest(alarms, n_tables, 0.05).pvalue > 0.01, alarms


@pytest.mark.parametrize(
    ("wrong", "least"),
    [
        (lambda row: row[[0, 1, 2, 4, 3]], 0.25),  # two columns change places
        (lambda row: row[::-1], 0.5),
        (lambda row: row + 8, 0.9),  # the measure differs by a factor
        (lambda row: row + 5 * np.eye(5)[2], 0.9),  # one misprint
    ],
)
def test_planted_errors_are_found(wrong, least):
    """The printed row is wrong in one of three rows, the second, which is a trend in logarithms."""
    n_tables, found = 40, 0
    for table in tables(n_tables, 151, seed=11):
        rows = [(row[0], row[1:]) for row in table]
        rows[1] = wrong(rows[1][0]), rows[1][1]
        found += place(rows)[1].p_of_all <= 0.05
    assert found >= least * n_tables, found / n_tables


def test_the_power_is_what_it_says():
    [table] = tables(1, 150, seed=3)
    centres = [(row.mean(axis=0), row) for row in table]
    assert not is_found(place(centres))
    for i, placement in enumerate(place(centres)):
        for j, sign in product(range(5), (-1, 1)):
            for factor, found in ((0.999, False), (1.001, True)):
                planted = list(centres)
                error = sign * factor * placement.smallest_error[j] * np.eye(5)[j]
                planted[i] = centres[i][0] + error, table[i]
                placed = place(planted)
                assert (placed[i].p_of_all <= 0.05) == found
                assert is_found(placed) == found


def test_a_difference_within_the_row_is_sharper_than_its_values():
    level = normal(150, 0, 1)[:, None]
    samples = level + 0.01 * np.random.default_rng(1).standard_normal((150, 3))
    [high] = place([(samples.mean(axis=0) + 1.5, samples)])
    [apart] = place([(samples.mean(axis=0) + 0.1 * np.eye(3)[1], samples)])
    assert high.p_of_all > 0.05 and apart.p_of_all <= 0.05
    assert (apart.distance < 0.2).all() and (apart.smallest_error < 0.05).all()


def test_columns_that_are_always_alike():
    samples = normal(150)[:, None] * [1, 1, 2]
    [same] = place([(np.array([0.8, 0.8, 1.6]), samples)])
    [other] = place([(np.array([0.8, 0.8001, 1.6]), samples)])
    assert same.p_of_all > 0.05 and other.p_of_all <= 0.05
    assert (same.smallest_error == 0).all()


def test_distances_do_not_depend_on_units():
    [table] = tables(1, 120, seed=5)
    scale, shift = np.array([1, 1e6, 1e-6, -3, 2]), np.array([5, 0, -1, 2, 0])
    one = place([(row[0], row[1:]) for row in table])
    other = place([(row[0] * scale + shift, row[1:] * scale + shift) for row in table])
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.distance, b.distance, rtol=1e-6, atol=1e-9)
        assert (a.p, a.p_of_all) == pytest.approx((b.p, b.p_of_all))
        np.testing.assert_allclose(a.smallest_error * abs(scale), b.smallest_error, rtol=1e-6)


def test_repetitions_with_an_extreme_cell():
    samples = np.array([[1, 9, 5], [2, 8, 5], [3, 7, 4], [4, 6, 3], [2, 8, 9]])
    assert beyond_all_others(samples) == 3


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_spread_is_positive_whichever_repetition_is_left_out(sample):
    sample = np.array(sample, float)
    if has_spread(sample):
        for i in range(len(sample)):
            low, high = np.quantile(np.delete(sample, i), [0.25, 0.75])
            assert high > low
    if len(sample) >= 8 and len(set(sample)) == len(sample):
        assert has_spread(sample)
    assert not has_spread(np.full(len(sample), 0.5))


# --- the sign test ---


def share_of_coins(wins, n):
    """Count all outcomes of n coins with at least so many wins."""
    return sum(sum(coins) >= wins for coins in product((0, 1), repeat=n)) / 2**n


@pytest.mark.parametrize(("wins", "losses", "ties"), [(3, 0, 0), (5, 4, 2), (0, 6, 1), (9, 1, 5)])
def test_sign_test_counts_coins(wins, losses, ties):
    better = np.array([1.0] * wins + [0.0] * losses + [0.5] * ties)
    found = sign_test(better, np.full(better.size, 0.5))
    assert found[:2] == (wins, losses)
    assert found[2] == pytest.approx(share_of_coins(wins, wins + losses))


@given(st.lists(st.integers(-2, 2), max_size=60))
def test_sign_test_is_one_sided(differences):
    better = np.array(differences, float)
    wins, losses, p = sign_test(better, np.zeros(better.size))
    assert (wins, losses) == (sum(better > 0), sum(better < 0))
    expected = 1.0
    if wins + losses:
        expected = binomtest(wins, wins + losses, 0.5, alternative="greater").pvalue
    assert p == pytest.approx(expected)
    turned = sign_test(np.zeros(better.size), better)
    assert turned[:2] == (losses, wins)
    assert p > 0.5 or turned[2] > 0.5


def test_ties_alone_show_nothing():
    assert sign_test(np.zeros(30), np.zeros(30)) == (0, 0, 1.0)


# --- each kind of claim ---


def write_results(folder, cells, name="toy", seconds=None, **changes):
    """Write what a run leaves: `cells` maps (data set, solver, metric, part) to values by split.

    `seconds` maps solvers to theirs; what else is given replaces columns (of a row, if the value
    is a function of the cell's key) or keys of ``experiment.json``.
    """
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "name": name,
        "title": "A toy",
        "source": None,
        "plots": [],
        "metrics": list(dict.fromkeys(metric for _, _, metric, _ in cells)),
        "measures": {
            metric: {
                "name": metric.partition("(")[0],
                "parameters": {},
                "written": metric,
                "smaller_is_better": metric.startswith("pnorm_risk"),
            }
            for _, _, metric, _ in cells
        },
        "solvers": list(dict.fromkeys(solver for _, solver, _, _ in cells)),
        "built_in_solvers": [],
        "datasets": list(dict.fromkeys(dataset for dataset, *_ in cells)),
        "sweep": None,
        "protocol": "",
        "scaling": "",
        "folds": 1,
        "smoke": False,
    }
    stand_in = changes.get("stand_in", False)
    shape = {"rows": 506, "features": 13, "positives": 35, "stand_in": stand_in}
    shape["training_rows"] = 400
    about["data"] = dict.fromkeys(about["datasets"], shape)
    about |= {key: value for key, value in changes.items() if key in about}
    (folder / "experiment.json").write_text(json.dumps(about))
    frames = []
    for (dataset, solver, metric, part), values in cells.items():
        rows = pd.Series(values, dtype=float).rename_axis("split").reset_index(name="value")
        columns = {
            "experiment": name,
            "dataset": dataset,
            "title": dataset,
            "stand_in": False,
            "solver": solver,
            "seed": 1,
            "sweep": "",
            "part": part,
            "checkpoint": 1,
            "rows_seen": 1,
            "cpu_seconds": 1.0,
            "wall_seconds": 1.0 if seconds is None else seconds[solver],
            "metric": metric,
            "status": "ok",
            "reason": "",
            "stopped": "",
            "timing": "sequential",
            "run": "1a",
            "chosen": "",
            "tuning_seconds": 0.0,
            "final": True,
        }
        for column in columns.keys() & changes.keys():
            value = changes[column]
            columns[column] = value(solver) if callable(value) else value
        frames.append(rows.assign(**columns))
        frames.append(rows.assign(**columns | {"checkpoint": 0, "final": False}, value=1e9))
    pd.concat(frames).to_csv(folder / "results.csv", index=False)
    return folder


def judged(claims, *folders, values=None):
    """Return the rows of the ledger by the last piece of their ids."""
    evidence = read_evidence(folders)
    evidence.values = values or {}
    rows = make_ledger(claims, evidence)
    assert [row.id for row in rows] == [claim.id for claim in claims]
    return rows


def claim(kind, printed, **fields):
    model = {"mean": MeanClaim, "order": OrderClaim, "ratio": RatioClaim, "exact": ExactClaim}
    model |= {"fact": FactClaim, "bound": BoundClaim, "statement": StatementClaim}
    model |= {"spread": SpreadClaim, "variation": VariationClaim, "consistency": ConsistencyClaim}
    number = fields.pop("number", 0)
    about = {
        "id": f"toy/table-1/{number}",
        "where": "Table 1",
        "printed": printed,
        "experiment": "toy",
        "config": "letter",
        "kind": kind,
    }
    if kind not in ("exact", "bound", "statement", "consistency"):
        about["dataset"] = "housing"
    if kind in ("mean", "order", "spread"):
        about["metric"] = "auc"
    return model[kind](**about | fields)


def mean(printed, solver="a", **fields):
    return claim("mean", printed, solver=solver, **fields)


def order(better="a", worse="b", **fields):
    return claim("order", "better", better=[better], worse=[worse], **fields)


def normal(n, centre=0.8, spread=0.01, seed=0):
    return centre + spread * np.random.default_rng(seed).standard_normal(n)


def auc_of(**solvers):
    return {("housing", solver, "auc", "test"): values for solver, values in solvers.items()}


def test_mean_is_judged_by_the_threshold(tmp_path):
    ours = normal(200)
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.8f}")], folder)
    assert row.verdict is Verdict.REPRODUCED and row.runs == 200
    assert re.fullmatch(r"row: p = [\d.]+, of all rows [\d.]+", row.reason)
    assert float(row.measured) == pytest.approx(np.median(ours), rel=1e-5)
    low, high = map(float, row.spread.split(" to "))
    assert (low, high) == pytest.approx(np.quantile(ours, [0.25, 0.75]), rel=1e-3)
    assert row.percentile == pytest.approx(50, abs=1)
    for factor, verdict in ((0.99, Verdict.REPRODUCED), (1.01, Verdict.NOT_REPRODUCED)):
        for sign in (-1, 1):
            printed = np.mean(ours) * (1 + sign * factor * row.smallest_error)
            [planted] = judged([mean(f"{printed:.10f}")], folder)
            assert planted.verdict is verdict
            assert planted.smallest_error == pytest.approx(row.smallest_error)
    assert "row: p = 0.05, of all rows 0.05; " in planted.reason
    [beyond] = judged([mean(f"{ours.max() * 1.001:.10f}")], folder)
    assert "above all draws, as 2 of them are in some cell" in beyond.reason


@pytest.mark.parametrize(
    ("printed", "power", "n", "verdict"),
    [
        ("0.9", 0, 50, Verdict.REPRODUCED),
        ("90%", -2, 50, Verdict.REPRODUCED),
        ("90", -2, 50, Verdict.REPRODUCED),
        ("0.91", 0, 50, Verdict.NOT_REPRODUCED),
        ("89%", -2, 50, Verdict.NOT_REPRODUCED),
        ("0.9", 0, 19, Verdict.INCONCLUSIVE),
    ],
)
def test_printed_average_agrees_to_its_digits(tmp_path, printed, power, n, verdict):
    values = np.tile([0.88, 0.916], n)[:n]  # mean 0.898
    folder = write_results(tmp_path, auc_of(a=values))
    [row] = judged([mean(printed, averaged=True, power_of_ten=power)], folder)
    assert (row.verdict, row.measured) == (verdict, f"{values.mean():.6g}")
    assert (row.runs, row.deviation) == (n, "")


def test_a_claim_may_look_at_a_checkpoint(tmp_path):
    folder = write_results(tmp_path, auc_of(a=[0.9] * 20, b=[0.8] * 20))
    table = pd.read_csv(folder / "results.csv")
    early = (table["checkpoint"] == 0) & (table["solver"] == "a")
    table.loc[early, "value"] = 0.1
    table.to_csv(folder / "results.csv", index=False)
    claims = [
        order(number="last"),
        order(number="first", checkpoint=0),
        order(number="no", checkpoint=7),
    ]
    last, first, no = judged(claims, folder)
    assert last.verdict is Verdict.REPRODUCED
    assert first.measured == "holds in 0 of 20, fails in 20"
    assert no.verdict is Verdict.INCONCLUSIVE


def test_a_mean_of_logarithms(tmp_path):
    ours = np.exp(normal(150, 20, 1.5))
    folder = write_results(tmp_path, auc_of(a=ours))
    [row] = judged([mean(f"{np.median(ours):.3f}", logarithm=True)], folder)
    assert row.verdict is Verdict.REPRODUCED
    assert float(row.measured) == pytest.approx(np.median(ours), rel=1e-4)
    middle = np.exp(np.log(ours).mean())
    # Where the power of ten is ours, and hides more than half of one, no digits could be wrong.
    for power, passes in ((0, Verdict.REPRODUCED), (8, Verdict.NO_POWER)):
        for factor, verdict in ((0.99, passes), (1.01, Verdict.NOT_REPRODUCED)):
            times = math.exp(math.log1p(row.smallest_error) * factor)
            for wrong in (middle * times, middle / times):
                text = f"{wrong / 10**power:.9f}"
                [planted] = judged([mean(text, logarithm=True, power_of_ten=power)], folder)
                assert planted.verdict is verdict
    near = np.exp(normal(150, 20, 0.3))
    folder = write_results(tmp_path / "near", auc_of(a=near))
    scaled = {"logarithm": True, "power_of_ten": 8}
    [row] = judged([mean(f"{np.median(near) / 1e8:.9f}", **scaled)], folder)
    assert row.verdict is Verdict.REPRODUCED and row.smallest_error < math.sqrt(10) - 1


def test_one_wrong_cell_is_detected_among_many(tmp_path):
    """All cells of Table 5 as published, one of them 2 % off."""
    claims = [c for c in load_claims() if isinstance(c, MeanClaim) and c.paper == "rudin2009"]
    claims = [c for c in claims if c.experiment == HOUSING]
    assert len(claims) == 49
    cells = {}
    for i, c in enumerate(claims):
        value = parse_printed(c.printed, c.power_of_ten).value
        draws = value * normal(MIN_REPETITIONS, 1, 0.003, seed=i)
        cells[c.dataset, c.solver, c.metric, c.part] = np.repeat(draws, 3)
    folder = write_results(tmp_path, cells, name=HOUSING, folds=3)
    assert {row.verdict for row in judged(claims, folder)} <= REPRODUCED
    wrong = claims[17]
    off = float(wrong.printed) * 1.02
    planted = [*claims[:17], wrong.model_copy(update={"printed": f"{off:.6f}"}), *claims[18:]]
    found = {row.id: row for row in judged(planted, folder) if row.verdict not in REPRODUCED}
    assert set(found) == {c.id for c in claims if c.row == wrong.row} and len(found) == 7
    assert found[wrong.id].smallest_error < 0.02
    assert len({row.reason.partition(";")[0] for row in found.values()}) == 1


@pytest.mark.parametrize("n", [1, MIN_REPETITIONS - 1])
def test_few_repetitions_are_inconclusive(tmp_path, n):
    folder = write_results(tmp_path, auc_of(a=normal(n)))
    for printed in ("0.8", "0.1"):
        [row] = judged([mean(printed)], folder)
        assert row.verdict is Verdict.INCONCLUSIVE and row.runs == n
        assert row.reason == f"needs {MIN_REPETITIONS} repetitions"
        assert row.distance is None and row.percentile is None


def test_a_repetition_without_a_fold_does_not_count(tmp_path):
    folds = dict(enumerate(normal(3 * MIN_REPETITIONS)))
    values = np.reshape(list(folds.values()), (-1, 3)).mean(axis=1)
    folder = write_results(tmp_path, auc_of(a=folds), folds=3)
    [row] = judged([mean("0.8")], folder)
    assert row.verdict is Verdict.REPRODUCED and row.runs == MIN_REPETITIONS
    assert float(row.measured) == pytest.approx(np.median(values), rel=1e-5)
    del folds[4]
    [row] = judged([mean("0.8")], write_results(tmp_path / "b", auc_of(a=folds), folds=3))
    assert row.verdict is Verdict.INCONCLUSIVE and row.runs == MIN_REPETITIONS - 1
    [row] = judged([mean("0.8")], write_results(tmp_path / "c", auc_of(a=[0.8, 0.7]), folds=3))
    assert row.verdict is Verdict.INCONCLUSIVE and row.runs == 0 and row.measured == ""


def test_values_that_are_not_finite_or_all_equal(tmp_path):
    cells = auc_of(zero=[0.0, *np.exp(normal(120))], equal=[0.5] * 150, inf=[np.inf] * 120)
    folder = write_results(tmp_path, cells)
    claims = [
        mean("1", "zero", number=1, logarithm=True),
        mean("0.5", "equal", number=2),
        mean("0.9", "equal", number=3),
        mean("0.9", "inf", number=4),
    ]
    rows = judged(claims, folder)
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    reasons = [row.reason for row in rows]
    finite, equal = "a repetition has no finite value", "half of the repetitions are equal"
    assert reasons == [finite, equal, equal, finite]
    assert rows[0].measured == "" and rows[1].measured == "0.5"


def test_cell_without_spread_leaves_the_threshold_alone(tmp_path):
    """Its distances are infinite: were it judged, nothing would be farther than it allows."""
    hits = np.where(np.arange(200) % 10 == 0, 0.9, 1.0)
    folder = write_results(tmp_path, auc_of(a=normal(200), hits=hits))
    right, wrong, steps = judged(
        [mean("0.80", number=1), mean("0.99", number=2), mean("0.1", "hits", number=3)], folder
    )
    assert right.verdict is Verdict.REPRODUCED
    assert wrong.verdict is Verdict.NOT_REPRODUCED
    assert steps.verdict is Verdict.INCONCLUSIVE


def test_the_right_side_of_the_first_column_is_a_trend(tmp_path):
    first = {"first_solver": "a", "first_printed": "0.800"}
    cells = auc_of(a=normal(120), b=normal(120, 0.85, seed=1), c=normal(120, 0.8, seed=2))
    folder = write_results(tmp_path, cells)
    claims = [
        mean("0.990", "b", number=1, **first, deviations=["half-scores"]),
        mean("0.600", "b", number=2, **first),
        mean("0.990", "c", number=3, **first),
        mean("0.990", "a", number=4, **first),
        mean("0.990", "b", number=5),
    ]
    rows = judged(claims, folder)
    trend, wrong = Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED
    assert [row.verdict for row in rows] == [trend, wrong, wrong, wrong, wrong]
    assert rows[0].deviation == "half-scores"
    wins = sum(cells["housing", "b", "auc", "test"] > cells["housing", "a", "auc", "test"])
    assert f"in {wins} of 120" in rows[0].reason and f"in {120 - wins} of 120" in rows[1].reason
    assert "it is the first of its row" in rows[3].reason


def test_a_trend_is_paired_by_repetition(tmp_path):
    """The other side lacks some repetitions: what lies in the same place is not the same split."""
    hard = np.tile([0.0, 0.5], 100)
    b = {i: hard[i] + 0.01 + normal(1, 0, 1e-4, i)[0] for i in range(200)}
    a = {i: hard[i] + normal(1, 0, 1e-4, 500 + i)[0] for i in range(200) if i != 0}
    folder = write_results(tmp_path, auc_of(a=a, b=b))
    [row] = judged([mean("99", "b", first_solver="a", first_printed="1")], folder)
    assert row.verdict is Verdict.TREND_ONLY and "in 199 of 199" in row.reason


def test_the_first_column_may_be_missing(tmp_path):
    folder = write_results(tmp_path, auc_of(b=normal(120)))
    [row] = judged([mean("0.99", "b", first_solver="a", first_printed="0.8")], folder)
    assert row.verdict is Verdict.NOT_REPRODUCED
    assert "the first of its row was not measured" in row.reason


def test_all_means_are_judged_by_repetitions_that_all_have(tmp_path):
    a = dict(enumerate(normal(220)))
    folder = write_results(tmp_path, auc_of(a=a, b={i: a[i] ** 2 for i in range(60, 220)}))
    claims = [mean("0.8", number=1), mean("0.64", "b", number=2)]
    rows = judged(claims, folder)
    assert {row.runs for row in rows} == {160}
    assert {row.verdict for row in rows} == {Verdict.REPRODUCED}
    apart = auc_of(a={i: a[i] for i in range(110)}, b={i: a[i] for i in range(110, 220)})
    rows = judged(claims, write_results(tmp_path / "b", apart))
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    assert {row.reason for row in rows} == {
        f"needs {MIN_REPETITIONS} repetitions that all cells have"
    }


def test_a_deviation_goes_with_the_verdict(tmp_path):
    folder = write_results(tmp_path, auc_of(a=normal(120)))
    [row] = judged([mean("0.8", deviations=["half-scores", "half-scores"])], folder)
    assert row.verdict is Verdict.WITH_DEVIATION and row.deviation == "half-scores"


@pytest.mark.parametrize(
    ("wins", "losses", "ties", "verdict"),
    [
        (MIN_SPLITS - 1, 0, 0, Verdict.INCONCLUSIVE),
        (0, MIN_SPLITS - 1, 0, Verdict.INCONCLUSIVE),
        (15, 5, 0, Verdict.REPRODUCED),  # p = 0.021
        (14, 6, 0, Verdict.TREND_ONLY),  # p = 0.058
        (10, 10, 0, Verdict.NOT_REPRODUCED),
        (5, 15, 0, Verdict.NOT_REPRODUCED),
        (4, 0, 16, Verdict.TREND_ONLY),
        (5, 0, 15, Verdict.REPRODUCED),
        (0, 0, 20, Verdict.NOT_REPRODUCED),
    ],
)
def test_orders(tmp_path, wins, losses, ties, verdict):
    b = np.linspace(0.2, 0.9, wins + losses + ties)
    a = b + np.repeat([0.01, -0.01, 0], [wins, losses, ties])
    folder = write_results(tmp_path, auc_of(a=a, b=b))
    [row] = judged([order()], folder)
    assert row.verdict is verdict
    assert row.measured == f"holds in {wins} of {b.size}, fails in {losses}"
    assert row.runs == b.size and row.reason
    if verdict is Verdict.INCONCLUSIVE:
        assert row.reason == f"needs {MIN_SPLITS} splits"


@pytest.mark.parametrize(
    ("better", "worse", "wins", "fields", "verdict"),
    [
        # Best of two against one: two of three by chance.
        (["a", "b"], ["c"], 16, {}, Verdict.TREND_ONLY),  # p = 0.15; 0.006 for a coin
        (["a", "b"], ["c"], 18, {}, Verdict.REPRODUCED),  # p = 0.018
        (["a", "b"], ["c"], 13, {}, Verdict.NOT_REPRODUCED),
        (["c"], ["a", "b"], 8, {}, Verdict.NOT_REPRODUCED),  # most splits, whatever chance gives
        (["c"], ["a", "b"], 15, {}, Verdict.REPRODUCED),
        # One draw of the paper: two of three, or one of three, by chance.
        (["a", "b"], ["c"], 67, {"one_draw": True}, Verdict.NO_POWER),
        (["a", "b"], ["c"], 80, {"one_draw": True}, Verdict.REPRODUCED),
        (["c"], ["a", "b"], 45, {"one_draw": True}, Verdict.REPRODUCED),
        (["c"], ["a", "b"], 10, {"one_draw": True}, Verdict.NO_POWER),
        (["c"], ["a", "b"], 5, {"one_draw": True}, Verdict.NOT_REPRODUCED),
    ],
)
def test_the_best_of_several_is_against_chance(tmp_path, better, worse, wins, fields, verdict):
    n = MIN_REPETITIONS if fields else MIN_SPLITS
    low, high = np.full(n, 0.4), np.full(n, 0.6)
    side = np.where(np.arange(n) < wins, high, low)
    values = {**dict.fromkeys(better, side), **dict.fromkeys(worse, low + 0.1)}
    folder = write_results(tmp_path, auc_of(**values))
    [row] = judged([claim("order", "best", better=better, worse=worse, **fields)], folder)
    assert (row.verdict, row.measured) == (verdict, f"holds in {wins} of {n}, fails in {n - wins}")
    chance = len(better) / 3 if len(better) > 1 or fields else 0.5
    assert (f"against {chance:.0%} by chance" in row.reason) == (chance != 0.5)


def test_one_draw_needs_as_many_of_ours_as_a_mean(tmp_path):
    folder = write_results(tmp_path, auc_of(a=normal(99, 0.9), b=normal(99)))
    [row] = judged([order(one_draw=True)], folder)
    assert row.verdict is Verdict.INCONCLUSIVE
    assert row.reason == f"needs {MIN_REPETITIONS} splits"


def test_compared_values_of_an_order(tmp_path):
    n = 30
    low, high = normal(n, 0.3), normal(n, 0.7, seed=1)
    risk, risks = "pnorm_risk(p=4)", {"low": low, "high": high, "between": (low + high) / 2}
    cells = auc_of(low=low, high=high, other=low - 0.01)
    cells |= {("housing", solver, risk, "test"): v for solver, v in risks.items()}
    for part, (first, second) in zip(("test", "training"), ((low, high), (high, low)), strict=True):
        cells["housing", "low", "dcg", part] = first
        cells["housing", "high", "dcg", part] = second
    folder = write_results(tmp_path, cells)
    several = {"better": ["other", "high"], "worse": ["low", "other"]}
    claims = [
        order("high", "low", number=1),
        order("low", "high", number=2),
        order("low", "high", number=3, metric=risk),
        order("high", "low", number=4, metric=risk),
        order("high", "low", number=5, metric="dcg"),
        order("low", "high", number=6, metric="dcg", part="training"),
        claim("order", "the best", number=7, **several),
        claim("order", "near", number=8, better=["low", "other"], worse=["low", "high"], of="gap"),
        claim("order", "near", number=9, better=["low", "high"], worse=["low", "other"], of="gap"),
        claim("order", "x", number=10, better=["low", "high"], worse=["between"], metric=risk),
    ]
    rows = judged(claims, folder)
    holds = [row.verdict in REPRODUCED for row in rows]
    assert holds == [True, False, True, False, True, True, True, True, False, True]


def test_one_run_decides_what_is_not_left_to_chance(tmp_path):
    folder = write_results(tmp_path, auc_of(a=[1.0], b=[0.0]))
    certain = order(deterministic=True)
    assert judged([order()], folder)[0].verdict is Verdict.INCONCLUSIVE
    [row] = judged([certain], folder)
    assert row.verdict is Verdict.REPRODUCED and row.reason == "nothing is left to chance"
    reverse = order("b", "a", deterministic=True)
    assert judged([reverse], folder)[0].verdict is Verdict.NOT_REPRODUCED
    tied = write_results(tmp_path / "tied", auc_of(a=[0.5], b=[0.5]))
    assert judged([certain], tied)[0].verdict is Verdict.NOT_REPRODUCED
    [absent] = judged([order(deterministic=True, checkpoint=7)], folder)
    assert (absent.verdict, absent.reason) == (Verdict.INCONCLUSIVE, "needs 1 split")


def test_an_order_is_paired_by_split(tmp_path):
    hard = np.tile([0.0, 0.5], 15)
    a = {i: hard[i] + 0.01 for i in range(30)}
    b = {i: hard[i] for i in range(29, 0, -1)}
    [row] = judged([order()], write_results(tmp_path, auc_of(a=a, b=b)))
    assert row.measured == "holds in 29 of 29, fails in 0"


def test_comparable_is_not_worse_by_the_margin(tmp_path):
    b = np.linspace(0.2, 0.9, 20)
    folder = write_results(tmp_path, auc_of(a=b - 0.009, b=b))
    close, closer = judged([order(margin=0.01, number=1), order(margin=0.008, number=2)], folder)
    assert close.verdict is Verdict.REPRODUCED and close.measured == "holds in 20 of 20, fails in 0"
    assert closer.verdict is Verdict.NOT_REPRODUCED


def write_curves(folder, curves, n=MIN_SPLITS):
    """Write results whose splits all have these curves, of a checkpoint each second."""
    path = write_results(folder, auc_of(**dict.fromkeys(curves, np.ones(n)))) / "results.csv"
    final = pd.read_csv(path)[lambda rows: rows["final"]]
    points = [
        final[final["solver"] == solver].assign(
            checkpoint=i, rows_seen=i, wall_seconds=i * step, value=value, final=i == len(values)
        )
        for solver, (step, values) in curves.items()
        for i, value in enumerate([0.5, *values])
    ]
    pd.concat(points).to_csv(path, index=False)
    return path.parent


CURVES_OF = {"smooth": (0.01, [0.6, 0.7, 0.8, 0.79]), "zig": (1.0, [0.8, 0.3, 0.785, 0.2, 0.78])}


def test_whole_curves_are_compared(tmp_path):
    folder = write_curves(tmp_path, CURVES_OF)
    falls = {"of": "falls", "fall_by": 0.02}
    claims = [
        order("smooth", "zig", number=1, **falls),  # 0 of 3 steps against 2 of 4
        order("zig", "smooth", number=2, **falls),
        order("smooth", "zig", number=3, of="shortfall"),  # 0.1 against 0.279
        order("zig", "smooth", number=4, of="shortfall"),
        order("smooth", "zig", number=5, of="falls", fall_by=0.6),  # no step of either
        order("smooth", "zig", number=6, checkpoint=2, worse_checkpoint=4),  # 0.7 against 0.2
        order("smooth", "zig", number=7, checkpoint=2, worse_checkpoint=3),
    ]
    rows = judged(claims, folder)
    assert [row.verdict in REPRODUCED for row in rows] == [True, False] * 2 + [False, True, False]


def test_times_to_an_accuracy(tmp_path):
    folder = write_curves(tmp_path, CURVES_OF)
    fields = {"metric": "auc", "slower": "zig", "faster": "smooth"}

    def to(within):
        [row] = judged([claim("ratio", "30", within=within, **fields)], folder)
        return float(row.measured)

    assert to(0.001) == pytest.approx(1 / 0.03, abs=0.1)  # 0.78 at once, and at the third
    assert to(0.1) == pytest.approx(1 / 0.02)
    [row] = judged([claim("ratio", "125", slower="zig", faster="smooth")], folder)
    assert row.measured == "125" and row.verdict is Verdict.REPRODUCED  # 5 s and 0.04 s


def test_approximately_and_means_of_few_runs(tmp_path):
    draws = normal(40, 0.892, 0.01)
    draws += 0.892 - draws.mean()
    folder = write_results(tmp_path, auc_of(a=draws))
    half = 2.0227 * draws.std(ddof=1) * (1 / 40 + 1 / 5) ** 0.5
    claims = [
        mean("90%", averaged=True, power_of_ten=-2, number=1),
        mean("90%", averaged=True, power_of_ten=-2, margin=0.01, number=2),
        mean(f"{0.892 + 0.99 * half:.6f}", runs=5, number=3),
        mean(f"{0.892 - 1.01 * half:.6f}", runs=5, number=4),
    ]
    rows = judged(claims, folder)
    assert [row.verdict in REPRODUCED for row in rows] == [False, True, True, False]
    assert rows[2].smallest_error == pytest.approx(half / 0.892, rel=1e-3)
    few = write_results(tmp_path / "few", auc_of(a=draws[: MIN_SPLITS - 1]))
    assert judged(claims[2:3], few)[0].verdict is Verdict.INCONCLUSIVE


def test_small_spread(tmp_path):
    draws = normal(30, spread=0.02)
    folder = write_results(tmp_path, auc_of(a=draws))
    error = draws.std(ddof=1) / 30**0.5
    claims = [
        claim("spread", "small", solver="a", at_most=1.01 * error, number=1),
        claim("spread", "small", solver="a", at_most=0.99 * error, number=2),
    ]
    small, large = judged(claims, folder)
    assert small.verdict is Verdict.REPRODUCED and float(small.measured) == pytest.approx(
        error, rel=0.01
    )
    assert large.verdict is Verdict.NOT_REPRODUCED
    few = write_results(tmp_path / "few", auc_of(a=draws[: MIN_SPLITS - 1]))
    assert judged(claims[:1], few)[0].verdict is Verdict.INCONCLUSIVE


def test_means_of_few_runs_raise_no_false_alarm():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(1000):
        ours, theirs = rng.normal(size=20), rng.normal(size=5).mean()
        alarms += abs(theirs - ours.mean()) > prediction_error(ours, 5)
    assert binomtest(alarms, 1000, 0.05).pvalue > 0.01, alarms


TIMED = {"a": 1.0, "b": 3.0}


def test_an_order_may_hold_on_one_data_set_only(tmp_path):
    """At a stricter level on each; a data set without results is left out."""

    def cells(**wins):
        return {
            (name, solver, "auc", "test"): [float(won == (i < n)) for i in range(20)]
            for name, n in wins.items()
            for solver, won in (("a", True), ("b", False))
        }

    def found(**wins):
        folder = write_results(tmp_path / str(wins), cells(**wins))
        [row] = judged([order(or_on=["adult", "letter"])], folder)
        return row.verdict, row.measured.partition(":")[0]

    assert found(housing=3, adult=20, letter=5) == (Verdict.REPRODUCED, "adult")
    assert found(housing=3, letter=17) == (Verdict.REPRODUCED, "letter")
    assert found(housing=15, adult=3, letter=0)[0] is Verdict.TREND_ONLY  # p = 0.02 > 0.05 / 3
    assert found(housing=3, adult=3, letter=3)[0] is Verdict.NOT_REPRODUCED
    assert found(housing=3, adult=3)[0] is Verdict.NO_DATA
    [row] = judged([order(or_on=["adult"])], write_results(tmp_path / "none", auc_of(c=[0.5])))
    assert row.verdict is Verdict.NO_DATA


def falling_behind(tmp_path, n=20, **shares):
    """Judge that a is steady and b is not, with their values on two data sets."""
    cells = {
        (name, solver, "auc", "test"): [value] * n
        for solver, values in shares.items()
        for name, value in zip(("housing", "adult"), values, strict=True)
    }
    fields = {"datasets": ["housing", "adult"], "metric": "auc", "among": list(shares)}
    fields["unsteady"] = ["b"]
    folder = write_results(tmp_path / str((shares, n)), cells)
    steady = claim("consistency", "the most", steady=["a"], **fields)
    large = claim("consistency", "large", margin=0.05, **fields)
    return [
        row.verdict for row in judged([steady, large.model_copy(update={"id": "t/x/1"})], folder)
    ]


def test_consistency_is_the_largest_shortfall(tmp_path):
    yes, no = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
    assert falling_behind(tmp_path, a=(0.9, 0.8), b=(1.0, 0.5)) == [yes, yes]
    assert falling_behind(tmp_path, a=(0.5, 1.0), b=(1.0, 0.9)) == [no, yes]
    assert falling_behind(tmp_path, a=(1.0, 0.99), b=(0.96, 1.0)) == [yes, no]
    assert falling_behind(tmp_path, a=(0.8, 0.8), b=(0.9, 0.9), c=(1.0, 1.0)) == [no, yes]
    assert falling_behind(tmp_path, n=19, a=(0.9, 0.8), b=(1.0, 0.5)) == [Verdict.INCONCLUSIVE] * 2


@pytest.mark.parametrize(
    ("means", "spread", "n", "verdict"),
    [
        ((0.80, 0.79, 0.81), 0.01, 20, Verdict.REPRODUCED),
        ((0.80, 0.60, 0.81), 0.01, 20, Verdict.NOT_REPRODUCED),
        ((0.80, 0.77, 0.80), 0.2, 20, Verdict.INCONCLUSIVE),
        ((0.80, 0.80, 0.80), 0.0, 20, Verdict.REPRODUCED),
        ((0.80, 0.70, 0.80), 0.0, 20, Verdict.NOT_REPRODUCED),
        ((0.80, 0.79, 0.81), 0.01, 19, Verdict.INCONCLUSIVE),
    ],
)
def test_variation_over_a_sweep(tmp_path, means, spread, n, verdict):
    folder = write_results(tmp_path, auc_of(a=[0.5] * n))
    table = pd.read_csv(folder / "results.csv").query("final")
    points = [
        table.assign(sweep=f"batch_size={i}", value=normal(n, mean, spread, seed=i))
        for i, mean in enumerate(means)
    ]
    pd.concat(points).to_csv(folder / "results.csv", index=False)
    fields = {"dataset": "housing", "solver": "a", "metric": "auc", "at_most": 0.05}
    [row] = judged([claim("variation", "5%", **fields)], folder)
    assert row.verdict is verdict and row.runs == n and row.measured.endswith("%")


def test_points_of_a_sweep_are_compared(tmp_path):
    folder = write_results(tmp_path, auc_of(a=[0.5] * 20, b=[0.5] * 20))
    table = pd.read_csv(folder / "results.csv").query("final")
    means = {"a": {1: 0.8, 2: 0.79, 3: 0.4}, "b": {1: 0.5, 2: 0.49, 3: 0.48}}
    points = [
        table[table["solver"] == solver].assign(
            sweep=f"batch_size={i}", value=normal(20, mean, 1e-4)
        )
        for solver, of in means.items()
        for i, mean in of.items()
    ]
    pd.concat(points).to_csv(folder / "results.csv", index=False)
    one, two, three = (f"batch_size={i}" for i in (1, 2, 3))
    fields = {"dataset": "housing", "solver": "a", "metric": "auc", "at_most": 0.05}
    claims = [
        order("a", "a", number=1, at=two, worse_at=three),
        order("a", "a", number=2, at=three, worse_at=two),
        order("a", "b", number=3, at=three),
        order("b", "a", number=4, of="variation"),
        order("a", "b", number=5, of="variation"),
        claim("variation", "5%", number=6, points=[one, two], **fields),
        claim("variation", "5%", number=7, **fields),
    ]
    rows = judged(claims, folder)
    assert [row.verdict in REPRODUCED for row in rows] == [
        True,
        False,
        False,
        True,
        False,
        True,
        False,
    ]
    [row] = judged([order("a", "b", at="batch_size=9")], folder)
    assert row.verdict is Verdict.NO_DATA and "lack the points batch_size=9" in row.reason


def test_t_tests_are_one_sided():
    rng = np.random.default_rng(0)
    for shift in (-0.3, 0.0, 0.3):
        sample = rng.standard_normal(20) + shift
        assert mean_test(sample) == pytest.approx(
            ttest_1samp(sample, 0, alternative="greater").pvalue
        )
    assert [mean_test([v] * 5) for v in (-1, 0, 1)] == [1, 1, 0]


def ratio(printed="3", **fields):
    return claim("ratio", printed, slower="b", faster="a", **fields)


@pytest.mark.parametrize(
    ("printed", "fields", "verdict"),
    [
        ("3", {}, Verdict.REPRODUCED),
        ("1.6", {}, Verdict.REPRODUCED),
        ("5.9", {}, Verdict.REPRODUCED),
        ("1.4", {}, Verdict.TREND_ONLY),
        ("6.1", {}, Verdict.TREND_ONLY),
        ("100", {}, Verdict.TREND_ONLY),
        ("1.4", {"at_least": True}, Verdict.REPRODUCED),
        ("3.1", {"at_least": True}, Verdict.TREND_ONLY),
        ("3", {"slower": "a", "faster": "b"}, Verdict.NOT_REPRODUCED),
        ("3", {"deviations": ["half-scores"]}, Verdict.WITH_DEVIATION),
    ],
)
def test_ratios_of_times(tmp_path, printed, fields, verdict):
    values = [0.5] * MIN_TIMED_SPLITS
    folder = write_results(tmp_path, auc_of(a=values, b=values), seconds=TIMED)
    [row] = judged([claim("ratio", printed, **{"slower": "b", "faster": "a"} | fields)], folder)
    assert row.verdict is verdict and row.runs == MIN_TIMED_SPLITS
    assert row.measured == ("0.333" if fields.get("slower") == "a" else "3")


def test_a_ratio_is_the_median_over_paired_splits(tmp_path):
    cells = auc_of(a=[0.5] * 5, b=dict.fromkeys(range(4, -1, -1), 0.5))
    folder = write_results(tmp_path, cells)
    table = pd.read_csv(folder / "results.csv")
    slow = table["solver"] == "b"
    table["wall_seconds"] = (table["split"] + 1.0) * np.where(slow, [2, 9, 3, 4, 1] * 4, 1)
    ratios = (
        table[slow & table["final"]].set_index("split")["wall_seconds"]
        / table[~slow & table["final"]].set_index("split")["wall_seconds"]
    )
    table.to_csv(folder / "results.csv", index=False)
    [row] = judged([ratio()], folder)
    assert float(row.measured) == pytest.approx(ratios.median(), rel=1e-2)


def test_few_timed_splits_are_inconclusive(tmp_path):
    values = [0.5] * (MIN_TIMED_SPLITS - 1)
    folder = write_results(tmp_path, auc_of(a=values, b=values), seconds=TIMED)
    [row] = judged([ratio()], folder)
    assert row.verdict is Verdict.INCONCLUSIVE and row.runs == MIN_TIMED_SPLITS - 1
    cells = auc_of(a=dict.fromkeys(range(9), 0.5), b=dict.fromkeys(range(9, 18), 0.5))
    [row] = judged([ratio()], write_results(tmp_path / "b", cells, seconds=TIMED))
    assert row.verdict is Verdict.INCONCLUSIVE and row.runs == 0


def test_times_are_ordered_by_the_shorter(tmp_path):
    values = [0.5] * MIN_SPLITS
    folder = write_results(tmp_path, auc_of(a=values, b=values), seconds=TIMED)
    right, wrong = judged(
        [order(metric=WALL_SECONDS, number=1), order("b", "a", metric=WALL_SECONDS, number=2)],
        folder,
    )
    assert right.verdict is Verdict.REPRODUCED and wrong.verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize("timed", [ratio(), order(metric=WALL_SECONDS)])
def test_times_must_be_of_one_sequential_run(tmp_path, timed):
    values = [0.5] * MIN_SPLITS
    cells = auc_of(a=values, b=values)
    timing = {"a": "sequential", "b": "parallel"}
    beside = write_results(tmp_path / "a", cells, seconds=TIMED, timing=timing.get)
    [row] = judged([timed], beside)
    assert row.verdict is Verdict.NO_DATA and "timed beside other trials" in row.reason
    runs = write_results(tmp_path / "b", cells, seconds=TIMED, run=lambda s: s)
    [row] = judged([timed], runs)
    assert row.verdict is Verdict.NO_DATA and "timed in different runs" in row.reason
    [row] = judged([order()], runs)  # values may come from two runs
    assert row.verdict is Verdict.NOT_REPRODUCED
    third = write_results(
        tmp_path / "c", cells | auc_of(c=values), seconds=TIMED | {"c": 1.0},
        run=lambda s: "2b" if s == "c" else "1a",
    )  # fmt: skip
    [row] = judged([timed], third)
    assert row.verdict is Verdict.REPRODUCED


DEVIATION = {"deviations": ["half-scores"]}


@pytest.mark.parametrize(
    ("of", "printed", "fields", "verdict", "measured"),
    [
        ("rows", "506", {}, Verdict.REPRODUCED, "506"),
        ("rows", "507", {}, Verdict.NOT_REPRODUCED, "506"),
        ("features", "11", {}, Verdict.NOT_REPRODUCED, "13"),
        ("columns", "14", DEVIATION, Verdict.WITH_DEVIATION, "14"),
        ("columns", "13", DEVIATION, Verdict.NOT_REPRODUCED, "14"),
        ("positives", "35", {}, Verdict.REPRODUCED, "35"),
        ("negatives", "471", {}, Verdict.REPRODUCED, "471"),
        ("share", "6.92%", {}, Verdict.REPRODUCED, "6.916996"),
        ("share", "6.93%", {}, Verdict.NOT_REPRODUCED, "6.916996"),
        ("positives_per_fold", "12", {}, Verdict.REPRODUCED, "11.666667"),
        ("positives_per_fold", "11", {}, Verdict.NOT_REPRODUCED, "11.666667"),
        ("training_rows", "0.4K", {}, Verdict.REPRODUCED, "400"),
    ],
)  # fmt: skip
def test_facts(tmp_path, of, printed, fields, verdict, measured):
    folder = write_results(tmp_path, auc_of(a=[0.5]), folds=3)
    [row] = judged([claim("fact", printed, of=of, **fields)], folder)
    assert (row.verdict, row.measured) == (verdict, measured)


TABLE = pd.DataFrame(
    {"scale": [1.0, 0.5] * 2, "list": ["f1", "f1", "f2", "f2"], "value": [4.0, 1.25, 3.0, 7.0]}
)
HALVED = Reading(cell={"scale": 0.5}, deviation="half-scores")
F1 = {"cell": {"list": "f1"}, "readings": (Reading(cell={"scale": 1.0}), HALVED)}
LEAST = {"argmin": "list", "among": ["f1", "f2"], "readings": F1["readings"]}
FULL, HALF = ({"cell": {"list": "f1", "scale": scale}} for scale in (1.0, 0.5))
CUT_OFF = {"truncated": True, "deviations": ["truncated-cell"]}


@pytest.mark.parametrize(
    ("printed", "fields", "verdict", "deviation", "measured"),
    [
        ("4", F1, Verdict.REPRODUCED, "", "4"),
        ("1.3", F1, Verdict.WITH_DEVIATION, "half-scores", "1.25"),
        ("5", F1, Verdict.NOT_REPRODUCED, "", "4"),
        ("1.2", HALF, Verdict.REPRODUCED, "", "1.25"),
        ("1.1", HALF, Verdict.NOT_REPRODUCED, "", "1.25"),
        ("1.2", HALF | CUT_OFF, Verdict.WITH_DEVIATION, "truncated-cell", "1.25"),
        ("1.3", HALF | CUT_OFF, Verdict.NOT_REPRODUCED, "", "1.25"),
        ("f_2", LEAST, Verdict.REPRODUCED, "", "f2"),
        ("f_1", LEAST, Verdict.WITH_DEVIATION, "half-scores", "f1"),
        ("f_3", LEAST, Verdict.NOT_REPRODUCED, "", "f2"),
        ("four", FULL | {"expected": 4.0}, Verdict.REPRODUCED, "", "4"),
        ("four", FULL | {"expected": 4.1}, Verdict.NOT_REPRODUCED, "", "4"),
        ("many", FULL | {"at_least": 4.0}, Verdict.REPRODUCED, "", "4"),
        ("many", FULL | {"at_least": 4.1}, Verdict.NOT_REPRODUCED, "", "4"),
        ("some", FULL | {"at_least": 0.0}, Verdict.REPRODUCED, "", "4"),
    ],
)
def test_exact_numbers(printed, fields, verdict, deviation, measured):
    [row] = judged([claim("exact", printed, **fields)], values={"toy": TABLE})
    assert (row.verdict, row.deviation, row.measured) == (verdict, deviation, measured)
    assert row.runs == 1


CURVES = pd.DataFrame(
    {
        "horizon": [10, 100] * 4,
        "quantity": ["regret"] * 2 + ["bound"] * 2 + ["lower"] * 2 + ["w = 0"] * 2,
        "value": [0.2, 0.1, 0.8, 0.3, 0.15, 0.05, 1.0, 0.2],
    }
)
REGRET = {"cell": {"quantity": "regret"}, "by": {"quantity": "bound"}}


@pytest.mark.parametrize(
    ("fields", "verdict", "measured"),
    [
        (REGRET, Verdict.REPRODUCED, "holds in 2 of 2, ratio 0.25 to 0.333"),
        (REGRET | {"factor": 0.3}, Verdict.NOT_REPRODUCED, "holds in 1 of 2, ratio 0.25 to 0.333"),
        (REGRET | {"factor": 0.3, "open_constant": True}, Verdict.INCONCLUSIVE, None),
        (REGRET | {"factor": 0.2, "margin": 0.04}, Verdict.REPRODUCED, None),
        (REGRET | {"deviations": ["x"]}, Verdict.WITH_DEVIATION, None),
        (REGRET | {"by": {"quantity": "lower"}}, Verdict.NOT_REPRODUCED, None),
        (
            REGRET | {"by": {"quantity": "lower", "horizon": 10}},
            Verdict.NOT_REPRODUCED,
            "holds in 1 of 2, ratio 0.667 to 1.33",
        ),
        (
            {"cell": {**REGRET["cell"], "horizon": 100}, "by": {**REGRET["cell"], "horizon": 10}},
            Verdict.REPRODUCED,
            "0.1 against 0.2",
        ),
        (REGRET | {"trivial": {"quantity": "w = 0"}}, Verdict.REPRODUCED, None),
        (REGRET | {"trivial": {"quantity": "lower"}}, Verdict.NO_POWER, None),
        (REGRET | {"trivial": {"quantity": "w = 0", "horizon": 10}}, Verdict.REPRODUCED, None),
        (REGRET | {"trivial": {"quantity": "w = 0", "horizon": 100}}, Verdict.NO_POWER, None),
        (
            REGRET | {"by": {"quantity": "lower"}, "trivial": {"quantity": "lower"}},
            Verdict.NOT_REPRODUCED,
            None,
        ),
    ],
)
def test_values_below_others(tmp_path, fields, verdict, measured):
    study_folder(tmp_path / "toy", CURVES)
    evidence = read_evidence([tmp_path])
    [row] = judged([claim("bound", "below", **fields)], values=evidence.values)
    assert row.verdict == verdict and measured in (None, row.measured)


def study_folder(folder, values, **changes):
    """Write a study's folder and return it."""
    about = {"schema": 1, "name": "toy", "title": "Toy", "source": None, "kind": "lemma-7"}
    folder.mkdir(parents=True)
    text = json.dumps({**about, "parameters": {}, "smoke": False, **changes})
    (folder / "illustration.json").write_text(text)
    values.to_csv(folder / "values.csv", index=False)
    return folder


def test_values_that_cannot_be_compared(tmp_path):
    missing = REGRET | {"by": {"quantity": "regrets"}}
    for fields, what in [
        (missing, "2 values on its left, of which 0 have"),
        (REGRET | {"by": {"colour": "red"}}, "has no column colour"),
    ]:
        with pytest.raises(InputError, match=f"toy/table-1/0: .*{what}"):
            judged([claim("bound", "below", **fields)], values={"toy": CURVES})
    study_folder(tmp_path / "toy", CURVES, smoke=True)
    evidence = read_evidence([tmp_path])
    assert evidence.found and not evidence.values
    [row] = judged([claim("bound", "below", **REGRET)], tmp_path)
    assert row.verdict is Verdict.NO_DATA and "precbench run letter" in row.reason


def test_exact_claim_must_select_one_value():
    for cell, what in [
        ({"list": "f1"}, "selects 2 values"),
        ({"list": "f9"}, "selects 0 values"),
        ({"colour": "red"}, "has no column colour"),
    ]:
        with pytest.raises(InputError, match=f"toy/table-1/0: .*{what}"):
            judged([claim("exact", "4", cell=cell)], values={"toy": TABLE})


EVERY_KIND = [
    mean("0.8", number="mean"),
    order(number="order"),
    order(number="times", metric=WALL_SECONDS),
    ratio(number="ratio"),
    claim("fact", "506", of="rows", number="fact"),
]


@pytest.mark.parametrize("published_claim", EVERY_KIND, ids=lambda c: c.id.split("/")[2])
def test_no_verdict_without_results(tmp_path, published_claim):
    cells = auc_of(a=normal(120, 0.8), b=normal(120, 0.7))
    good = write_results(tmp_path / "good", cells, seconds=TIMED)
    [row] = judged([published_claim], good)
    assert row.verdict is Verdict.REPRODUCED

    def not_judged(claims, *folders, verdict=Verdict.NO_DATA):
        [row] = judged(claims, *folders)
        assert row.verdict is verdict and row.runs == 0 and row.measured == ""
        return row.reason

    stand_in = write_results(tmp_path / "stand-in", cells, seconds=TIMED, stand_in=True)
    assert not_judged([published_claim], stand_in) == "synthetic data stood in for housing"
    smoke = write_results(tmp_path / "smoke", cells, seconds=TIMED, smoke=True)
    missing = "not in these results: precbench run letter"
    assert not_judged([published_claim], smoke) == missing
    assert not_judged([published_claim]) == missing
    other = {("adult", *key[1:]): values for key, values in cells.items()}
    reason = not_judged([published_claim], write_results(tmp_path / "other", other, seconds=TIMED))
    assert re.match("the results hold no(thing| auc of [ab]) (of|on) housing", reason)
    failed = write_results(tmp_path / "failed", cells, seconds=TIMED, status="failed")
    if not isinstance(published_claim, FactClaim):
        assert not_judged([published_claim], failed).startswith("the results hold no auc of")
        alone = {key: values for key, values in cells.items() if key[1] == "c"} | auc_of(c=[0.5])
        lacks = write_results(tmp_path / "lacks", alone)
        assert "no auc of a on housing (test part)" in not_judged([published_claim], lacks) or (
            "no auc of b on housing (test part)" in not_judged([published_claim], lacks)
        )
    later = published_claim.model_copy(update={"untested": "no experiment times it"})
    reason = not_judged([later], good, verdict=Verdict.NO_CONFIG)
    assert reason == "no experiment times it"
    later = published_claim.model_copy(update={"config": "kar2099/fig1"})
    reason = not_judged([later], good, verdict=Verdict.NO_CONFIG)
    assert reason == "there is no config kar2099/fig1 yet"


def test_statements_are_not_testable():
    """Whatever was measured, and whether or not a config stands beside them."""
    for config in ("letter", "kar2099/fig1"):
        formula = claim("statement", "1 / n", reason="a formula", config=config)
        [row] = judged([formula])
        assert (row.verdict, row.reason, row.kind) == ("not testable", "a formula", "statement")
        assert row.runs == 0 and row.measured == "" and row.deviation == ""
    slip = claim("statement", "1 / n", reason="a formula", deviations=["half-scores"])
    [row] = judged([slip])
    assert row.verdict is Verdict.NOT_TESTABLE and row.deviation == "half-scores"
    [row] = judged([claim("statement", "O(n)", untested="no experiment varies n")])
    assert row.verdict is Verdict.NO_CONFIG and row.reason == "no experiment varies n"
    for fields in ({}, {"reason": "a formula", "untested": "no experiment varies n"}):
        with pytest.raises(ValueError, match="needs either a reason"):
            claim("statement", "1 / n", **fields)


def test_one_stand_in_split_excludes_all(tmp_path):
    folder = write_results(tmp_path, auc_of(a=normal(120)))
    table = pd.read_csv(folder / "results.csv")
    table.loc[0, "stand_in"] = True
    table.to_csv(folder / "results.csv", index=False)
    assert judged([mean("0.8")], folder)[0].verdict is Verdict.NO_DATA


def test_points_of_a_sweep_cannot_be_named(tmp_path):
    folder = write_results(tmp_path, auc_of(a=[0.5] * 30, b=[0.4] * 30), seconds=TIMED)
    table = pd.read_csv(folder / "results.csv")
    twice = pd.concat([table.assign(sweep="k=0.5"), table.assign(sweep="k=1.0")])
    twice.to_csv(folder / "results.csv", index=False)
    for row in judged(EVERY_KIND[:4], folder):
        assert row.verdict is Verdict.NO_DATA and "several points of the sweep" in row.reason


def test_folders_of_results(tmp_path):
    folder = write_results(tmp_path / "all", auc_of(a=[0.5]))
    assert set(read_evidence([tmp_path / "all"]).outcomes) == {"toy"}
    assert set(read_evidence([folder]).outcomes) == {"toy"}
    assert read_evidence([folder]).found and not read_evidence([tmp_path]).found
    other = write_results(tmp_path / "other", auc_of(a=[0.6]))
    with pytest.raises(InputError, match="both hold results of toy: name one"):
        read_evidence([folder, other])
    with pytest.raises(InputError, match=r"no folder .*none: precbench run creates it"):
        read_evidence([tmp_path / "none"])
    (other / "experiment.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        read_evidence([other])


# --- the ledger ---


def row_of(name, verdict, kind="mean", **other):
    return LedgerRow(f"toy/table-1/{name}", "toy", "Table 1", kind, "1", verdict=verdict, **other)


def test_regressions():
    for kind, before, after in product(("mean", "exact", "order"), Verdict, Verdict):
        found = changes([row_of("x", after, kind)], [row_of("x", before, kind)])
        decided = [Verdict.REPRODUCED, Verdict.WITH_DEVIATION]
        decided += [Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED]
        if before is after or before not in decided:
            assert not found
        elif after in decided:
            [change] = found
            assert change.worse == (decided.index(after) > decided.index(before))
        else:  # an exact number can always be computed; results are no reason for the others
            fixed = after in (Verdict.NO_POWER, Verdict.NO_CONFIG, Verdict.NOT_TESTABLE)
            assert [change.worse for change in found] == [True] * (kind == "exact" or fixed)
    assert not changes([row_of("new", Verdict.NOT_REPRODUCED)], [row_of("x", Verdict.REPRODUCED)])


def test_update_keeps_undecided_rows():
    old = [row_of("a", Verdict.REPRODUCED, measured="1"), row_of("b", Verdict.TREND_ONLY)]
    old += [row_of("c", Verdict.NO_DATA), row_of("gone", Verdict.REPRODUCED)]
    now = [row_of("a", Verdict.INCONCLUSIVE, measured="7"), row_of("b", Verdict.NOT_REPRODUCED)]
    now += [row_of("c", Verdict.REPRODUCED), row_of("new", Verdict.NO_CONFIG)]
    new = updated(now, old)
    assert new == [old[0], now[1], now[2], now[3]]
    few, none = row_of("d", Verdict.INCONCLUSIVE, runs=5), row_of("d", Verdict.NO_DATA)
    assert updated([none], [few]) == [few] == updated([few], [none])
    statement = row_of("d", Verdict.NOT_TESTABLE, "statement")
    assert updated([statement], [row_of("d", Verdict.REPRODUCED)]) == [statement]
    assert updated([none], [statement]) == [none]
    blunt = row_of("d", Verdict.NO_POWER, runs=200)
    for before in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.INCONCLUSIVE):
        assert updated([blunt], [row_of("d", before)]) == [blunt]
        [change] = rewritten([blunt], [row_of("d", before)])
        assert change.worse == (before.rank is not None)
    assert updated([none], [blunt]) == [blunt]
    found = {c.id.split("/")[-1]: (c.before, c.after, c.worse) for c in rewritten(new, old)}
    assert found == {
        "b": ("trend only", "not reproduced", True),
        "c": ("no data", "reproduced", False),
        "new": ("", "no config", False),
        "gone": ("reproduced", "", False),
    }


@pytest.mark.parametrize(
    ("kind", "runs", "replaced"),
    [("mean", 0, False), ("mean", 49, False), ("mean", 50, True), ("bound", 9, True)],
)
def test_update_gives_up_a_decision_that_as_many_runs_do_not_settle(kind, runs, replaced):
    """A study is never cut short, however many values it compares."""
    decided = row_of("a", Verdict.REPRODUCED, kind, runs=50)
    undecided = row_of("a", Verdict.INCONCLUSIVE, kind, runs=runs)
    assert updated([undecided], [decided]) == [undecided if replaced else decided]
    absent = row_of("a", Verdict.NO_DATA, kind)
    assert updated([absent], [decided]) == [decided]
    [change] = rewritten([undecided], [decided])
    assert change.worse


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(max_examples=30)
@given(texts, texts, st.sampled_from(Verdict), st.none() | st.floats(0, 1e6))
def test_ledger_round_trip(tmp_path_factory, printed, reason, verdict, number):
    row = LedgerRow("p/t/x", "p", "T", "mean", printed, verdict=verdict, reason=reason,
                    distance=number, runs=3)  # fmt: skip
    path = tmp_path_factory.mktemp("ledger") / "ledger.csv"
    path.write_text(to_csv([row]), encoding="utf-8", newline="")
    [read] = read_ledger(path)
    assert (read.printed, read.reason, read.verdict, read.runs) == (printed, reason, verdict, 3)
    assert read.distance == (None if number is None else pytest.approx(number, rel=1e-3))


def test_ledgers_of_earlier_versions_are_read(tmp_path):
    row = row_of("x", Verdict.NOT_REPRODUCED, runs=3)
    first = ["id", "paper", "where", "kind", "printed", "measured", "distance", "runs"]
    table = pd.read_csv(io.StringIO(to_csv([row])))[[*first, "verdict", "deviation", "reason"]]
    table.to_csv(tmp_path / "ledger.csv", index=False)
    assert read_ledger(tmp_path / "ledger.csv") == [row]


def test_tables_of_the_ledger():
    verdicts = [v for v in Verdict for _ in range(1 + list(Verdict).index(v))]
    ledger = [row_of(str(i), v, reason=f"{v} | why") for i, v in enumerate(verdicts)]
    ledger.append(LedgerRow("toy/table-10/x", "toy", "", "mean", "1", verdict=Verdict.REPRODUCED))
    ledger.append(LedgerRow("toy/table-2/x", "toy", "", "mean", "1", verdict=Verdict.REPRODUCED))
    counts = [[cell.text for cell in row] for row in counts_table(ledger).rows]
    assert [row[1] for row in counts] == ["table-1", "table-2", "table-10", ""]
    assert counts[0][2:] == ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
    assert counts[-1][2:] == ["3", "2", "3", "4", "5", "6", "7", "8", "9"]
    shown = {row[0].text for table in open_tables(ledger) for row in table.rows}
    measured = set(Verdict) - {Verdict.REPRODUCED, Verdict.NO_DATA}
    measured -= {Verdict.NO_CONFIG, Verdict.NOT_TESTABLE}
    assert shown == {row.id for row in ledger if row.verdict in measured}
    assert open_tables(ledger)[-1].title == "Not reproduced: 4"
    missing = [[cell.text for cell in row] for row in missing_table(ledger).rows]
    assert missing == [
        ["toy", "no data", "no data | why", "7"],
        ["toy", "no config", "no config | why", "8"],
    ]
    bars = Counter(
        len(re.findall(r"(?<!\\)\|", line))
        for line in ledger_markdown(ledger).split("## All claims")[1].splitlines()
        if line.startswith("|")
    )
    assert set(bars) == {9} and bars[9] == len(ledger) + 2


# --- the shipped claims ---


@pytest.fixture(scope="module")
def claims():
    return load_claims()


@pytest.fixture(scope="module")
def computed(claims):
    """The tables of all quick studies."""
    return check_command._computed(claims)


@pytest.fixture(scope="module")
def reference():
    return {row.id: row for row in read_ledger(reference_path())}


def decidable(claims):
    """Yield the claims that a run can decide, with their configs."""
    configs = {name: load_config(name) for name in list_configs()}
    for c in claims:
        if c.config in configs and not c.untested and not isinstance(c, StatementClaim):
            yield c, configs[c.config]


def test_ids(claims):
    ids = [c.id for c in claims]
    assert len(set(ids)) == len(ids) >= 500
    papers = {"rudin2009", "kar2014", "kar2015", "gultekin"}
    assert {c.paper for c in claims} == papers
    for name in ids:
        assert re.fullmatch(r"[a-z0-9]+/[a-z0-9.-]+/[^\s/]+(/[^\s/]+)*", name), name


def test_experiments_are_those_of_the_configs(claims):
    for config, experiment in {(c.config, c.experiment) for c in claims}:
        assert (ROOT / "configs" / f"{config}.published.yaml").exists()
        if config in list_configs():
            assert load_config(config).name == experiment


def obstacle(claim, configs):
    """Return why no results of the claim's config could decide it, or nothing."""
    if claim.untested or isinstance(claim, StatementClaim):
        return claim.untested
    config = configs.get(claim.config)
    if config is None:
        return f"there is no config {claim.config}"
    if isinstance(claim, ExactClaim | BoundClaim) or isinstance(config, Study):
        study = isinstance(config, Study) and isinstance(claim, ExactClaim | BoundClaim)
        return "" if study else f"{claim.config} has no values of this kind"
    if lacks := set(claim.data) - {entry.name for entry in config.datasets}:
        return f"no data set {', '.join(sorted(lacks))}"
    if isinstance(claim, FactClaim):
        return ""
    if lacks := set(claim.labels) - set(config.solvers):
        return f"no solver {', '.join(sorted(lacks))}"
    if isinstance(claim, ConsistencyClaim) and not {*claim.steady, *claim.unsteady} <= {
        *claim.among
    }:
        return "a solver that is not among the others"
    metrics = Counter(m.label for p in config.sweep_points() for m in config.metrics_at(p))
    swept = [getattr(claim, name, "") for name in ("at", "worse_at")]
    if isinstance(claim, VariationClaim) or getattr(claim, "of", "") == "variation" or any(swept):
        if len(config.sweep_points()) < 2 or metrics[claim.metric] < 2:
            return "not several points of a sweep"
        [(name, values)] = config.sweep.items()
        named = {*filter(None, swept), *getattr(claim, "points", ())}
        if lacks := named - {f"{name}={value}" for value in values}:
            return f"no point {', '.join(sorted(lacks))}"
    elif isinstance(claim, RatioClaim) or claim.metric == WALL_SECONDS:
        if config.sweep is not None:
            return "times of several points of a sweep"
    elif metrics[claim.metric] != 1:
        return f"{metrics[claim.metric]} times the metric {claim.metric}"
    elif getattr(claim, "part", "test") not in config.parts:
        return f"no {claim.part} part"
    places = config.checkpoints if isinstance(config.checkpoints, tuple) else ()
    for name in ("checkpoint", "worse_checkpoint"):
        checkpoint = getattr(claim, name, None)
        if checkpoint not in (None, "last") and checkpoint > len(places):
            return f"no checkpoint {checkpoint}"
    needed = {MeanClaim: MIN_REPETITIONS, RatioClaim: MIN_TIMED_SPLITS}
    few = getattr(claim, "averaged", False) or getattr(claim, "runs", None)
    least = MIN_SPLITS if few else needed.get(type(claim), MIN_SPLITS)
    if getattr(claim, "deterministic", False) and config.protocol.split in ("none", "provided"):
        least = 1
    n = len(config.protocol.indices) // config.protocol.folds
    return "" if n >= least else f"{n} repetitions, and {least} are needed"


def test_every_testable_claim_has_a_config_that_could_decide_it(claims):
    configs = {name: load_config(name) for name in list_configs()}
    obstacles = {c.id: why for c in claims if (why := obstacle(c, configs))}
    assert not obstacles


def test_shipped_exact_claims_select_one_value(claims, computed):
    found = 0
    for c, config in decidable(claims):
        if not isinstance(c, ExactClaim) or config.name not in computed:
            continue
        found += 1
        assert isinstance(config, Study), c.id
        table = computed[config.name]
        for reading in c.readings:
            cell = {**c.cell, **reading.cell}
            rows = table
            for column, value in cell.items():
                assert column in table, c.id
                rows = rows[rows[column] == value]
            if c.argmin is not None:
                assert len(c.among) >= 2 and c.argmin not in cell, c.id
                rows = rows[rows[c.argmin].isin(c.among)]
            assert len(rows) == (len(c.among) or 1), c.id
    assert found >= 100


def test_deviations_are_used_and_their_evidence_exists(claims):
    deviations = load_deviations()
    used = {name for c in claims for name in c.all_deviations()}
    assert used == set(deviations)
    papers = {(name, c.paper) for c in claims for name in c.all_deviations()}
    configs = set(list_configs())
    planned = {c.config for c in claims} - configs
    assert {name.split("/")[0] for name in planned} <= {"kar2014", "gultekin"}
    for name, deviation in deviations.items():
        assert (name, deviation.paper) in papers
        match shlex.split(deviation.evidence):
            case ["precbench", "run", config] | ["precbench", "run", config, "--timing"]:
                assert config in configs | planned, name
            case ["precbench", "data", "info", dataset]:
                assert dataset in DATASETS, name
            case ["python", "-c", code]:
                compile(code, name, "exec")
            case ["pytest", file, "-k", word]:
                assert re.search(rf"def test_\w*{word}", (ROOT / file).read_text()), name
            case other:
                pytest.fail(f"{name}: {other}")


def test_reference_matches_the_claims(claims, reference):
    assert list(reference) == [c.id for c in claims]
    deviations = load_deviations()
    for c in claims:
        row = reference[c.id]
        for name in ("paper", "where", "kind", "printed"):
            assert getattr(row, name) == getattr(c, name), c.id
        names = set(row.deviation.split())
        assert names <= set(deviations)
        assert set(c.deviations) <= names or row.verdict not in REPRODUCED, c.id
        assert bool(names) or row.verdict is not Verdict.WITH_DEVIATION
        assert row.verdict is not Verdict.REPRODUCED or not names
        if row.verdict.rank is None:
            assert row.reason, c.id
        statement = isinstance(c, StatementClaim) and not c.untested
        assert (row.verdict is Verdict.NOT_TESTABLE) == statement, c.id
        assert (row.verdict is Verdict.NO_CONFIG) == bool(c.untested), c.id
        if isinstance(c, MeanClaim) and row.verdict.rank is not None:
            assert row.runs >= (MIN_SPLITS if c.averaged else MIN_REPETITIONS)
            assert row.percentile is not None or c.averaged
        if isinstance(c, OrderClaim) and row.verdict.rank is not None and not c.deterministic:
            assert row.runs >= MIN_SPLITS


def test_deviations_of_table_and_column_add_up(claims):
    of = {c.id: c.deviations for c in claims}
    assert of["rudin2009/table-4/p=1/auc"] == ("ionosphere-labels", "absolute-derivative")
    assert of["rudin2009/table-4/IR/auc"] == ("ionosphere-labels",)
    first = {c.id: c for c in claims}["rudin2009/table-3/IR/auc"]
    assert (first.first_solver, first.first_printed) == ("p=1", "0.8370")


def test_the_best_of_a_row_is_against_all_others(claims):
    [best] = [c for c in claims if c.id == "rudin2009/table-4/best/r-2-1"]
    assert best.better == ("p=4", "p=8", "p=16", "p=64") and best.worse == ("p=1", "p=2", "IR")
    assert best.metric == "pnorm_risk(p=2)" and best.deviations == ("ionosphere-labels",)


def test_rudins_tables_are_complete(claims, reference):
    of = {n: [c for c in claims if c.id.startswith(f"rudin2009/table-{n}/")] for n in range(1, 6)}
    assert len(of[1]) == 9
    assert Counter(c.argmin is not None for c in of[2]) == {False: 60, True: 30}
    means = [c for n in (3, 4, 5) for c in of[n] if isinstance(c, MeanClaim)]
    assert len(means) == 147
    assert sum(isinstance(c, OrderClaim) for n in (3, 4, 5) for c in of[n]) == 21
    assert {reference[c.id].verdict for c in (*of[1], *of[2])} == REPRODUCED


def test_deterministic_tables_are_measured_now(claims, computed, reference):
    exact = [c for c in claims if isinstance(c, ExactClaim) and not c.untested]
    rows = make_ledger(exact, Evidence(values=computed))
    assert len(rows) >= 110
    for row in rows:
        assert row.verdict is reference[row.id].verdict, row
        assert (row.verdict in REPRODUCED) == (row.id != "kar2015/appendix-a/case-i"), row


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("rudin2009/table-1/exponential/swap-none", "17,160.17"),
        ("rudin2009/table-1/logistic/swap-top", "1,212.23"),
        ("rudin2009/table-2/zero-one-f2/p=7", "16.48*10^5"),
        ("rudin2009/table-2/exponential-f1/p=5", "1.56*10^5"),
        ("rudin2009/table-2/logistic-argmin/p=6", "f_2"),
        ("rudin2009/table-2/logistic-f2/p=10", "8.74*10^7"),
        ("rudin2009/table-3/p=4/dcg", "1.4066"),
        ("rudin2009/table-3/IR/aver", "9.7688"),
        ("rudin2009/table-4/p=64/r-16-1", "0.1884"),
        ("rudin2009/table-5/p=1/r-2-1", "3222"),
        ("rudin2009/table-5/best/r-4-1", "small/med p"),
        ("kar2014/table-1/prec/2pmb/accuracy", "38.7"),
        ("kar2014/table-2/ppi/share", "1.19%"),
    ],
)
def test_printed_cells(claims, name, printed):
    assert {c.id: c.printed for c in claims}[name] == printed


def test_powers_dropped_in_print_are_those_of_our_values(claims, reference):
    """Else no distance between logarithms could be small: each is within a factor of 100."""
    for c in claims:
        row = reference[c.id]
        if isinstance(c, MeanClaim) and row.measured:
            quotient = parse_printed(c.printed, c.power_of_ten).value / float(row.measured)
            assert 0.01 < quotient < 100, c.id


# --- mistakes in the files ---


@pytest.fixture(scope="module")
def folder_of_claims(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims") / "configs"
    shutil.copytree(ROOT / "configs", folder)
    return folder


@pytest.fixture
def with_mistake(folder_of_claims, monkeypatch):
    """Put a mistake into a file; returns the refusal."""
    monkeypatch.setattr(published, "shipped", lambda _: folder_of_claims)

    def refusal(old, new, file="rudin2009/table-3-magic"):
        path = folder_of_claims / f"{file}.published.yaml"
        text = path.read_text()
        assert old in text
        try:
            path.write_text(text.replace(old, new, 1))
            with pytest.raises(InputError) as error:
                load_claims()
        finally:
            path.write_text(text)
        line = text[: text.index(old)].count("\n") + 1
        return line, str(error.value)

    return refusal


@pytest.mark.parametrize(
    ("old", "new", "offset", "what"),
    [
        ("metric: auc\n    better", "metrc: auc\n    better", 0,
         r"claims\[5\]\.metrc: .*magic/sacrifice: unknown key \(did you mean 'metric'\?\)"),
        ("metric: auc\n    better", "better", -8, r"claims\[5\]\.metric: .*fice: is missing"),
        ('"0.8284"]', '"0.8284", "1"]', 0, "printed: has 8 cells, the table has 7 columns"),
        ('"0.8288", "0.8284"]', "]", 0, "printed: has 5 cells, the table has 7 columns"),
        ("deviations: [eleven-columns]", "deviations: [eleven-column]", -7,
         r"unknown deviation 'eleven-column' \(did you mean 'eleven-columns'\?\)"),
        ("section-8/magic-positives", "section-8/magic-rows", 0,
         r"claims\[1\]: a second claim with the id rudin2009/section-8/magic-rows"),
        ("best: small p", "best: small", -8, "unknown group .*'small'"),
        ("small p: [p=1, p=2]", "small p: [p=1, p=3]", 0, "unknown column of this table 'p=3'"),
        ("p=2: {solver: p=2,", "p=2: {", 6, "column p=2 has no solver"),
        ("best: small p\n", "exceptions: {p=3: {truncated: true}}\n", 0,
         "unknown column of this table 'p=3'"),
        ("kind: mean", "kind: men", 0, r"tables\[0\]\.kind: .*did you mean 'mean'"),
        ("  - id: section-8/magic-rows\n    where", "  - where", 0, r"claims\[0\]\.id: .*missing"),
        ("id: section-8/magic-rows", 'id: "section 8"', 0, r"claims\[0\].*'rudin2009/section 8'"),
        ("- id: section-8/magic-rows", "- x\n  - id: section-8/magic-rows", 0,
         r"claims\[0\]: should be a mapping"),
        ('["0.8370"', '["0.83.70"', -2, r"p=1/auc: '0\.83\.70' is not a printed number"),
        ('["6.5515"', '["0.0000"', -2, r"p=1/r-2-1: should be above 0"),
        ("paper: rudin2009\n", "", 0, "paper: is missing"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_line(with_mistake, old, new, offset, what):
    line, message = with_mistake(old, new)
    first = next(text for text in message.splitlines() if re.search(what, text))
    found_line = int(re.search(r"table-3-magic\.published\.yaml:(\d+):\d+: ", first)[1])
    assert found_line == line + offset, message


@pytest.mark.parametrize(
    ("old", "new", "offset", "what"),
    [
        ('"section-6/{dataset}/{solver}-ag', '"section-6/{datset}/{solver}-ag', 0,
         r"claims\[0\]\.claims\[0\]\.id: .*placeholder 'datset' \(did you mean 'dataset'"),
        ("metric: wall_seconds", 'metric: "{colour}"', 0, "metric: .*unknown placeholder 'colour'"),
        ('id: "section-6/{dataset}/{solver}-against', 'id: "section-6/{dataset}/against', -1,
         r"claims\[0\]\.claims\[0\]: a second claim with the id kar2015/section-6/ppi/against"),
        ("sgd-max, 1pmb]", "sgd-avg]", 0, r"claims\[0\]\.for\.solver\[3\]: stands twice"),
        ("sgd-max, 1pmb]", "[1pmb]]", 0, r"for\.solver\[3\]: should be text or a number"),
        ("for: {method: [perceptron, sgd]}", "for: {method: []}", 0, "for.method: .*at least 1"),
        ("for: {method: [perceptron, sgd]}", "for: {method: sgd}", 0,
         "for.method: should be a mapping"),
        ("for: {method: [perceptron, sgd]}", "for: [perceptron, sgd]", 0,
         "for: should be a mapping"),
        ('ppi: {where: "Section 6, Figure 2, PPI"}', "ppi: Figure 2", 0,
         "for.dataset.ppi: should be a mapping"),
        ("adult: {where", "adult: {wher", 0,
         r"for\.dataset\.adult\.wher: .*adult/perceptron-avg.*: unknown key \(did you"),
        ("kind: order", "kind: ordr", 0,
         r"claims\[0\]\.kind: .*unknown kind of claim 'ordr' \(did you mean 'order'\?\)"),
        ('dataset: "{dataset}"', "dataset: 3", 0,
         r"claims\[0\]\.dataset: .*should be a valid string"),
        ("worse: [cutting-plane]", "worse: [cutting-plane]\n        worst: []", 1,
         r"claims\[0\]\.worst: .*ppi/perceptron-avg.*: unknown key \(did you mean 'worse'"),
    ],
)  # fmt: skip
def test_mistakes_in_repeated_claims(with_mistake, old, new, offset, what):
    """A mistake is reported once, not for each of the claims that repeat it."""
    line, message = with_mistake(old, new, "kar2015/section-6")
    found = [text for text in message.splitlines() if re.search(what, text)]
    assert int(re.search(r"section-6\.published\.yaml:(\d+):\d+: ", found[0])[1]) == line + offset
    assert len(found) == 1 or "a second claim" in what, message


def test_repeated_claims(tmp_path, monkeypatch):
    (tmp_path / "deviations.published.yaml").write_text("deviations: {}")
    (tmp_path / "toy.published.yaml").write_text("""
paper: toy
experiment: toy
common: {where: "Table {n}, {name}", kind: exact}
tables:
  - id: table-2
    where: Table 2
    kind: exact
    common: {cell: {list: "{row}"}}
    columns: {f1: {cell: {column: "{column}"}}, f2: {}}
    rows: {a: {printed: ["1", "2"]}}
claims:
  - for: {n: [1, 2], name: {a: {printed: "3"}, b: {printed: "4", cell: {list: f1}}}}
    cell: {scale: "{n}", share: "1/{n}"}
    claims:
      - id: "table-{n}/{name}/{way}"
        for: {way: [up, 0.5]}
        cell: {list: "{name}{{n}}"}
      - {id: "table-{n}/{name}", printed: "5"}
""")
    monkeypatch.setattr(published, "shipped", lambda _: tmp_path)
    found = {c.id: c for c in load_claims()}
    names = ["/up", "/0.5", ""]
    repeated = [f"toy/table-{n}/{x}{way}" for n, x, way in product((1, 2), "ab", names)]
    assert list(found) == ["toy/table-2/f1/a", "toy/table-2/f2/a", *repeated]
    assert found["toy/table-2/f1/a"].cell == {"list": "a", "column": "f1"}
    assert found["toy/table-2/f2/a"].cell == {"list": "a"}
    up, plain = found["toy/table-2/b/up"], found["toy/table-2/b"]
    assert (up.where, up.printed) == ("Table 2, b", "4")
    assert up.cell == {"scale": 2, "share": "1/2", "list": "b{2}"}  # a number stays one
    assert plain.printed == "5" and plain.cell == {"scale": 2, "share": "1/2", "list": "f1"}


def test_example_of_the_page(tmp_path, monkeypatch):
    shutil.copy(ROOT / "configs" / "deviations.published.yaml", tmp_path)
    page = (ROOT / "docs" / "claims.md").read_text()
    [example] = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "example.published.yaml").write_text(example)
    monkeypatch.setattr(published, "shipped", lambda _: tmp_path)
    found = {c.id: c for c in load_claims()}
    assert Counter(c.kind for c in found.values()) == {
        "mean": 4, "fact": 1, "order": 4, "statement": 2,
    }  # fmt: skip
    deviating = found["kar2015/section-7/cod-rna-2/sgd-avg-above-max"]
    assert deviating.better == ("sgd-avg",) and deviating.deviations == ("cod-rna-two-files",)
    assert found["kar2015/table-7/max/auc"].printed == "94.8"


def test_page_names_every_kind_and_verdict(claims):
    page = (ROOT / "docs" / "claims.md").read_text()
    assert {c.kind for c in claims} == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert [v for v in Verdict if f"\n| {v} | " in page] == list(Verdict)


def test_former_key_of_the_trivial_model():
    old = claim("bound", "below", **REGRET, idle={"quantity": "w = 0"})
    assert old == claim("bound", "below", **REGRET, trivial={"quantity": "w = 0"})


def test_mistakes_in_other_files(with_mistake):
    line, message = with_mistake("    evidence:", "    evidnce:", "deviations")
    assert f"deviations.published.yaml:{line}:5: deviations.half-scores.evidnce: unknown" in message
    _, message = with_mistake("deviation: half-scores", "deviation: x", "rudin2009/tables-1-2")
    assert "tables[0].rows.swap-none: unknown deviation 'x'" in message
    both = "  - id: figure-8/most-cases\n    where"
    _, message = with_mistake(both, "  - id: figure-8/most-cases\n    whre", "rudin2009/fig-8")
    assert "claims[0].whre: figure-8/most-cases: unknown key (did you mean 'where'?)" in message
    assert "is missing" not in message
    reason = '    reason: \'"relatively"'
    _, message = with_mistake(reason, "    untested: x\n" + reason, "kar2015/fig3-batch")
    assert "kdd08/stable: needs either a reason" in message


# --- precbench check ---


@pytest.fixture
def quick(monkeypatch, computed):
    """Compute the studies once for all tests."""
    monkeypatch.setattr(check_command, "_computed", lambda claims: computed)


def housing(folder, claims, shift=None, n=MIN_REPETITIONS, **changes):
    """Write repetitions that have printed values of Table 5 in their middle, of two measures."""
    cells = {}
    for i, c in enumerate(claims):
        if c.experiment == HOUSING and isinstance(c, MeanClaim) and c.metric in MEASURES:
            value = parse_printed(c.printed, c.power_of_ten).value * (shift or {}).get(c.id, 1)
            draws = np.repeat(value * normal(n, 1, 0.003, seed=i), 3)
            cells[c.dataset, c.solver, c.metric, c.part] = draws
    return write_results(folder, cells, name=HOUSING, folds=3, **changes)


MEASURES = ("auc", "pnorm_risk(p=16)")
CELL = "rudin2009/table-5/p=4/auc"


@pytest.fixture(scope="module")
def made(tmp_path_factory, claims, computed):
    """Results of Table 5 and a reference that was made of them."""
    folder = tmp_path_factory.mktemp("made")
    housing(folder / "results", claims)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check_command, "_computed", lambda claims: computed)
        result = check(folder, "--update-reference")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def checked(made, tmp_path, quick):
    """A copy of them."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def check(folder, *options, results="results"):
    return invoke("check", folder / results, "--reference", folder / "reference.csv", *options)


def verdicts(path):
    return {row.id: row.verdict for row in read_ledger(path)}


def test_check_passes_on_the_results_of_the_reference(checked, claims):
    result = check(checked)
    assert result.exit_code == 0, result.output
    assert "Changed" not in result.stdout and result.stderr == ""
    ledger = checked / "results" / "ledger.csv"
    assert ledger.read_text() == (checked / "reference.csv").read_text()
    found = verdicts(ledger)
    assert list(found) == [c.id for c in claims]
    assert found[CELL] in REPRODUCED and found["rudin2009/table-3/p=4/auc"] is Verdict.NO_DATA
    assert found["rudin2009/figure-7/curves"] is Verdict.NOT_TESTABLE
    table_5 = [v for name, v in found.items() if re.match(r"rudin2009/table-5/(p=|IR)", name)]
    assert len(table_5) == 49
    assert set(table_5) <= REPRODUCED | {Verdict.NO_DATA}
    assert sum(verdict in REPRODUCED for verdict in table_5) == 14
    assert re.search(r"rudin2009 +table-5 ", result.stdout)
    assert re.search(r"rudin2009 +table-2 +45 +45 *\n", result.stdout)
    assert f"Ledger of {len(claims)} published numbers" in result.stdout


def test_files_of_the_check(checked):
    folder = checked / "results"
    before = {path.name: path.read_bytes() for path in folder.glob("ledger.*")}
    assert set(before) == {"ledger.csv", "ledger.json", "ledger.md"}

    def constant(name):
        pytest.fail(f"{name} is not JSON")

    rows = json.loads(before["ledger.json"], parse_constant=constant)
    assert [row["id"] for row in rows] == list(verdicts(folder / "ledger.csv"))
    columns = list(pd.read_csv(folder / "ledger.csv"))
    public = ["id", "paper", "where", "kind", "printed", "measured", "distance", "runs"]
    assert columns[:11] == [*public, "verdict", "deviation", "reason"]
    assert list(rows[0]) == columns
    assert f"| {CELL} |" in before["ledger.md"].decode()
    result = check(checked, "--json", "--out", checked / "other" / "place")
    assert json.loads(result.stdout, parse_constant=constant) == rows
    other = {p.name: p.read_bytes() for p in (checked / "other" / "place").iterdir()}
    assert other == before
    assert {path.name: path.read_bytes() for path in folder.glob("ledger.*")} == before


@pytest.mark.promise("R32")
def test_worse_verdict_is_a_regression(checked, claims):
    housing(checked / "worse", claims, {CELL: 1.1})
    result = check(checked, results="worse")
    assert result.exit_code == 4
    assert re.search(f"precbench: {CELL} was reproduced.*, is (not reproduced|trend only)",
                     result.stderr)  # fmt: skip
    assert "Changed against the reference" in result.stdout
    row = {row.id: row for row in read_ledger(checked / "worse" / "ledger.csv")}[CELL]
    line = next(text for text in result.stdout.splitlines() if text.strip().startswith(CELL))
    for text in (row.printed, row.measured, row.spread, f"{row.percentile:.3g}"):
        assert text in line
    kept = (checked / "reference.csv").read_text()
    assert CELL in kept and verdicts(checked / "reference.csv")[CELL] in REPRODUCED


def test_better_verdict_is_no_regression(checked, claims):
    housing(checked / "worse", claims, {CELL: 1.1})
    assert check(checked, "--update-reference", results="worse").exit_code == 0
    assert verdicts(checked / "reference.csv")[CELL] not in REPRODUCED
    result = check(checked)
    assert result.exit_code == 0 and result.stderr == ""
    changed = result.stdout.partition("Changed against the reference")[2]
    assert CELL in changed and "worse" not in changed


@pytest.mark.parametrize(
    "changes",
    [{"n": MIN_SPLITS - 1}, {"stand_in": True}, {"smoke": True}, {"status": "timeout"}],
)
def test_undecided_results_are_no_regression(checked, claims, changes):
    housing(checked / "nothing", claims, {CELL: 1.1}, **changes)
    result = check(checked, results="nothing")
    assert result.exit_code == 0, result.output
    assert CELL not in result.stdout.partition("Changed against the reference")[2]


def test_check_without_results(checked):
    (checked / "empty").mkdir()
    result = check(checked, results="empty")
    assert result.exit_code == 4
    assert "nothing was measured" in result.stderr and "empty" in result.stderr
    found = verdicts(checked / "empty" / "ledger.csv")
    assert found["rudin2009/table-1/zero-one/swap-none"] is Verdict.REPRODUCED


def test_invalid_use_of_check(checked):
    reference = checked / "reference.csv"
    good = reference.read_text()
    assert "no folder" in refused(["check", checked / "none"])
    damaged = [good.replace("no data", "nothing"), good.replace(",1,", ",x,")]
    damaged += [good.replace("id,", "name,", 1), "", "id,verdict\na,b\n", 'id\n"']
    for text in damaged:
        reference.write_text(text)
        for options in ([], ["--update-reference"]):
            sentence = refused(["check", checked / "results", "--reference", reference, *options])
            assert f"{reference} is not a ledger" in sentence
        assert reference.read_text() == text
    reference.unlink()
    sentence = refused(["check", checked / "results", "--reference", reference])
    assert "there is no reference" in sentence and "--update-reference" in sentence
    shutil.copytree(checked / "results", checked / "twice")
    sentence = refused(["check", checked / "results", checked / "twice"])
    assert f"both hold results of {HOUSING}" in sentence


def test_update_shows_its_changes_and_keeps_the_rest(checked, claims):
    before = verdicts(checked / "reference.csv")
    housing(checked / "few", claims, n=3)
    result = check(checked, "--update-reference", results="few")
    assert result.exit_code == 0 and "Changed" not in result.stdout
    assert verdicts(checked / "reference.csv") == before
    lines = (checked / "reference.csv").read_text().splitlines(keepends=True)
    undecided = before | {CELL: Verdict.NO_DATA}
    rows = read_ledger(checked / "reference.csv")
    rows = [r if r.id != CELL else row_of("x", Verdict.NO_DATA) for r in rows]
    rows = [LedgerRow(**{**vars(r), "id": CELL}) if r.paper == "toy" else r for r in rows]
    (checked / "reference.csv").write_text(to_csv(rows))
    assert verdicts(checked / "reference.csv") == undecided
    result = check(checked, "--update-reference")
    changed = result.stdout.partition("Changed against the reference")[2]
    assert re.search(f"{CELL} +no data +reproduced", changed)
    assert changed.count("rudin2009/") == 1
    assert verdicts(checked / "reference.csv") == before
    assert (checked / "reference.csv").read_text().splitlines(keepends=True) == lines


def test_a_real_run_is_checked(tmp_path, isolated, quick, reference):
    options = ("--solver", "sgd-avg", "--solver", "1pmb")
    assert run("kar2015/counterexample", tmp_path / "results", *options).exit_code == 0
    result = invoke("check", tmp_path / "results")
    assert result.exit_code == 0, result.output
    rows = {row.id: row for row in read_ledger(tmp_path / "results" / "ledger.csv")}
    fact = rows["kar2015/appendix-a/rows"]
    assert (fact.verdict, fact.measured) == (Verdict.REPRODUCED, "6")
    one = rows["kar2015/appendix-a/1pmb-suboptimal"]
    assert one.verdict is Verdict.REPRODUCED and one.measured == "holds in 1 of 1, fails in 0"
    assert one.reason == "nothing is left to chance"
    assert invoke("check", tmp_path / "results" / "kar2015-counterexample").exit_code == 0


def test_a_real_run_of_one_repetition_decides_nothing(tmp_path, mirror, isolated, quick):
    options = ("--solver", "p=1", "--solver", "p=4", "--seeds", "0-2")
    assert run("rudin2009/table-5-housing", tmp_path / "results", *options).exit_code == 0
    assert invoke("check", tmp_path / "results").exit_code == 0
    rows = {row.id: row for row in read_ledger(tmp_path / "results" / "ledger.csv")}
    assert rows[CELL].verdict is Verdict.INCONCLUSIVE and rows[CELL].runs == 1
    other = rows["rudin2009/table-5/p=8/auc"]
    assert other.verdict is Verdict.NO_DATA and "hold no auc of p=8 on housing" in other.reason
    for name in ("rows", "positives", "negatives", "features", "positives-per-fold"):
        assert rows[f"rudin2009/section-8/housing-{name}"].verdict in REPRODUCED


def positives_above(positive, scores):
    below, at = POSITIVES_BELOW(positive, scores)
    return positive.sum() - below, positive.sum() - at


def one_too_many(positive, scores):
    below, at = POSITIVES_BELOW(positive, scores)
    return below + 1, at + 1


def one_too_few(positive, scores):
    below, at = POSITIVES_BELOW(positive, scores)
    return below, np.maximum(at - 1, 0)


POSITIVES_BELOW = metrics._positives_below


@pytest.mark.promise("R32")
@pytest.mark.parametrize("broken", [positives_above, one_too_many, one_too_few])
def test_broken_height_is_detected(tmp_path, monkeypatch, claims, computed, broken):
    """Without results of any run: Tables 1 and 2 are always measured."""
    compute = check_command._computed
    of_tables = [c for c in claims if c.config == "rudin2009/tables-1-2"]
    monkeypatch.setattr(metrics, "_positives_below", broken)
    monkeypatch.setattr(check_command, "_computed", lambda _: computed | compute(of_tables))
    write_results(tmp_path / "results", auc_of(a=[0.5]))
    result = invoke("check", tmp_path / "results")
    assert result.exit_code == 4
    found = verdicts(tmp_path / "results" / "ledger.csv")
    names = [f"table-1/zero-one/swap-{where}" for where in ("none", "bottom", "top")]
    names += [f"table-2/zero-one-{f}/p={p}" for f in ("f1", "f2") for p in range(2, 11)]
    for name in names:
        assert found[f"rudin2009/{name}"] is Verdict.NOT_REPRODUCED, name
        assert f"precbench: rudin2009/{name} was reproduced, is not reproduced" in result.stderr
    assert found["rudin2009/table-1/logistic/swap-top"] in REPRODUCED


def test_missing_study_is_a_regression(tmp_path, monkeypatch, computed):
    """A claim that needs neither data nor a run has no excuse for being undecided."""
    kept = {name: table for name, table in computed.items() if name != "rudin2009-tables-1-2"}
    monkeypatch.setattr(check_command, "_computed", lambda claims: kept)
    write_results(tmp_path, auc_of(a=[0.5]))
    result = invoke("check", tmp_path)
    assert result.exit_code == 4
    assert "rudin2009/table-1/zero-one/swap-none was reproduced, is no data" in result.stderr


# --- precbench list ---


def listed(*options):
    result = invoke("list", *options, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_claims_are_listed_by_paper_place_and_verdict(claims, reference):
    everything = listed("claims")
    assert [member["name"] for member in everything] == [c.id for c in claims]
    for member in everything:
        assert member["verdict"] == reference[member["name"]].verdict
        assert (member["paper"], member["place"]) == tuple(member["name"].split("/")[:2])
        assert member["printed"] in member["about"] and member["where"] in member["about"]
    for options in product(
        (None, "kar2014"), (None, "table-2"), (None, "no data", "not reproduced", "inconclusive")
    ):
        keys = ("paper", "place", "verdict")
        wanted = {key: str(value) for key, value in zip(keys, options, strict=True) if value}
        expected = [m for m in everything if wanted.items() <= m.items()]
        given_options = [
            part
            for key, value in wanted.items()
            for part in ("--table" if key == "place" else f"--{key}", value)
        ]
        assert listed("claims", *given_options) == expected
    assert len(listed("claims", "--paper", "rudin2009", "--table", "table-2")) == 90


def test_claims_in_lines(reference):
    arguments = ("list", "claims", "--paper", "rudin2009", "--table", "table-1")
    lines = invoke(*arguments).stdout.splitlines()
    assert len(lines) == 9
    assert re.fullmatch(
        r"rudin2009/table-1/zero-one/swap-none +reproduced: Table 1, swap-none, zero-one: 33",
        lines[0],
    )
    nothing = invoke(*arguments, "--verdict", "no config")
    assert nothing.exit_code == 0 and nothing.output == ""


def test_deviations_are_listed():
    members = {member["name"]: member for member in listed("deviations")}
    assert set(members) == set(load_deviations())
    about = members["half-scores"]["about"]
    assert "rudin2009" in about and "precbench run rudin2009/tables-1-2" in about
    of_paper = listed("deviations", "--paper", "gultekin")
    theirs = [d for d in load_deviations().values() if d.paper == "gultekin"]
    assert {member["paper"] for member in of_paper} == {"gultekin"}
    assert len(of_paper) == len(theirs)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["claims", "--paper", "rudin"], "unknown paper 'rudin' (did you mean 'rudin2009'?)"),
        (["claims", "--table", "tabel-3"], "(did you mean 'table-3'?)"),
        (["claims", "--verdict", "not reprodced"], "(did you mean 'not reproduced'?)"),
        (["claims", "--verdict", "x"], "reproduced, reproduced with deviation, trend only"),
        (["solvers", "--paper", "rudin2009"], "solvers cannot be selected by paper"),
        (["deviations", "--verdict", "no data"], "deviations cannot be selected by verdict"),
        (["claim"], "cannot list 'claim' (did you mean 'claims'?)"),
    ],
)
def test_unknown_values_of_filters(arguments, what):
    assert what in refused(["list", *arguments])
