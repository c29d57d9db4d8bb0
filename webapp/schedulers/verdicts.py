"""Whether a trained scheduler is worth using: its real episodes beside the best fixed number that was recorded.

Both sides end at the target, so what counts is what they took for each time that they reached it. Trials that missed it
count in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from training.scheduling.agents import AnyAgent
from webapp.formatting import display_usd, format_duration, format_score, plural
from webapp.schedulers.models import Episode, EpisodeKind, SchedulerTraining

MAY_TURN = "More episodes may turn this."

_LAST_EPISODES = 20
_FEW_EPISODES = 5


class Worth(StrEnum):
    USEFUL = "useful"
    UNCONFIRMED = "unconfirmed"
    DO_NOT_USE = "do_not_use"


class SchedulerVerdict(NamedTuple):
    worth: Worth
    sentence: str


@dataclass(frozen=True)
class Trials:
    """What trainings with one way to scale took in all. `actors` and `memory_mb` are those of a fixed plan."""

    count: int
    reached: int
    platform_s: float
    cost_picodollars: int
    actors: int = 0
    memory_mb: int | None = None

    @staticmethod
    def of(episodes: Sequence[Episode]) -> Trials:
        return Trials(
            len(episodes),
            sum(episode.reached for episode in episodes),
            sum(episode.platform_s for episode in episodes),
            sum(episode.cost_picodollars for episode in episodes),
        )

    def for_each_reached(self, objective: str) -> float:
        """Return the seconds or picodollars that each time at the target took; infinite if there was none."""
        taken = self.platform_s if objective == "time" else self.cost_picodollars
        return taken / self.reached if self.reached else float("inf")


def evidence(training: SchedulerTraining) -> dict[str, Any]:
    """Return what the agent and the best fixed plan took, as a version's facts keep it. None: no trial."""
    rows = training.episodes.defer("reports")
    judged = sorted(rows.filter(kind=EpisodeKind.JUDGED), key=lambda row: row.score or 0.0)[-1:]
    own = [*rows.filter(kind=EpisodeKind.REAL).order_by("-number")[:_LAST_EPISODES], *judged]
    fixed = _best_fixed(training)
    return {
        "own": asdict(Trials.of(own)) if own else None,
        "fixed": None if fixed is None else asdict(fixed),
    }


def _best_fixed(training: SchedulerTraining) -> Trials | None:
    """Return the fixed plan that took least for each time at this target, of all that the project recorded."""
    spec = training.parsed_spec
    target = f"training__spec__target_{spec.workload.score.name}"
    same = {"training__project": training.project_id, "training__workload_key": training.workload_key}
    rows = Episode.objects.filter(**same, kind=EpisodeKind.GRID, rounds__gt=0, **{target: spec.target})
    return min(
        _by_plan(rows.defer("reports")), key=lambda plan: plan.for_each_reached(spec.objective), default=None
    )


def _by_plan(rows: Iterable[Episode]) -> list[Trials]:
    plans: dict[tuple[int, int | None], list[Episode]] = {}
    for row in rows:
        plans.setdefault((row.actors[0], row.memory_mb[0] if row.memory_mb else None), []).append(row)
    return [
        Trials(**{**asdict(Trials.of(found)), "actors": actors, "memory_mb": memory_mb})
        for (actors, memory_mb), found in plans.items()
    ]


def verdict_of(facts: Mapping[str, Any], spec: AnyAgent) -> SchedulerVerdict:
    """Return the verdict by a training's or version's facts, and say where few episodes leave it to chance."""
    verdict = _verdict(facts, spec)
    count = (facts.get("own") or {}).get("count", facts["episodes"])
    few = verdict.worth != Worth.UNCONFIRMED and count < _FEW_EPISODES
    return verdict._replace(sentence=f"{verdict.sentence} {MAY_TURN}") if few else verdict


def _verdict(facts: Mapping[str, Any], spec: AnyAgent) -> SchedulerVerdict:
    own, fixed = (Trials(**facts[key]) if facts.get(key) else None for key in ("own", "fixed"))
    if own is None and facts["episodes"]:  # kept before there were verdicts
        own = Trials(facts["episodes"], facts["reached"], 0.0, 0)
        fixed = None
    if own is None:
        return SchedulerVerdict(Worth.UNCONFIRMED, "It only rehearsed: nothing real has confirmed it.")
    score = spec.workload.score
    goal = f"a {score.name} of {format_score(spec.target, decimals=score.decimals)}"
    reached = f"It reached {goal} in {own.reached:,} of {plural(own.count, 'real episode')}"
    if fixed is None:
        if not own.reached:
            return SchedulerVerdict(Worth.DO_NOT_USE, f"{reached}.")
        return SchedulerVerdict(
            Worth.UNCONFIRMED, f"{reached}. No fixed number was recorded to compare with."
        )
    if not fixed.reached:
        if not own.reached:
            return SchedulerVerdict(Worth.DO_NOT_USE, f"{reached}, and no recorded fixed number reached it.")
        return SchedulerVerdict(Worth.USEFUL, f"{reached}. No recorded fixed number did.")
    taken, best = (plan.for_each_reached(spec.objective) for plan in (own, fixed))
    beside = f"{_plan(fixed, spec)} took {_amount(best, spec)}"
    if not own.reached:
        return SchedulerVerdict(Worth.DO_NOT_USE, f"{reached}. {beside} to reach it.")
    sentence = f"{reached} and took {_amount(taken, spec)} for each. {beside}."
    return SchedulerVerdict(Worth.USEFUL if taken < best else Worth.DO_NOT_USE, sentence)


def _plan(fixed: Trials, spec: AnyAgent) -> str:
    memory = "" if fixed.memory_mb is None else f" of {fixed.memory_mb:,} MB"
    return f"{plural(fixed.actors, spec.unit.removesuffix('s'))}{memory} in every round"


def _amount(taken: float, spec: AnyAgent) -> str:
    return format_duration(taken) if spec.objective == "time" else f"{display_usd(round(taken))} simulated"
