"""Stellaris after 82,000 steps of Walker2d: final reward, time and cost, as `stellaris_82k` on Hopper."""

from research.experiment import Experiment, Setting
from research.stellaris import (
    BESIDE,
    CAN_CLAIM,
    ENDPOINT,
    ORACLE,
    PLACES,
    REASONS,
    SEEDS,
    WALKER,
    claims,
    headline,
    recipe,
)

EXPERIMENT = Experiment(
    title="Stellaris on Walker2d, 82,000 steps",
    question="Do asynchronous learners end with more reward than one synchronous learner that makes as many steps?",
    endpoint=ENDPOINT,
    oracle=ORACLE,
    can_claim=CAN_CLAIM,
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=headline(),
    settings=(Setting(environment=WALKER, seeds=SEEDS),),
    pricing_targets=PLACES,
    run_s=60.0,
    claims=claims(WALKER),
    beside=BESIDE,
)
