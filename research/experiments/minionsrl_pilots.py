"""MinionsRL's pilots: what a reference arm reaches and costs, so that targets ask for skill and budgets bind.

PPO runs as the papers' code runs it, at the paper's learning rate. The other numbers of actors are what schedulers
rehearse on.
"""

from research.claims import Reaches
from research.experiment import Experiment, ExperimentSetting
from research.minionsrl import (
    CARTPOLE_RECIPE,
    LONGER,
    MINIONSRL_PRICING_TARGETS,
    MOST,
    paper_minionsrl_recipe,
)
from research.policies import fixed

_SEEDS = (900, 901, 902)
_MUJOCO = ("Hopper-v5", "HalfCheetah-v5", "Humanoid-v5")

EXPERIMENT = Experiment(
    title="MinionsRL's pilots: what is skill, and what does it cost",
    question="What do an untrained policy and 8 actors reach in 80 rounds, and what is a budget that binds?",
    oracle="An untrained policy must score what random actions score: CartPole about 10 to 20, Hopper below 50.",
    can_claim="Nothing: its seeds are in no claim. It sets targets and budgets, and schedulers rehearse on it.",
    base=paper_minionsrl_recipe(),
    paper="minionsrl",
    reasons={
        "algorithm.learning_rate": "CartPole's small rounds need 1e-3; MuJoCo runs at the paper's 5e-5.",
        "algorithm.epochs": "Enough for CartPole's small rounds.",
        "algorithm.minibatch_size": "On CartPole in proportion to the samples of a round.",
        "network.hidden": "CartPole needs no more than 64 × 64.",
        "rollout.steps_per_call": "An eighth of the paper's, so that a run takes minutes on two cores. CartPole's"
        " rounds are smaller still.",
    },
    arms=(
        fixed(8).model_copy(update={"name": "reference", "title": "8 actors, the reference"}),
        *(fixed(actors) for actors in (4, 16, MOST)),
    ),
    settings=(
        ExperimentSetting(environment="CartPole-v1", seeds=_SEEDS, changes=CARTPOLE_RECIPE),
        *(ExperimentSetting(environment=name, seeds=_SEEDS) for name in _MUJOCO),
    ),
    claims=(
        Reaches(arm="reference", environment="CartPole-v1", value=195.0, source="solved, by the environment"),
    ),
    pricing_targets=MINIONSRL_PRICING_TARGETS,
    untrained=True,
    run_s=8.0 * LONGER,
)
