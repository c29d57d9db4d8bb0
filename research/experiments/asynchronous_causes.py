"""Which part of asynchronous IMPACT costs return? Arms that differ in one thing each, where the lag is no chance.

`asynchronous_return` found 0.73 of synchronous PPO's return, on a machine whose load decided how old data was: 1.0 to
4.0 versions by the end of a run. Here the cloud is simulated, so that the lag is the loop's own and runs repeat.
"""

from typing import Any

from research.claims import Higher, NotWorse
from research.experiment import Arm, Experiment, ExperimentSetting, merged
from research.experiments.asynchronous_return import IMPACT
from research.experiments.learning_mujoco import RECIPE

_HOPPER = "Hopper-v5"
_STEPS = 300_000
_ACTORS = RECIPE["training"]["scaling"]["actors"]


def _arm(name: str, title: str, limit: int, **algorithm: Any) -> Arm:
    """Twice as many actors sample as updates need, so that data becomes as old as the limit lets it."""
    loop = {"kind": "asynchronous", "staleness_limit": limit, "trajectories_per_update": _ACTORS}
    training: dict[str, Any] = {"loop": loop, "scaling": {"kind": "fixed", "actors": 2 * _ACTORS}}
    if algorithm:
        training["algorithm"] = algorithm
    return Arm(name=name, title=title, changes={"training": training})


_BY_FIVE = "after the first five seeds of its arms, which it was chosen by"


def _not_worse(*pairs: tuple[str, str], declared: str = "") -> tuple[NotWorse, ...]:
    return tuple(
        NotWorse(arm=arm, against=against, environment=_HOPPER, margin=0.8, declared=declared)
        for arm, against in pairs
    )


EXPERIMENT = Experiment(
    title="What asynchronous IMPACT loses, cause by cause",
    question=(
        "Is it the age of the data, V-trace's limits, or V-trace's advantages that costs asynchronous IMPACT return?"
    ),
    endpoint_note=f"After {_STEPS:,} steps: in `asynchronous_return` the arms were already apart there.",
    oracle=(
        "IMPACT without lag is PPO (a test of the algorithms), so its synchronous arm has the advantages as printed."
        " Arms with a limit of 1 and of 4 must learn from data 1 and 4 versions old. Alike in all arms: 2,048 steps an"
        " update, ten passes in minibatches of 256, the decay of the learning rate by steps learned from, λ, no value"
        " clip, advantages normalised by minibatch, a target renewed at each update. By design the learner's newest"
        " moments normalise old data, so that its ratios do not begin at 1."
    ),
    can_claim=(
        '10 seeds: "not worse than 0.8 ×" by the lower bound of the paired IQM ratio, and ratios of about 1.5 and more;'
        " 5 seeds of the arms that were not followed further. The first five decided nothing about limits of 10, which"
        " looked best: so its two claims and five more seeds of the four arms in question were declared after them."
    ),
    base=merged(
        RECIPE,
        {
            "training": {"stop": {"env_steps": _STEPS}},
            "platform": {
                "kind": "simulated",
                "profile": "one-machine",
                "stack": "starling-stack",
                "workers": 1,
            },
        },
    ),
    arms=(
        Arm(name="ppo_synchronous", title="PPO, synchronous"),
        _arm(
            "impact_printed_4",
            "IMPACT, 4 versions old, advantages as printed",
            4,
            **IMPACT,
            advantage_trace="full",
        ),
        _arm("impact_4", "IMPACT, 4 versions old", 4, **IMPACT),
        _arm("impact_1", "IMPACT, 1 version old", 1, **IMPACT),
        _arm("ppo_4", "PPO, 4 versions old", 4),
        _arm("ppo_1", "PPO, 1 version old", 1),
        _arm(
            "ppo_1_decoupled",
            "PPO, 1 version old, decoupled objective",
            1,
            objective="decoupled",
        ),
        _arm(
            "impact_4_unlimited",
            "IMPACT, 4 versions old, V-trace's ρ and c up to 10",
            4,
            **IMPACT,
            rho_limit=10.0,
            c_limit=10.0,
        ),
        _arm(
            "impact_1_unlimited",
            "IMPACT, 1 version old, V-trace's ρ and c up to 10",
            1,
            **IMPACT,
            rho_limit=10.0,
            c_limit=10.0,
        ),
        Arm(
            name="impact_printed_0",
            title="IMPACT, synchronous, advantages as printed",
            changes={"training": {"algorithm": {**IMPACT, "advantage_trace": "full"}}},
        ),
    ),
    settings=(
        ExperimentSetting(
            environment=_HOPPER,
            seeds=tuple(range(10)),
            fewer=dict.fromkeys(
                (
                    "impact_printed_4",
                    "impact_4",
                    "ppo_4",
                    "ppo_1_decoupled",
                    "impact_4_unlimited",
                    "impact_printed_0",
                ),
                5,
            ),
        ),
    ),
    run_s=60.0,
    claims=(
        Higher(arm="impact_1_unlimited", against=("impact_1",), environments=(_HOPPER,), declared=_BY_FIVE),
        *_not_worse(("impact_1_unlimited", "ppo_synchronous"), declared=_BY_FIVE),
        *_not_worse(
            ("impact_1", "ppo_synchronous"),
            ("impact_4", "ppo_synchronous"),
            ("impact_printed_4", "ppo_synchronous"),
            ("ppo_1", "ppo_synchronous"),
            ("ppo_4", "ppo_synchronous"),
            ("ppo_1_decoupled", "ppo_1"),
            ("impact_1", "ppo_1_decoupled"),
            ("impact_1", "impact_1_unlimited"),
            ("impact_printed_0", "ppo_synchronous"),
            ("impact_4", "impact_1"),
            ("impact_printed_4", "impact_4"),
            ("impact_4_unlimited", "impact_4"),
        ),
    ),
)
