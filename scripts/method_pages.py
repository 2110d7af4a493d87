"""One page a method for the site, made from its folder in ``precbench/solvers``.

A page has the docstring of the folder, a picture of what the method does on a small
set, its estimators, the reference implementation, and what became of the papers' claims
about it.
"""

import contextlib
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import precbench
from precbench.core.errors import MissingPackageError
from precbench.ranking.metrics import precision_at_k
from scripts import printed
from scripts.survey.tables import laid_out

ROOT = Path(__file__).parent.parent
SOLVERS = ROOT / "precbench" / "solvers"
_K = 30  # rows at the top of the small set
_ROWS = 600


@dataclass(frozen=True)
class Method:
    """A folder of ``precbench/solvers``.

    Attributes
    ----------
    folder : str
    title : str
    estimators : sequence of str
        Public names.
    papers : sequence of str
        Papers of the ledger all of whose claims are about it.
    named_in : sequence of str
        Papers of the ledger of which some claims name its solvers.
    """

    folder: str
    title: str
    estimators: Sequence[str]
    papers: Sequence[str] = ()
    named_in: Sequence[str] = ()

    @property
    def labels(self) -> set[str]:
        """Names of the registry that stand for its estimators."""
        classes = {getattr(precbench, name) for name in self.estimators}
        labels = set()
        for label, make in precbench.SOLVERS.items():
            if type(make()) in classes:
                labels.add(label)
        return labels


METHODS = [
    Method(
        "minibatch",
        "Perceptron@k, SGD@k, 1PMB and 2PMB",
        ["PerceptronAtK", "SGDAtK", "OnePMB", "TwoPMB"],
        named_in=["kar2015", "kar2014"],
    ),
    Method(
        "push",
        "P-Norm Push",
        ["PNormPush", "IRPush", "RankBoost"],
        papers=["rudin2009"],
    ),
    Method("bbr", "BBR and LCBR", ["BBR", "LCBR"], papers=["gultekin"]),
    Method(
        "cutting_plane",
        "Cutting plane",
        ["CuttingPlane"],
        named_in=["kar2015", "kar2014"],
    ),
    Method("toppush", "TopPush", ["TopPush"], named_in=["zhang2018", "kumar2021"]),
    Method("ftrl", "FTRL", ["FTRL"], named_in=["kar2014"]),
    Method("psg", "PSG", ["ProjectedSubgradient"], named_in=["kar2014"]),
    Method(
        "online_auc",
        "OAM, PGD, AdaOAM and SPAM",
        ["OAM", "PGD", "AdaOAM", "SPAM"],
        named_in=["gultekin"],
    ),
    Method(
        "others",
        "Baselines and the ensemble",
        [
            "LogisticRegressionRanker",
            "LinearSVMRanker",
            "HistGradientBoosting",
            "RandomForest",
            "ExtraTrees",
            "Ensemble",
            "LightGBM",
            "LambdaRank",
            "XGBoost",
            "CatBoost",
            "MLP",
            "NoSkill",
        ],
    ),
]


def write_pages(folder: Path) -> None:
    """Write the page and the picture of each method, and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    for method in METHODS:
        picture(method).savefig(folder / f"{method.folder}.png", dpi=110)
        (folder / f"{method.folder}.md").write_text(page(method))
    (folder / "index.md").write_text(index())


def index() -> str:
    """Return the page that lists the methods."""
    rows = []
    for method in METHODS:
        summary = _docstring(method).partition("\n")[0]
        rows.append([f"[{method.title}]({method.folder}.md)", summary])
    toctree = "\n".join(method.folder for method in METHODS)
    return (
        "# Methods\n\nOne page a method: what it optimises, its parameters, how it"
        " works, and what became of the claims about it.\n\n"
        + laid_out(["method", "in a sentence"], rows)
        + f"\n```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"
    )


def page(method: Method) -> str:
    """Return the page of a method."""
    module = f"precbench.solvers.{method.folder}"
    parts = [
        f"# {method.title}\n",
        f"```{{eval-rst}}\n.. automodule:: {module}\n```\n",
        *_picture_on_a_small_set(method),
        "## Estimators\n",
    ]
    for name in method.estimators:
        directive = f".. autoclass:: precbench.{name}\n   :no-index:"
        parts.append(f"```{{eval-rst}}\n{directive}\n```\n")
    parts += _reference(method)
    parts += _claims(method)
    return "\n".join(parts)


def _docstring(method: Method) -> str:
    return import_module(f"precbench.solvers.{method.folder}").__doc__ or ""


def _picture_on_a_small_set(method: Method) -> list[str]:
    return [
        "## On a small set\n",
        (
            f"Of {_ROWS} rows one in ten is positive; six of ten positives stand out to"
            " the right, the others lie among the negatives on the left. Each panel"
            " shows the score of a method, from low (light) to high (dark), on new"
            f" rows of the same kind, and circles the {_K} at the top of its list; the"
            " title counts the positives among them.\n"
        ),
        f"![Scores and the top of the list of {method.title}]({method.folder}.png)\n",
    ]


def _reference(method: Method) -> list[str]:
    if not (SOLVERS / method.folder / "reference.py").exists():
        return []
    path = f"../../../precbench/solvers/{method.folder}/reference.py"
    return [
        "## How it works\n",
        (
            "The method as the papers write it, in plain NumPy. A test holds it equal"
            " to the compiled method.\n"
        ),
        f"```{{literalinclude}} {path}\n:language: python\n```\n",
    ]


def _claims(method: Method) -> list[str]:
    """Return what became of the claims about a method, by paper."""
    labels = method.labels
    rows = []
    for paper in [*method.papers, *method.named_in]:
        verdicts: Counter[str] = Counter()
        for _claim, row in printed.claims(paper):
            if paper in method.papers or _names_any(row.id, labels):
                verdicts[str(row.verdict)] += 1
        if verdicts:
            counts = [f"{n} {verdict}" for verdict, n in verdicts.most_common()]
            rows.append([_link(paper), verdicts.total(), ", ".join(counts)])
    if not rows:
        return []
    return [
        "## What became of the papers' claims\n",
        "Rows of the [ledger](../../claims.md#verdicts) about these methods.\n",
        laid_out(["paper", "rows", "verdicts"], rows),
    ]


def _names_any(claim: str, labels: set[str]) -> bool:
    return any(label in part for label in labels for part in claim.split("/"))


def _link(paper: str) -> str:
    """Return a link to the page of a paper, or to that of all without one."""
    has_page = (ROOT / "docs" / "papers" / f"{paper}.md").exists()
    page = paper if has_page else "outside"
    return f"[{paper}](../../papers/{page}.md)"


def picture(method: Method) -> Figure:
    """Draw the scores of each estimator on a small set, and the top of its list.

    Left out are those whose package is not installed, and `NoSkill`.
    """
    X, y = small_set(seed=0)
    fitted = {}
    for name in method.estimators:
        if name != "NoSkill":
            with contextlib.suppress(MissingPackageError):
                fitted[name] = _fitted(name, X, y)
    new_X, new_y = small_set(seed=1)
    n_columns = min(3, len(fitted))
    n_rows = -(-len(fitted) // n_columns)
    figure = Figure(figsize=(3.2 * n_columns, 3 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis, (name, estimator) in zip(axes, fitted.items(), strict=False):
        _draw(axis, name, estimator, new_X, new_y)
    for axis in axes[len(fitted) :]:
        axis.remove()
    return figure


def small_set(seed: int) -> tuple[Any, Any]:
    """Return rows in the plane and their labels, one in ten positive."""
    rng = np.random.default_rng(seed)
    n_positive = _ROWS // 10
    y = np.zeros(_ROWS, dtype=int)
    y[:n_positive] = 1
    X = rng.standard_normal((_ROWS, 2))
    n_clear = round(0.6 * n_positive)
    clear = slice(0, n_clear)  # positives that stand out
    hidden = slice(n_clear, n_positive)  # positives among the negatives
    X[clear] = [2.2, 0.6] + 0.7 * X[clear]
    X[hidden] = [-1.0, -1.2] + 0.7 * X[hidden]
    return X, y


def _fitted(name: str, X: Any, y: Any) -> Any:
    """Fit an estimator at its defaults, but for k where it has one."""
    estimator = getattr(precbench, name)()
    params = estimator.get_params()
    if "k" in params:
        estimator.set_params(k=_K)
    if "random_state" in params:
        estimator.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def _draw(axis: Axes, name: str, fitted: Any, X: Any, y: Any) -> None:
    """Draw the score of each place as its rank among the rows, then the rows."""
    low = X.min(axis=0) - 0.3
    high = X.max(axis=0) + 0.3
    across, up = np.meshgrid(
        np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120)
    )
    scores = fitted.decision_function(X)
    heights = fitted.decision_function(np.column_stack([across.ravel(), up.ravel()]))
    # Ranks have the same scale for all methods.
    ranks = np.searchsorted(np.sort(scores), heights).reshape(across.shape)
    axis.contourf(across, up, ranks, levels=12, cmap="Blues", alpha=0.6)
    negative, positive = X[y == 0], X[y == 1]
    axis.scatter(
        negative[:, 0],
        negative[:, 1],
        s=4,
        color="0.45",
        linewidths=0,
        label="negative",
    )
    axis.scatter(
        positive[:, 0],
        positive[:, 1],
        s=9,
        color="#D55E00",
        linewidths=0,
        label="positive",
    )
    top = X[np.argsort(-scores, kind="stable")[:_K]]
    axis.scatter(
        top[:, 0],
        top[:, 1],
        s=26,
        facecolors="none",
        edgecolors="black",
        linewidths=0.7,
    )
    hits = precision_at_k(y, scores, _K) * _K
    axis.set_title(f"{name}: {hits:.3g} of {_K}", fontsize=9)
    axis.set_xticks([])
    axis.set_yticks([])
