"""Nitro's figures 10 to 12, 14, 15 and 17: rewards and cost of boosting against fixed numbers and other policies.

RLlib (figure 12) is PPO here: in the released code both are one program, and the paper's stack has its speed.

At the papers' learning rate of 5e-5, 50 rounds are early learning. `nitro_rewards_fast` asks the same at 3e-4.
"""

from research.experiment import Arm, Experiment, ExperimentSetting
from research.policies import (
    CARTPOLE,
    COMPARATORS,
    CONTROLS,
    FLOOR,
    HEADLINE,
    IMPACT_NOTE,
    IMPACT_ON_CARTPOLE,
    IMPACTS,
    NITRO_PRICING_TARGETS,
    RELEASED_LOSS,
    TARGETS,
    adapt,
    nitro_claims,
    released_claims,
)
from research.recipes import FIRST_REASONS, first_recipe

BESIDE = (
    "Nitro says: against PPO up to 5 × the final reward and −29 % cost, against IMPACT up to 3 × and −42 %,"
    " each the best of six tasks, by the formula of its code, without seeds being fixed and with curves only"
    " as pictures. Our rows with the papers' own formulas are the nearest thing to those figures; ratios of"
    " rewards near zero say little, so that ours are differences over the target. Reasons why ours may differ:"
    " the released code charges the learner's machine only while functions run, samples a second batch in its"
    " serverful baseline, and decides by 1/R with decay put on R (arm “released code”); MuJoCo's environments"
    " are v5 here. At equal time no policy can save more than the actors' share of the bill, which stands in"
    " the table of costs."
    f"{IMPACT_NOTE}"
)

EXPERIMENT = Experiment(
    title="Nitro: rewards and cost of boosting",
    question="Does boosting by curvature reach the target for less than fixed numbers of actors, and why?",
    oracle=(
        "The same arm on other seeds must come out equal; controls that ignore R must not differ from each"
        " other; a server cluster's bill must be its hourly price by its time; and a run re-timed on its own"
        " cloud must cost what its ledger booked."
    ),
    can_claim=(
        "CartPole, 10 seeds: differences of cost of about a third and more. Hopper, 5 seeds of the headline"
        " arms: large differences only. Nothing about Atari."
    ),
    base=first_recipe(),
    paper="nitro",
    reasons=FIRST_REASONS,
    arms=(
        *HEADLINE,
        *CONTROLS,
        *COMPARATORS,
        *IMPACTS,
        FLOOR,
        RELEASED_LOSS,
        Arm(
            name="minions_adapt",
            title="MinionsRL-Adapt",
            changes={"training": {"scaling": adapt(TARGETS["CartPole-v1"])}},
        ),
    ),
    settings=(
        ExperimentSetting(
            environment="CartPole-v1", seeds=tuple(range(10)), changes=CARTPOLE, own=IMPACT_ON_CARTPOLE
        ),
        ExperimentSetting(
            environment="Hopper-v5", seeds=tuple(range(5)), arms=tuple(arm.name for arm in HEADLINE)
        ),
    ),
    targets=TARGETS,
    pricing_targets=NITRO_PRICING_TARGETS,
    claims=(
        *nitro_claims(("CartPole-v1",), few=False, primary=True),
        *released_claims("CartPole-v1"),
        *nitro_claims(("Hopper-v5",), few=True),
    ),
    beside=BESIDE,
)
