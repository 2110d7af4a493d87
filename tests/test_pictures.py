"""The pictures of an answer.

Their numbers are computed again, and they stand on the page and in a notebook.
"""

import json
import re
import shutil
from dataclasses import fields
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import precbench
from precbench.advice.advised_report import write_report
from precbench.advice.choice import Choice
from precbench.advice.importance import Importance
from precbench.advice.length import measure_length
from precbench.advice.pictures import (
    answer_pictures,
    importance_picture,
    read_measured,
)
from precbench.advice.reliability import (
    Reliability,
    measure_reliability,
    reliability_sheet,
)
from precbench.core.errors import InputError
from precbench.core.strict_json import checked
from precbench.model.calibration import Calibration
from precbench.ranking.statistics import binomial_interval
from precbench.ranking.topk import HeldOut
from precbench.report.folder import PAGE
from tests.helpers import succeed
from tests.sentences import raises

pytestmark = pytest.mark.usefixtures("in_this_process")

N_ROWS = 600
SHARE = 0.3


def held_out_lists(n_lists=4):
    """Return lists of random splits of one file, and the numbers of their rows.

    A row has another score in each list.
    """
    rng = np.random.default_rng(0)
    odds = rng.normal(-2, 1.5, N_ROWS)
    y = np.where(rng.random(N_ROWS) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    lists, rows = [], []
    for _ in range(n_lists):
        of_list = np.sort(rng.permutation(N_ROWS)[: round(SHARE * N_ROWS)])
        noise = rng.standard_normal(len(of_list))
        lists.append(HeldOut(y[of_list], odds[of_list] + noise))
        rows.append(of_list)
    return lists, rows


def stated_without(lists, rows, place, *, keep_shared=False):
    """Return the probabilities of a list by the curve of the rows of other lists."""
    others = []
    for i, held in enumerate(lists):
        if i == place:
            continue
        kept = [
            j
            for j, row in enumerate(rows[i])
            if keep_shared or row not in set(rows[place])
        ]
        others.append(HeldOut(held.y[kept], held.scores[kept]))
    return Calibration.fit(others, SHARE).probabilities(lists[place].scores)


def by_rank(lists, rows, **how):
    """Return means over the lists of probabilities and of hits, rank by rank."""
    stated = []
    is_hit = []
    for place, held in enumerate(lists):
        order = np.argsort(-held.scores)
        stated.append(stated_without(lists, rows, place, **how)[order])
        is_hit.append((held.y > 0)[order])
    return np.mean(stated, axis=0), np.mean(is_hit, axis=0)


def test_the_probabilities_of_a_list_are_of_the_rows_of_other_lists():
    lists, rows = held_out_lists()
    measured = measure_reliability(lists, rows, SHARE, 18, method="m")
    stated, precision = by_rank(lists, rows)
    assert [(b.first, b.last) for b in measured.bins] == [
        (1 + 18 * i, 18 * (i + 1)) for i in range(10)
    ]
    in_bins = stated.reshape(10, 18).mean(axis=1)
    assert measured.table["stated"].to_numpy() == pytest.approx(in_bins)
    hits = precision.reshape(10, 18).mean(axis=1)
    assert measured.table["precision"].to_numpy() == pytest.approx(hits)
    # Curves that have seen the rows in other lists state something else.
    seen, _ = by_rank(lists, rows, keep_shared=True)
    assert abs(seen.reshape(10, 18).mean(axis=1) - in_bins).max() > 0.005


def test_a_row_in_several_lists_counts_once_in_an_interval():
    lists, rows = held_out_lists()
    measured = measure_reliability(lists, rows, SHARE, 18)
    # Of the 60 rows from which 18 are drawn four times, so many are drawn at all.
    n_drawn = round(60 * (1 - 0.7**4))
    for of_bin in measured.bins:
        ends = binomial_interval(of_bin.precision, n_drawn)
        assert (of_bin.low, of_bin.high) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("k", "n_lists", "edges"),
    [
        pytest.param(
            12, 9, [*range(0, 121, 12)], id="the first ten k, in bins of k rows"
        ),
        pytest.param(1, 2, [*range(0, 181, 18)], id="no bin of few rows"),
        pytest.param(90, 9, [*range(0, 181, 18)], id="half a list, in ten bins"),
        pytest.param(
            17, 4, [*range(0, 171, 17)], id="the rows after the last bin are left out"
        ),
    ],
)
def test_bins_have_k_rows_or_enough(k, n_lists, edges):
    measured = measure_reliability(*held_out_lists(n_lists), SHARE, k)
    ends = [(b.first - 1, b.last) for b in measured.bins]
    assert ends == [*pairwise(edges)]


def test_a_single_list_or_a_short_one_has_no_calibration():
    assert measure_reliability(*held_out_lists(1), SHARE, 18) is None
    lists, rows = held_out_lists(2)
    short = [HeldOut(held.y[:20], held.scores[:20]) for held in lists]
    assert measure_reliability(short, [of[:20] for of in rows], SHARE, 5) is None


def test_lists_of_the_same_rows_leave_no_other():
    [held, _], [rows, _] = held_out_lists(2)
    assert measure_reliability([held] * 2, [rows] * 2, SHARE, 18) is None


DAMAGES = [
    pytest.param(lambda bins: bins.clear(), id="no bins"),
    pytest.param(lambda bins: bins.pop(1), id="a gap"),
    pytest.param(lambda bins: bins[0].update(stated=1.5), id="above 1"),
    pytest.param(lambda bins: bins[0].update(low=0.99), id="above its high end"),
    pytest.param(lambda bins: bins[0].update(precision=float("nan")), id="NaN"),
    pytest.param(lambda bins: bins[0].pop("high"), id="no high end"),
    pytest.param(lambda bins: bins[0].update(last=0), id="no rows"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_bins_are_refused(damage):
    measured = measure_reliability(*held_out_lists(), SHARE, 18).model_dump()
    assert checked(measured, Reliability)
    damage(measured["bins"])
    with pytest.raises(ValueError):
        checked(measured, Reliability)


# --- what is drawn ---


def offsets(axes):
    """Return the points that are drawn one by one, as pairs."""
    lines = [line for line in axes.lines if len(line.get_xdata()) == 1]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines]


def segments(axes):
    """Return the ends of lines drawn at once, as ((x, y), (x, y))."""
    [drawn] = [c for c in axes.collections if hasattr(c, "get_segments")]
    return np.array(drawn.get_segments())


def test_the_calibration_is_drawn_as_measured():
    measured = measure_reliability(*held_out_lists(), SHARE, 18)
    [axes] = reliability_sheet(measured).figure().axes
    points, first, diagonal = axes.lines
    table = measured.table
    assert points.get_xydata() == pytest.approx(
        table[["stated", "precision"]].to_numpy()
    )
    assert first.get_xydata() == pytest.approx(points.get_xydata()[:1])
    assert diagonal.get_xdata() == pytest.approx(diagonal.get_ydata())
    ends = segments(axes)
    assert ends[:, 0, 1] == pytest.approx(table["low"].to_numpy())
    assert ends[:, 1, 1] == pytest.approx(table["high"].to_numpy())


IMPORTANCE = Importance(
    splits=2,
    rows=90,
    positives=9,
    average_precision=0.5,
    columns=[
        {"column": "amount", "loss": 0.3, "interval": [0.1, 0.5]},
        {"column": "$a_b$ <i>" + 40 * "x", "loss": 0.0, "interval": [-0.1, 0.1]},
    ],
)


def test_the_importance_is_drawn_as_measured():
    picture = importance_picture(IMPORTANCE)
    [axes] = picture.sheet.figure().axes
    assert [bar.get_width() for bar in axes.patches] == [0.3, 0.0]
    assert segments(axes)[:, :, 0] == pytest.approx(np.array([[0.1, 0.5], [-0.1, 0.1]]))
    first, second = axes.get_yticklabels()
    assert first.get_text() == "amount"
    assert second.get_text().startswith("$a_b$ <i>x")
    assert len(second.get_text()) <= 26
    assert not second.get_parse_math()
    assert "amount 0.300" in picture.alt


def test_the_importance_of_one_split_has_no_intervals():
    single = IMPORTANCE.model_dump() | {"splits": 1}
    single["columns"] = [c | {"interval": None} for c in single["columns"]]
    picture = importance_picture(checked(single, Importance))
    assert "95 %" not in picture.sheet.caption[0]
    assert picture.table[["low", "high"]].isna().all(axis=None)
    assert picture.sheet.figure().axes


def rows_with_hits(seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((N_ROWS, 3)), columns=["a", "b", "c"])
    odds = 2 * X["a"] + X["b"] - 2.5
    return X.assign(hit=(rng.random(N_ROWS) < 1 / (1 + np.exp(-odds))).astype(int))


@pytest.fixture(scope="module")
def choice():
    return precbench.compare(
        rows_with_hits(),
        label="hit",
        k=[20, 60],
        solvers=["logistic-regression", "linear-svm", "sgd-avg"],
        n_splits=4,
        effort="thorough",
        n_jobs=1,
    )


def test_methods_are_drawn_with_the_recommended_one_on_top(choice):
    methods, *_ = answer_pictures(choice, None)
    [axes] = methods.sheet.figure().axes
    shown = choice.table[["hits", "low", "high"]].dropna()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert [name.rstrip(" ≈†") for name in names] == [*shown.index, *choice.left_out]
    assert names[0] == choice.recommended
    points = [(hits, place) for place, hits in enumerate(shown["hits"])]
    assert np.array(offsets(axes)) == pytest.approx(np.array(points))
    lines = [line for line in axes.lines if len(line.get_xdata()) == 2]
    *intervals, chance = [line.get_xdata() for line in lines]
    assert np.array(intervals) == pytest.approx(shown[["low", "high"]].to_numpy())
    assert [*chance] == [choice.k * choice.by_chance] * 2
    for name in names:
        assert name.endswith(" ≈") == (name.rstrip(" ≈†") in choice.equivalent)


def test_methods_without_results_are_grey(choice):
    others = {"left_out": ["never-tried"], "values": choice.values.copy()}
    others["values"].loc[2, ["mean", "low", "high"]] = np.nan
    others["values"].loc[1, "n"] = 1
    methods, *_ = answer_pictures(with_fields(choice, **others), None)
    [axes] = methods.sheet.figure().axes
    labels = axes.get_yticklabels()
    assert labels[1].get_text().endswith(" †")
    assert labels[3].get_text() == "never-tried"
    assert [label.get_color() for label in labels[2:]] == ["0.6"] * 2
    assert [text.get_text() for text in axes.texts] == ["no result", "not trained"]
    assert "†" in methods.sheet.caption[0]


def with_fields(choice, **changes):
    """Return the choice of a comparison with other fields."""
    values = {field.name: getattr(choice, field.name) for field in fields(Choice)}
    return Choice(**(values | changes))


def test_gains_are_drawn_from_no_rows_to_all(choice):
    _, gains, *_ = answer_pictures(choice, None)
    [axes] = gains.sheet.figure().axes
    curve = choice.length.table
    line, diagonal, *marks, point = axes.lines
    assert [line.get_xdata()[0], line.get_ydata()[0]] == [0, 0]
    assert line.get_xdata()[1:] == pytest.approx(curve["length"].to_numpy() / N_ROWS)
    hits = curve["hits"].to_numpy()
    assert line.get_ydata()[1:] == pytest.approx(hits / hits[-1])
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert [mark.get_xdata()[0] for mark in marks] == [20 / N_ROWS, 60 / N_ROWS]
    at_k = hits[curve["length"] == 20].item() / hits[-1]
    assert point.get_xydata().tolist() == [pytest.approx([20 / N_ROWS, at_k])]
    [band] = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert {*np.round(curve["recall_low"], 9)} <= {*np.round(heights, 9)}
    assert {*np.round(curve["recall_high"], 9)} <= {*np.round(heights, 9)}


def test_gains_of_an_earlier_version_have_no_band(choice):
    curve = dict(choice.length.curve)
    del curve["recall_low"], curve["recall_high"]
    earlier = choice.length.model_copy(update={"curve": curve})
    _, gains = answer_pictures(choice.with_length(earlier), None)
    [axes] = gains.sheet.figure().axes
    assert not axes.collections
    assert "Band" not in gains.sheet.caption[0]


def test_the_interval_of_gains_holds_the_gains():
    lists, _ = held_out_lists()
    curve = measure_length(lists, SHARE, [20], 120, N_ROWS).table
    assert curve["recall"].between(curve["recall_low"], curve["recall_high"]).all()
    assert curve["recall_low"].min() >= 0
    assert curve["recall_high"].max() <= 1
    assert curve["recall_low"].iloc[-1] == 1  # of the whole list


# --- on a page and in a notebook ---


class Images(HTMLParser):
    """The images of a page, and where these and other elements begin."""

    def __init__(self, html):
        super().__init__()
        self.images, self.places = [], []
        self.feed(html)

    def handle_starttag(self, name, attributes):
        if name == "img":
            self.images.append(dict(attributes))
        self.places.append(name)


def test_a_notebook_shows_the_pictures(choice, drawn):
    page = Images(choice._repr_html_())
    assert len(page.images) == 3
    assert all(image["alt"] for image in page.images)
    assert all(
        image["src"].startswith("data:image/svg+xml;base64,") for image in page.images
    )
    assert page.places.index("img") < page.places.index("table")
    assert len(choice._repr_html_()) < 300_000
    assert choice._repr_html_() == choice._repr_html_()


COMPARE = [
    *("--label", "hit", "--k", 20, "--splits", 3, "--effort", "thorough"),
    *("--solver", "logistic-regression", "--jobs", 1),
]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Return a results folder that `compare --save` has written."""
    place = tmp_path_factory.mktemp("compared")
    rows_with_hits().to_csv(place / "hits.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        others = ["--solver", "linear-svm", "--save", "m.npz"]
        succeed("compare", "hits.csv", *COMPARE, *others)
    [folder] = (place / "results").glob("compare-*")
    return folder


@pytest.fixture
def results(compared, tmp_path):
    """Return a copy of the results folder."""
    return shutil.copytree(compared, tmp_path / "results")


def test_the_page_has_the_pictures_below_the_sentence(results):
    html = (results / PAGE).read_text()
    sentence, picture, table = map(html.index, ("Use ", "<img", "<table"))
    assert sentence < picture < table
    alts = [image["alt"] for image in Images(html).images[:5]]
    assert alts[0].startswith("Hits in 6 of 180 held-out rows")
    assert "the first 20 of 600 rows hold" in alts[1]
    assert alts[2].startswith("Stated probability and share of hits")
    assert alts[3].startswith("length: ")
    assert alts[4].startswith("Bars of the loss of average precision")
    assert re.search(r"<caption>What (logistic-regression|linear-svm) ranks by", html)
    assert 'href="#h-columns"' in html


def test_the_page_recommends_the_preferred_method(work_folder):
    """As the command does: the page has the hits of this method."""
    rows_with_hits(seed=1).to_csv("hits.csv", index=False)
    options = [*COMPARE, "--solver", "sgd-avg", "--json"]
    best = json.loads(succeed("compare", "hits.csv", *options).stdout)
    simple = [*options, "--prefer", "simple"]
    answer = json.loads(succeed("compare", "hits.csv", *simple).stdout)
    assert answer["recommended"] != best["recommended"]
    page = Path(answer["folder"], PAGE).read_text()
    assert f"Use {answer['recommended']}: " in page


def test_the_report_draws_the_pictures_from_the_files_alone(results):
    page = (results / PAGE).read_text()
    calibration = (results / "figures" / "calibration.csv").read_bytes()
    shutil.rmtree(results / "figures")
    shutil.rmtree(results / "trials")
    write_report(results)
    assert (results / "figures" / "calibration.csv").read_bytes() == calibration
    assert (results / "figures" / "importance.svg").is_file()
    shown = [image["alt"] for image in Images(page).images]
    drawn_again = Images((results / PAGE).read_text()).images
    assert [image["alt"] for image in drawn_again] == shown


def test_pictures_are_drawn_only_if_older_than_their_sources(results):
    figures = [results / "figures" / f"{n}.png" for n in ("methods", "calibration")]
    write_report(results)
    before = [path.stat().st_mtime_ns for path in figures]
    write_report(results, "changed")
    assert [path.stat().st_mtime_ns for path in figures] == before
    stored = (results / "pictures.json").read_text()
    (results / "pictures.json").write_text(stored)
    write_report(results, "changed")
    assert all(
        path.stat().st_mtime_ns > old for path, old in zip(figures, before, strict=True)
    )


def test_old_results_have_the_pictures_of_what_they_hold(results):
    (results / "pictures.json").unlink()
    write_report(results)
    html = (results / PAGE).read_text()
    alts = [image["alt"] for image in Images(html).images]
    assert alts[0].startswith("Hits in 6 of 180 held-out rows")
    assert "the first 20 of 600 rows hold" in alts[1]
    assert alts[2].startswith("length: ")
    # And none of an earlier answer.
    assert not [*(results / "figures").glob("calibration.*")]
    assert not [*(results / "figures").glob("importance.*")]


def test_pictures_of_other_results_are_not_shown(results):
    text = (results / "results.csv").read_text()
    (results / "results.csv").write_text(text + text.splitlines()[-1] + "\n")
    measured = read_measured(results)
    assert measured.reliability is None
    assert measured.importance is None


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda stored: stored.clear(), id="empty"),
        pytest.param(lambda stored: stored.pop("of"), id="of no results"),
        pytest.param(
            lambda stored: stored["reliability"].update(bins=[]), id="no bins"
        ),
        pytest.param(
            lambda stored: stored["importance"]["columns"][0].update(loss="much"),
            id="a loss in words",
        ),
    ],
)
def test_damaged_pictures_are_refused_with_a_sentence(results, damage):
    stored = json.loads((results / "pictures.json").read_text())
    damage(stored)
    (results / "pictures.json").write_text(json.dumps(stored))
    with raises(InputError, "pictures.json damaged compare"):
        write_report(results)


def test_names_of_columns_are_texts(results):
    odd = "<script>alert(1)</script> $x_{$"
    stored = json.loads((results / "pictures.json").read_text())
    stored["importance"]["columns"][0]["column"] = odd
    (results / "pictures.json").write_text(json.dumps(stored))
    write_report(results)
    html = (results / PAGE).read_text()
    assert odd not in html
    assert odd.replace("<", "&lt;").replace(">", "&gt;") in html


def test_a_picture_is_drawn_alike_twice(choice, drawn):
    for picture in answer_pictures(choice, choice.recipe.reliability):
        assert picture.sheet.svg() == picture.sheet.svg()
