"""RLlib's PPO on its new API stack: environment steps a second, imports and construction not counted.

Observations and rewards are normalised by Gymnasium's wrappers, which cost less than RLlib's own filter.
"""

import json
import logging
import sys
import time
from typing import Any

import gymnasium
import ray
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from benchmarks.peers import cases, cpu
from benchmarks.peers.cases import Case

_NATURE = [[32, 8, 4], [64, 4, 2], [64, 3, 1]]


def main(settings: dict[str, Any]) -> dict[str, Any]:
    case = cases.CASES[settings["case"]]
    rounds, runners = settings.get("rounds", case.rounds), settings.get("processes", 0)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    tune.register_env("bench", lambda _: _environment(case))
    config = (
        PPOConfig()
        .environment("bench")
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=cases.ENVIRONMENTS // max(1, runners),
            rollout_fragment_length=case.steps,
        )
        .learners(num_learners=0)
        .training(
            lr=[[0, case.learning_rate], [(cases.WARM_UP_ROUNDS + rounds) * case.steps_a_round, 0.0]],
            gamma=cases.DISCOUNT,
            lambda_=cases.TRACE_DECAY,
            train_batch_size_per_learner=case.steps_a_round,
            minibatch_size=case.minibatch,
            num_epochs=case.epochs,
            clip_param=case.clip,
            vf_clip_param=float("inf"),
            vf_loss_coeff=0.5,
            entropy_coeff=case.entropy,
            use_kl_loss=False,
            grad_clip=0.5,
            grad_clip_by="global_norm",
        )
        .rl_module(model_config=_model(case))
        .debugging(seed=settings["seed"], log_level="ERROR")
    )
    algorithm = config.build_algo()
    for _ in range(cases.WARM_UP_ROUNDS):
        algorithm.train()
    before, cpu_before_s = _steps(algorithm), cpu.used_s()
    began_s = time.perf_counter()
    for _ in range(rounds):
        algorithm.train()
    took_s = time.perf_counter() - began_s
    steps = _steps(algorithm) - before
    cpu_s = cpu.used_s() - cpu_before_s
    return {"steps_per_s": steps / took_s, "cpu_ms_per_step": 1000 * cpu_s / steps}


def _steps(algorithm: Any) -> int:
    return int(algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime")))


def _model(case: Case) -> DefaultModelConfig:
    if case.pictures:
        return DefaultModelConfig(
            conv_filters=_NATURE, conv_activation="relu", head_fcnet_hiddens=[512], vf_share_layers=True
        )
    return DefaultModelConfig(
        fcnet_hiddens=[cases.HIDDEN, cases.HIDDEN],
        fcnet_activation="tanh",
        vf_share_layers=False,
        free_log_std=True,
    )


def _environment(case: Case) -> gymnasium.Env[Any, Any]:
    if case.pictures:
        import ale_py
        from ray.rllib.env.wrappers.atari_wrappers import wrap_atari_for_new_api_stack

        gymnasium.register_envs(ale_py)
        return wrap_atari_for_new_api_stack(
            gymnasium.make(case.environment, render_mode="rgb_array"), dim=84, framestack=4
        )
    made = gymnasium.wrappers.ClipAction(gymnasium.make(case.environment, disable_env_checker=True))
    return gymnasium.wrappers.NormalizeReward(gymnasium.wrappers.NormalizeObservation(made))


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
