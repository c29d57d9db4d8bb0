"""A/A: the same arm twice on different seeds must come out equal, or the runner or its statistics are wrong."""

from research.claims import NotBelow
from research.experiment import Arm, Experiment, ExperimentSetting

EXPERIMENT = Experiment(
    title="The same arm twice",
    question="Do two identical arms come out equal?",
    oracle="The arms differ only in their seeds, so the probability of improvement must be near one half.",
    can_claim="That the machinery favours no arm; nothing about learning.",
    base={
        "budget_usd": "1000",
        "training": {
            "algorithm": {
                "kind": "ppo",
                "learning_rate": 1e-3,
                "discount": 0.98,
                "trace_decay": 0.8,
                "epochs": 20,
                "minibatch_size": 256,
            },
            "scaling": {"kind": "fixed", "actors": 8},
            "rollout": {"steps_per_call": 32},
            "evaluation": {"every_rounds": 10, "episodes": 5},
            "checkpoints": {"every_rounds": 10, "keep": 2},
            # Early, where returns still differ: solved runs would all score 500.
            "stop": {"env_steps": 15_360},
        },
        "platform": {"kind": "local", "workers": 1},
    },
    arms=(
        Arm(name="once", title="PPO"),
        Arm(name="again", title="PPO again, other seeds", again_of="once"),
    ),
    settings=(ExperimentSetting(environment="CartPole-v1", seeds=tuple(range(10))),),
    claims=(NotBelow(arm="once", against="again", environment="CartPole-v1"),),
)
