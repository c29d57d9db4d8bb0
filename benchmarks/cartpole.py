"""Whether CartPole is solved with every seed, by the preset as users run it: local workers, no house around it.

Oracle: the environment's own threshold of 475, by the deterministic policy on seeds never used for training.
"""

import json
import subprocess
import time
from collections.abc import Iterator

from rig.figures import Figure
from rig.servers import ROOT, manage

_SEEDS = range(5)


def measure() -> Iterator[Figure]:
    solved = 0
    for seed in _SEEDS:
        began_s = time.monotonic()
        command = manage("train", "cartpole", "--set", f"training.seed={seed}", "--json")
        output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        summary = json.loads(output.splitlines()[-1])
        good = summary["evaluation_return_mean"] >= 475 and summary["env_steps"] <= 100_000
        solved += good
        yield Figure(
            f"seed {seed}: evaluation {summary['evaluation_return_mean']:.0f} after {summary['env_steps']:,} steps",
            time.monotonic() - began_s,
            "s",
        )
    yield Figure("seeds that were not solved within 100,000 steps", len(_SEEDS) - solved, "", at_most=0)
