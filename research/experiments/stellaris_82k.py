"""Stellaris after 82,000 steps at its released code's learning rate of 5e-5: final reward, time and cost.

`stellaris_82k_fast` asks the same at 3e-4, `stellaris_ablations` what each of its parts brings.
"""

from research.experiment import Experiment, Setting
from research.stellaris import (
    BESIDE,
    CAN_CLAIM,
    ENDPOINT,
    HOPPER,
    ORACLE,
    PLACES,
    REASONS,
    SEEDS,
    claims,
    headline,
    recipe,
)

EXPERIMENT = Experiment(
    title="Stellaris: four asynchronous learners, 82,000 steps",
    question="Do asynchronous learners end with more reward than one synchronous learner that makes as many steps?",
    endpoint=ENDPOINT,
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=headline(),
    settings=(Setting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=PLACES,
    run_s=60.0,
    claims=claims(HOPPER),
    beside=BESIDE,
)
