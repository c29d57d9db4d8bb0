"""Nitro's figure 19: up to 128 functions against 96 fixed actors, on Hopper."""

from typing import Any

from research.claims import Better, Cheaper
from research.experiment import Experiment, ExperimentSetting, merged
from research.policies import TARGETS, fixed, nitro
from research.recipes import FIRST_REASONS, first_recipe

_MOST = 128
_SHARED: dict[str, Any] = {
    "arm": "nitro_128",
    "at": "functions_paper",
    "against": ("fixed_96",),
    "against_at": "functions_paper",
    "environments": ("Hopper-v5",),
    "repeats": ("nitro-19",),
}

EXPERIMENT = Experiment(
    title="Nitro at scale: up to 128 functions",
    question="Does boosting up to 128 actors beat 96 fixed ones, for less?",
    oracle="No round may have more than 128 actors, and 96 fixed actors sample 1,228,800 steps in 50 rounds.",
    can_claim=(
        "5 seeds: large differences only. One GPU that learns; four are not modelled. No Atari. The A/A pair is that"
        " of `nitro_rewards_fast`: a second one would take over an hour."
    ),
    base=merged(
        first_recipe(learning_rate=3e-4), {"training": {"algorithm": {"minibatch_size": _MOST * 256}}}
    ),
    paper="nitro",
    reasons=FIRST_REASONS,
    arms=(nitro("nitro_128", "Nitro, up to 128", actors_max=_MOST), fixed(96)),
    settings=(ExperimentSetting(environment="Hopper-v5", seeds=tuple(range(5))),),
    targets={"Hopper-v5": TARGETS["Hopper-v5"]},
    pricing_targets=("functions_paper", "functions_starling", "machine"),
    claims=(
        Cheaper(**_SHARED, label="L", paper="−22 % on Hopper.", paper_value=0.78),
        Better(**_SHARED, paper="2.4 × the final reward on Hopper."),
    ),
    run_s=900.0,
    beside=(
        "Nitro's figure 19: against RLlib on a p3.8xlarge and a c5.24xlarge with 96 cores, 2.4 × the reward and −22 %"
        " cost on Hopper, 2.5 × and −27 % on Qbert. Here both sides run as functions, so that the difference is the"
        " schedule's alone."
    ),
)
