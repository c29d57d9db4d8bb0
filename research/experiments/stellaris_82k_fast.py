"""Stellaris again at a learning rate of 3e-4, where 82,000 steps come farther."""

from research.stellaris import headline_experiment

EXPERIMENT = headline_experiment(
    title="Stellaris at a learning rate of 3e-4",
    question="Do asynchronous learners end with more reward at as many steps, where learning is faster?",
    learning_rate=3e-4,
    can_claim=(
        "Five seeds of one task: ratios of final reward of about 1.3 and more. Still early learning: on Hopper a"
        " return of about 310, where a million steps of our own recipe reach about 2,800. The rate is ours and not the"
        " paper's: what fails at it may hold at 5e-5."
    ),
    reasons={"algorithm.learning_rate": "At 5e-5 20 rounds are early learning; `stellaris_82k` runs those."},
)
