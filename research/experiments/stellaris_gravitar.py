"""Stellaris from pictures: Gravitar, reduced to rounds of 256 steps, four passes and 25,600 steps in all.

The papers' convolutions have two million parameters, fourteen times those of Hopper's network, so that what a gradient
and an aggregation carry counts for more here, and so does what a sample takes on the GPU.
"""

from typing import Any

from research.claims import Cheaper, Higher, HigherInTime, NotWorse, Sooner
from research.experiment import Arm, Experiment, ExperimentSetting, merged
from research.stellaris import LEARNERS, MARGIN, PLACE, PLACES, REASONS, SEEDS, endpoint, recipe, stellaris

GRAVITAR = "ALE/Gravitar-v5"
ROUND = 256
SLICE = ROUND // LEARNERS
_ROUNDS = 100
_AS_MANY, _FEWER = ("synchronous_16",), ("synchronous_4",)
_REWARDS, _COSTS = ("stellaris-rewards",), ("stellaris-costs",)
_HERE: dict[str, Any] = {"arm": "stellaris", "environments": (GRAVITAR,)}
_PICTURES = {
    "training": {
        "algorithm": {"epochs": 4, "minibatch_size": ROUND, "clip_rewards": True},
        "network": {"kind": "cnn", "layers": "papers", "hidden": [], "shared": False},
        "rollout": {"steps_per_call": 16},
        "evaluation": {"every_rounds": 20},
    }
}


def _synchronous(name: str, title: str, **training: Any) -> Arm:
    return Arm(
        name=name,
        title=title,
        changes={"training": {"algorithm": {"minibatch_size": SLICE}, **training}},
    )


EXPERIMENT = Experiment(
    title="Stellaris on Gravitar, 25,600 steps",
    question="Do learners that are functions bring reward or time where they learn from pictures?",
    endpoint=endpoint(_ROUNDS),
    oracle=(
        "One learner of whole rounds, for which actors wait, is the synchronous loop bit for bit (an engine test)."
        " With four learners there must be 16 gradients a round, about one version behind. A synchronous round must"
        " take its 16 minibatches' time and what its networks and pictures take to read."
    ),
    can_claim=(
        "Five seeds of one game: times and dollars of a round, and a loss of skill if it were large. Nothing about"
        " skill that is won: the published score of 1,099 takes ten million steps, 400 times as many, and a random"
        " policy has about 170. Seen after the runs: so early a policy without chance scores nothing in any arm, and"
        " this endpoint tells none apart; the last 100 training episodes, which explore, stand beside it. Nothing about"
        " larger rounds: a gradient is of 64 pictures, and with more of them reading networks would count for less."
    ),
    base=merged(recipe(rounds=_ROUNDS), _PICTURES),
    paper="stellaris",
    reasons={
        **REASONS,
        "environment.id": "Gymnasium's v5, where an action is repeated by chance; its released code has no Atari.",
        "algorithm.clip_rewards": "RLlib does so on Atari.",
        "algorithm.epochs": "Reduced, so that a run takes minutes.",
        "algorithm.minibatch_size": "A whole round, as in its released code. Nitro's paper has 256 on Atari.",
        "network.kind": "The papers' three convolutions for Atari.",
        "network.hidden": "The third convolution is as large as what it sees, and nothing follows it.",
        "network.activation": "As in the papers on Atari.",
        "network.log_std": "Of no use: actions are keys.",
        "rollout.steps_per_call": "Fragments of 16 frames, as in Nitro's released code on Atari.",
        "stop.rounds": f"Rounds are a sixteenth of those on Hopper; {_ROUNDS} of them are a third of its steps.",
    },
    arms=(
        _synchronous("synchronous_16", "PPO, synchronous, 16 steps of 64 a round"),
        stellaris("stellaris", "Stellaris"),
        _synchronous(
            "synchronous_4", "PPO, synchronous, 4 steps of 256 a round", algorithm={"minibatch_size": ROUND}
        ),
        _synchronous(
            "asynchronous",
            "PPO, one asynchronous learner",
            loop={"kind": "asynchronous", "staleness_limit": 4},
        ),
        stellaris(
            "stellaris_flowing",
            "Stellaris, neither actors nor learners wait",
            actors_wait=False,
            learners_wait=False,
        ),
    ),
    settings=(ExperimentSetting(environment=GRAVITAR, seeds=SEEDS),),
    pricing_targets=PLACES,
    run_s=180.0,
    claims=(
        Higher(**_HERE, against=_AS_MANY, primary=True, repeats=_REWARDS),
        Higher(
            **_HERE,
            against=_FEWER,
            paper="up to 2.2 × the final reward.",
            paper_value=2.2,
            repeats=_REWARDS,
        ),
        *(
            NotWorse(arm="stellaris", against=against[0], environment=GRAVITAR, margin=MARGIN)
            for against in (_AS_MANY, _FEWER)
        ),
        *(
            Sooner(
                **_HERE,
                against=_FEWER,
                startup=startup,
                paper="−31 % cost against PPO, by one hourly rate: as much of the time.",
                paper_value=0.69,
                repeats=_COSTS,
            )
            for startup in (True, False)
        ),
        *(
            Sooner(**_HERE, against=against, startup=False, repeats=_REWARDS)
            for against in (_AS_MANY, ("asynchronous",))
        ),
        *(
            Sooner(**(_HERE | {"arm": "stellaris_flowing"}), against=against, startup=False, repeats=_REWARDS)
            for against in (_AS_MANY, _FEWER)
        ),
        *(
            Cheaper(
                **_HERE,
                at=PLACE,
                against=against,
                against_at=PLACE,
                label="T",
                until="end",
                over_draws=True,
                paper=paper,
                paper_value=value,
                repeats=_COSTS,
            )
            for against, paper, value in ((_FEWER, "−31 % against PPO.", 0.69), (_AS_MANY, "", None))
        ),
        *(
            HigherInTime(**_HERE, against=against, paper=paper, paper_value=value, repeats=_REWARDS)
            for against, paper, value in ((_FEWER, "up to 2.2 × the reward.", 2.2), (_AS_MANY, "", None))
        ),
    ),
    beside=(
        "The slides draw Gravitar's rewards and print no number for it. The time is the simulated cloud's: reading"
        " parameters and pictures is assumed to take the papers' software 5 ms a megabyte, as reading samples does, and"
        " an aggregation is a function that reads the learner's whole state. Pickles of eight megabytes read from a"
        " store on the same machine into torch took 2.4 ms a megabyte here. Runs whose weights depend on timing cannot"
        " be timed again elsewhere, so that their time is of the place where they were trained."
    ),
)
