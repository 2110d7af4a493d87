"""``precbench evaluate``."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

from precbench.cli.options import Json, takes
from precbench.cli.own import FileLayout, Form, load_model, plain_value
from precbench.cli.screen import plain_warnings
from precbench.data.own.read import read_labels, read_new_blocks
from precbench.metrics import auc
from precbench.statistics import LEVEL
from precbench.text import count
from precbench.topk import first_rows, resolve_k


@takes(FileLayout)
def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file, see fit.")],
    file: Annotated[Path, typer.Argument(help="Rows whose labels have become known since.")],
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
        Path | None, typer.Option(help="Another model, whose list of the same rows is compared.")
    ] = None,
    form: Form = None,
    as_json: Json = False,
    *,
    options: FileLayout,
) -> None:
    """Count the hits of a model on new labelled rows, beside what it promised.

    What it promised are the hits that `score` expects of this list, with the interval that 95 % of
    such lists keep to: there are as many (kept), fewer or more. Two models are compared by the rows
    that only one of their lists has, with Fisher's exact test.

    \b
    Examples:
      precbench evaluate top.npz may.csv --label churned --positive yes --k 100
      precbench evaluate top.npz may.csv --label churned --positive yes \\
          --against last.npz
    """
    from scipy.stats import fisher_exact

    from precbench.advice.quality import quality_of

    kind = cast("Any", form)
    is_hit = read_labels(file, label, positive or None, kind, **options.layout) > 0
    n_rows, n_pos = len(is_hit), int(np.count_nonzero(is_hit))
    models = [load_model(path) for path in (model, against) if path is not None]
    loaded, quality = models[0][0], quality_of(models[0][0], str(model))
    asked = plain_value(k) if k is not None else quality.k if quality else 0.25
    length = resolve_k(asked, n_pos, n_rows)
    tops, hits = [], []
    for each, encoding in reversed(models):  # so that `scores` are those of the model itself
        with plain_warnings():
            blocks = read_new_blocks(file, encoding, kind, **options.layout)
            scores = np.concatenate([each.decision_function(X, n_jobs=-1) for X, _ in blocks])
        tops.append(first_rows(scores, length))
        hits.append(int(is_hit[tops[-1]].sum()))
    precision, area, fitted = hits[-1] / length, auc(is_hit, scores), ""
    found: dict[str, Any] = {"rows": n_rows, "positives": n_pos, "k": length, "hits": hits[-1]}
    found |= {"precision": precision, "auc": area}
    if quality and (of := quality.length):
        share = length / n_rows  # of whatever list
        value = np.interp(share * of.rows, of.curve["length"], of.curve["precision"])
        found["precision_when_fitted"] = float(value)
        fitted = f" ({value:.3f} when fitted)"
    lines = [f"{file}: {n_rows:,} rows, {n_pos:,} positive"]
    text = f"{count(hits[-1], 'hit')} among the first {length:,}: precision {precision:.3f}{fitted}"
    lines.append(f"{text}, AUC {area:.3f}")
    if loaded.calibration is not None:
        mean, low, high = promised = loaded.calibration.expected(scores[tops[-1]], n_rows)
        verdict = "fewer" if hits[-1] < low else "more" if hits[-1] > high else "kept"
        found |= {"promised": promised._asdict(), "verdict": verdict}
        text = f"promised: about {mean:,.1f} hits, {low:,.0f} to {high:,.0f} in 95 % of such lists"
        lines.append(f"{text}: {verdict}")
    if against is not None:
        other, top = tops
        own = int(is_hit[alone := np.setdiff1d(top, other)].sum())
        n, others = len(alone), int(is_hit[np.setdiff1d(other, top)].sum())
        p = float(fisher_exact([[own, n - own], [others, n - others]]).pvalue)
        found["against"] = {"hits": hits[0], "rows": n, "own": own, "others": others, "p": p}
        verdict = f"significantly {'more' if own > others else 'fewer'}"
        verdict = verdict if p < LEVEL else "no significant difference"
        text = f"{against}: {hits[0]:,} hits; of {count(n, 'row')} that each list has alone"
        lines.append(f"{text}, {own:,} against {others:,} are hits: {verdict} (p = {p:.2g})")
    print(json.dumps(found) if as_json else "\n".join(lines))
