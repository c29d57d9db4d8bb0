"""Whether a target asks for skill: at least half of the way from the untrained policy to a reference arm.

Both are measured by an experiment of pilots, on seeds that no other experiment has; its arm is in no claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from research.claims import Meter
from research.experiment import Experiment, find_experiment
from research.runs.run_file import Row, run_file

_LAST_READINGS = 5
_HALF = 0.5


class Span(NamedTuple):
    """What the untrained policy scores on each pilot seed, and the reference arm's last readings on average."""

    untrained: tuple[float, ...]
    reference: float

    @property
    def least(self) -> float:
        """The lowest target that asks for skill."""
        floor = float(np.mean(self.untrained))
        return floor + _HALF * (self.reference - floor)

    def allows(self, target: float) -> bool:
        """Whether it is far enough, and no pilot's untrained policy is there already."""
        return self.least <= target and max(self.untrained) < target


def spans(data: Path, meter: Meter, name: str = "pilots") -> dict[str, Span]:
    """The spans of environments whose pilots are complete, from the project or the `papers` folder of the data. The
    reference is the first arm of the experiment `name`. Runs that were stored without their first rounds say nothing
    of the untrained policy in training.
    """
    pilots = find_experiment(name)
    reference = pilots.arms[0].name
    found: dict[str, Span] = {}
    for setting in pilots.settings:
        cells = [
            cell
            for cell in pilots.cells()
            if (cell.arm, cell.environment) == (reference, setting.environment)
        ]
        files = [run_file(pilots, data / "papers" / name, cell) for cell in cells]
        if all(file.complete for file in files):
            rows = [file.rows() for file in files]
            if meter == "training" and not all(map(_begins_with_round_1, rows)):
                continue
            found[setting.environment] = Span(
                tuple(_untrained(row, meter) for row in rows),
                float(np.mean([_reference(row, meter) for row in rows])),
            )
    return found


def _begins_with_round_1(rows: Sequence[Row]) -> bool:
    return next((row["round"] == 1 for row in rows if row["kind"] == "round"), False)


def _untrained(rows: Sequence[Row], meter: Meter) -> float:
    """Of the policy before its first update: its own evaluation, or the first round's training episodes."""
    if meter == "evaluation":
        return float(np.mean(next(row["returns"] for row in rows if row["kind"] == "untrained")))
    return next(
        float(row["episode_return_mean"]) for row in rows if row["kind"] == "round" and row["episodes"]
    )


def _reference(rows: Sequence[Row], meter: Meter) -> float:
    if meter == "evaluation":
        readings = [row["return_mean"] for row in rows if row["kind"] == "evaluation"]
    else:
        readings = [row["episode_return_mean"] for row in rows if row["kind"] == "round" and row["episodes"]]
    return float(np.mean(readings[-_LAST_READINGS:]))


def first_readings(runs: Iterable[tuple[str, Sequence[Row]]]) -> dict[str, list[float]]:
    """The first training returns of these runs by environment: those of policies that are next to untrained."""
    readings: dict[str, list[float]] = {}
    for environment, rows in runs:
        if any(row["kind"] == "round" and row.get("episodes") for row in rows):
            readings.setdefault(environment, []).append(_untrained(rows, "training"))
    return readings


def target_rows(
    experiment: Experiment, data: Path, readings: Mapping[str, Sequence[float]] | None = None
) -> list[dict[str, Any]]:
    """Each target of the experiment beside its span; None where the pilots of its environment are not complete. Then
    the judged runs' own first `readings` still say whether a policy that is next to untrained is there already.
    """
    rows = []
    for meter, targets in targets_by_meter(experiment):
        measured = spans(data, meter, experiment.pilots) if targets else {}
        for environment, target in targets.items():
            span = measured.get(environment)
            untrained = span.untrained if span is not None else ()
            if span is None and meter == "training":
                untrained = tuple((readings or {}).get(environment, ()))
            skilled = None if span is None else span.allows(target)
            if span is None and untrained and max(untrained) >= target:
                skilled = False
            rows.append(
                {
                    "environment": environment,
                    "meter": meter,
                    "target": target,
                    "untrained": float(np.mean(untrained)) if untrained else None,
                    "reference": None if span is None else span.reference,
                    "least": None if span is None else span.least,
                    "skilled": skilled,
                }
            )
    return rows


def add_skill(verdicts: Iterable[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> None:
    """Begin the reason of each verdict about a target with what is known against that target."""
    for verdict in verdicts:
        claim = verdict.get("asked", {})
        if claim.get("until") != "target" or verdict["verdict"] == "open":
            continue
        here = [
            row
            for row in rows
            if row["environment"] in claim["environments"]
            and row["meter"] == claim["meter"]
            and not row["skilled"]
        ]
        turns, rest = _parted(verdict["reason"])
        verdict["reason"] = " ".join(filter(None, (turns, *_doubts(here), rest)))


def _parted(reason: str) -> tuple[str, str]:
    """What makes the claim untestable or late, and what turns or undoes the verdict, stays first."""
    first, rest = "", reason
    while rest.startswith(("Not testable", "It was declared", "Its sign turns", "It is not decided")):
        sentence, _, rest = rest.partition(". ")
        first = f"{first} {sentence.rstrip('.')}.".strip()
    return first, rest


def _doubts(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    def score(row: dict[str, Any]) -> str:
        if row["untrained"] is None:
            return f"{row['environment']} not measured"
        figures = f"{row['untrained']:,.0f} of {row['target']:,.0f}".replace("-", "−")
        return f"{row['environment']} {figures}"

    low = [row for row in rows if row["skilled"] is False]
    unknown = [row for row in rows if row["skilled"] is None]
    if low:
        yield f"The target asks for little or no skill; first readings: {', '.join(map(score, low))}."
    if unknown:
        yield f"No pilots say whether the target asks for skill; first readings: {', '.join(map(score, unknown))}."


def why_not_skilled(experiment: Experiment, data: Path) -> str:
    """Why the experiment may not run: a target that asks for no skill, or one that no pilot measured. Else empty."""
    for row in target_rows(experiment, data):
        where = f"{row['environment']}'s target of {row['target']:g}"
        if row["least"] is None:
            return f"{where} has no complete pilots: `manage.py papers run {experiment.pilots}` comes first."
        if not row["skilled"]:
            return (
                f"{where} asks for too little: the untrained policy scores {row['untrained']:,.1f} and the reference"
                f" {row['reference']:,.1f}, so that a target must be {row['least']:,.1f} or more."
            )
    return ""


def targets_by_meter(experiment: Experiment) -> list[tuple[Meter, dict[str, float]]]:
    """Targets by meter, of environments that the experiment runs."""
    run = {setting.environment for setting in experiment.settings}
    meters: list[tuple[Meter, dict[str, float]]] = [
        ("evaluation", experiment.targets),
        ("training", experiment.training_targets),
    ]
    return [
        (meter, {name: value for name, value in targets.items() if name in run}) for meter, targets in meters
    ]
