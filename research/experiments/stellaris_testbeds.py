"""Stellaris on the slides' two testbeds, and on our own software: trained at each place's own times."""

from typing import Any

from research.claims import Cheaper, Higher, NotWorse
from research.experiment import Arm, Experiment, ExperimentSetting, merged
from research.stellaris import (
    CAN_CLAIM,
    HOPPER,
    MARGIN,
    ORACLE,
    REASONS,
    ROUND,
    SEEDS,
    SLICE,
    endpoint,
    headline,
    recipe,
    stellaris,
)

_ACTORS = 16
_GPU, _HPC, _OURS = "stellaris_gpu_paper", "stellaris_hpc_paper", "stellaris_cluster_starling"
_AS_MANY = "synchronous_160"


def _at(arm: Arm, **platform: Any) -> Arm:
    return arm.model_copy(update={"changes": merged(arm.changes, {"platform": platform})})


_ARMS = (
    _at(
        stellaris("stellaris_gpu", "Stellaris, GPU testbed, four learners on two GPUs"),
        profile="stellaris-gpu",
        learner_machines=2,
    ),
    _at(
        stellaris(
            "stellaris_hpc",
            "Stellaris, HPC testbed, 16 learners on 16 GPUs",
            learners=_ACTORS,
            trajectories_per_gradient=1,
        ),
        profile="stellaris-hpc",
        learner_machines=4,
        learner_lanes=_ACTORS,
        learner_sku=None,
    ),
    _at(stellaris("stellaris_ours", "Stellaris on our own software"), stack="starling-stack"),
    Arm(
        name=_AS_MANY,
        title="PPO, synchronous, 160 steps of 256 a round",
        changes={"training": {"algorithm": {"minibatch_size": ROUND // _ACTORS}}},
    ),
)
_PLACES = {"stellaris_gpu": _GPU, "stellaris_hpc": _HPC, "stellaris_ours": _OURS}


def _claims() -> tuple[Higher | NotWorse | Cheaper, ...]:
    """The primary one is at the largest testbed: the most learners, so the most that is stale."""
    claims: list[Higher | NotWorse | Cheaper] = []
    for arm, place in _PLACES.items():
        against = (_AS_MANY if arm == "stellaris_hpc" else "synchronous_40",)
        claims += [
            Higher(
                arm=arm,
                against=against,
                environments=(HOPPER,),
                primary=arm == "stellaris_hpc",
                repeats=("stellaris-rewards",),
            ),
            NotWorse(arm=arm, against=against[0], environment=HOPPER, margin=MARGIN),
        ]
        for name, paper, value in (
            ("synchronous_10", "−31 % cost against PPO, by one hourly rate: as much of the time.", 0.69),
            (against[0], "", None),
        ):
            claims += [
                Cheaper(
                    arm=arm,
                    at=place,
                    against=(name,),
                    against_at=place,
                    environments=(HOPPER,),
                    label="T",
                    measure=measure,
                    until="end",
                    paper=paper,
                    paper_value=value,
                    repeats=("stellaris-costs",),
                )
                for measure in ("seconds", "dollars")
            ]
    return tuple(claims)


EXPERIMENT = Experiment(
    title="Stellaris on the slides' testbeds",
    question="Do more GPUs, more learners or quicker software bring what four learners on one GPU do not?",
    endpoint=endpoint(),
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=(
        *_ARMS,
        *(arm for arm in headline("stellaris_82k") if arm.name in ("synchronous_10", "synchronous_40")),
    ),
    settings=(ExperimentSetting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=(_GPU, _HPC, _OURS),
    run_s=60.0,
    claims=_claims(),
    beside=(
        "The slides name two testbeds: 128 cores with 2 V100, and 960 cores with 16 V100. Here 16 actors sample as"
        " everywhere, so that rounds are of equal size and most of those cores idle, but are paid. On the large one"
        f" each of 16 learners has a GPU of its own, and a gradient is of {ROUND // _ACTORS} samples, not {SLICE:,};"
        " PPO takes as many steps of as many samples beside it. The times are the simulated cloud's, with the papers'"
        " software but for the last arm of Stellaris. That one was trained at the times that a GPU was assumed to have;"
        " its times here are those measured since, by which our software makes versions on a core. PPO's other runs"
        " are those of `stellaris_82k`, as its weights do not depend on times."
    ),
)
