"""Pilots: what the untrained policy and a reference arm reach, on seeds that no experiment judges.

A target of another experiment must be at least half of the way from the one to the other (`research/skill.py`).
"""

from research.claims import Reaches
from research.experiment import Experiment, ExperimentSetting
from research.policies import CARTPOLE, fixed
from research.recipes import paper_recipe

_SEEDS = (900, 901, 902, 903, 904)
_MUJOCO = ("Hopper-v5", "HalfCheetah-v5", "Humanoid-v5", "Walker2d-v5")
REFERENCE = "reference"

EXPERIMENT = Experiment(
    title="Pilots: what is skill",
    question="What do an untrained policy and a reference arm reach in 50 rounds? A target asks for half of that span.",
    oracle="An untrained policy must score what random actions score: CartPole about 10 to 20, Hopper below 50.",
    can_claim="Nothing: its seeds and its arm are in no claim. It sets targets.",
    base=paper_recipe(learning_rate=3e-4),
    paper="nitro",
    reasons={
        "algorithm.learning_rate": "At 5e-5 50 rounds are early learning. On CartPole 1e-3.",
        "network.hidden": "CartPole needs no more than 64 × 64.",
        "rollout.steps_per_call": "CartPole's rounds are small, so that there can be many seeds.",
    },
    arms=(fixed(16).model_copy(update={"name": REFERENCE, "title": "16 actors, the reference"}),),
    settings=(
        ExperimentSetting(environment="CartPole-v1", seeds=_SEEDS, changes=CARTPOLE),
        *(ExperimentSetting(environment=name, seeds=_SEEDS) for name in _MUJOCO),
    ),
    claims=(
        Reaches(arm=REFERENCE, environment="CartPole-v1", value=195.0, source="solved, by the environment"),
    ),
    untrained=True,
)
