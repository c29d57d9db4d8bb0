"""Stellaris again at a learning rate of 3e-4, where 82,000 steps come farther."""

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
    title="Stellaris at a learning rate of 3e-4",
    question="Do asynchronous learners end with more reward at as many steps, where learning is faster?",
    endpoint=ENDPOINT,
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=recipe(learning_rate=3e-4),
    paper="stellaris",
    reasons={
        **REASONS,
        "algorithm.learning_rate": "At 5e-5 20 rounds are early learning; `stellaris_82k` runs those.",
    },
    arms=headline(),
    settings=(Setting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=PLACES,
    run_s=60.0,
    claims=claims(HOPPER),
    beside=BESIDE,
)
