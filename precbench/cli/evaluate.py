"""``precbench evaluate``."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from precbench.cli.options import NOT_HELD, Json, takes
from precbench.cli.own import FileLayout, load_model, plain_value
from precbench.data.own.read import read_labels, read_new_blocks
from precbench.errors import InputError
from precbench.metrics import auc
from precbench.statistics import LEVEL
from precbench.text import count
from precbench.topk import first_rows, resolve_k, split_at


@takes(FileLayout)
def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file, see fit.")],
    file: Annotated[Path, typer.Argument(help="Rows whose labels are known by now.")],
    label: Annotated[str | None, typer.Option(help="Label column (required for tables).")] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(help="Positive label; not needed for 0/1 and -1/1; repeatable."),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", help="Length of the list, as for fit [default: what the model was fitted for]."
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model, to compare its list of the same rows.")
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(metavar="HITS", help="End with exit code 5 if the list has fewer hits."),
    ] = None,
    as_json: Json = False,
    *,
    options: FileLayout,
) -> int:
    """Count the hits of a model on new labelled rows, and compare them with its forecast.

    The forecast is the number of hits that `score` expects of this list, with an interval for 95 %
    of such lists. The verdict is as forecast (JSON: kept), fewer or more. If scores are tied at the
    end of the list, hits are the mean over all orders of the tied rows. With --against, Fisher's
    exact test compares the hits among the rows that only one of the two lists has.

    Exit code 5: with --fail-below, there are fewer hits.

    \b
    Examples:
      precbench evaluate top.npz may.csv --label churned --positive yes --k 100
      precbench evaluate top.npz may.csv --label churned --positive yes \\
          --against last.npz
    """
    from scipy.stats import fisher_exact

    from precbench.advice.quality import quality_of

    is_hit = read_labels(file, label, positive or None, **options.layout) > 0
    n_rows, n_pos = len(is_hit), int(np.count_nonzero(is_hit))
    models = [load_model(path) for path in (model, against) if path is not None]
    loaded, quality = models[0][0], quality_of(models[0][0], str(model))
    wanted = plain_value(k) if k is not None else quality.k if quality else 0.25
    if not n_pos and isinstance(wanted, float):
        raise InputError(
            f"{file}: no row is positive, so a k of {wanted} gives no length: give --k as a "
            "number of rows"
        )
    length = resolve_k(wanted, n_pos, n_rows)
    lists, hits = [], []
    for each, encoding in reversed(models):  # so that `scores` are those of the model itself
        parts, n_known = list[NDArray[np.float64]](), 0
        for X, _ in read_new_blocks(file, encoding, **options.layout):
            parts.append(each.decision_function(X, n_jobs=-1))
            n_known += each.training_rows.count(X) if each.training_rows else 0
        scores = np.concatenate(parts)
        lists.append(_listed(scores, length))
        hits.append(round(float(lists[-1] @ is_hit), 6))
    precision, fitted = hits[-1] / length, ""
    area = auc(is_hit, scores) if 0 < n_pos < n_rows else None
    result: dict[str, Any] = {"rows": n_rows, "positives": n_pos, "k": length, "hits": hits[-1]}
    result |= {"precision": precision, "auc": area}
    if quality and (measured := quality.length):
        share = length / n_rows  # of whatever list
        curve = measured.curve
        value = np.interp(share * measured.rows, curve["length"], curve["precision"])
        result["precision_when_fitted"] = float(value)
        fitted = f" ({value:.3f} when fitted)"
    lines = [f"{file}: {n_rows:,} rows, {n_pos:,} positive"]
    text = f"{_hits(hits[-1])} among the first {length:,}: precision {precision:.3f}{fitted}"
    lines.append(text if area is None else f"{text}, AUC {area:.3f}")
    if n_tied := int(np.count_nonzero((lists[-1] > 0) & (lists[-1] < 1))):
        lines.append(
            f"{count(n_tied, 'row')} tied at the end of the list: hits are a mean over all orders"
        )
    known = loaded.training_rows
    named = None if known is None else known.sentence(n_known, n_rows)
    if loaded.calibration is not None:
        mean, low, high = promised = loaded.calibration.expected(
            scores[first_rows(scores, length)], n_rows
        )
        verdict = "fewer" if hits[-1] < low else "more" if hits[-1] > high else "kept"
        result |= {"promised": promised._asdict(), "verdict": verdict}
        text = f"forecast: about {mean:,.1f} hits ({low:,.0f} to {high:,.0f}); found {hits[-1]:g}"
        outcome = {"kept": "as forecast"}.get(verdict, f"{verdict} than forecast")
        lines.append(f"{text}, {outcome}")
    if named:
        lines.append(named)
    if against is not None:
        own, others = (np.maximum(a - b, 0) for a, b in (lists[::-1], lists))
        n, n_own, n_others = (round(float(x)) for x in (own.sum(), own @ is_hit, others @ is_hit))
        p = float(fisher_exact([[n_own, n - n_own], [n_others, n - n_others]]).pvalue)
        result["against"] = {"hits": hits[0], "rows": n, "own": n_own, "others": n_others, "p": p}
        verdict = f"significantly {'more' if n_own > n_others else 'fewer'}"
        verdict = verdict if p < LEVEL else "no significant difference"
        text = f"{against}: {_hits(hits[0])}; of {count(n, 'row')} on only one of the lists"
        lines.append(f"{text}, {n_own:,} against {n_others:,} are hits: {verdict} (p = {p:.2g})")
    print(json.dumps(result) if as_json else "\n".join(lines))
    return NOT_HELD if fail_below is not None and hits[-1] < fail_below else 0


def _listed(scores: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Return the probability that each row is listed, tied rows being in random order."""
    above, tied, free = split_at(scores, length)
    listed = np.zeros(len(scores))
    listed[above] = 1
    listed[tied] = free / len(tied)
    return listed


def _hits(n: float) -> str:
    return count(int(n), "hit") if n.is_integer() else f"{n:,.1f} hits"
