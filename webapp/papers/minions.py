"""MinionsRL's recipe, arms and claims, shared by its experiments.

Minibatches of 256 as printed, so that updates grow with the actors; trainings end at the target or after 20 rounds.
"""

from __future__ import annotations

from typing import Any

from webapp.papers.claims import Cheaper
from webapp.papers.contenders import TARGETS, fixed, impact, recipe, scaled
from webapp.papers.experiment import Arm, Setting, merged
from webapp.papers.schooling import Schooling

MOST = 32
ROUNDS = 20
RECORDED = ("fixed_4", "fixed_8", "fixed_16", "fixed_32")
VENUES = (
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


def minions_recipe() -> dict[str, Any]:
    changes = {
        "training": {"stop": {"rounds": ROUNDS}, "checkpoints": {"every_rounds": 5, "keep": 2}},
        "platform": {"profile": "aci-paper", "learner_sku": None, "learner": "function"},
    }
    return merged(recipe(learning_rate=3e-4, minibatch_size=256), changes)


def fixed_arms(home: str = "") -> tuple[Arm, ...]:
    """By number of actors; 32 is MinionsRL-Max, and what the papers' server clusters run."""
    return tuple(fixed(actors, home) for actors in (4, 8, 16, MOST))


def fixed_again(home: str = "") -> Arm:
    """8 actors on other seeds, for the A/A pair."""
    return scaled(
        "fixed_8_again", "fixed at 8 again, other seeds", home, seed_offset=1000, kind="fixed", actors=8
    )


def same_twice(environments: tuple[str, ...]) -> Cheaper:
    """The A/A pair's claim: the same arm on other seeds costs the same."""
    return cheaper("fixed_8", "fixed_8_again", environments, alike=True)


def setting(environment: str, seeds: int, **fields: Any) -> Setting:
    """With the environment's target as the end of its trainings, and of Adapt's ratio."""
    target = TARGETS[environment]
    changes: dict[str, Any] = {"training": {"stop": {"target_return": target}}}
    if environment == "CartPole-v1":
        changes = merged(CARTPOLE_RECIPE, changes)
    return Setting(environment=environment, seeds=tuple(range(seeds)), changes=changes, **fields)


def own_target(environment: str, arm: str = "minions_adapt") -> dict[str, dict[str, Any]]:
    return {arm: {"training": {"scaling": {"target_return": TARGETS[environment]}}}}


def schooling_arm(name: str, title: str, **fields: Any) -> Arm:
    """An arm that trains a scheduler for its environment's target."""
    return Arm(
        name=name, title=title, study=Schooling(actors_max=MOST, rounds=ROUNDS, recorded=RECORDED, **fields)
    )


def scheduled(name: str, title: str, scheduler: str) -> Arm:
    return Arm(name=name, title=title, scheduler=scheduler)


def adapt_arm() -> Arm:
    return scaled("minions_adapt", "MinionsRL-Adapt", kind="reward_ratio", actors_max=MOST)


def impact_arm() -> Arm:
    return impact("impact", "IMPACT with 32 actors, asynchronous", kind="fixed", actors=MOST)


def cheaper(
    arm: str,
    against: str,
    environments: tuple[str, ...],
    *,
    at: str = "containers_paper",
    against_at: str = "containers_paper",
    **fields: Any,
) -> Cheaper:
    told = {"label": "L" if at == against_at else "T", **fields}
    return Cheaper(
        arm=arm, at=at, against=(against,), against_at=against_at, environments=environments, **told
    )
