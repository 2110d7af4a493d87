"""``precbench evaluate``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer
from numpy.typing import NDArray

from precbench.cli.options import Json
from precbench.cli.own import Form, load_model, plain_value, plain_warnings
from precbench.data.own.read import read_labels, read_new_blocks
from precbench.metrics import auc
from precbench.statistics import LEVEL
from precbench.text import count
from precbench.topk import first_rows, resolve_k

if TYPE_CHECKING:
    from precbench.advice.model import Model


def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file, see fit.")],
    file: Annotated[Path, typer.Argument(help="Rows whose labels have become known since.")],
    label: Annotated[str | None, typer.Option(help="Label column (required for tables).")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive label; not needed for 0/1 and -1/1.")
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

    is_hit = read_labels(file, label, positive, cast("Any", form)) > 0
    n_rows, n_pos = len(is_hit), int(np.count_nonzero(is_hit))
    loaded, scores = _scored(model, file, form)
    quality = quality_of(loaded, str(model))
    asked = plain_value(k) if k is not None else quality.k if quality else 0.25
    length = resolve_k(asked, n_pos, n_rows)
    top = first_rows(scores, length)
    hits, area = int(is_hit[top].sum()), auc(is_hit, scores)
    found: dict[str, Any] = {"rows": n_rows, "positives": n_pos, "k": length, "hits": hits}
    found |= {"precision": hits / length, "auc": area}
    fitted = ""
    if quality and (of := quality.length):
        share = length / n_rows  # of whatever list
        value = np.interp(share * of.rows, of.curve["length"], of.curve["precision"])
        found["precision_when_fitted"] = float(value)
        fitted = f" ({value:.3f} when fitted)"
    lines = [
        f"{file}: {n_rows:,} rows, {n_pos:,} positive",
        f"{hits:,} hits among the first {length:,}: precision {hits / length:.3f}{fitted}, "
        f"AUC {area:.3f}",
    ]
    if loaded.calibration is not None:
        mean, low, high = promised = loaded.calibration.expected(scores[top], n_rows)
        verdict = "fewer" if hits < low else "more" if hits > high else "kept"
        found |= {"promised": promised._asdict(), "verdict": verdict}
        lines.append(
            f"promised: about {mean:,.1f} hits, {low:,.0f} to {high:,.0f} in 95 % of such lists: "
            f"{verdict}"
        )
    if against is not None:
        other = first_rows(_scored(against, file, form)[1], length)
        n, of_other = len(np.setdiff1d(top, other)), int(is_hit[other].sum())
        own, others = (
            int(is_hit[np.setdiff1d(*pair)].sum()) for pair in ((top, other), (other, top))
        )
        p = float(fisher_exact([[own, n - own], [others, n - others]]).pvalue)
        found["against"] = {"hits": of_other, "rows": n, "own": own, "others": others, "p": p}
        differ = f"significantly {'more' if own > others else 'fewer'}"
        lines.append(
            f"{against}: {of_other:,} hits; of {count(n, 'row')} that each list has alone, {own:,} "
            f"against {others:,} are hits: {differ if p < LEVEL else 'no significant difference'} "
            f"(p = {p:.2g})"
        )
    print(json.dumps(found) if as_json else "\n".join(lines))


def _scored(path: Path, file: Path, form: str | None) -> "tuple[Model, NDArray[np.float64]]":
    model, encoding = load_model(path)
    with plain_warnings():
        blocks = read_new_blocks(file, encoding, cast("Any", form))
        return model, np.concatenate([model.decision_function(X, n_jobs=-1) for X, _ in blocks])
