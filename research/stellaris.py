"""What Stellaris' experiments share: the recipe of its released code, and its arms, comparators and controls.

All of them on the servers of its released price formula: 16 actors on one machine, and four learners that share the one
GPU of another. Such runs depend on what calls take, so that each is timed and priced where it was trained.
"""

from __future__ import annotations

from typing import Any

from research.claims import Cheaper, Declared, Higher, HigherInTime, NotWorse, Sooner, arms_in
from research.experiment import Arm, Experiment, ExperimentSetting, merged
from research.recipes import paper_recipe

HOPPER = "Hopper-v5"
WALKER = "Walker2d-v5"
HUMANOID = "Humanoid-v5"
SEEDS = tuple(range(400, 405))
ROUND = 4_096
LEARNERS = 4
SLICE = ROUND // LEARNERS
LEARNING_RATE = 5e-5
"""The released code's."""
_PASSES = 10
_BOUND = 2.0
PLACE = "stellaris_cluster_paper"
"""Where all of them are trained, and where learners that compute gradients are priced."""
PLACES = (
    PLACE,
    "stellaris_cluster_starling",
    *(f"stellaris_{testbed}_{stack}" for testbed in ("gpu", "hpc") for stack in ("paper", "starling")),
    "machine",
)
"""Where the others are priced as well: the slides' testbeds under both stacks, and one plain machine."""

ROUNDS = 20
REASONS = {
    "evaluation.every_rounds": "More seldom: an evaluation takes as long as a round, and delays actors."
}


def recipe(learning_rate: float = LEARNING_RATE, rounds: int = ROUNDS) -> dict[str, Any]:
    """PPO as the released code runs it: rounds of 4,096 steps, 10 passes, 10 steps of the optimiser a round."""
    evaluation = {"every_rounds": 4 if rounds == ROUNDS else 20, "episodes": 5}
    return merged(
        paper_recipe(learning_rate=learning_rate, epochs=_PASSES, minibatch_size=ROUND),
        {
            "training": {"evaluation": evaluation, "stop": {"rounds": rounds}},
            "platform": {"profile": "stellaris-cluster", "learner_lanes": LEARNERS},
        },
    )


def stellaris(
    name: str,
    title: str,
    *,
    algorithm: dict[str, Any] | None = None,
    home: str = "",
    again_of: str = "",
    **loop: Any,
) -> Arm:
    """Stellaris as the paper says, but for what `loop` changes: four learners, a gradient of a quarter of a round."""
    training: dict[str, Any] = {
        "loop": {
            "kind": "staleness_aware",
            "learners": LEARNERS,
            "trajectories_per_gradient": 4,
            "where": "learner",
            **loop,
        }
    }
    if algorithm is not None:
        training["algorithm"] = algorithm
    return Arm(name=name, title=title, changes={"training": training}, home=home, again_of=again_of)


def headline(home: str = "") -> tuple[Arm, ...]:
    """Stellaris, what it is compared with, and the same again. `home`: the experiment that runs them for another."""
    return (
        Arm(
            name="synchronous_40",
            title="PPO, synchronous, 40 steps of 1,024 a round",
            changes={"training": {"algorithm": {"minibatch_size": SLICE}}},
            home=home,
        ),
        stellaris("stellaris", "Stellaris", home=home),
        Arm(name="synchronous_10", title="PPO, synchronous, 10 steps of 4,096 a round", home=home),
        Arm(
            name="asynchronous",
            title="PPO, one asynchronous learner",
            changes={
                "training": {
                    "algorithm": {"minibatch_size": SLICE},
                    "loop": {"kind": "asynchronous", "staleness_limit": 4},
                }
            },
            home=home,
        ),
        stellaris(
            "stellaris_sequential",
            "Stellaris, a step for each gradient",
            home=home,
            aggregation="sequential",
        ),
        stellaris("stellaris_again", "Stellaris again, other seeds", home=home, again_of="stellaris"),
        stellaris(
            "stellaris_flowing",
            "Stellaris, neither actors nor learners wait",
            home=home,
            actors_wait=False,
            learners_wait=False,
        ),
    )


def off_policy(kind: str, learning_rate: float = LEARNING_RATE) -> dict[str, Any]:
    """IMPALA or IMPACT with PPO's numbers, and as many passes over each sample. Nothing is replayed."""
    document: dict[str, Any] = {
        "kind": kind,
        "learning_rate": learning_rate,
        "learning_rate_decay": False,
        "discount": 0.99,
        "trace_decay": 1.0,
        "epochs": _PASSES,
        "minibatch_size": SLICE,
        "value_coefficient": 1.0,
        "entropy_coefficient": 0.0,
        "gradient_clip": "none",
        "adam_epsilon": 1e-8,
    }
    if kind == "impact":
        document |= {"clip": 0.3, "replay_uses": 1, "replay_batches": 1}
    return document


_PLAIN: dict[str, Any] = {"weighting": "none", "truncation": "off"}
ABLATIONS: tuple[Arm, ...] = (
    stellaris("without_truncation", "Stellaris without truncation", truncation="off"),
    stellaris("without_weights", "Stellaris without weights", weighting="none"),
    stellaris("without_holding", "Stellaris without holding", hold=False),
    stellaris("learners_go_on", "Stellaris, learners wait for no version", learners_wait=False),
    stellaris("mean_ratio", "Stellaris, mean R' as the step's factor", truncation="mean_step"),
    stellaris("truncation_released", "Stellaris, truncation as released", truncation="released"),
    stellaris(
        "truncation_differentiated", "Stellaris, truncation differentiated", truncation="differentiated"
    ),
    stellaris(
        "released",
        "Stellaris as released",
        calibration="mean",
        weighting="released",
        aggregation="sequential",
        truncation="released",
    ),
)
COMPARATORS: tuple[Arm, ...] = (
    stellaris("purely_asynchronous", "purely asynchronous learners", hold=False, **_PLAIN),
    stellaris(
        "fixed_bound",
        "stale synchronous parallel, bound 2",
        largest_staleness=_BOUND,
        staleness_decay=1.0,
        **_PLAIN,
    ),
    stellaris(
        "decoupled",
        "purely asynchronous learners, decoupled objective",
        algorithm={"objective": "decoupled"},
        hold=False,
        **_PLAIN,
    ),
    Arm(
        name="impact",
        title="IMPACT, one asynchronous learner",
        changes={
            "training": {
                "algorithm": off_policy("impact"),
                "loop": {"kind": "asynchronous", "staleness_limit": 4},
            }
        },
    ),
    stellaris("stellaris_impact", "Stellaris on IMPACT", algorithm=off_policy("impact")),
    stellaris("stellaris_impala", "Stellaris on IMPALA", algorithm=off_policy("impala")),
)
MARGIN = 0.8
_REWARDS = ("stellaris-rewards",)
_COSTS = ("stellaris-costs",)


WHEN_ALL_HAD_RUN = "when all had run"


def claims(
    environment: str, in_time: Declared = ""
) -> tuple[Higher | HigherInTime | NotWorse | Sooner | Cheaper, ...]:
    """What is said of the headline arms there. The primary one is at as many gradients of the same size.

    `in_time`: when those about equal time were declared.
    """
    here = (environment,)
    shared: dict[str, Any] = {"arm": "stellaris", "environments": here}
    return (
        Higher(
            **shared,
            against=("synchronous_40",),
            primary=True,
            repeats=_REWARDS,
        ),
        Higher(
            **shared,
            against=("synchronous_10",),
            paper="up to 2.2 × the final reward.",
            paper_value=2.2,
            repeats=_REWARDS,
        ),
        Higher(**shared, against=("asynchronous",), repeats=_REWARDS),
        Higher(arm="stellaris_sequential", environments=here, against=("synchronous_40",), repeats=_REWARDS),
        *(
            NotWorse(arm=arm, against=against, environment=environment, margin=MARGIN)
            for arm, against in (
                ("stellaris", "synchronous_40"),
                ("stellaris", "synchronous_10"),
                ("stellaris_flowing", "synchronous_40"),
            )
        ),
        *(
            Sooner(
                **shared,
                against=("synchronous_10",),
                startup=startup,
                paper="−31 % cost against PPO, by one hourly rate: as much of the time.",
                paper_value=0.69,
                repeats=_COSTS,
            )
            for startup in (True, False)
        ),
        *(
            Sooner(**shared, against=(name,), startup=False, repeats=_REWARDS)
            for name in ("synchronous_40", "asynchronous")
        ),
        *(
            Sooner(
                arm="stellaris_flowing", environments=here, against=(name,), startup=False, repeats=_REWARDS
            )
            for name in ("synchronous_40", "synchronous_10", "asynchronous")
        ),
        *(
            Cheaper(
                **shared,
                at=PLACE,
                against=(name,),
                against_at=PLACE,
                label="T",
                until="end",
                over_draws=True,
                paper=paper,
                paper_value=value,
                repeats=_COSTS,
            )
            for name, paper, value in (
                ("synchronous_10", "−31 % against PPO.", 0.69),
                ("synchronous_40", "", None),
            )
        ),
        # Equal time is the slides' own axis.
        *(
            HigherInTime(
                **shared,
                against=(name,),
                paper=paper,
                paper_value=value,
                repeats=_REWARDS,
                declared=in_time,
            )
            for name, paper, value in (
                ("synchronous_10", "up to 2.2 × the reward.", 2.2),
                ("synchronous_40", "", None),
                ("asynchronous", "", None),
            )
        ),
        Higher(arm="stellaris", against=("stellaris_again",), environments=here, alike=True),
        Sooner(arm="stellaris", against=("stellaris_again",), environments=here, startup=False, alike=True),
    )


def ablation_claims(environment: str) -> tuple[Higher | Sooner | Cheaper, ...]:
    """Stellaris against each of its parts left out and each comparator. At equal steps all of them."""
    here = (environment,)
    whole: tuple[Higher | Sooner, ...] = tuple(
        Higher(
            arm="stellaris",
            against=(arm.name,),
            environments=here,
            primary=arm.name == "purely_asynchronous",
            repeats=("stellaris-ablation",),
        )
        for arm in (*COMPARATORS[:4], *ABLATIONS)
    )
    return (
        *whole,
        *(
            Higher(arm=arm, against=("impact",), environments=here, repeats=_REWARDS)
            for arm in ("stellaris_impact", "stellaris_impala")
        ),
        *(
            Sooner(
                arm=arm,
                against=(against,),
                environments=here,
                startup=False,
                repeats=("stellaris-ablation",),
            )
            for arm, against in (("stellaris", "without_holding"), ("learners_go_on", "stellaris"))
        ),
        # The slides' chart of costs has IMPACT too.
        Cheaper(
            arm="stellaris",
            at=PLACE,
            against=("impact",),
            against_at=PLACE,
            environments=here,
            label="T",
            until="end",
            paper="−30 % against IMPACT.",
            paper_value=0.70,
            repeats=_COSTS,
            declared=WHEN_ALL_HAD_RUN,
        ),
    )


def endpoint(rounds: int = ROUNDS) -> str:
    return (
        f"mean return of a final evaluation after {rounds} rounds: 20 episodes, deterministic, held-out seeds"
    )


ORACLE = (
    "Stellaris on other seeds must come out equal. One learner of whole rounds, for which actors wait, is the"
    " synchronous loop bit for bit (a test of the engine), so that a difference comes from staleness, weights or"
    " truncation. With four learners gradients must be about one version behind, and 40 a round."
)
CAN_CLAIM = (
    "Five seeds of one task: ratios of final reward of about 1.5 and more. Early learning only: on Hopper a return of"
    " about 220, where a million steps reach 320 to 680 by this recipe and about 2,800 by ours."
    " Not which of two similar rules is better."
    " PAR-RL is undefined in every source and is not run."
)
BESIDE = (
    "The full paper was not available: its figures are quoted from its slides and abstract. Its baseline takes 10"
    " gradients a round and Stellaris 40, so that the primary claim is against 40. Stellaris makes fewer steps of"
    " them, as gradients that wait together become one; an arm that makes a step of each stands beside it. Its code"
    " leaves start-ups, weights and samples on their way out of Stellaris' time alone, and prices both sides by one"
    " hourly rate, so that cost saved is time saved. Here both sides rent the same two machines and nothing is left"
    " out of either. The time is the simulated cloud's: each gradient is assumed to take 20 ms beside its samples and"
    " each step 5 ms, where RLlib's learner takes 50 ms once a round; these are guesses with wide ranges. At their"
    " quick ends learners that wait for nothing are done sooner than PPO with 40 gradients (`stellaris_ends`). Runs"
    " whose weights depend on timing cannot be timed again elsewhere, so that their time is of the place where they"
    " were trained. Over draws of the clouds' numbers each version is made of the gradients that it was made of there."
)


def headline_experiment(
    *,
    title: str,
    question: str,
    environment: str = HOPPER,
    learning_rate: float = LEARNING_RATE,
    rounds: int = ROUNDS,
    arms: tuple[Arm, ...] = headline(),
    can_claim: str = CAN_CLAIM,
    reasons: dict[str, str] | None = None,
    in_time: Declared = "",
) -> Experiment:
    """Stellaris against its comparators on one task: final reward, time and cost."""
    names = {arm.name for arm in arms}
    return Experiment(
        title=title,
        question=question,
        endpoint=endpoint(rounds),
        oracle=ORACLE,
        can_claim=can_claim,
        base=recipe(learning_rate, rounds),
        paper="stellaris",
        reasons={**REASONS, **(reasons or {})},
        arms=arms,
        settings=(ExperimentSetting(environment=environment, seeds=SEEDS),),
        pricing_targets=PLACES,
        run_s=3.0 * rounds,
        claims=tuple(claim for claim in claims(environment, in_time) if names.issuperset(arms_in(claim))),
        beside=BESIDE,
    )
