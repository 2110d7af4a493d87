"""One page a method for the site, made from its folder in ``precbench/solvers``.

A page has the docstring of the folder, a picture of what the method does on a small
set, its estimators, the reference implementation, and what became of the papers' claims
about it.
"""

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
    about : sequence of str
        Papers of the ledger all of whose claims are about it.
    named_in : sequence of str
        Papers of the ledger of which some claims name its solvers.
    """

    folder: str
    title: str
    estimators: Sequence[str]
    about: Sequence[str] = ()
    named_in: Sequence[str] = ()

    @property
    def labels(self) -> set[str]:
        """Names of the registry that stand for its estimators."""
        classes = {getattr(precbench, name) for name in self.estimators}
        return {
            name
            for name in precbench.SOLVERS
            if type(precbench.SOLVERS[name]()) in classes
        }


METHODS = [
    Method(
        "minibatch",
        "Perceptron@k, SGD@k, 1PMB and 2PMB",
        ["PerceptronAtK", "SGDAtK", "OnePMB", "TwoPMB"],
        named_in=["kar2015", "kar2014"],
    ),
    Method(
        "push", "P-Norm Push", ["PNormPush", "IRPush", "RankBoost"], about=["rudin2009"]
    ),
    Method("bbr", "BBR and LCBR", ["BBR", "LCBR"], about=["gultekin"]),
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
    return "\n".join(
        [
            f"# {method.title}\n",
            (
                "```{eval-rst}\n.. automodule::"
                f" precbench.solvers.{method.folder}\n```\n"
            ),
            *_shown(method),
            "## Estimators\n",
            *(
                f"```{{eval-rst}}\n.. autoclass:: precbench.{n}\n   :no-index:\n```\n"
                for n in method.estimators
            ),
            *_reference(method),
            *_claims(method),
        ]
    )


def _docstring(method: Method) -> str:
    return import_module(f"precbench.solvers.{method.folder}").__doc__ or ""


def _shown(method: Method) -> list[str]:
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
    rows = []
    for paper in [*method.about, *method.named_in]:
        verdicts = Counter(
            str(row.verdict)
            for _claim, row in printed.claims(paper)
            if paper in method.about or _names_any(row.id, method.labels)
        )
        if verdicts:
            counts = ", ".join(
                f"{n} {verdict}" for verdict, n in verdicts.most_common()
            )
            rows.append([_paper_page(paper), verdicts.total(), counts])
    if not rows:
        return []
    return [
        "## What became of the papers' claims\n",
        "Rows of the [ledger](../../claims.md#verdicts) about these methods.\n",
        laid_out(["paper", "rows", "verdicts"], rows),
    ]


def _names_any(claim: str, labels: set[str]) -> bool:
    return any(label in part for label in labels for part in claim.split("/"))


def _paper_page(paper: str) -> str:
    own = (ROOT / "docs" / "papers" / f"{paper}.md").exists()
    return f"[{paper}](../../papers/{paper if own else 'outside'}.md)"


def picture(method: Method) -> Figure:
    """Draw the scores of each estimator on a small set, and the top of its list."""
    train, new = small_set(seed=0), small_set(seed=1)
    estimators = _available(method, *train)
    n_columns = min(3, len(estimators))
    n_rows = -(-len(estimators) // n_columns)
    figure = Figure(figsize=(3.2 * n_columns, 3 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis, name in zip(axes, estimators, strict=False):
        _draw(axis, name, _fitted(name, *train), *new)
    for axis in axes[len(estimators) :]:
        axis.remove()
    return figure


def small_set(seed: int) -> tuple[Any, Any]:
    """Return rows in the plane and their labels, one in ten positive."""
    rng = np.random.default_rng(seed)
    y = np.zeros(_ROWS, dtype=int)
    y[: _ROWS // 10] = 1
    X = rng.standard_normal((_ROWS, 2))
    n_clear = round(0.6 * y.sum())
    X[:n_clear] = [2.2, 0.6] + 0.7 * X[:n_clear]
    X[n_clear : y.sum()] = [-1.0, -1.2] + 0.7 * X[n_clear : y.sum()]
    return X, y


def _available(method: Method, X: Any, y: Any) -> list[str]:
    """Return the estimators that can be drawn: their packages are installed."""
    names = []
    for name in method.estimators:
        try:
            _fitted(name, X, y)
        except MissingPackageError:
            continue
        if name != "NoSkill":
            names.append(name)
    return names


def _fitted(name: str, X: Any, y: Any) -> Any:
    estimator = getattr(precbench, name)()
    known = estimator.get_params()
    wanted = {"k": _K, "random_state": 0}
    estimator.set_params(**{n: v for n, v in wanted.items() if n in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def _draw(axis: Axes, name: str, fitted: Any, X: Any, y: Any) -> None:
    scores = fitted.decision_function(X)
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    across, up = np.meshgrid(
        np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120)
    )
    heights = fitted.decision_function(np.column_stack([across.ravel(), up.ravel()]))
    # comparable scales
    ranks = np.searchsorted(np.sort(scores), heights).reshape(across.shape)
    axis.contourf(across, up, ranks, levels=12, cmap="Blues", alpha=0.6)
    top = np.argsort(-scores, kind="stable")[:_K]
    axis.scatter(
        X[y == 0, 0], X[y == 0, 1], s=4, color="0.45", linewidths=0, label="negative"
    )
    axis.scatter(
        X[y == 1, 0], X[y == 1, 1], s=9, color="#D55E00", linewidths=0, label="positive"
    )
    axis.scatter(
        X[top, 0],
        X[top, 1],
        s=26,
        facecolors="none",
        edgecolors="black",
        linewidths=0.7,
    )
    hits = precision_at_k(y, scores, _K) * _K
    axis.set_title(f"{name}: {hits:.3g} of {_K}", fontsize=9)
    axis.set_xticks([])
    axis.set_yticks([])
