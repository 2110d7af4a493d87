"""``precbench merge``."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple

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


class _Merge(NamedTuple):
    """Where the records of an experiment go, and where they come from."""

    target: Store
    sources: list[Store]
    preferred: list[Store]  # the stores whose records are kept where numbers differ


class _Config(NamedTuple):
    """What trained the records of a folder."""

    experiment: Experiment | Study
    name: str  # of a shipped config, or of its file
    smoke: bool  # whether the records are of smoke size


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
    configs: dict[str, _Config] = {}  # by the name of the experiment
    for name in config or ():
        experiment = load_config(name)
        configs[experiment.name] = _Config(experiment, name, smoke=False)
    merges = _merges(folders, out, keep)
    console = screen(quiet=as_json)
    summaries = []
    with ExitStack() as stack:
        for merge in merges:  # no other command may write there
            stack.enter_context(merge.target.lock())
        # All are compared before a record of any is taken.
        for merge, chosen in zip(merges, _compared(merges), strict=True):
            target = merge.target
            take_records(target, chosen)
            summary = _note_request(target, merge.sources, n_taken=len(chosen))
            console.print(_sentence(summary))
            summaries.append(summary)
            trained_by = _config_of(summary["experiment"], configs)
            if trained_by and isinstance(trained_by.experiment, Experiment):
                has_results = _write_results(
                    trained_by.experiment,
                    target,
                    name=trained_by.name,
                    smoke=trained_by.smoke,
                    mirror=mirror,
                )
                if has_results:
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


def _merges(folders: Sequence[Path], out: Path, keep: Path | None) -> list[_Merge]:
    """Return what to merge into `out`, one `_Merge` for each experiment."""
    kept_folder = None
    if keep is not None:
        kept_folder = keep.resolve()
        merged_folders = {folder.resolve() for folder in (*folders, out)}
        if kept_folder not in merged_folders:
            raise InputError(
                f"the folder {keep} (--keep) is not merged; give one of FOLDERS, or"
                " --out"
            )
    merges: dict[str, _Merge] = {}  # by the name of the experiment
    for folder in folders:
        for store in find_stores(folder):
            name = store.folder.resolve().name
            if name not in merges:
                target = Store(out / name)
                merges[name] = _Merge(target, sources=[], preferred=[])
                if kept_folder == out.resolve():
                    merges[name].preferred.append(target)
            merges[name].sources.append(store)
            if kept_folder == folder.resolve():
                merges[name].preferred.append(store)
    return list(merges.values())


def _compared(merges: Sequence[_Merge]) -> list[dict[str, Store]]:
    """Return for each merge the stores to take records from, by the record's key.

    Raise if the numbers of a trial differ, and no preferred store has the trial.
    """
    chosen: list[dict[str, Store]] = []
    conflicts: list[str] = []
    for merge in merges:
        stores, different = compare_records(
            merge.target, merge.sources, merge.preferred
        )
        chosen.append(stores)
        conflicts += different
    if conflicts:
        listed = one_line("; ".join(conflicts[:_MOST_LISTED]))
        if len(conflicts) > _MOST_LISTED:
            listed += "; ..."
        raise PrecbenchError(
            f"{count(len(conflicts), 'trial')} with different numbers in two"
            f" folders ({listed}): nothing was written; choose the folder to keep with"
            " --keep"
        )
    return chosen


def _note_request(target: Store, sources: list[Store], n_taken: int) -> dict[str, Any]:
    """Note in the target which trials were asked for; return a summary with counts."""
    present = set(target.keys())
    keys = set(present)  # of all trials that the last runs were to do
    shards: set[str] = set()
    for store in (target, *sources):
        request = store.request()
        keys.update(request.keys)
        shards.update(request.shards)
    target.write_request(keys, sorted(shards, key=Shard.parse))
    return {
        "experiment": target.folder.resolve().name,
        "folder": str(target.folder),
        "records": len(present),
        "left": len(keys - present),
        "missing_shards": _missing_shards(shards),
        "taken": n_taken,
    }


def _missing_shards(shards: set[str]) -> list[str]:
    """Return the shards that are missing from divisions of which some are there.

    Of 1/3 and 2/3, for example, 3/3 is missing.
    """
    missing = []
    for total in sorted({Shard.parse(shard).total for shard in shards}):
        for index in range(1, total + 1):
            shard = str(Shard(index, total))
            if shard not in shards:
                missing.append(shard)
    return missing


def _sentence(summary: dict[str, Any]) -> str:
    """Describe how many records were taken, and what is missing."""
    taken = count(summary["taken"], "record")
    parts = [f"{summary['experiment']}: {taken} taken, {summary['records']:,} in all"]
    if summary["left"]:
        parts.append(f"{summary['left']:,} still to run")
    if summary["missing_shards"]:
        parts.append(f"without the shards {', '.join(summary['missing_shards'])}")
    return ", ".join(parts)


def _config_of(name: str, configs: Mapping[str, _Config]) -> _Config | None:
    """Return the given or shipped config of results, without -smoke in their name."""
    # A config may itself have a name that ends with -smoke, so the whole name is first.
    for candidate in dict.fromkeys((name, name.removesuffix("-smoke"))):
        smoke = candidate != name
        if candidate in configs:
            return configs[candidate]._replace(smoke=smoke)
        shipped = shipped_config(candidate)
        if shipped:
            return _Config(load_config(shipped), shipped, smoke)
    return None


def _write_results(
    config: Experiment, store: Store, *, name: str, smoke: bool, mirror: str | None
) -> bool:
    """Compute and write the results of stored trials; return whether there are any."""
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
