"""Nitro's figure 16 (a, b): the decay d and the window n. Memory (c) is arithmetic: see `nitro_memory`."""

from research.claims import Cheaper
from research.experiment import Experiment, ExperimentSetting
from research.policies import CARTPOLE, TARGETS, nitro
from research.recipes import FIRST_REASONS, first_recipe

_OTHERS = (
    nitro("decay_93", "Nitro, d = 0.93", decay=0.93),
    nitro("decay_99", "Nitro, d = 0.99", decay=0.99),
    nitro("window_3", "Nitro, n = 3", window=3),
    nitro("window_10", "Nitro, n = 10", window=10),
)

_AGAIN = nitro("nitro_again", "Nitro again, other seeds", again_of="nitro")


def _against(other: str, environment: str, *, alike: bool = False) -> Cheaper:
    return Cheaper(
        arm="nitro",
        at="functions_paper",
        against=(other,),
        against_at="functions_paper",
        environments=(environment,),
        label="L",
        alike=alike,
        repeats=() if alike else ("nitro-16ab",),
    )


EXPERIMENT = Experiment(
    title="Nitro: its decay and its window",
    question="Is the decay of 0.96 with a window of 6 the cheapest way to the target?",
    oracle="The arm with the paper's own values is that of `nitro_rewards_fast`, and is run once for both.",
    can_claim="CartPole, 10 seeds: differences of about a third. Hopper, 3 seeds: nothing at 95 %, only the order.",
    base=first_recipe(learning_rate=3e-4),
    paper="nitro",
    reasons=FIRST_REASONS,
    arms=(nitro(home="nitro_rewards_fast"), *_OTHERS, _AGAIN),
    settings=(
        ExperimentSetting(environment="CartPole-v1", seeds=tuple(range(10)), changes=CARTPOLE),
        ExperimentSetting(
            environment="Hopper-v5", seeds=tuple(range(3)), arms=("nitro", *(arm.name for arm in _OTHERS))
        ),
    ),
    targets=TARGETS,
    pricing_targets=("functions_paper", "functions_starling", "machine"),
    claims=(
        *(
            _against(other.name, environment)
            for environment in ("CartPole-v1", "Hopper-v5")
            for other in _OTHERS
        ),
        _against(_AGAIN.name, "CartPole-v1", alike=True),
    ),
    beside=(
        "Nitro, on Hopper: reward stops growing at d = 0.96 while cost goes on; a longer window means fewer"
        " actors, less cost and less reward, and 6 is the best trade. A decay caps what any score can ask for:"
        " at 0.93 no round after the 28th can be boosted at all, whatever R says; at 0.96 none after the 51st,"
        " at 0.99 all can."
    ),
)
