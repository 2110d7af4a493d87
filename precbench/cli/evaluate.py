"""``precbench evaluate``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from precbench.cli.options import NOT_HELD, Json, takes
from precbench.cli.own import FileLayout, load_model, plain_value
from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.ranking.metrics import auc
from precbench.ranking.statistics import LEVEL
from precbench.ranking.topk import first_rows, resolve_k, split_at
from precbench.tables.own_file import read_labels, read_new_blocks

if TYPE_CHECKING:
    from precbench.model.model import Model
    from precbench.tables.encoding import Encoding


@takes(FileLayout)
def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file that fit or compare has saved.")],
    file: Annotated[Path, typer.Argument(help="File of new rows whose labels are known by now.")],
    label: Annotated[str | None, typer.Option(help="Label column [default: the model's].")] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(help="Label of the rows to find; repeatable [default: the model's]."),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", help="Length of the list: rows (100) or a fraction [default: that of the model]."
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model file, to compare the lists of two models.")
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(metavar="HITS", help="Exit with code 5 if the list has fewer than HITS hits."),
    ] = None,
    as_json: Json = False,
    *,
    options: FileLayout,
) -> int:
    """Count the hits of a model on new labelled rows, and compare them with its forecast.

    The forecast is the number of hits that `score` expects of this list, with an interval for 95 %
    of cases. The verdict is as forecast (JSON: kept), fewer or more. If scores are tied at the
    end of the list, hits are the mean over all orders of the tied rows. With --against, Fisher's
    exact test compares the hits among the rows that only one of the two lists has.

    Exit code 5: with --fail-below, there are fewer hits.

    \b
    Examples:
      precbench evaluate top.npz may.csv --k 100
      precbench evaluate top.npz may.csv --against last.npz
    """
    from precbench.advice.quality import quality_of

    loaded, encoding = load_model(model)
    other = None if against is None else load_model(against)  # a pair: model, encoding
    quality = quality_of(loaded, str(model))  # as measured at the fit; may be None
    label = label or getattr(quality, "label", None)  # as at the fit, if not given
    positive = positive or getattr(quality, "positive", None)
    marks = (column.notation for column in encoding.columns if column.notation in (".", ","))
    reading = {"decimal": next(marks, None), **options.layout}  # as at the fit, if not given
    is_hit = read_labels(file, label, positive, **reading) > 0  # of each row
    n_rows, n_pos = len(is_hit), int(np.count_nonzero(is_hit))
    # Without --k, the k of the model counts, or else 0.25, the default of fit.
    k_given = (quality.k if quality else 0.25) if k is None else plain_value(k)
    if not n_pos and isinstance(k_given, float):
        raise InputError(
            f"{file}: no row is positive, so a k of {k_given} gives no length; give --k as a "
            "number of rows"
        )
    length = resolve_k(k_given, n_pos, n_rows)  # number of rows on the list
    # Rank the rows, read block by block, and count hits; n_known of the rows are training rows.
    scores, n_known = _scores(loaded, encoding, file, options)
    listed = _listing_probabilities(scores, length)  # of each row; 0 or 1, unless tied at the end
    hits = _count_hits(listed, is_hit)
    area = auc(is_hit, scores) if 0 < n_pos < n_rows else None  # undefined with one class alone
    # What is printed: `result` as JSON, or else `lines`.
    result: dict[str, Any] = {
        "rows": n_rows, "positives": n_pos, "k": length, "hits": hits,
        "precision": hits / length, "auc": area,
    }  # fmt: skip
    hits_text = f"{_hits(hits)} among the first {length:,}: precision {hits / length:.3f}"
    if quality and (measured := quality.length):
        # The model was measured on a list of `measured.rows` rows: look up as large a share.
        same_share, curve = length / n_rows * measured.rows, measured.curve
        value = np.interp(same_share, curve["length"], curve["precision"])
        result["precision_when_fitted"] = float(value)
        hits_text += f" ({value:.3f} when fitted)"
    hits_text += "" if area is None else f", AUC {area:.3f}"
    lines = [f"{file}: {n_rows:,} rows, {n_pos:,} positive", hits_text]
    if n_tied := int(np.count_nonzero((listed > 0) & (listed < 1))):
        lines.append(
            f"{count(n_tied, 'row')} tied at the end of the list: hits are a mean over all orders"
        )
    if loaded.calibration is not None:
        mean, low, high = forecast = loaded.calibration.expected(
            scores[first_rows(scores, length)], n_rows
        )
        verdict = "fewer" if hits < low else "more" if hits > high else "kept"  # in the interval
        result |= {"promised": forecast._asdict(), "verdict": verdict}
        counts = f"forecast: about {mean:,.1f} hits ({low:,.0f} to {high:,.0f}); found {hits:g}, "
        lines.append(counts + ("as" if verdict == "kept" else f"{verdict} than") + " forecast")
    if loaded.training_rows and (sentence := loaded.training_rows.sentence(n_known, n_rows)):
        lines.append(sentence)
    if other is not None:
        other_scores, _n_known = _scores(*other, file, options)
        other_listed = _listing_probabilities(other_scores, length)
        result["against"] = comparison = _compare_lists(listed, other_listed, is_hit)
        lines.append(f"{against}: {_comparison_in_words(comparison)}")
    print(json.dumps(result) if as_json else "\n".join(lines))
    return NOT_HELD if fail_below is not None and hits < fail_below else 0


def _scores(
    model: "Model", encoding: "Encoding", path: Path, options: FileLayout
) -> tuple[NDArray[np.float64], int]:
    # Return the scores of the rows of a file, and how many rows the model was trained on.
    parts, n_known = list[NDArray[np.float64]](), 0
    for X, _ in read_new_blocks(path, encoding, **options.layout):  # _: no columns are kept
        parts.append(model.decision_function(X, n_jobs=-1))
        n_known += model.training_rows.count(X) if model.training_rows else 0
    return np.concatenate(parts), n_known


def _listing_probabilities(scores: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    # Return the probability of each row to be on the list, if tied rows are in random order.
    above, tied, n_places = split_at(scores, length)  # n_places: left for tied rows
    listed = np.zeros(len(scores))
    listed[above] = 1
    listed[tied] = n_places / len(tied)
    return listed


def _count_hits(listed: NDArray[np.float64], is_hit: NDArray[np.bool_]) -> float:
    return round(float(listed @ is_hit), 6)  # a tied row counts in part; sums of parts are rounded


def _compare_lists(
    own: NDArray[np.float64], other: NDArray[np.float64], is_hit: NDArray[np.bool_]
) -> dict[str, Any]:
    # Compare the hits among the rows that only one of two lists has, by Fisher's exact test. `own`
    # and `other` are probabilities that a row is listed. Return the hits of `other`, the number of
    # rows that each list has alone (equal for both), the hits among these rows, and the p-value.
    from scipy.stats import fisher_exact

    only_own, only_other = np.maximum(own - other, 0), np.maximum(other - own, 0)
    n_rows, own_hits, other_hits = (  # ties make fractions, the test needs whole numbers
        round(float(n)) for n in (only_own.sum(), only_own @ is_hit, only_other @ is_hit)
    )
    by_list = [[hits, n_rows - hits] for hits in (own_hits, other_hits)]  # hits and misses
    counts = {"rows": n_rows, "own": own_hits, "others": other_hits}
    return {"hits": _count_hits(other, is_hit), **counts, "p": float(fisher_exact(by_list).pvalue)}


def _comparison_in_words(comparison: dict[str, Any]) -> str:
    # Describe what `_compare_lists` returns, with the verdict at the level of 5 %.
    n_own, n_other, p = (comparison[name] for name in ("own", "others", "p"))
    difference = f"significantly {'more' if n_own > n_other else 'fewer'}"
    return (
        f"{_hits(comparison['hits'])}; of {count(comparison['rows'], 'row')} on only one of the "
        f"lists, {n_own:,} against {n_other:,} are hits: "
        f"{difference if p < LEVEL else 'no significant difference'} (p = {p:.2g})"
    )


def _hits(n: float) -> str:  # "1 hit", "3 hits", "2.5 hits"
    return count(int(n), "hit") if n.is_integer() else f"{n:,.1f} hits"
