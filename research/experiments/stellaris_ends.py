"""Stellaris trained again at the ends of what its learners' calls may take: their times decide what is learned."""

from pathlib import Path
from typing import Any

from cloud.timing.numbers import stack
from research.claims import Higher, Sooner
from research.experiment import Arm, Experiment, ExperimentSetting, merged
from research.stellaris import (
    BESIDE,
    CAN_CLAIM,
    HOPPER,
    REASONS,
    SEEDS,
    endpoint,
    headline,
    recipe,
    stellaris,
)

STACKS = Path(__file__).resolve().parent.parent / "stacks"
stack.FILES.add_folder(STACKS, listed=False)  # this experiment's alone: no form offers them


def _at(arm: Arm, software: str) -> Arm:
    return arm.model_copy(update={"changes": merged(arm.changes, {"platform": {"stack": software}})})


_NO_ONE_WAITS: dict[str, Any] = {"actors_wait": False, "learners_wait": False}
_ARMS = tuple(
    _at(arm, f"paper-stack-{end}-learners")
    for end in ("quick", "slow")
    for arm in (
        stellaris(f"waiting_{end}", f"Stellaris, calls {end}"),
        stellaris(
            f"flowing_{end}", f"Stellaris, neither actors nor learners wait, calls {end}", **_NO_ONE_WAITS
        ),
    )
)
_THEIRS = ("synchronous_10", "synchronous_40")

EXPERIMENT = Experiment(
    title="Stellaris at the ends of its calls' times",
    question="Do return and time say the same if gradients and aggregations take the least or the most that they may?",
    endpoint=endpoint(),
    oracle=(
        "Timed again with the same numbers, the stored runs of `stellaris_82k` must give about the seconds that runs"
        " which were trained there took: what else differs is which gradients met."
    ),
    can_claim=(
        f"{CAN_CLAIM} What was said beforehand would refute it came true within 4 %, but for quick calls where nobody"
        " waits: runs timed again take a third longer there than those trained, as the gradients that met are others."
    ),
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=(*_ARMS, *(arm for arm in headline("stellaris_82k") if arm.name in _THEIRS)),
    settings=(ExperimentSetting(environment=HOPPER, seeds=SEEDS),),
    run_s=60.0,
    claims=(
        *(
            Sooner(
                arm=arm.name,
                against=(against,),
                environments=(HOPPER,),
                startup=False,
                paper="−31 % cost against PPO, by one hourly rate: as much of the time." if value else "",
                paper_value=value,
                repeats=("stellaris-costs",),
            )
            for against, value in zip(_THEIRS, (0.69, None), strict=True)
            for arm in _ARMS
        ),
        *(
            Higher(
                arm=arm.name,
                against=("synchronous_40",),
                environments=(HOPPER,),
                repeats=("stellaris-rewards",),
            )
            for arm in _ARMS
        ),
    ),
    beside=(
        f"{BESIDE} Here a gradient is assumed to take 5 ms or 100 ms beside its samples, and an aggregation 1 ms or"
        " 50 ms. PPO's learner makes neither of these calls, so that its runs are those of `stellaris_82k`."
    ),
)
