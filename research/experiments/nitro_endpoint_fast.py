"""Nitro's own endpoint again at a learning rate of 3e-4, where 50 rounds come farther."""

from research.experiment import Experiment
from research.experiments.nitro_endpoint import ARMS, BESIDE, CLAIMS, ENDPOINT, ORACLE, SETTINGS
from research.policies import NITRO_PRICING_TARGETS
from research.recipes import paper_recipe

EXPERIMENT = Experiment(
    title="Nitro's endpoint at a learning rate of 3e-4",
    question="Does boosting by curvature end 50 rounds with a higher reward, and for less, where learning is faster?",
    endpoint=ENDPOINT,
    oracle=ORACLE,
    can_claim="Ten seeds on each of three tasks: ratios of final reward of about 1.3 and more, and of cost of 1.1.",
    base=paper_recipe(learning_rate=3e-4),
    paper="nitro",
    reasons={"algorithm.learning_rate": "At 5e-5 50 rounds are early learning; `nitro_endpoint` runs those."},
    arms=ARMS,
    settings=SETTINGS,
    pricing_targets=NITRO_PRICING_TARGETS,
    claims=CLAIMS,
    follows="nitro_rewards_fast",
    beside=BESIDE,
)
