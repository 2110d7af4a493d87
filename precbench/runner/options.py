"""Options of a session, without an import that takes long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precbench.experiment.shard import Shard
    from precbench.runner.cluster import Cluster


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which trials of a config run, how, and where the results go.

    Attributes
    ----------
    solvers, datasets : sequence of str or None
        Labels of solvers and names of data sets; None for all.
    splits : sequence of int or None
        Numbers of splits; None for all.
    shard : Shard or None
        The part of the trials that runs here.
    smoke : bool
        Whether to run the config at its smoke size.
    rerun : collection of str
        Only the trials with these statuses run, again.
    changed_code : bool
        Whether trials run again that other source code has trained.
    force : bool
        Whether finished trials run again.
    jobs : int
        Number of trials at a time.
    timing : bool
        Whether one trial runs at a time, so that times can be compared.
    out : Path
        Folder of results folders.
    own_folder : Path or None
        The results folder itself, in place of one in `out` that is named after the
        config.
    mirror : str or None
        Folder or address with copies of the data.
    stand_ins : bool
        Whether synthetic data stand in for missing data, where the config allows it.
    tables, figures : bool
        Whether tables are made, and with these figures and a report.
    """

    solvers: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    splits: Sequence[int] | None = None
    shard: Shard | None = None
    smoke: bool = False
    rerun: frozenset[str] = frozenset()
    changed_code: bool = False
    force: bool = False
    jobs: int = 1
    timing: bool = False
    out: Path = Path("results")
    own_folder: Path | None = None
    mirror: str | None = None
    stand_ins: bool = True
    tables: bool = True
    figures: bool = True

    def folder(self, name: str) -> Path:
        """Return the folder of a config's results, which each shard has for itself."""
        if self.own_folder is not None:
            return self.own_folder
        out = self.out if self.shard is None else self.shard.folder(self.out)
        folder_name = f"{name}-smoke" if self.smoke else name
        return out / folder_name

    def at_a_time(self, cluster: Cluster | None) -> int:
        """Return how many trials run at a time."""
        if self.timing:
            return 1
        if cluster is None:
            return self.jobs
        # at least 2, so that records say "parallel", and no times are compared
        return max(2, cluster.n_workers)
