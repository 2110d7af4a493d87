"""The studies of kar2015."""

import pandas as pd

from precbench.core.studies import Result, StudyKind, SubFigure
from precbench.report.panels import draw_panels, in_panels
from precbench.report.study_tables import tabulate

_KEYS = ["theorem", "measure", "solver", "dataset", "batch_size"]
# of both sides of a lemma that holds with equality; the claim allows as much
_ROUNDING = 1e-9


def _means_over_splits(values: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over splits of each quantity, and of two more.

    ``holds`` is whether the bound holds, 0 or 1, ``share`` what is measured as a share
    of the bound; both are NaN without a bound.
    """
    splits = values.fillna({"split": 0})  # 0: measured without splits
    index = [*_KEYS, "split"]
    wide = splits.pivot(index=index, columns="quantity", values="value").reset_index()
    holds = (wide["measured"] <= wide["bound"] + _ROUNDING).astype(float)
    wide["holds"] = holds.where(wide["bound"].notna())
    wide["share"] = (wide["measured"] / wide["bound"]).where(wide["bound"] > 0)
    means = wide.groupby(_KEYS, sort=False).mean(numeric_only=True)
    means = means.drop(columns="split")
    return means.reset_index().melt(_KEYS, var_name="quantity").dropna(subset="value")


_PANELS = {
    "share": "mistakes as a fraction of the bound",
    "measured": "deviation in Theorem 12",
    "constant": "smallest factor with which it holds",
}


def _draw(figure: SubFigure, result: Result) -> None:
    """Draw shares of the bounds, deviations and constants by batch size, in panels."""
    means = _means_over_splits(result.values)
    # Of Theorem 12 "measured" is drawn, a deviation, of other statements "constant".
    # Quantities without a panel are not drawn.
    is_theorem_12 = means["theorem"] == "Theorem 12"
    not_drawn = is_theorem_12.map({True: "constant", False: "measured"})
    means = means[means["quantity"] != not_drawn]
    # A statement about no solver is named by its measure.
    solvers = means["solver"].where(means["solver"] != "", means["measure"])
    names = means["theorem"] + ", " + solvers + ", " + means["dataset"]
    names = names.str.replace("Theorem", "Th.").str.replace("Corollary", "Cor.")
    means = means.assign(curve=names, panel=means["quantity"].map(_PANELS))
    draw_panels(
        figure,
        means,
        x="batch_size",
        panel="panel",
        curve="curve",
        dashes=dict.fromkeys(_PANELS, "-"),
        xlabel="b (rows of a batch)",
    )


def _draw_laws(figure: SubFigure, result: Result) -> None:
    """Draw the largest excess of each law and of its control, one law above another."""
    by_law = result.values.groupby(["law", "quantity"], sort=False)["value"]
    largest = by_law.max().reset_index()
    # `draw_panels` puts "value" on the y axis: here the laws. The dash "" draws
    # markers, no line.
    largest = largest.rename(columns={"value": "excess", "law": "value"})
    largest["panel"] = ""
    [axes] = draw_panels(
        figure,
        largest,
        x="excess",
        panel="panel",
        curve="quantity",
        dashes={"excess": "", "control": ""},
        log=(),
        xlabel="largest excess of the left side",
    )
    axes.axvline(0, color="0.6", linewidth=0.8)  # the largest excess that a law allows


def _draw_appendix(figure: SubFigure, result: Result) -> None:
    """Draw the struct surrogate at both signs, and the loss at negative weights."""
    # "weight" holds absolute values
    signs = {"struct(w)": 1, "struct(-w)": -1, "loss(-w)": -1}
    values = result.values[result.values["quantity"].isin(signs)]
    values = values.assign(panel="Appendix A")
    values["weight"] = values["weight"].astype(float) * values["quantity"].map(signs)
    draw_panels(
        figure,
        values,
        x="weight",
        panel="panel",
        curve="quantity",
        dashes=dict.fromkeys(signs, "-"),
        log=(),
        xlabel="w",
        ylabel="struct, and the loss prec@1",
    )


def _draw_minima(figure: SubFigure, result: Result) -> None:
    """Draw the surrogate that SGD@k reaches, relative to w = 0, by step size."""
    reached = result.values.dropna(subset="eta0")
    curves = reached.assign(curve=reached["dataset"] + ", " + reached["surrogate"])
    panels = draw_panels(
        figure,
        curves,
        x="eta0",
        panel="rows",
        curve="curve",
        xlabel="eta0",
        dashes={"relative to w = 0": "-"},
    )
    for axes in panels:
        axes.axhline(1, color="black", linewidth=0.8)  # below 1 SGD@k improves on w = 0


def _draw_optima(figure: SubFigure, result: Result) -> None:
    """Draw values and bounds of the iterates, and measures on test rows, for each C."""
    paths = result.values.dropna(subset="iteration")  # without the summaries
    titles = paths["quantity"].eq("measure").map({True: "test rows", False: "value"})
    named = paths.assign(panel=titles + ", C = " + paths["C"].map("{:g}".format))
    draw_panels(
        figure,
        named,
        x="iteration",
        panel="panel",
        curve="quantity",
        log=(),
        xlabel="iteration",
        dashes={"value": "-", "best": "--", "bound so far": ":", "measure": "-"},
    )


def _by_theorem_and_solver(values: pd.DataFrame) -> pd.DataFrame:
    return values.assign(curve=values["theorem"] + ", " + values["solver"])


PRECISION_RATES = StudyKind(
    compute="precbench.papers.kar2015.bounds:precision_rates",
    text=("theorem", "solver", "quantity"),
    numbers=("batch_size",),
    tables=tabulate(["theorem", "solver", "quantity", "batch_size"]),
    draw=in_panels(
        _by_theorem_and_solver,
        x="batch_size",
        panel="quantity",
        curve="curve",
        dashes={"constant": "-"},
        log=("x",),
        xlabel="b = T (batches, and rows of each)",
    ),
    size=(6.4, 3.6),
    caption=(
        "Each bound has a factor that the paper leaves open. Shown is the smallest"
        " factor with which the bound holds, as the mean over {repetitions} streams of"
        " b batches of b rows of {dataset}; this factor should not grow with b."
    ),
)

PRECISION_LAWS = StudyKind(
    compute="precbench.papers.kar2015.laws:precision_laws",
    text=("place", "law", "scores", "quantity"),
    numbers=(),
    tables=tabulate(
        ["place", "law", "scores"],
        "The largest excess of the left side over the right one; a law holds where it"
        " is not above 0 except for rounding. Scores of the same kinds break the"
        " control.",
        across="quantity",
        rows=lambda values: values[values["quantity"] != "allowed"],  # 0 in all rows
    ),
    draw=_draw_laws,
    size=(7.0, 3.6),
    caption=(
        "The largest excess of the left side of each law over its right side, over"
        " {vectors} random score vectors of each of three sorts and {starts} searches"
        " of {steps} moves, in units of the largest score. Control: a statement that"
        " does not hold."
    ),
)

APPENDIX_A = StudyKind(
    compute="precbench.papers.kar2015.laws:appendix_a",
    text=("quantity", "weight"),
    numbers=(),
    tables=tabulate(["quantity", "weight"]),
    draw=_draw_appendix,
    size=(5.0, 3.4),
    caption=(
        "The struct surrogate on the six points, as scaled in Appendix A: it prefers "
        "negative weights, at which the loss prec@1 is 1."
    ),
    quick=True,
)

SURROGATE_MINIMA = StudyKind(
    compute="precbench.papers.kar2015.minima:surrogate_minima",
    text=("dataset", "rows", "surrogate", "quantity"),
    numbers=("eta0",),
    tables=tabulate(
        ["dataset", "rows", "surrogate", "eta0"],
        "Without eta0: whether w = 0 is a minimiser (1) or not (0). With eta0: the"
        " surrogate of all rows at the w of SGD@k, as a multiple of its value at w"
        " = 0.",
        across="quantity",
    ),
    draw=_draw_minima,
    size=(9.0, 3.8),
    caption=(
        "The surrogate of all rows at the w of SGD@k after {epochs} passes, relative to"
        " its value at w = 0, where all scores tie; k is {k} of the positives. Below 1"
        " something was minimised."
    ),
)

CUTTING_PLANE_MINIMA = StudyKind(
    compute="precbench.papers.kar2015.minima:cutting_plane_minima",
    text=("dataset", "problem", "quantity"),
    numbers=("C", "iteration"),
    tables=tabulate(
        ["dataset", "problem", "C"],
        "The smallest value found and the lower bound, as multiples of the value at w ="
        " 0; the norms, and the measures on test rows, of the best w, the last iterate"
        " and w = 0.",
        across="quantity",
        # the summaries, not the iterates
        rows=lambda values: values[values["iteration"].isna()],
    ),
    draw=_draw_optima,
    size=(10.0, 4.6),
    caption=(
        "The value of each iterate of the cutting plane, the smallest so far and the"
        " lower bound, as multiples of the value at w = 0, where all scores tie; and"
        " the measure of each iterate on the test rows."
    ),
)

PRECISION_BOUNDS = StudyKind(
    compute="precbench.papers.kar2015.bounds:precision_bounds",
    text=("theorem", "measure", "solver", "dataset", "quantity"),
    numbers=("split", "batch_size"),
    tables=tabulate(
        _KEYS,
        "Means over the splits. Holds: the share of splits in which the bound holds."
        " Trivial: the most mistakes that the batches allow, so that a larger bound is"
        " vacuous. Where a constant is open the bound is the explicit part plus a"
        " constant times the rate, and the constant is the smallest that suffices,"
        " which should stay bounded as b grows.",
        across="quantity",
        rows=lambda values: _means_over_splits(values).query("quantity != 'share'"),
    ),
    draw=_draw,
    size=(10.0, 7.2),
    caption=(
        "Mistakes of one pass as a fraction of their bounds; above 1 a theorem would"
        " fail. The largest deviation of a sample of b rows from all rows, over"
        " {weights} w near the optimum: its 95 % quantile over {samples} samples. Left:"
        " the bounds of Theorems 13 and 15 have a factor that the paper leaves open;"
        " the smallest with which they hold, where it is not 0. Means over {splits}"
        " splits; k is {k} of the positives of a batch."
    ),
)
