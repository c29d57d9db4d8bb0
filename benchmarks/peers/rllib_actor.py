"""RLlib's actor alone, as the papers use one: a single environment on one core, one fragment a call.

Tells how long its process imports, how long a worker takes to be built, and the steps a second that it samples.
"""

import time

_BEGAN_S = time.perf_counter()

import json  # noqa: E402
import logging  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner  # noqa: E402

from benchmarks.peers import cases  # noqa: E402

_FRAGMENTS = 12


def main(settings: dict[str, Any]) -> dict[str, Any]:
    case = cases.CASES[settings["case"]]
    imported_s = time.perf_counter() - _BEGAN_S
    logging.disable(logging.WARNING)
    torch.set_num_threads(settings["threads"])
    config = (
        PPOConfig()
        .environment(case.environment)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1, rollout_fragment_length=case.steps)
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[cases.HIDDEN, cases.HIDDEN], fcnet_activation="tanh", vf_share_layers=False
            )
        )
        .debugging(seed=settings["seed"], log_level="ERROR")
    )
    built_s = []
    for _ in range(3):
        began_s = time.perf_counter()
        runner = SingleAgentEnvRunner(config=config, worker_index=1, num_workers=1)
        runner.sample(num_timesteps=1, random_actions=False)
        built_s.append(time.perf_counter() - began_s)
    runner.sample(num_timesteps=case.steps, random_actions=False)
    # Sampling computes and waits for nothing, so processor time is what counts, also beside others.
    rates = []
    for _ in range(_FRAGMENTS):
        began_s = time.process_time()
        runner.sample(num_timesteps=case.steps, random_actions=False)
        rates.append(case.steps / (time.process_time() - began_s))
    return {
        "import_s": imported_s,
        "built_first_s": built_s[0],
        "built_s": statistics.median(built_s[1:]),
        "steps_per_s": statistics.median(rates),
        "slowest": min(rates),
        "fastest": max(rates),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
