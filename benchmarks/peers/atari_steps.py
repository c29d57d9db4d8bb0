"""Gymnasium's Atari preprocessing, as its documentation wraps it: a turn for each line on the input.

Runs in `.venv-bench`, as it needs OpenCV.
"""

import json
import sys
import time
from typing import Any

import numpy as np


def main(settings: dict[str, Any]) -> None:
    """Print the seconds of the processor of each turn."""
    import ale_py
    import cv2
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    cv2.setNumThreads(1)
    gymnasium.register_envs(ale_py)
    options = {"frameskip": 1} if settings["game"].startswith("ALE/") else {}
    game = gymnasium.make(settings["game"], disable_env_checker=True, **options)
    environment: Any = FrameStackObservation(AtariPreprocessing(game), 4)
    actions: Any = (
        np.random.default_rng(0).integers(0, environment.action_space.n, settings["steps"]).tolist()
    )
    for _ in sys.stdin:
        environment.reset(seed=0)
        began_s = time.process_time()
        for action in actions:
            _, _, over, cut_off, _ = environment.step(action)
            if over or cut_off:
                environment.reset()
        print(time.process_time() - began_s, flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
