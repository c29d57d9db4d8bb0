"""An experiment of five rounds and three arms, and its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from research.claims import Cheaper
from research.experiment import Arm, Experiment, ExperimentSetting
from research.runs.run_file import RunFile
from research.runs.seed_run import SeedRun

CART = "CartPole-v1"
CLAIM: dict[str, Any] = {
    "arm": "boosted",
    "at": "functions_paper",
    "against": ("few",),
    "against_at": "functions_paper",
    "environments": (CART,),
    "label": "L",
}
TINY = Experiment(
    title="Tiny",
    question="Q?",
    oracle="O",
    can_claim="C",
    base={
        "budget_usd": "1000",
        "training": {
            "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 64},
            "network": {"kind": "mlp", "hidden": [8, 8]},
            "rollout": {"steps_per_call": 16},
            "evaluation": {"every_rounds": 1, "episodes": 1},
            "stop": {"rounds": 5, "env_steps": None},
        },
        "platform": {"kind": "simulated", "stack": "paper-stack", "workers": 1},
    },
    arms=(
        Arm(
            name="boosted",
            title="Boosted",
            changes={
                "training": {
                    "scaling": {"kind": "boosting", "actors_min": 1, "actors_max": 6, "actors_first": 3}
                }
            },
        ),
        Arm(name="few", title="Few", changes={"training": {"scaling": {"kind": "fixed", "actors": 2}}}),
        Arm(name="like", title="As much, largest first", spends_like="boosted"),
    ),
    settings=(ExperimentSetting(environment=CART, seeds=(0,)),),
    targets={CART: 50.0},
    pricing_targets=("functions_paper", "cluster_paper", "machine"),
    claims=(Cheaper(**CLAIM, primary=True),),
    final_episodes=1,
)


def made_in(data: Path) -> Path:
    """The folder in which all its runs were made, in this process."""
    folder = data / "papers" / "tiny"
    for cell in TINY.cells():
        assert SeedRun(TINY, cell, RunFile(folder, cell), root=folder, folder=folder).run()
    return folder
