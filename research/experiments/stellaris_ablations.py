"""What each part of Stellaris brings, and what other ways of learning from stale data bring, on Hopper."""

from research.experiment import Experiment, ExperimentSetting
from research.stellaris import (
    ABLATIONS,
    BESIDE,
    CAN_CLAIM,
    COMPARATORS,
    HOPPER,
    ORACLE,
    PLACE,
    REASONS,
    SEEDS,
    ablation_claims,
    endpoint,
    recipe,
    stellaris,
)

EXPERIMENT = Experiment(
    title="Stellaris, part by part",
    question="What do holding, weights and truncation each bring, against learners that do none of it?",
    endpoint=endpoint(),
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=(stellaris("stellaris", "Stellaris", home="stellaris_82k"), *COMPARATORS, *ABLATIONS),
    settings=(ExperimentSetting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=(PLACE,),
    run_s=60.0,
    claims=ablation_claims(HOPPER),
    beside=BESIDE,
)
