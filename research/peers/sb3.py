"""Stable-Baselines3's PPO with a recipe of ours: `python sb3.py DOCUMENT` prints JSON rows to standard output.

Runs in an environment of its own (`make bench-setup`) and imports nothing of ours. DOCUMENT is JSON: `training`, the
same spec our engine gets, and `evaluation_seeds`. What is translated, because SB3 means something else by it:

- our value loss is half the mean squared error, SB3's is the whole: `vf_coef` is half our coefficient;
- SB3 merges what it sees into its normaliser after each step, we after each round;
- SB3 lowers the learning rate before a round's update, we after it: one round's difference.

One thread for torch, as ours. Evaluation is ours: deterministic actions, frozen normaliser, raw rewards, whole
episodes, one a seed. It cannot go on from the middle of a run.
"""

import json
import platform
import sys
import time
from importlib.metadata import version

_VERSIONS = {
    "numpy": "numpy",
    "torch": "torch",
    "mujoco": "mujoco",
    "gymnasium": "gymnasium",
    "ale-py": "ale-py",
    "stable-baselines3": "stable-baselines3",
}


def tell(kind, **row):
    sys.stdout.write(json.dumps({"kind": kind, **row}) + "\n")
    sys.stdout.flush()


def is_atari(training):
    return training["network"]["kind"] == "cnn"


def make_one(training, *, evaluating):
    """A function that makes one copy; Monitor sits below the wrappers, so it sees whole games and raw rewards."""

    def thunk():
        import gymnasium
        from stable_baselines3.common.atari_wrappers import AtariWrapper
        from stable_baselines3.common.monitor import Monitor

        if not is_atari(training):
            return Monitor(gymnasium.make(training["environment"]["id"]))
        import ale_py

        gymnasium.register_envs(ale_py)
        made = Monitor(gymnasium.make(training["environment"]["id"]))
        clip = training["algorithm"]["clip_rewards"] and not evaluating
        return AtariWrapper(made, terminal_on_life_loss=not evaluating, clip_reward=clip)

    return thunk


def vectorised(training, copies, *, evaluating):
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

    made = DummyVecEnv([make_one(training, evaluating=evaluating) for _ in range(copies)])
    if is_atari(training):
        return VecFrameStack(made, n_stack=training["environment"]["frame_stack"])
    return made


def normalised(environments, algorithm, *, pictures):
    from stable_baselines3.common.vec_env import VecNormalize

    observations = algorithm["normalise_observations"] and not pictures
    if not observations and not algorithm["normalise_rewards"]:
        return environments
    return VecNormalize(
        environments,
        norm_obs=observations,
        norm_reward=algorithm["normalise_rewards"],
        clip_obs=10.0,
        clip_reward=10.0,
        gamma=algorithm["discount"],
    )


def total_steps(training, per_round):
    """Whole rounds until the stop rule's steps or rounds, whichever comes first."""
    stop = training["stop"]
    limits = [stop["rounds"]] if stop["rounds"] else []
    if stop["env_steps"]:
        limits.append(-(-stop["env_steps"] // per_round))
    return min(limits) * per_round


def model_of(training, environments, steps_per_copy):
    from stable_baselines3 import PPO
    from torch import nn

    algorithm, network = training["algorithm"], training["network"]

    def falling(value, falls):
        return (lambda remaining: value * remaining) if falls else value

    policy = {"optimizer_kwargs": {"eps": algorithm["adam_epsilon"]}, "ortho_init": network["orthogonal"]}
    if network["kind"] == "mlp":
        policy["net_arch"] = {"pi": list(network["hidden"]), "vf": list(network["hidden"])}
        policy["activation_fn"] = {"tanh": nn.Tanh, "relu": nn.ReLU}[network["activation"]]
        policy["log_std_init"] = network["log_std_initial"]
    return PPO(
        "CnnPolicy" if network["kind"] == "cnn" else "MlpPolicy",
        environments,
        learning_rate=falling(algorithm["learning_rate"], algorithm["learning_rate_decay"]),
        n_steps=steps_per_copy,
        batch_size=algorithm["minibatch_size"],
        n_epochs=algorithm["epochs"],
        gamma=algorithm["discount"],
        gae_lambda=algorithm["trace_decay"],
        clip_range=falling(algorithm["clip"], algorithm["clip_decay"]),
        clip_range_vf=algorithm["value_clip"],
        normalize_advantage=algorithm["normalise_advantages"],
        ent_coef=algorithm["entropy_coefficient"],
        vf_coef=algorithm["value_coefficient"] / 2,
        max_grad_norm=algorithm["max_gradient_norm"],
        target_kl=algorithm["target_kl"],
        policy_kwargs=policy,
        seed=training["seed"],
        device="cpu",
    )


def evaluated(model, training, seeds):
    """Returns and lengths of whole episodes, one a seed."""
    environment = vectorised(training, 1, evaluating=True)
    normaliser = model.get_vec_normalize_env()
    returns, lengths = [], []
    for seed in seeds:
        environment.seed(seed)
        seen, total, length, over = environment.reset(), 0.0, 0, False
        while not over:
            shown = normaliser.normalize_obs(seen) if normaliser is not None else seen
            action, _ = model.predict(shown, deterministic=True)
            seen, rewards, dones, _ = environment.step(action)
            total, length, over = total + float(rewards[0]), length + 1, bool(dones[0])
        returns.append(total)
        lengths.append(length)
    environment.close()
    return returns, lengths


def teller(training, began_s):
    """A callback that tells each round after its update, and evaluates when our engine would."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Teller(BaseCallback):
        def __init__(self):
            super().__init__()
            self.round_no, self.episodes, self.sampled = 0, [], False

        def _on_step(self):
            self.episodes += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
            return True

        def _on_rollout_start(self):
            self.tell_round()

        def _on_rollout_end(self):
            self.sampled = True

        def _on_training_end(self):
            self.tell_round()

        def tell_round(self):
            if not self.sampled:
                return
            self.sampled = False
            self.round_no += 1
            episodes, self.episodes = self.episodes, []
            wall_s = time.monotonic() - began_s
            tell(
                "round",
                round=self.round_no,
                env_steps=self.model.num_timesteps,
                episodes=len(episodes),
                episode_return_mean=float(sum(episodes) / len(episodes)) if episodes else None,
                wall_s=wall_s,
                at_s=wall_s,
            )
            if self.round_no % training["evaluation"]["every_rounds"] == 0:
                self.evaluate()

        def evaluate(self):
            first = 2_000_000_000 + self.round_no * 100
            returns, _ = evaluated(
                self.model, training, range(first, first + training["evaluation"]["episodes"])
            )
            tell(
                "evaluation",
                round=self.round_no,
                env_steps=self.model.num_timesteps,
                returns=returns,
                return_mean=sum(returns) / len(returns),
                wall_s=time.monotonic() - began_s,
                at_s=time.monotonic() - began_s,
            )

    return Teller()


def main(text):
    import torch

    torch.set_num_threads(1)
    document = json.loads(text)
    training = document["training"]
    packages = {name: version(package) for name, package in _VERSIONS.items()}
    tell("begin", made_with={"python": platform.python_version(), **packages})
    began_s = time.monotonic()
    copies = training["scaling"]["actors"] * training["rollout"]["environments_per_actor"]
    steps_per_copy = training["rollout"]["steps_per_call"]
    environments = normalised(
        vectorised(training, copies, evaluating=False), training["algorithm"], pictures=is_atari(training)
    )
    model = model_of(training, environments, steps_per_copy)
    callback = teller(training, began_s)
    model.learn(total_steps(training, copies * steps_per_copy), callback=callback)
    wall_s = time.monotonic() - began_s
    if callback.round_no % training["evaluation"]["every_rounds"]:
        callback.evaluate()
    returns, lengths = evaluated(model, training, document["evaluation_seeds"])
    tell("final", round=callback.round_no, returns=returns, lengths=lengths)
    tell(
        "end",
        round=callback.round_no,
        env_steps=model.num_timesteps,
        reason="all steps are done",
        wall_s=wall_s,
        cost_usd=0.0,
    )


if __name__ == "__main__":
    main(sys.argv[1])
