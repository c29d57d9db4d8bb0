"""EnvPool's steps, on one thread, with random actions: a turn for each line on the input. Runs in `.venv-bench`."""

import json
import sys
import time
from typing import Any

import numpy as np


def main(settings: dict[str, Any]) -> None:
    """Print the seconds of the processor of each turn; 0 for a task that EnvPool has not."""
    import envpool

    task, count = settings["task"], settings["count"]
    if task not in envpool.list_all_envs():
        for _ in sys.stdin:
            print(0.0, flush=True)
        return
    pool = envpool.make(task, env_type="gymnasium", num_envs=count, num_threads=1, seed=0)
    space = pool.action_space
    rng = np.random.default_rng(0)
    if space.shape == ():
        actions = rng.integers(0, space.n, (settings["steps"], count)).astype(np.int32)
    else:
        actions = rng.uniform(space.low, space.high, (settings["steps"], count, *space.shape))
    pool.reset()
    for _ in sys.stdin:
        began_s = time.process_time()
        for action in actions:
            pool.step(action)
        print(time.process_time() - began_s, flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
