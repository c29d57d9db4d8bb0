"""Stellaris after 82,000 steps of Humanoid: final reward, time and cost, as `stellaris_82k` on Hopper."""

from research.stellaris import HUMANOID, headline_experiment

EXPERIMENT = headline_experiment(
    title="Stellaris on Humanoid, 82,000 steps",
    question="Do asynchronous learners end with more reward than one synchronous learner that makes as many steps?",
    environment=HUMANOID,
)
