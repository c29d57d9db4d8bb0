"""The papers' hyperparameters as data, and how a recipe of ours differs from them.

P: the paper's text. S: its slides. C: its released code, with the defaults of the library that it runs (RLlib). Where a
paper and its code say different things, the table has what the code runs, as that made the paper's figures; but
Stellaris' own rules are the paper's, as its code's weights are 1 for every gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from training.base_model import FrozenModel

Paper = Literal["nitro", "minionsrl", "stellaris"]


class PaperHyperparameter(NamedTuple):
    """A hyperparameter by its path in a training's spec, with the paper's value and where that is written."""

    path: str
    value: Any
    source: str


class HyperparameterDifference(FrozenModel):
    """A hyperparameter that a recipe of ours does not share with the paper, and why."""

    path: str
    paper: str
    ours: str
    source: str
    reason: str


_RLLIB = "C, RLlib's default"
_PPO: tuple[PaperHyperparameter, ...] = (
    PaperHyperparameter("algorithm.kind", "ppo", "P"),
    PaperHyperparameter("algorithm.learning_rate", 5e-5, "P, table 1"),
    PaperHyperparameter("algorithm.learning_rate_decay", False, _RLLIB),
    PaperHyperparameter("algorithm.discount", 0.99, "P, table 1"),
    PaperHyperparameter("algorithm.trace_decay", 1.0, _RLLIB),
    PaperHyperparameter("algorithm.clip", 0.3, "P, table 1"),
    PaperHyperparameter("algorithm.clip_decay", False, _RLLIB),
    PaperHyperparameter("algorithm.epochs", 30, _RLLIB),
    PaperHyperparameter("algorithm.value_coefficient", 1.0, "P, table 1"),
    PaperHyperparameter("algorithm.value_clip", 10.0, _RLLIB),
    PaperHyperparameter("algorithm.value_error", "clamped_square", _RLLIB),
    PaperHyperparameter("algorithm.kl_coefficient", 0.2, "P, table 1"),
    PaperHyperparameter("algorithm.kl_target", 0.01, "P, table 1"),
    PaperHyperparameter("algorithm.target_kl", None, _RLLIB),
    PaperHyperparameter("algorithm.entropy_coefficient", 0.0, "P, table 1"),
    PaperHyperparameter("algorithm.gradient_clip", "none", _RLLIB),
    PaperHyperparameter("algorithm.adam_epsilon", 1e-8, "C, torch's default"),
    PaperHyperparameter("algorithm.normalise_observations", False, _RLLIB),
    PaperHyperparameter("algorithm.normalise_rewards", False, _RLLIB),
    PaperHyperparameter("algorithm.clip_rewards", False, _RLLIB),
    PaperHyperparameter("algorithm.normalise_advantages", True, _RLLIB),
    PaperHyperparameter("algorithm.recompute_advantages", False, _RLLIB),
    PaperHyperparameter("algorithm.objective", "clipped", "P"),
    PaperHyperparameter("network.kind", "mlp", "P"),
    PaperHyperparameter("network.hidden", [256, 256], "P"),
    PaperHyperparameter("network.activation", "tanh", "P"),
    PaperHyperparameter("network.shared", False, "C"),
    PaperHyperparameter("network.log_std", "state", _RLLIB),
    PaperHyperparameter("network.log_std_initial", 0.0, _RLLIB),
    PaperHyperparameter("network.orthogonal", "rows of normal weights, each of length 1", _RLLIB),
    PaperHyperparameter("loop.kind", "synchronous", "P"),
    PaperHyperparameter("rollout.environments_per_actor", 1, "C"),
)
# Stellaris' paper was not available: its code runs the library's defaults, which Nitro's runs too, but for the passes.
_STELLARIS = (
    *(row._replace(source=_RLLIB) for row in _PPO if row.path != "algorithm.epochs"),
    PaperHyperparameter("algorithm.epochs", 10, "C"),
)
TABLES: dict[Paper, tuple[PaperHyperparameter, ...]] = {
    "nitro": (
        *_PPO,
        PaperHyperparameter(
            "algorithm.minibatch_size", 16_384, "C, a whole round: at most 64 actors × 256 steps"
        ),
        PaperHyperparameter("environment.id", "Hopper-v3", "C"),
        PaperHyperparameter(
            "rollout.steps_per_call", 256, "P, figures 2 to 8, and table 1: 4,096 = 16 × 256; C has 512"
        ),
        PaperHyperparameter("stop.rounds", 50, "P"),
        PaperHyperparameter("evaluation.every_rounds", 1, "C"),
        PaperHyperparameter("evaluation.episodes", 6, "C, with the policy's own chance"),
    ),
    "minionsrl": (
        *_PPO,
        PaperHyperparameter("algorithm.minibatch_size", 256, "P"),
        PaperHyperparameter("environment.id", "Hopper-v3", "P"),
        PaperHyperparameter("rollout.steps_per_call", 2048, "P, 65,536 steps of 32 actors"),
    ),
    "stellaris": (
        *_STELLARIS,
        PaperHyperparameter("algorithm.minibatch_size", 4_096, "C, the baseline's: a whole round"),
        PaperHyperparameter("environment.id", "Hopper-v3", "C; v4 in a figure of the slides"),
        PaperHyperparameter("rollout.steps_per_call", 256, "C, 4,096 = 16 × 256"),
        PaperHyperparameter("stop.rounds", 20, "C"),
        PaperHyperparameter("evaluation.every_rounds", 1, "C"),
        PaperHyperparameter("evaluation.episodes", 10, "C"),
    ),
}
# What a policy of scaling has of its own, by its kind.
_SCALING: dict[str, tuple[PaperHyperparameter, ...]] = {
    "boosting": (
        PaperHyperparameter("scaling.decay", 0.96, "P"),
        PaperHyperparameter("scaling.window", 6, "P"),
        PaperHyperparameter("scaling.actors_min", 8, "P"),
        PaperHyperparameter("scaling.actors_max", 64, "P"),
        PaperHyperparameter("scaling.actors_first", 16, "C"),
        PaperHyperparameter("scaling.curvature.objective", "surrogate", "P"),
    ),
    "fixed": (PaperHyperparameter("scaling.actors", 16, "P, the baseline's"),),
}
# What a loop has of its own. N: a reader's note on the paper, which was not available itself.
_LOOPS: dict[str, tuple[PaperHyperparameter, ...]] = {
    "staleness_aware": (
        PaperHyperparameter("loop.kind", "staleness_aware", "S"),
        PaperHyperparameter("loop.learners", 4, "C"),
        PaperHyperparameter("loop.trajectories_per_gradient", 4, "C, slices of 1,024 samples"),
        PaperHyperparameter("loop.staleness_decay", 0.9, "C"),
        PaperHyperparameter("loop.ratio_limit", 1.0, "C"),
        PaperHyperparameter("loop.calibration", "largest", "N"),
        PaperHyperparameter("loop.weighting", "sqrt", "N"),
        PaperHyperparameter("loop.aggregation", "weigh_gradients", "N"),
        PaperHyperparameter("loop.truncation", "constant", "S and N"),
        PaperHyperparameter("loop.order", "arrival", "S"),
    ),
}
# A gradient is of its whole slice.
_WITHOUT_MINIBATCHES = frozenset({"staleness_aware"})
# Of every recipe here; an experiment gives the reasons of its own.
REASONS: dict[str, str] = {
    "environment.id": "The papers' v3 needs a MuJoCo of 2021. Gymnasium's v5 has the same bodies, and rewards that"
    " differ a little. CartPole is ours: small enough for many seeds.",
    "rollout.steps_per_call": "Shorter than the paper's, so that a run takes minutes on two cores.",
    "network.orthogonal": "Orthogonal, √2 in hidden layers and 0.01 in the policy's last one; RLlib's last layers are"
    " as small.",
    "evaluation.episodes": "Deterministic actions on fixed seeds, so that arms are judged on the same episodes; the"
    " final evaluation has 20.",
    "loop.aggregation": "Adam divides by a gradient's size, so that the printed factor would do next to nothing: the"
    " mean weight is the step's length instead. Under SGD that is the printed formula.",
    "evaluation.every_rounds": "A job that a person starts is judged every few rounds; experiments are after each.",
}
MINIBATCH_NOTE = (
    "RLlib standardises advantages over a whole round, we over each minibatch. They are the same where a minibatch is"
    " a round."
)


def differences(
    training: Mapping[str, Any], paper: Paper, reasons: Mapping[str, str] | None = None
) -> list[HyperparameterDifference]:
    """Return what differs from the paper's table in a training's spec, as JSON. The reason is empty where none is
    known.
    """
    known = {**REASONS, **(reasons or {})}
    loop = training["loop"]["kind"]
    own = (*_SCALING.get(training["scaling"]["kind"], ()), *_LOOPS.get(loop, ()))
    replaced = {row.path for row in own}
    if loop in _WITHOUT_MINIBATCHES:
        replaced.add("algorithm.minibatch_size")
    rows = (*(row for row in TABLES[paper] if row.path not in replaced), *own)
    listed = [
        HyperparameterDifference(
            path=row.path,
            paper=_shown(row.value),
            ours=_shown(ours),
            source=row.source,
            reason=known.get(row.path, ""),
        )
        for row in rows
        if (ours := _at(training, row.path)) != row.value
    ]
    if training["algorithm"].get("minibatch_size", 0) < 4096:
        listed.append(
            HyperparameterDifference(
                path="algorithm.normalise_advantages",
                paper="over a round",
                ours="over a minibatch",
                source=_RLLIB,
                reason=MINIBATCH_NOTE,
            )
        )
    return listed


def _at(document: Mapping[str, Any], path: str) -> Any:
    """The value there. Two fields are left out of a spec's JSON where they have their default."""
    here: Any = document
    for name in path.split("."):
        here = here.get(name, _LEFT_OUT.get(path)) if isinstance(here, Mapping) else None
    return list(here) if isinstance(here, tuple) else here


_LEFT_OUT = {"algorithm.gradient_clip": "joint", "algorithm.value_error": "half_square"}


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " × ".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"
