"""Stellaris again at a learning rate of 3e-4, where 82,000 steps come farther."""

from research.stellaris import headline_experiment

EXPERIMENT = headline_experiment(
    title="Stellaris at a learning rate of 3e-4",
    question="Do asynchronous learners end with more reward at as many steps, where learning is faster?",
    learning_rate=3e-4,
    reasons={"algorithm.learning_rate": "At 5e-5 20 rounds are early learning; `stellaris_82k` runs those."},
)
