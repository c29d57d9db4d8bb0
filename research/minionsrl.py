"""MinionsRL's recipe, arms and claims, shared by its experiments.

Minibatches of 256 as printed, so that updates grow with the actors; trainings of 20 rounds, paid until the target.
"""

from __future__ import annotations

from typing import Any

from research.claims import Cheaper
from research.experiment import Arm, ExperimentSetting, merged
from research.policies import fixed, impact, scaled
from research.recipes import first_recipe, paper_recipe
from research.scheduler_training import RehearsedTraining

MOST = 32
ROUNDS = 20
LONGER = 80
FEW = (2, 4)
# By the returns of the actors' own episodes, which are all that MinionsRL's scheduler is told and rewarded by. What 20
# rounds can reach, after two pilots on each task, of 8 and of 32 actors.
TARGETS = {"CartPole-v1": 100.0, "Hopper-v5": 200.0, "HalfCheetah-v5": -345.0, "Humanoid-v5": 115.0}
# Of no skill, from which -Adapt counts its way to a target.
_FLOORS = {"HalfCheetah-v5": -400.0}
TARGETS_NOTE = (
    "Targets are of the actors' own training episodes, as the paper's scheduler is told and rewarded by: their mean"
    " return in three rounds in a row. They are what 20 rounds can reach, chosen after a pilot of 8 and one of 32"
    " actors on each task and before any run that is shown here. Paid is until then, so that no training has to end"
    " there. The paper ends trainings by the same budget for all, and few actors make it last: MinionsRL's runs may"
    " take 80 rounds. That was declared after its first ones, of 20, which most had spent before they got there."
    " IMPACT and fixed numbers of 2 and 4 may take as many: these were declared last, when its schedules had"
    " turned out to be nearly constant, to see whether they are worth more than few actors."
)
RECORDED = ("fixed_4", "fixed_8", "fixed_16", "fixed_32")
MINIONSRL_PRICING_TARGETS = (
    "containers_paper",
    "containers_starling",
    "containers_today",
    "azure_cluster_paper",
    "azure_cluster_starling",
    "functions_cpu",
    "machine",
    "machine_spot",
)
CARTPOLE_RECIPE: dict[str, Any] = {
    "training": {
        "algorithm": {"learning_rate": 1e-3, "minibatch_size": 64, "epochs": 10},
        "network": {"hidden": [64, 64]},
        "rollout": {"steps_per_call": 32},
        "evaluation": {"episodes": 5},
    }
}


def minionsrl_recipe() -> dict[str, Any]:
    changes = {
        "training": {"stop": {"rounds": ROUNDS}, "checkpoints": {"every_rounds": 5, "keep": 2}},
        "platform": {"profile": "aci-paper", "learner_sku": None, "learner": "function"},
    }
    return merged(first_recipe(learning_rate=3e-4, minibatch_size=256), changes)


def paper_minionsrl_recipe() -> dict[str, Any]:
    """PPO as the papers' code runs it with MinionsRL's minibatch of 256, and as many rounds for every arm."""
    changes = {
        "training": {"stop": {"rounds": LONGER}, "checkpoints": {"every_rounds": 5, "keep": 2}},
        "platform": {"profile": "aci-paper", "learner_sku": None, "learner": "function"},
    }
    return merged(paper_recipe(minibatch_size=256), changes)


def fixed_arms(home: str = "") -> tuple[Arm, ...]:
    """By number of actors; 32 is MinionsRL-Max, and what the papers' server clusters run."""
    return tuple(fixed(actors, home) for actors in (4, 8, 16, MOST))


def long_fixed_arms() -> tuple[Arm, ...]:
    """Few actors for as long as MinionsRL may take: its schedules are nearly constant, and may be no more than that."""
    return tuple(
        _longer(scaled(f"long_{actors}", f"fixed at {actors}, {LONGER} rounds", kind="fixed", actors=actors))
        for actors in FEW
    )


def _longer(arm: Arm) -> Arm:
    return arm.model_copy(update={"changes": merged(arm.changes, {"training": {"stop": {"rounds": LONGER}}})})


def fixed_again(home: str = "") -> Arm:
    """8 actors on other seeds, for the A/A pair."""
    return scaled(
        "fixed_8_again", "fixed at 8 again, other seeds", home, again_of="fixed_8", kind="fixed", actors=8
    )


def same_twice(environments: tuple[str, ...]) -> Cheaper:
    """The A/A pair's claim: the same arm on other seeds costs the same."""
    return cheaper("fixed_8", "fixed_8_again", environments, alike=True)


def setting(environment: str, seeds: int, **fields: Any) -> ExperimentSetting:
    changes = CARTPOLE_RECIPE if environment == "CartPole-v1" else {}
    return ExperimentSetting(environment=environment, seeds=tuple(range(seeds)), changes=changes, **fields)


def adapt_target(environment: str, arm: str = "minions_adapt") -> dict[str, dict[str, Any]]:
    floor = {"floor_return": _FLOORS[environment]} if environment in _FLOORS else {}
    return {arm: {"training": {"scaling": {"target_return": TARGETS[environment], **floor}}}}


def scheduler_training_arm(name: str, title: str, **fields: Any) -> Arm:
    """An arm that trains a scheduler for its environment's target."""
    values = {"actors_max": MOST, "rounds": ROUNDS, "recorded": RECORDED, **fields}
    return Arm(name=name, title=title, study=RehearsedTraining(**values))


def scheduled(name: str, title: str, scheduler: str, *, longer: bool = False) -> Arm:
    arm = Arm(name=name, title=title, scheduler=scheduler)
    return _longer(arm) if longer else arm


def other_cloud_arm(name: str, title: str, scheduler: str) -> Arm:
    """A scheduler on a cloud that it was not trained on: today's containers, which start and cost otherwise."""
    arm = scheduled(name, title, scheduler, longer=True)
    return arm.model_copy(update={"changes": merged(arm.changes, {"platform": {"profile": "aci-today"}})})


def adapt_arm() -> Arm:
    return scaled("minions_adapt", "MinionsRL-Adapt", kind="reward_ratio", actors_max=MOST)


def impact_arm() -> Arm:
    """With as many rounds as MinionsRL: its single pass a round is four times less work than PPO's."""
    return _longer(impact("impact", "IMPACT with 32 actors, asynchronous", kind="fixed", actors=MOST))


def cheaper(
    arm: str,
    against: str,
    environments: tuple[str, ...],
    *,
    at: str = "containers_paper",
    against_at: str = "containers_paper",
    **fields: Any,
) -> Cheaper:
    values = {"label": "L" if at == against_at else "T", "meter": "training", **fields}
    return Cheaper(
        arm=arm, at=at, against=(against,), against_at=against_at, environments=environments, **values
    )
