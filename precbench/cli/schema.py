"""``precbench schema``."""

import json

from precbench.experiment.schema import config_schema


def print_schema() -> None:
    """Print a JSON Schema of configs, for completion and validation in editors.

    \b
    Example, with the first line of a config as many editors read it:
      precbench schema > precbench.schema.json
      # yaml-language-server: $schema=precbench.schema.json
    """
    print(json.dumps(config_schema(), indent=1))
