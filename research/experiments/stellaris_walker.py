"""Stellaris after 82,000 steps of Walker2d: final reward, time and cost, as `stellaris_82k` on Hopper."""

from research.stellaris import WALKER, headline_experiment

EXPERIMENT = headline_experiment(
    title="Stellaris on Walker2d, 82,000 steps",
    question="Do asynchronous learners end with more reward than one synchronous learner that makes as many steps?",
    environment=WALKER,
)
