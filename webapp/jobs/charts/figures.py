"""The figures of a round that charts show, by name: one row each, read from the stored report of the round."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from training.tasks.kinds import declaration_of
from training.tasks.reinforcement import ReinforcementLearning
from training.tasks.score import Score
from training.tasks.supervised import SupervisedLearning
from training.tasks.training import TrainingFacts

USD = 10**12
Report = Mapping[str, Any]
Read = Callable[[Report], float | None]

_HESSIAN_PRODUCT_PER_GRADIENT = 2.0
"""A Hessian-vector product is a gradient of a gradient: twice the work of the gradient itself."""


def _part(report: Report, key: str) -> Mapping[str, Any]:
    return report.get(key) or {}


def _update(key: str) -> Read:
    return lambda report: _part(report, "update").get(key)


def _collecting(key: str) -> Read:
    """Divide the round's collection time in proportion to the seconds that its calls took for each part."""

    def read(report: Report) -> float | None:
        parts = _seconds_of_calls(report)
        whole = sum(parts.values())
        if not whole:
            return report["collect_s"] if key == "rollout_s" else 0.0
        return float(report["collect_s"] * parts.get(key, 0.0) / whole)

    return read


def _seconds_of_calls(report: Report) -> dict[str, float]:
    """Return what the calls of a round took: rollouts as a whole, and calls that learn from data by what they did."""
    usage = _part(report, "usage")
    startup, run, transfer = (usage.get(key) or 0.0 for key in ("startup_s", "run_s", "transfer_s"))
    learned = {part: usage.get(part) or 0.0 for part in ("fetch_s", "compute_s", "push_s")}
    if not any(learned.values()):
        return {"startup_s": startup, "rollout_s": run, "transfer_s": transfer}
    return {"startup_s": startup, **learned, "transfer_s": max(0.0, run + transfer - sum(learned.values()))}


def _detector_share(report: Report) -> float:
    work = _part(report, "learner_usage")
    products = _HESSIAN_PRODUCT_PER_GRADIENT * (work.get("hessian_products") or 0)
    return float(products / (products + (work.get("minibatches") or 0))) if products else 0.0


SPENT = ("payload__report__spend__spent_picodollars", "payload__report__spend__accrued_picodollars")
"""Where a stored round has what was booked by its end, and the rent until then that is not booked yet."""


def spent_picodollars(booked: int | None, accrued: int | None) -> int | None:
    """Return what a job has spent by the end of a round; None for a round without a record of it."""
    return None if booked is None else booked + (accrued or 0)


def spent_usd(report: Report) -> float | None:
    spend = _part(report, "spend")
    spent = spent_picodollars(spend.get("spent_picodollars"), spend.get("accrued_picodollars"))
    return None if spent is None else spent / USD


SCORE = "payload__report__episode_return_mean"
"""Where a stored round has its score, whatever its kind of training."""

AXES: dict[str, Read] = {
    "round": lambda report: report["round_no"],
    "steps": lambda report: report["total_env_steps"],
    "platform_s": lambda report: report["started_s"] + report["total_s"],
    "spent_usd": spent_usd,
}
"""The horizontal axes of every chart, beside this machine's clock (`wall_s`)."""


@dataclass(frozen=True)
class ChartPanel:
    """A chart of a job's page: its heading, and its text while it is empty.

    `legend`, `words` and `from_zero` belong to a chart of one line: its name in the legend, the function of
    static/js/format.js that writes its values, and whether its axis begins at zero. Other kinds have a recipe
    in static/js/charts/panels.js. `sentence` names the part of the job's header below the chart.
    """

    title: str
    legend: str = ""
    nothing: str = ""
    group: str = "run"
    words: Literal["figures", "score"] = "figures"
    from_zero: bool = False
    shown_for: Literal["all", "known", "positive"] = "all"
    """When the chart appears: at once, when a value is known, or when one is above zero."""
    wide: bool = False
    sentence: str = ""
    training: str = ""
    """The kind of training that has this chart; empty: every kind."""
    score: Score | None = None
    """Of the chart of the score: what a job of this kind declares."""


class ChartLine(NamedTuple):
    """A figure drawn as a line. A point of several rounds has the last value, the minimum and the maximum.

    `tag` is its TensorBoard name, as other libraries use it. One about `money` is shown on shared pages only by links
    made with it.
    """

    tag: str
    read: Read
    panel: ChartPanel | None = None
    money: bool = False


def _gradients(key: str) -> Read:
    """Read a figure of learners that compute gradients; None in rounds without any."""
    return lambda report: _part(report, "gradients").get(key)


def _dropped(report: Report) -> float | None:
    dropped = _part(report, "gradients").get("dropped")
    return None if dropped is None else sum(dropped.values())


def _learners(title: str, legend: str) -> ChartPanel:
    return _health(title, legend, from_zero=True, shown_for="known", training="", group="learners")


def _health(title: str, legend: str, **look: Any) -> ChartPanel:
    look.setdefault("training", ReinforcementLearning.kind)
    look.setdefault("group", "health")
    return ChartPanel(title, legend, nothing="No update yet.", **look)


# A new figure is one row here: its chart on the page, its live values and its curve in TensorBoard come with it.
LINES: dict[str, ChartLine] = {
    "return": ChartLine("rollout/ep_rew_mean", lambda report: report["episode_return_mean"]),
    "length": ChartLine(
        "rollout/ep_len_mean",
        lambda report: report.get("episode_length_mean"),
        ChartPanel(
            "Episode length",
            "Steps an episode",
            training=ReinforcementLearning.kind,
            nothing="No episode has ended yet.",
            words="score",
            from_zero=True,
        ),
    ),
    "actors": ChartLine("functions/actors", lambda report: report["actors"]),
    "kl": ChartLine("train/approx_kl", _update("approximate_kl"), _health("KL divergence", "KL")),
    "entropy": ChartLine("train/entropy", _update("entropy"), _health("Entropy", "Entropy")),
    "clip_fraction": ChartLine(
        "train/clip_fraction", _update("clip_fraction"), _health("Clip fraction", "Clipped", from_zero=True)
    ),
    "explained_variance": ChartLine(
        "train/explained_variance", _update("explained_variance"), _health("Explained variance", "Explained")
    ),
    "gradient_norm": ChartLine(
        "train/gradient_norm", _update("gradient_norm"), _health("Gradient norm", "Norm", from_zero=True)
    ),
    "policy_gradient_norm": ChartLine(
        "train/policy_gradient_norm",
        _update("policy_gradient_norm"),
        _health("Gradient norm, policy", "Norm", from_zero=True, shown_for="known"),
    ),
    "critic_gradient_norm": ChartLine(
        "train/critic_gradient_norm",
        _update("critic_gradient_norm"),
        _health("Gradient norm, critic", "Norm", from_zero=True, shown_for="known"),
    ),
    "value_loss": ChartLine(
        "train/value_loss", _update("value_loss"), _health("Value loss", "Loss", from_zero=True)
    ),
    "staleness": ChartLine(
        "train/staleness_mean",
        lambda report: report.get("staleness_mean"),
        _health("Age of data", "Versions behind", from_zero=True, shown_for="positive", training=""),
    ),
    "replayed_samples": ChartLine(
        "train/replayed_samples",
        lambda report: report.get("replayed_samples", 0),
        _health("Samples learned again", "Samples {a_round}", from_zero=True, shown_for="positive"),
    ),
    "memory_mb": ChartLine(
        "functions/memory_mb",
        lambda report: report.get("memory_mb") or None,
        ChartPanel("Memory of a function", "MB", from_zero=True, shown_for="known"),
    ),
    "pushed_mb": ChartLine(
        "functions/pushed_mb",
        lambda report: report["pushed_bytes"] / 1e6 if "pushed_bytes" in report else None,
        _health("Pushed by functions", "MB an epoch", from_zero=True, training=SupervisedLearning.kind),
    ),
    "staleness_most": ChartLine(
        "train/staleness_most",
        lambda report: report.get("staleness_most"),
        _health("Oldest push", "Versions behind", from_zero=True, training=SupervisedLearning.kind),
    ),
    "curvature": ChartLine(
        "scaling/curvature_ratio",
        lambda report: _part(report, "curvature").get("ratio"),
        _health("Curvature R", "R", shown_for="known"),
    ),
    "noise_scale": ChartLine(
        "scaling/noise_scale",
        lambda report: _part(report, "noise_scale").get("scale"),
        _health("Gradient noise scale", "Scale", from_zero=True, shown_for="known"),
    ),
    "policy_shift": ChartLine(
        "scaling/policy_shift",
        lambda report: report.get("policy_shift"),
        _health("Policy shift", "Shift", from_zero=True, shown_for="known"),
    ),
    "gradient_staleness": ChartLine(
        "gradients/staleness_mean",
        _gradients("staleness_mean"),
        _health("Gradients behind", "", shown_for="known", training="", group="learners"),
    ),
    "gradient_staleness_least": ChartLine("gradients/staleness_least", _gradients("staleness_least")),
    "gradient_staleness_most": ChartLine("gradients/staleness_most", _gradients("staleness_most")),
    "staleness_bound": ChartLine("gradients/staleness_bound", _gradients("bound")),
    "learners_busy": ChartLine(
        "gradients/learners_busy",
        _gradients("learners_busy"),
        _learners("Learners in flight", "Mean of the {round}"),
    ),
    "actors_busy": ChartLine(
        "gradients/actors_busy",
        _gradients("actors_busy"),
        _learners("{Actors} in flight", "Mean of the {round}"),
    ),
    "starved_share": ChartLine(
        "gradients/starved_share",
        _gradients("starved_share"),
        _learners("Learners without data", "Share of their time"),
    ),
    "gradient_queue": ChartLine(
        "gradients/queue_mean", _gradients("queue_mean"), _learners("Gradients in the queue", "Gradients")
    ),
    "held_share": ChartLine(
        "gradients/held_share", _gradients("held_share"), _learners("Gradients held", "Share held")
    ),
    "steps_a_round": ChartLine(
        "gradients/steps", _gradients("steps"), _learners("Steps {a_round}", "Steps of the optimiser")
    ),
    "ratio_mean": ChartLine(
        "gradients/ratio_mean", _gradients("ratio_mean"), _learners("Truncated ratio", "Mean ratio")
    ),
    "effective_share": ChartLine(
        "gradients/effective_share",
        _gradients("effective_share"),
        _learners("Effective sample size", "Share of the samples"),
    ),
    "dropped_gradients": ChartLine("gradients/dropped", _dropped),
}
"""In the order of packed rounds. After a new figure, older rounds are read from their reports."""

_OWN = {
    "return": ChartPanel("Return", nothing="The first {round} has not ended yet.", wide=True),
    "actors": ChartPanel(
        "{Actors}", legend="{Actors}", nothing="No {actors} have worked yet.", sentence="plan"
    ),
    "spend": ChartPanel("Spend", nothing="Nothing has been spent yet.", sentence="burn"),
    "round_time": ChartPanel("Where {a_round} goes", nothing="The first {round} has not ended yet."),
}
"""Charts with recipes of their own."""

_ALL = _OWN | {name: line.panel for name, line in LINES.items() if line.panel is not None}
PANELS = {
    group: {name: panel for name, panel in _ALL.items() if panel.group == group}
    for group in ("run", "learners", "health")
}
"""The charts of a job's page by group, in order."""


def panels_of(training: TrainingFacts) -> dict[str, dict[str, ChartPanel]]:
    """Return the charts of a training of this kind, in its words. The first is named after its score."""
    say = declaration_of(training.kind).say
    return {
        group: {
            name: replace(
                panel,
                title=training.score.name.capitalize() if name == "return" else say(panel.title),
                legend=say(panel.legend),
                nothing=say(panel.nothing),
                score=training.score if name == "return" else panel.score,
            )
            for name, panel in panels.items()
            if panel.training in {"", training.kind}
        }
        for group, panels in PANELS.items()
    }


PARTS: dict[str, Read] = {
    "startup_s": _collecting("startup_s"),
    "rollout_s": _collecting("rollout_s"),
    "fetch_s": _collecting("fetch_s"),
    "compute_s": _collecting("compute_s"),
    "push_s": _collecting("push_s"),
    "transfer_s": _collecting("transfer_s"),
    "update_s": lambda report: report["update_s"] * (1.0 - _detector_share(report)),
    "detector_s": lambda report: report["update_s"] * _detector_share(report),
    "idle_s": lambda report: max(0.0, report["total_s"] - report["collect_s"] - report["update_s"]),
    "cost_usd": lambda report: report["cost_picodollars"] / USD,
    "failed_calls": lambda report: report["failed_calls"],
    "cold_starts": lambda report: report["cold_starts"],
}
"""Amounts of single rounds: a point of several rounds shows their mean."""

READERS: dict[str, Read] = {**AXES, **{name: line.read for name, line in LINES.items()}, **PARTS}
WALL = "wall_s"
NAMES = (*AXES, WALL, *LINES, *PARTS)

PACKED = ("at_s", *READERS)
"""The values of a packed round, one double each: its time, and every figure."""
PACKING = zlib.crc32(",".join(PACKED).encode()) & 0x7FFFFFFF
"""The layout of packed rounds. A round with another layout is read from its report."""
_PACK = struct.Struct(f"<{len(PACKED)}d")


def point_of(report: Report, wall_s: float) -> dict[str, float | None]:
    """Return every column's known value for one round, for live pages."""
    values = {name: read(report) for name, read in READERS.items()}
    values[WALL] = wall_s
    return {name: significant(value) for name, value in values.items() if value is not None}


def packed(report: Report, at: datetime) -> bytes:
    """Return every figure of a round as bytes: a long run is read many times faster than from its reports."""
    values = (read(report) for read in READERS.values())
    return _PACK.pack(at.timestamp(), *(math.nan if value is None else value for value in values))


def unpacked(rounds: Iterable[bytes]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns of PACKED of these rounds."""
    matrix = np.frombuffer(b"".join(rounds), dtype="<f8").reshape(-1, len(PACKED))
    return dict(zip(PACKED, matrix.T, strict=True))


def significant(value: float, digits: int = 6) -> float:
    """Round to the digits a screen can show; whole numbers stay exact."""
    return value if value == int(value) else float(f"{value:.{digits}g}")
