"""``precbench run``."""

import json

from precbench.cli.options import Configs, takes
from precbench.cli.runs import RunOptions, has_failed, run_all


@takes(RunOptions)
def run(configs: Configs, options: RunOptions) -> int:
    """Run experiments: train the missing trials, then write tables and figures.

    A run that was stopped resumes; after a change to a config only the affected trials
    run again. Figures are drawn again only if the results have changed; plot draws them
    in any case.

    With --json the final values are printed, means over the splits.

    \b
    Examples:
      precbench run configs/letter.yaml --jobs 2
      precbench run letter --solver 'sgd-*' --splits 0-1
      precbench run kdd08 --timing --mirror ~/mirror
      precbench run letter --rerun timeout --rerun crashed
    """
    summaries = run_all(configs, options)
    if options.as_json:
        print(json.dumps(summaries, indent=1))
    return int(any(map(has_failed, summaries)))
