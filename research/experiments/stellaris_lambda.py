"""Stellaris' learners as CPU functions on Lambda, against one plain machine that samples and learns."""

from research.claims import Cheaper, NotWorse
from research.experiment import Arm, Experiment, Setting, merged
from research.stellaris import (
    CAN_CLAIM,
    ENDPOINT,
    HOPPER,
    MARGIN,
    ORACLE,
    REASONS,
    SEEDS,
    SLICE,
    recipe,
    stellaris,
)

_LAMBDA, _MACHINE, _SPOT = "lambda_learners_starling", "machine", "machine_spot"
_COSTS = ("stellaris-costs",)
_SYNCHRONOUS = Arm(
    name="synchronous_40",
    title="PPO, synchronous, 40 steps of 1,024 a round",
    changes={
        "training": {"algorithm": {"minibatch_size": SLICE}},
        "platform": {"profile": "one-machine", "learner_sku": "c5.4xlarge", "learner_lanes": 1},
    },
)
_STELLARIS = stellaris("stellaris", "Stellaris, learners on Lambda", where="actor")
_ON_LAMBDA = _STELLARIS.model_copy(
    update={
        "changes": merged(
            _STELLARIS.changes,
            {"platform": {"profile": "lambda", "learner_sku": "m4.large", "learner_lanes": 1}},
        )
    }
)

EXPERIMENT = Experiment(
    title="Stellaris' learners on Lambda, without a GPU",
    question="Is it cheaper to sample and learn on CPU functions than on one machine that does both?",
    endpoint=ENDPOINT,
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=merged(
        recipe(),
        {"training": {"rollout": {"memory_mb": 1769}}, "platform": {"stack": "starling-stack"}},
    ),
    paper="stellaris",
    reasons=REASONS,
    arms=(_ON_LAMBDA, _SYNCHRONOUS),
    settings=(Setting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=(_LAMBDA, _MACHINE, _SPOT),
    run_s=60.0,
    claims=(
        *(
            Cheaper(
                arm="stellaris",
                at=_LAMBDA,
                against=("synchronous_40",),
                against_at=place,
                environments=(HOPPER,),
                label="B",
                until="end",
                primary=place == _MACHINE,
                over_draws=True,
                repeats=_COSTS,
            )
            for place in (_MACHINE, _SPOT, _LAMBDA)
        ),
        *(
            Cheaper(
                arm="stellaris",
                at=_LAMBDA,
                against=("synchronous_40",),
                against_at=place,
                environments=(HOPPER,),
                label="T",
                measure="seconds",
                until="end",
                repeats=_COSTS,
            )
            for place in (_MACHINE, _LAMBDA)
        ),
        NotWorse(arm="stellaris", against="synchronous_40", environment=HOPPER, margin=MARGIN),
    ),
    beside=(
        "The slides price learners by the hour of a GPU machine; no cloud lists a price for a function with a GPU. Here"
        " learners are functions of 1,769 MB, which is one core, and a small machine coordinates. Stellaris was trained"
        " at these functions' times, PPO once, as its weights do not depend on times. The last claims put PPO on the"
        " same functions, so that they differ in the learners alone."
    ),
)
