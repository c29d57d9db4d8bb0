"""MinionsRL's figure 2: on CartPole, with the same number of actors in all, when they are used matters.

Its minibatches are of a fixed size, so that more actors also mean more updates. Arms with the whole round as one
minibatch have equal updates whatever the actors: what is left there is due to the schedule alone.
"""

from typing import Any

from research.claims import Better, Cheaper
from research.experiment import Arm, Experiment, ExperimentSetting, merged
from research.minionsrl import CARTPOLE_RECIPE, minionsrl_recipe
from research.policies import TARGETS
from research.recipes import FIRST_REASONS

_SHAPES = {
    "level": ("the same in all rounds", [6] * 50),
    "falling": ("falling", [10] * 10 + [8] * 10 + [6] * 10 + [4] * 10 + [2] * 10),
    "rising": ("rising", [2] * 10 + [4] * 10 + [6] * 10 + [8] * 10 + [10] * 10),
}


def _arm(name: str, words: str, actors: list[int], *, equal: bool) -> Arm:
    training: dict[str, Any] = {"scaling": {"kind": "schedule", "actors": actors}}
    if equal:
        training["algorithm"] = {"minibatch_size": 16_384}
    return Arm(
        name=f"{name}_equal_updates" if equal else name,
        title=f"{words}, equal updates" if equal else words,
        changes={"training": training},
    )


_ONE = ("CartPole-v1",)
_ARMS = tuple(_arm(name, *shape, equal=equal) for equal in (False, True) for name, shape in _SHAPES.items())
_NOT_IN_THE_PAIR = tuple(arm.name for arm in _ARMS[1:])


def _sides(ours: str, theirs: str) -> dict[str, Any]:
    return {
        "arm": ours,
        "at": "containers_paper",
        "against": (theirs,),
        "against_at": "containers_paper",
        "environments": _ONE,
    }


def _claims(ours: str, theirs: str) -> tuple[Better | Cheaper, ...]:
    shared = _sides(ours, theirs)
    return (
        Better(
            **shared, paper="equal budgets, different final rewards (figure 2).", repeats=("minionsrl-2",)
        ),
        Cheaper(**shared, label="L"),
    )


EXPERIMENT = Experiment(
    title="MinionsRL: the same actors, spent early or late",
    question="With the same number of actors in all, does it matter in which rounds they sample?",
    oracle="All schedules start 300 actors; a run's rounds must add up to that, and its samples to 9,600.",
    can_claim=(
        "20 seeds: differences of about a fifth of the target. CartPole only, in proportion to the paper's. The A/A"
        " pair has 40: its first 20 came out 0.80 [0.65, 0.97], and whether that was chance was asked of 20 more."
    ),
    base=merged(minionsrl_recipe(), merged(CARTPOLE_RECIPE, {"training": {"stop": {"rounds": 50}}})),
    paper="minionsrl",
    reasons=FIRST_REASONS,
    arms=(
        *_ARMS,
        _arm("level", *_SHAPES["level"], equal=False).model_copy(
            update={
                "name": "level_again",
                "title": "the same in all rounds, other seeds",
                "again_of": "level",
            }
        ),
    ),
    settings=(
        ExperimentSetting(
            environment="CartPole-v1", seeds=tuple(range(40)), fewer=dict.fromkeys(_NOT_IN_THE_PAIR, 20)
        ),
    ),
    targets={"CartPole-v1": TARGETS["CartPole-v1"]},
    pricing_targets=("containers_paper", "containers_starling", "machine"),
    claims=(
        *_claims("falling", "level"),
        *_claims("rising", "level"),
        *_claims("falling", "rising"),
        *_claims("falling_equal_updates", "level_equal_updates"),
        *_claims("falling_equal_updates", "rising_equal_updates"),
        Cheaper(**_sides("level", "level_again"), label="L", alike=True),
    ),
    beside=(
        "MinionsRL's figure 2 shows that schedules of equal budgets end at different rewards on CartPole,"
        " from single curves; its learned schedules (figure 5) are high early, low on the plateau, and a"
        " little higher at the end."
    ),
)
