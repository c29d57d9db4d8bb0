"""The scaling policies of the two papers, their comparators and controls, as arms that experiments share.

A control does everything that Nitro does and ignores what it measures: what Nitro gains over the controls is what the
Hessian is worth, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from research.claims import Better, Cheaper
from research.experiment import Arm

GRID = (8, 16, 32)

# Declared before any run. The released code's own targets (Humanoid 1000) are out of reach in 50 rounds.
TARGETS = {
    "CartPole-v1": 195.0,
    "Hopper-v5": 600.0,
    "Walker2d-v5": 1000.0,
    "HalfCheetah-v5": 1000.0,
    "Humanoid-v5": 450.0,
}
# By the papers' own meter: half of what 16 fixed actors gain in 50 rounds at 3e-4, from their first three rounds to
# their last five, on seeds 0 to 2. Chosen when these had shown that most of the targets above are beyond 50 rounds.
TRAINING_TARGETS = {
    "Hopper-v5": 170.0,
    "Walker2d-v5": 150.0,
    "HalfCheetah-v5": -290.0,
    "Humanoid-v5": 190.0,
}
# CartPole in the same proportions, small enough for many seeds: 16 actors × 16 steps.
CARTPOLE: dict[str, Any] = {
    "training": {
        "algorithm": {"learning_rate": 1e-3},
        "network": {"hidden": [64, 64]},
        "rollout": {"steps_per_call": 16},
        "evaluation": {"episodes": 5},
    }
}


def scaled(name: str, title: str, home: str = "", again_of: str = "", **scaling: Any) -> Arm:
    return Arm(
        name=name,
        title=title,
        changes={"training": {"scaling": scaling}},
        home=home,
        again_of=again_of,
    )


def fixed(actors: int, home: str = "") -> Arm:
    return scaled(f"fixed_{actors}", f"fixed at {actors}", home, kind="fixed", actors=actors)


def nitro(name: str = "nitro", title: str = "Nitro", home: str = "", **fields: Any) -> Arm:
    return scaled(name, title, home, kind="boosting", **fields)


HEADLINE = (
    nitro(),
    *(fixed(actors) for actors in GRID),
    Arm(name="nitro_spending", title="Nitro's spending, largest first", spends_like="nitro"),
)
CONTROLS = (
    nitro("nitro_shuffled", "Nitro with R of a random round", signal="shuffled"),
    nitro("nitro_flipped", "Nitro with the sign flipped", signal="flipped"),
    nitro("nitro_constant", "Nitro with R held constant", signal="constant"),
    scaled("fixed_16_again", "fixed at 16 again, other seeds", again_of="fixed_16", kind="fixed", actors=16),
)
COMPARATORS = (
    nitro("nitro_released", "Nitro by its released code", rule="released"),
    scaled("kungfu", "KungFu, in proportion", kind="noise_scale"),
    scaled("kungfu_released", "KungFu as released with Nitro", kind="noise_scale", rule="released"),
    scaled("hydrozoa", "Hydrozoa's doubling", kind="doubling"),
    fixed(64).model_copy(update={"name": "minions_max", "title": "MinionsRL-Max: always 64"}),
    scaled("ramp_up", "ramp from 8 to 24", kind="ramp", actors_first=8, actors_last=24),
    scaled("ramp_down", "ramp from 24 to 8", kind="ramp", actors_first=24, actors_last=8),
    scaled("random", "random from 8 to 24", kind="chance", actors_min=8, actors_max=24),
)


FLOOR = nitro("nitro_floor", "the released code's floor, no Hessian", rule="released", signal="constant")

RELEASED_LOSS = nitro(
    "nitro_released_loss",
    "Nitro by its released code, Hessian of its whole loss",
    rule="released",
    curvature={"objective": "total_loss"},
)


def released_claims(environment: str) -> tuple[Cheaper, ...]:
    """Whether the released rule is worth more than its hidden floor of 64 · 0.96^(k²), which knows nothing of R, and
    more with the paper's Hessian than with its own.
    """
    return tuple(
        Cheaper(
            arm="nitro_released",
            at="functions_paper",
            against=(other.name,),
            against_at="functions_paper",
            environments=(environment,),
            label="L",
        )
        for other in (FLOOR, RELEASED_LOSS)
    )


# The dynamic ones of Nitro's figure 15.
_SCALERS = ("kungfu", "kungfu_released", "hydrozoa", "minions_max")


def impact(name: str, title: str, **scaling: Any) -> Arm:
    """IMPACT as the papers run it: one pass, asynchronous."""
    algorithm = {
        "kind": "impact",
        "learning_rate": 5e-4,
        "discount": 0.99,
        "clip": 0.4,
        "entropy_coefficient": 0.01,
        "epochs": 1,
        "minibatch_size": 256,
    }
    training = {"algorithm": algorithm, "loop": {"kind": "asynchronous"}, "scaling": scaling}
    return Arm(name=name, title=title, changes={"training": training})


IMPACT_NOTE = (
    " IMPACT here is not tuned to the papers' code: gradients are clipped at a joint norm of 0.5 (there 40), λ is 0.95"
    " (there 1), the learning rate falls, and four batches are used twice. Stored runs also leave V-trace's λ out of"
    " their advantages. Verdicts against IMPACT are about this one, and may turn with a better one."
)

IMPACTS = (
    impact("impact_nitro", "IMPACT with Nitro", kind="boosting"),
    impact("impact_16", "IMPACT, fixed at 16", kind="fixed", actors=16),
)
# As many steps of the optimiser in a round of 16 × 16 samples as in one of 16 × 256.
IMPACT_ON_CARTPOLE = {
    arm.name: {"training": {"algorithm": {"minibatch_size": 16, "learning_rate": 1e-3}}} for arm in IMPACTS
}


def adapt(target: float, most: int = 64) -> dict[str, Any]:
    """MinionsRL-Adapt for an environment's target, as changes of a setting would hold it."""
    return {"kind": "reward_ratio", "actors_max": most, "target_return": target}


def by_training(claims: Iterable[Cheaper | Better]) -> Iterator[Cheaper | Better]:
    """The same claims by the meter of training episodes. None is primary."""
    for claim in claims:
        changes: dict[str, Any] = {"meter": "training", "repeats": (), "declared": "later than the others"}
        if isinstance(claim, Cheaper):
            changes["primary"] = False
        yield claim.model_copy(update=changes)


def nitro_claims(
    environments: tuple[str, ...], *, few: bool, primary: bool = False
) -> tuple[Cheaper | Better, ...]:
    """The claims about Nitro there; `few`: only about the headline arms. `primary`: the first one is the experiment's
    one question.
    """

    def against(name: str, **fields: Any) -> Cheaper:
        shared = {
            "at": "functions_paper",
            "against": (name,),
            "against_at": "functions_paper",
            "label": "L",
            "environments": environments,
        }
        return Cheaper(arm="nitro", **{**shared, **fields})

    claims: list[Cheaper | Better] = [
        against(
            "fixed_16",
            against_at="cluster_paper",
            label="T",
            primary=primary,
            over_draws=True,
            paper="up to −29 % against PPO on its cluster.",
            paper_value=0.71,
            repeats=("nitro-14",),
        ),
        against(
            "fixed_16",
            at="functions_starling",
            against_at="cluster_starling",
            label="T",
            over_draws=True,
            repeats=("nitro-14",),
        ),
        against(
            "fixed_16",
            against_at="cluster_paper",
            label="B",
            accounting="paper",
            paper="up to −29 %.",
            paper_value=0.71,
            repeats=("nitro-12", "nitro-14"),
        ),
        against(
            "fixed_16",
            against_at="cluster_paper",
            label="T",
            measure="seconds",
            repeats=("nitro-10", "nitro-12"),
        ),
        against("fixed_16", at="functions_cpu", against_at="machine", label="B", over_draws=True),
        Cheaper(
            arm="fixed_16",
            at="functions_cpu",
            against=("fixed_16",),
            against_at="machine",
            environments=environments,
            label="B",
        ),
        against("fixed_16", repeats=("nitro-17",)),
        against(
            "nitro",
            against_at="cluster_paper",
            label="T",
            paper="needs both (ablation, figure 17).",
            repeats=("nitro-17",),
        ),
        against("nitro_spending"),
        Cheaper(
            arm="nitro",
            at="functions_paper",
            against=tuple(f"fixed_{actors}" for actors in GRID),
            against_at="functions_paper",
            environments=environments,
            label="L",
        ),
        Better(
            arm="nitro",
            at="functions_paper",
            against=("fixed_16",),
            against_at="cluster_paper",
            environments=environments,
            paper="up to 5 × the final reward of PPO.",
            repeats=("nitro-10", "nitro-12"),
        ),
        Better(
            arm="nitro",
            at="functions_paper",
            against=("nitro_spending",),
            against_at="functions_paper",
            environments=environments,
        ),
    ]
    if not few:
        claims += [against(arm.name) for arm in CONTROLS[:3]]
        claims += [
            against(arm.name, repeats=("nitro-15",) if arm.name in _SCALERS else ()) for arm in COMPARATORS
        ]
        claims += _of_impact(environments)
        claims.append(
            Cheaper(
                arm="fixed_16",
                at="functions_paper",
                against=("fixed_16_again",),
                against_at="functions_paper",
                environments=environments,
                label="L",
                alike=True,
            )
        )
    return tuple(claims)


def _of_impact(environments: tuple[str, ...]) -> list[Cheaper | Better]:
    """Nitro on IMPACT against IMPACT on its cluster, by the full bill and as the paper counts."""
    sides = {
        "arm": "impact_nitro",
        "at": "functions_paper",
        "against": ("impact_16",),
        "against_at": "cluster_paper",
        "environments": environments,
    }
    shared = {**sides, "paper": "up to −42 % against IMPACT on its cluster.", "paper_value": 0.58}
    figures = ("nitro-11", "nitro-14")
    return [
        Cheaper.model_validate({**shared, "label": "T", "repeats": figures}),
        Cheaper.model_validate({**shared, "label": "B", "accounting": "paper", "repeats": figures}),
        Better.model_validate(
            {**sides, "paper": "up to 3 × the final reward of IMPACT.", "repeats": ("nitro-11",)}
        ),
    ]


NITRO_PRICING_TARGETS = (
    "functions_paper",
    "functions_starling",
    "functions_cpu",
    "cluster_paper",
    "cluster_starling",
    "machine",
    "machine_spot",
)
