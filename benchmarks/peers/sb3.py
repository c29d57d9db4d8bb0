"""Stable-Baselines3's PPO: environment steps a second, imports and construction not counted."""

import json
import sys
import time
from typing import Any

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecFrameStack, VecNormalize

from benchmarks.peers import cases, cpu
from benchmarks.peers.cases import Case


class _Marks(BaseCallback):
    """The moments at which rollouts begin: from one to the next is a whole round."""

    def __init__(self) -> None:
        super().__init__()
        self.began_s: list[float] = []
        self.cpu_s: list[float] = []

    def _on_rollout_start(self) -> None:
        self.mark()

    def mark(self) -> None:
        self.began_s.append(time.perf_counter())
        self.cpu_s.append(cpu.used_s())

    def _on_step(self) -> bool:
        return True


def main(settings: dict[str, Any]) -> dict[str, Any]:
    case = cases.CASES[settings["case"]]
    rounds = settings.get("rounds", case.rounds)
    torch.set_num_threads(settings["threads"])
    model = PPO(
        "CnnPolicy" if case.pictures else "MlpPolicy",
        _environments(case, SubprocVecEnv if settings.get("processes") else DummyVecEnv),
        learning_rate=lambda left: left * case.learning_rate,
        n_steps=case.steps,
        batch_size=case.minibatch,
        n_epochs=case.epochs,
        gamma=cases.DISCOUNT,
        gae_lambda=cases.TRACE_DECAY,
        clip_range=case.clip,
        ent_coef=case.entropy,
        policy_kwargs=None if case.pictures else {"net_arch": [cases.HIDDEN, cases.HIDDEN]},
        seed=settings["seed"],
        device="cpu",
    )
    marks = _Marks()
    model.learn((cases.WARM_UP_ROUNDS + rounds) * case.steps_a_round, callback=marks)
    marks.mark()
    took_s = marks.began_s[-1] - marks.began_s[cases.WARM_UP_ROUNDS]
    cpu_s = marks.cpu_s[-1] - marks.cpu_s[cases.WARM_UP_ROUNDS]
    steps = rounds * case.steps_a_round
    return {"steps_per_s": steps / took_s, "cpu_ms_per_step": 1000 * cpu_s / steps}


def _environments(case: Case, kind: type[Any]) -> VecEnv:
    if not case.pictures:
        return VecNormalize(
            make_vec_env(case.environment, cases.ENVIRONMENTS, seed=0, vec_env_cls=kind),
            gamma=cases.DISCOUNT,
        )

    def game() -> Any:
        # Registered where it is made, which may be a process of its own.
        import ale_py

        gymnasium.register_envs(ale_py)
        return gymnasium.make(case.environment)

    made = make_vec_env(game, cases.ENVIRONMENTS, seed=0, wrapper_class=AtariWrapper, vec_env_cls=kind)
    return VecFrameStack(made, 4)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
