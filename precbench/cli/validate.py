"""``precbench validate`` and ``precbench schema``."""

import json
import sys
from pathlib import Path
from typing import Any

from precbench.claims.published import DEVIATIONS, SUFFIX, load_deviations, read_claims
from precbench.cli.options import Configs, Json
from precbench.core.errors import InputError
from precbench.core.text import count, one_line
from precbench.experiment import Study, load_config
from precbench.experiment.schema import config_schema


def validate_configs(configs: Configs, as_json: Json = False) -> int:
    """Check configs, or files of claims, without running anything or their data.

    Every mistake is reported with its line and, for a misspelt name, a suggestion.

    Exit code 2: there is a mistake.

    \b
    Examples:
      precbench validate churn.yaml
      precbench validate configs/*.yaml --json
    """
    reports = [_checked(name) for name in configs]
    if as_json:
        print(json.dumps(reports, indent=1))
    else:
        for report in reports:
            for mistake in report["mistakes"]:
                print(f"precbench: {mistake}", file=sys.stderr)
            if not report["mistakes"]:
                print(f"{one_line(report['config'])}: {report['says']}")
    return 2 if any(report["mistakes"] for report in reports) else 0


def _checked(name: str) -> dict[str, Any]:
    """Return what a file says or its mistakes; the other of the two is empty."""
    try:
        return {"config": name, "says": _content(name), "mistakes": []}
    except InputError as error:
        return {"config": name, "says": "", "mistakes": str(error).splitlines()}


def _content(name: str) -> str:
    """Describe a file, such as "30 trials (3 solvers)"; raise if it is invalid."""
    if name.endswith(SUFFIX):
        path = Path(name)
        if path.name == DEVIATIONS:
            return count(len(load_deviations(path)), "deviation")
        return count(len(read_claims(path)), "claim")
    config = load_config(name, runs_own_classes=True)
    if isinstance(config, Study):
        return f"a study, {config.kind}"
    sizes = {
        "data set": len(config.datasets),
        "solver": len(config.solvers),
        "split": len(config.protocol.indices),
        "point": len(config.sweep_points()),  # 1 without a sweep
    }
    factors = [count(n, what) for what, n in sizes.items() if n > 1]
    trials = count(len(config.trials()), "trial")
    return f"{trials} ({', '.join(factors)})" if factors else trials


def print_schema() -> None:
    """Print a JSON Schema of configs, for completion and validation in editors.

    \b
    Example, with the first line of a config as many editors read it:
      precbench schema > precbench.schema.json
      # yaml-language-server: $schema=precbench.schema.json
    """
    print(json.dumps(config_schema(), indent=1))
