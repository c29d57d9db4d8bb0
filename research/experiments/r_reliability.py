"""Does Nitro's R repeat? Test and retest on every round, from 256 samples to the whole batch."""

from research.claims import Repeatable
from research.experiment import Arm, Experiment, ExperimentSetting
from research.policies import CARTPOLE
from research.recipes import paper_recipe
from research.reliability import Reliability

EXPERIMENT = Experiment(
    title="Does R repeat?",
    question="How many samples and Hessian products make R the same twice, and what share of a round do they take?",
    oracle=(
        "Reliability must grow with samples, and the same samples twice must give it exactly. The released code takes"
        " the whole batch, whose reliability is the most that any cheaper setting can reach."
    ),
    can_claim="Five trainings of 50 rounds on each task: reliabilities to within 0.1 to 0.25.",
    base=paper_recipe(learning_rate=3e-4),
    paper="nitro",
    reasons={
        "algorithm.learning_rate": "At 5e-5 50 rounds are early learning. On CartPole 1e-3.",
        "network.hidden": "CartPole needs no more than 64 × 64.",
        "rollout.steps_per_call": "CartPole's rounds are small elsewhere; here they are a quarter of Hopper's.",
    },
    arms=(
        Arm(
            name="twice",
            title="R from two fleets of 16 actors",
            changes={"platform": {"kind": "local", "workers": 1}},
            study=Reliability(),
        ),
    ),
    settings=(
        ExperimentSetting(
            environment="CartPole-v1",
            seeds=tuple(range(300, 305)),
            changes={**CARTPOLE, "training": {**CARTPOLE["training"], "rollout": {"steps_per_call": 64}}},
        ),
        ExperimentSetting(environment="Hopper-v5", seeds=tuple(range(300, 305))),
    ),
    # About 1 minute on CartPole, and 7 on Hopper.
    run_s=420.0,
    claims=(
        Repeatable(arm="twice", environment="CartPole-v1"),
        Repeatable(arm="twice", environment="Hopper-v5"),
    ),
    beside=(
        "Nitro sets the number of actors of the next round by R, as a sign of how the policy will improve. The released"
        " code measures R from the whole batch. The oracle requires that reliability grow with samples. Here it does"
        " not: two whole batches of one policy agree no more than two small ones, though on Hopper their noise falls by"
        " a quarter. R of one round does not predict R of the next either, and that is the round it decides about. One"
        " batch of each pair was learned from and the other was not, so R may still be a property of its own batch: 256"
        " samples predict that R weakly on CartPole and not at all on Hopper."
    ),
)
