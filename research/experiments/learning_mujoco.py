"""Does our PPO learn MuJoCo as well as published PPO, and as well as Stable-Baselines3 with the same recipe here?

Anchors: CleanRL's `ppo_continuous_action` after 1M steps (Hopper-v4 2,383 ± 272, Walker2d-v4 2,288 ± 572,
HalfCheetah-v4 1,443 ± 46, Humanoid-v4 716 ± 49; 3 seeds, return while training). No multi-seed PPO table for v5 was
found, so the peer arm is the control on the very same environments.
"""

from typing import Any

from research.claims import NotWorse, Reaches
from research.experiment import Arm, Experiment, ExperimentSetting

# CleanRL's numbers, with 2,048 steps a round as 8 actors × 256 and minibatches of 256 rather than 64.
RECIPE: dict[str, Any] = {
    "budget_usd": "1000",
    "training": {
        "algorithm": {
            "kind": "ppo",
            "learning_rate": 3e-4,
            "learning_rate_decay": True,
            "discount": 0.99,
            "trace_decay": 0.95,
            "clip": 0.2,
            "epochs": 10,
            "minibatch_size": 256,
            "normalise_observations": True,
            "normalise_rewards": True,
        },
        "network": {"kind": "mlp", "hidden": [64, 64], "activation": "tanh"},
        "scaling": {"kind": "fixed", "actors": 8},
        "loop": {"kind": "synchronous"},
        "rollout": {"steps_per_call": 256, "deadline_s": 300.0},
        "evaluation": {"every_rounds": 12, "episodes": 5},
        "checkpoints": {"every_rounds": 12, "keep": 2},
        "stop": {"env_steps": 1_000_000},
    },
    "platform": {"kind": "local", "workers": 1},
}
_GOAL = "the project's goal, from published PPO after 1M steps"

EXPERIMENT = Experiment(
    title="PPO on MuJoCo at one million steps",
    question="Does our PPO reach what published PPO reaches after 1M steps, and what SB3 reaches here?",
    endpoint_note=(
        "Published anchors are returns while training; ours of the last 100 episodes are shown beside the endpoint."
    ),
    oracle=(
        "SB3's run of the same recipe on the same machine and versions, judged by the same protocol; CleanRL's"
        " published returns; and returns of the untrained policy, which every arm must leave far behind."
    ),
    can_claim=(
        '5 seeds: "not worse than 0.8 ×", and differences of two standard deviations or more. 3 seeds: only whether a'
        " goal was reached by the IQM; nothing at 95 %."
    ),
    base=RECIPE,
    arms=(
        Arm(name="starling", title="Starling PPO"),
        Arm(name="sb3", title="Stable-Baselines3 PPO, same recipe", peer="sb3"),
    ),
    settings=(
        ExperimentSetting(environment="Hopper-v5", seeds=(0, 1, 2, 3, 4)),
        ExperimentSetting(environment="Walker2d-v5", seeds=(0, 1, 2), arms=("starling",)),
        ExperimentSetting(environment="HalfCheetah-v5", seeds=(0, 1, 2), arms=("starling",)),
        ExperimentSetting(environment="Humanoid-v5", seeds=(0, 1, 2), arms=("starling",)),
    ),
    claims=(
        Reaches(arm="starling", environment="Hopper-v5", value=2300, source=_GOAL),
        NotWorse(arm="starling", against="sb3", environment="Hopper-v5", margin=0.8),
        Reaches(arm="starling", environment="Walker2d-v5", value=2000, source=_GOAL),
        Reaches(arm="starling", environment="HalfCheetah-v5", value=1400, source=_GOAL),
        Reaches(arm="starling", environment="Humanoid-v5", value=700, source=_GOAL),
    ),
)
