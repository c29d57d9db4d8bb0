"""The branching study: does curvature say in which rounds more actors help? Nitro's figures 2, 7 and 9, on all rounds.

At every round of a base run, 5 replicates of two branches: one more round with 4 actors, or with 16.
"""

from research.branching import Branching
from research.claims import RanksForks
from research.experiment import Arm, Experiment, ExperimentSetting
from research.policies import CARTPOLE
from research.recipes import FIRST_REASONS, first_recipe

_FIGURES = ("nitro-2", "nitro-7", "nitro-9")
_PAPER = "at three chosen checkpoints of each task, rewards grew more where R was lower."

EXPERIMENT = Experiment(
    title="Forks at every round: boost or no boost",
    question="Do additional actors bring more in rounds whose curvature ratio R is low?",
    oracle=(
        "A branch with the base run's own seed and actors must be the base run's next round, bit for bit;"
        " branches of a replicate share the fragments of the slots that both have. If R said nothing, the"
        " correlation would be 0 on average: R also drifts with training, so that the round is taken out of"
        " both."
    ),
    can_claim=(
        "10 seeds of 49 rounds and more on each task: correlations of about 0.05 and more. Boosts of one"
        " round by a factor of four only; early learning only."
    ),
    base=first_recipe(learning_rate=3e-4),
    paper="nitro",
    reasons=FIRST_REASONS,
    arms=(
        Arm(
            name="forks",
            title="4 actors, forked to 16",
            changes={"platform": {"kind": "local", "workers": 1}},
            study=Branching(actors=4, boost=16, replicates=5, episodes=10),
        ),
    ),
    settings=(
        ExperimentSetting(environment="CartPole-v1", seeds=tuple(range(10)), changes=CARTPOLE),
        ExperimentSetting(environment="Hopper-v5", seeds=tuple(range(10))),
    ),
    # 500 branches each: about 150 s on CartPole, 750 on Hopper.
    run_s=450.0,
    claims=(
        RanksForks(arm="forks", environment="CartPole-v1", paper=_PAPER, repeats=_FIGURES),
        RanksForks(arm="forks", environment="Hopper-v5", paper=_PAPER, repeats=_FIGURES),
    ),
    beside=(
        "Nitro's figures 2, 7 and 9 show rewards after a boost at the rounds of lowest, median and highest"
        " R (Hopper: R 0.78, 2.16 and 3.43). Chosen rounds say nothing of the others, and R and the gain of"
        " more data both change as training goes on; here every round is forked, and the round is taken out of"
        " the correlation."
    ),
)
