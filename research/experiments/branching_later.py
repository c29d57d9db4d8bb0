"""The branching study with five further rounds: does what additional actors bring last, where curvature says so?"""

from research.branching import Branching
from research.claims import RanksForks
from research.experiment import Arm, Experiment, ExperimentSetting
from research.policies import CARTPOLE
from research.recipes import FIRST_REASONS, first_recipe

_FIGURES = ("nitro-2", "nitro-7", "nitro-9")
_PAPER = "at three chosen checkpoints of each task, rewards grew more where R was lower."

EXPERIMENT = Experiment(
    title="Forks at every round, five rounds later",
    question="Do additional actors bring more in rounds whose curvature ratio R is low, and is it still there later?",
    oracle=(
        "A branch with the base run's own seed and actors must be the base run's next rounds, bit for bit. After"
        " many further rounds the gain of one boost must be gone, so that a correlation that grows with each round"
        " is an error."
    ),
    can_claim=(
        "10 seeds of 29 rounds on CartPole: correlations of about 0.07 and more. Boosts of one round by a factor of"
        " four only; early learning only."
    ),
    base=first_recipe(learning_rate=3e-4),
    paper="nitro",
    reasons=FIRST_REASONS,
    arms=(
        Arm(
            name="forks",
            title="4 actors, forked to 16, then 4",
            changes={"platform": {"kind": "local", "workers": 1}, "training": {"stop": {"rounds": 30}}},
            study=Branching(actors=4, boost=16, replicates=4, episodes=10, further=5),
        ),
    ),
    settings=(ExperimentSetting(environment="CartPole-v1", seeds=tuple(range(10)), changes=CARTPOLE),),
    run_s=300.0,
    claims=(
        RanksForks(arm="forks", environment="CartPole-v1", paper=_PAPER, repeats=_FIGURES),
        RanksForks(arm="forks", environment="CartPole-v1", later=True, paper=_PAPER, repeats=_FIGURES),
    ),
    beside=(
        "Nitro's figures show rewards after a boost, not how long the gain lasts. Both branches go on with the same"
        " four actors and the same chance."
    ),
)
