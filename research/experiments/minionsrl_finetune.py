"""MinionsRL's figure 9: a scheduler of another task, trained on for a tenth of the episodes, against one
from scratch.
"""

from research.experiment import Experiment
from research.minionsrl import (
    TARGETS,
    TARGETS_NOTE,
    cheaper,
    fixed_again,
    fixed_arms,
    minionsrl_recipe,
    same_twice,
    scheduled,
    scheduler_training_arm,
    setting,
)
from research.recipes import FIRST_REASONS

_ONE = ("Hopper-v5",)

EXPERIMENT = Experiment(
    title="MinionsRL: a scheduler of another task, fine-tuned",
    question="Is a scheduler that was fine-tuned with a tenth of the training as good as one from scratch?",
    oracle=(
        "A fine-tuned scheduler that learned nothing decides as the other task's does; its decisions must"
        " have moved."
    ),
    can_claim=(
        "10 seeds, one scheduler of each kind (reduced): whether the interval of the ratio contains 1."
        " Containing it is no proof that both are equal; its width is told."
    ),
    base=minionsrl_recipe(),
    paper="minionsrl",
    reasons=FIRST_REASONS,
    arms=(
        *fixed_arms("minionsrl_table2"),
        fixed_again("minionsrl_table2"),
        scheduler_training_arm("scheduler_scratch", "training from scratch", episodes=20, rehearsals=1500),
        scheduler_training_arm("scheduler_donor", "training on CartPole", episodes=20, rehearsals=1500),
        scheduler_training_arm(
            "scheduler_tuned",
            "training on from CartPole's",
            episodes=2,
            rehearsals=150,
            begin_with="scheduler_donor",
            begin_in="CartPole-v1",
        ),
        scheduled("scratch", "scheduler from scratch", "scheduler_scratch"),
        scheduled("tuned", "scheduler fine-tuned from CartPole", "scheduler_tuned"),
    ),
    settings=(
        setting(
            "CartPole-v1",
            2,
            arms=("fixed_4", "fixed_8", "fixed_16", "fixed_32", "scheduler_donor"),
            fewer={"scheduler_donor": 1},
        ),
        setting(
            "Hopper-v5",
            10,
            arms=(
                "fixed_4",
                "fixed_8",
                "fixed_8_again",
                "fixed_16",
                "fixed_32",
                "scheduler_scratch",
                "scheduler_tuned",
                "scratch",
                "tuned",
            ),
            fewer={
                "fixed_4": 2,
                "fixed_8": 5,
                "fixed_8_again": 5,
                "fixed_16": 2,
                "fixed_32": 2,
                "scheduler_scratch": 1,
                "scheduler_tuned": 1,
            },
        ),
    ),
    training_targets={name: TARGETS[name] for name in ("CartPole-v1", "Hopper-v5")},
    targets_note=TARGETS_NOTE,
    pricing_targets=("containers_paper", "containers_starling", "machine"),
    claims=(
        cheaper(
            "tuned",
            "scratch",
            _ONE,
            alike=True,
            paper="equal or better with 10 of 100 episodes.",
            repeats=("minionsrl-9",),
        ),
        cheaper("tuned", "scratch", _ONE, measure="seconds", alike=True, repeats=("minionsrl-9",)),
        same_twice(_ONE),
    ),
    beside=(
        "MinionsRL's figure 9: 10 episodes of fine-tuning in place of 100 save 90 % of the scheduler's"
        " training, with equal or better schedules."
    ),
)
