"""Config files as typed, frozen objects, and their expansion into trials.

Mistakes in a config are reported before anything runs, with file, line and the nearest
valid name.
"""

from precbench.core.locations import config_names as list_configs
from precbench.experiment.config import Experiment, Study, load_config
from precbench.experiment.sections import FileData, Limit, Metric, NamedData
from precbench.experiment.trial import Split, Trial

__all__ = [
    "Experiment",
    "FileData",
    "Limit",
    "Metric",
    "NamedData",
    "Split",
    "Study",
    "Trial",
    "list_configs",
    "load_config",
]
