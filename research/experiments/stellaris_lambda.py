"""Stellaris' learners as CPU functions on Lambda, against one plain machine that samples and learns."""

from research.claims import Cheaper, NotWorse
from research.experiment import Experiment, ExperimentSetting, merged
from research.stellaris import (
    CAN_CLAIM,
    HOPPER,
    MARGIN,
    ORACLE,
    REASONS,
    SEEDS,
    WHEN_ALL_HAD_RUN,
    endpoint,
    headline,
    recipe,
    stellaris,
)

_LAMBDA, _MACHINE, _SPOT, _SMALL = "lambda_learners_starling", "machine", "machine_spot", "machine_small"
_OTHERS = ("lambda_learners_paper", "functions_cpu", "cluster_starling")
_COSTS = ("stellaris-costs",)
_STELLARIS = stellaris("stellaris", "Stellaris, learners on Lambda", where="actor")
_ON_LAMBDA = _STELLARIS.model_copy(
    update={
        "changes": merged(
            _STELLARIS.changes,
            {
                "training": {"rollout": {"memory_mb": 1769}},
                "platform": {
                    "profile": "lambda",
                    "stack": "starling-stack",
                    "learner_sku": "m4.large",
                    "learner_lanes": 1,
                },
            },
        )
    }
)

EXPERIMENT = Experiment(
    title="Stellaris' learners on Lambda, without a GPU",
    question="Is it cheaper to sample and learn on CPU functions than on one machine that does both?",
    endpoint=endpoint(),
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=(_ON_LAMBDA, *(arm for arm in headline("stellaris_82k") if arm.name == "synchronous_40")),
    settings=(ExperimentSetting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=(_LAMBDA, _MACHINE, _SPOT, _SMALL, *_OTHERS),
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
                declared=WHEN_ALL_HAD_RUN if place == _SMALL else "",
            )
            for place in (_MACHINE, _SPOT, _SMALL, _LAMBDA)
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
                declared=WHEN_ALL_HAD_RUN if place == _SMALL else "",
            )
            for place in (_MACHINE, _SMALL, _LAMBDA)
        ),
        NotWorse(arm="stellaris", against="synchronous_40", environment=HOPPER, margin=MARGIN),
    ),
    beside=(
        "The slides price learners by the hour of a GPU machine; no cloud lists a price for a function with a GPU. Here"
        " learners are functions of 1,769 MB, which is one core, and a small machine coordinates. Stellaris was trained"
        " at these functions' times. PPO's runs are those of `stellaris_82k`, as its weights do not depend on times. On"
        " Lambda its actors have 1,024 MB. The small machine was added when all had run: a machine of 16 cores is not"
        " the cheapest that can learn, and who is in no hurry would not rent it."
    ),
)
