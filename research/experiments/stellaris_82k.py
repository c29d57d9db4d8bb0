"""Stellaris after 82,000 steps at its released code's learning rate of 5e-5: final reward, time and cost.

`stellaris_82k_fast` asks the same at 3e-4, `stellaris_ablations` what each of its parts brings.
"""

from research.stellaris import WHEN_ALL_HAD_RUN, headline_experiment

EXPERIMENT = headline_experiment(
    title="Stellaris: four asynchronous learners, 82,000 steps",
    question="Do asynchronous learners end with more reward than one synchronous learner that makes as many steps?",
    in_time=WHEN_ALL_HAD_RUN,
)
