"""Stellaris after a million steps of Hopper: whether what 82,000 steps show lasts until the task is learned."""

from research.stellaris import headline, headline_experiment

_ARMS = ("synchronous_40", "stellaris", "synchronous_10", "asynchronous")

EXPERIMENT = headline_experiment(
    title="Stellaris: four asynchronous learners, a million steps",
    question="Do asynchronous learners end with more reward than one synchronous learner once the task is learned?",
    rounds=244,
    reasons={"stop.rounds": "The released code's 20 rounds are early learning; `stellaris_82k` runs those."},
    arms=tuple(arm for arm in headline() if arm.name in _ARMS),
    can_claim=(
        "Five seeds of one task: ratios of final reward of about 1.5 and more. Not which of two similar rules is"
        " better. PAR-RL is undefined in every source and is not run."
    ),
)
