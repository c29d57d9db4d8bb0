"""Does our PPO learn Atari from pictures as fast as SB3's, as far as 200,000 steps can tell?

Conditions, the same for both: NoFrameskip-v4 (no sticky actions), up to 30 idle actions, each action for 4 frames with
the maximum of the last two, 84 × 84 grey, 4 frames seen, rewards clipped to their sign and a lost life ends an episode
for the learner only, whole games and raw scores in evaluation, 108,000 frames at most. We shrink pictures by averaging
areas without OpenCV, SB3 with OpenCV's INTER_AREA.
"""

from research.claims import NotBelow
from research.experiment import Arm, Experiment, ExperimentSetting

# RL Baselines3 Zoo's Atari recipe, which is CleanRL's but for the clip range falling to 0. SB3's value loss has no
# factor ½, so its coefficient of 0.5 is our 1.0.
RECIPE = {
    "budget_usd": "1000",
    "training": {
        "environment": {"frame_stack": 4},
        "algorithm": {
            "kind": "ppo",
            "learning_rate": 2.5e-4,
            "learning_rate_decay": True,
            "discount": 0.99,
            "trace_decay": 0.95,
            "clip": 0.1,
            "clip_decay": True,
            "epochs": 4,
            "minibatch_size": 256,
            "entropy_coefficient": 0.01,
            "value_coefficient": 1.0,
            "clip_rewards": True,
        },
        "network": {"kind": "cnn", "layers": "nature"},
        "scaling": {"kind": "fixed", "actors": 8},
        "loop": {"kind": "synchronous"},
        "rollout": {"steps_per_call": 128, "deadline_s": 600.0},
        "evaluation": {"every_rounds": 25, "episodes": 3},
        "checkpoints": {"every_rounds": 5, "keep": 2},
        "stop": {"env_steps": 200_000},
    },
    "platform": {"kind": "local", "workers": 1},
}

EXPERIMENT = Experiment(
    title="PPO on Atari at 200,000 steps",
    question="Does our PPO with a CNN learn SpaceInvaders and Qbert as fast as SB3's early in training?",
    oracle=(
        "SB3's run of the same recipe here. 200k steps are 2 % of the published runs, so no published score applies; a"
        " random policy scores about 150 in both games."
    ),
    can_claim=(
        "3 seeds: only whether the interval of the difference contains or exceeds 0. Nothing about final scores."
        " Seen after the runs: without sticky actions deterministic play finds one and the same game (285 in"
        " SpaceInvaders, whoever learned it), so that this endpoint tells little apart; the last 100 training"
        " episodes, which explore, stand beside it."
    ),
    base=RECIPE,
    arms=(
        Arm(name="starling", title="Starling PPO"),
        Arm(name="sb3", title="Stable-Baselines3 PPO, same recipe", peer="sb3"),
    ),
    settings=(
        ExperimentSetting(environment="SpaceInvadersNoFrameskip-v4", seeds=(0, 1, 2)),
        ExperimentSetting(environment="QbertNoFrameskip-v4", seeds=(0, 1, 2)),
    ),
    claims=(
        NotBelow(arm="starling", against="sb3", environment="SpaceInvadersNoFrameskip-v4"),
        NotBelow(arm="starling", against="sb3", environment="QbertNoFrameskip-v4"),
    ),
)
