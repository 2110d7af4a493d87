"""``precbench merge``."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from precbench.advice.advised_report import write_report
from precbench.cli.options import Json, Mirror
from precbench.cli.screen import screen
from precbench.core.errors import InputError, PrecbenchError
from precbench.core.text import count, one_line
from precbench.experiment import Experiment, Study, load_config
from precbench.experiment.shard import Shard
from precbench.report.repeat import shipped_config
from precbench.results.folders import find_stores
from precbench.results.merge import compare_records, take_records
from precbench.results.store import Store

_MOST_LISTED = 8


def merge_results(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders of results, or of single experiments in them."),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder to merge into; results that are there stay.")
    ],
    keep: Annotated[
        Path | None,
        typer.Option(
            help="The one of the folders whose records are kept where numbers differ."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(help="Config file that precbench does not ship; repeatable."),
    ] = None,
    mirror: Mirror = None,
    no_plots: Annotated[
        bool, typer.Option("--no-plots", help="Draw no figures.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Merge results of shards, or of several machines, and make tables and figures.

    A trial with equal numbers in several folders becomes one record: the record in OUT,
    or else in the first folder. A result replaces a trial that was skipped or failed,
    and nothing else is overwritten. Folders may be merged in any order, before or after
    they are complete, and more than once; an interrupted merge can be repeated.
    Studies, which have no trials, are left out.

    Exit code 1: a trial has different numbers in two folders, and nothing was written.

    \b
    Examples:
      precbench merge results/shards/* --out results
      precbench merge one/results another/results --out all --keep one/results
    """
    loaded = [(load_config(name), name) for name in config or ()]
    configs = {experiment.name: (experiment, name) for experiment, name in loaded}
    # by experiment: target, sources, winners of conflicts
    merges = _merges(folders, out, keep)
    console = screen(quiet=as_json)
    summaries = []
    with ExitStack() as stack:
        for target, _sources, _winners in merges:  # no other command may write there
            stack.enter_context(target.lock())
        # each: records to take, conflicts
        compared = [compare_records(*merge) for merge in merges]
        if conflicts := [
            conflict for _, in_conflict in compared for conflict in in_conflict
        ]:
            more = "; ..." if len(conflicts) > _MOST_LISTED else ""
            raise PrecbenchError(
                f"{count(len(conflicts), 'trial')} with different numbers in two"
                f" folders ({one_line('; '.join(conflicts[:_MOST_LISTED]))}{more}):"
                " nothing was written; choose the folder to keep with --keep"
            )
        for (target, sources, _winners), (taken, _conflicts) in zip(
            merges, compared, strict=True
        ):
            take_records(target, taken)
            summary = _note_request(target, sources, n_taken=len(taken))
            console.print(_sentence(summary))
            summaries.append(summary)
            experiment, name, smoke = _config_of(summary["experiment"], configs)
            if isinstance(experiment, Experiment):
                if _write_results(experiment, name, smoke, target, mirror):
                    write_report(target.folder, "none" if no_plots else "changed")
                console.print(f"tables and records: {target.folder}")
            else:
                console.print(
                    f"{summary['experiment']} is not a shipped config: to make tables,"
                    " give the config file with --config, or run the config with this"
                    " --out"
                )
    if as_json:
        print(json.dumps(summaries, indent=1))


def _merges(
    folders: Sequence[Path], out: Path, keep: Path | None
) -> list[tuple[Store, list[Store], list[Store]]]:
    """Return by experiment the target, the sources, and the preferred stores."""
    preferred = keep and keep.resolve()  # the folder whose records win conflicts
    if preferred and preferred not in {folder.resolve() for folder in (*folders, out)}:
        raise InputError(
            f"the folder {keep} (--keep) is not merged; give one of FOLDERS, or --out"
        )
    # by name of the experiment
    merges: dict[str, tuple[Store, list[Store], list[Store]]] = {}
    for folder in folders:
        for store in find_stores(folder):
            target = Store(out / store.folder.resolve().name)
            first_winners = [target] if preferred == out.resolve() else []
            _, sources, winners = merges.setdefault(
                target.folder.name, (target, [], first_winners)
            )
            sources.append(store)  # fills a list in `merges`; so does `winners.append`
            if folder.resolve() == preferred:
                winners.append(store)
    return [*merges.values()]


def _note_request(target: Store, sources: list[Store], n_taken: int) -> dict[str, Any]:
    """Note in the target which trials were asked for.

    Return the summary, with counts of trials.
    """
    # what the last runs were to do
    requests = [store.request() for store in (target, *sources)]
    present = set(target.keys())
    # all that was asked for
    keys = present.union(*(request.keys for request in requests))
    shards = sorted(
        {s for request in requests for s in request.shards}, key=Shard.parse
    )
    target.write_request(keys, shards)
    # each N of a shard I/N
    totals = sorted({Shard.parse(shard).total for shard in shards})
    expected = [
        str(Shard(i + 1, n_shards)) for n_shards in totals for i in range(n_shards)
    ]
    return {
        "experiment": target.folder.resolve().name,
        "folder": str(target.folder),
        "records": len(present),
        "left": len(keys - present),
        "missing_shards": [shard for shard in expected if shard not in shards],
        "taken": n_taken,
    }


def _sentence(summary: dict[str, Any]) -> str:
    """Describe how many records were taken, and what is missing."""
    taken = count(summary["taken"], "record")
    parts = [f"{summary['experiment']}: {taken} taken, {summary['records']:,} in all"]
    parts += [f"{summary['left']:,} still to run"] if summary["left"] else []
    if summary["missing_shards"]:
        parts.append(f"without the shards {', '.join(summary['missing_shards'])}")
    return ", ".join(parts)


def _config_of(
    name: str, known: Mapping[str, tuple[Experiment | Study, str]]
) -> tuple[Experiment | Study | None, str, bool]:
    """Return the config of results, its file, and whether the size is smoke."""
    # both, if they differ
    for candidate in dict.fromkeys((name, name.removesuffix("-smoke"))):
        if candidate in known:
            # smoke size: "-smoke" was removed
            return *known[candidate], candidate != name
        if shipped := shipped_config(candidate):
            return load_config(shipped), shipped, candidate != name
    return None, "", False


def _write_results(
    config: Experiment, name: str, smoke: bool, store: Store, mirror: str | None
) -> bool:
    """Compute and write the results of the stored trials.

    Return whether there are results.
    """
    from precbench.experiment.plan import make_plan  # here, as these imports take long
    from precbench.results.measure import write_results

    datasets = {record.dataset for record in store.records()}
    plan = make_plan(
        config,
        only=[entry.name for entry in config.datasets if entry.name in datasets],
        mirror=mirror,
        smoke=smoke,
    )
    return not write_results(plan, store, config=name).empty
