"""Texts about schedulers and their trainings, for pages and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from training.rl.environments import catalogue
from training.scheduling.agents import AnyAgent
from training.scheduling.siren.model import SirenWorkload
from training.spec import TrainingSpec
from webapp.formatting import Status, Tone, display_usd, format_duration, format_score, plural
from webapp.schedulers.models import JUDGED, Episode, EpisodeKind, SchedulerTraining, TrainingState, Version
from webapp.schedulers.trainer import EpisodeStep
from webapp.schedulers.verdicts import Worth, verdict_of

_STATUSES: dict[TrainingState, tuple[Tone, str, str]] = {
    TrainingState.QUEUED: ("waiting", "hourglass-split", "Queued"),
    TrainingState.RUNNING: ("running", "arrow-repeat", "Training"),
    TrainingState.STOPPED: ("waiting", "stop-circle-fill", "Stopped"),
    TrainingState.FAILED: ("failed", "x-octagon-fill", "Failed"),
}
_WORTH: dict[Worth, tuple[Tone, str, str]] = {
    Worth.USEFUL: ("ok", "check-circle-fill", "Trained"),
    Worth.UNCONFIRMED: ("waiting", "question-circle-fill", "Not confirmed"),
    Worth.DO_NOT_USE: ("warning", "exclamation-triangle-fill", "Do not use"),
}
_WIDTH, _HEIGHT = 940.0, 156.0
_CHART_EPISODES = 400


class EpisodeDot(NamedTuple):
    """An episode on the chart of scores, in the chart's own units."""

    x: float
    y: float
    kind: str
    number: int
    score: str

    @property
    def words(self) -> str:
        return f"{self.kind} {self.number}: {self.score}"


class RehearsalLine(NamedTuple):
    """A row of the comparison between rehearsals and what really happened."""

    title: str
    rehearsed: str
    real: str


def status_of(training: SchedulerTraining) -> Status:
    if training.state == TrainingState.DONE:
        return worth_of(training.version)
    tone, icon, word = _STATUSES[TrainingState(training.state)]
    waiting = training.state in (TrainingState.QUEUED, TrainingState.RUNNING)
    return Status(tone, icon, word, _sentence(training), waiting)


def worth_of(version: Version) -> Status:
    """Whether a version is worth using, as a pill and a sentence."""
    verdict = verdict_of(version.facts, version.training.parsed_spec)
    tone, icon, word = _WORTH[verdict.worth]
    return Status(tone, icon, word, verdict.sentence, False)


def _sentence(training: SchedulerTraining) -> str:
    if training.state == TrainingState.QUEUED:
        return training.reason or "Waiting for the worker; it trains one scheduler at a time."
    if training.state == TrainingState.RUNNING:
        return _at(training)
    return training.reason


def _at(training: SchedulerTraining) -> str:
    """The current step of its process, from the row."""
    now, spec = training.now, training.parsed_spec
    number, kind = int(now.get("number", 0)), now.get("kind")
    inside = f", round {now['round']:,} with {now['actors']:,} {spec.unit}" if "round" in now else ""
    if kind == EpisodeKind.GRID:
        plans = spec.fixed_plans
        if plans[0].memory_mb:
            plan = plans[min(number, len(plans)) - 1]
            return (
                f"Recording training {number:,} of {len(plans):,}, with {plural(plan.actors, 'function')} of"
                f" {plan.memory_mb:,} MB in every epoch{inside}."
            )
        sizes = ", ".join(f"{plan.actors:,}" for plan in plans)
        return f"Recording a training with {number:,} actors in every round (of {sizes}){inside}."
    if kind == EpisodeKind.REHEARSAL:
        return f"Rehearsal {number:,} of {spec.rehearsals:,}."
    if kind == EpisodeKind.REAL:
        first = training.episodes.filter(kind=EpisodeKind.REHEARSAL).count()
        return f"Real episode {number - first:,} of {spec.episodes:,}{inside}."
    if kind == EpisodeKind.JUDGED:
        return f"Judging the {JUDGED[number - 1]} agent without exploration{inside}."
    return "It begins."


def subject(spec: AnyAgent) -> str:
    """What its trainings learn: an environment, or a data set."""
    workload = spec.workload
    entry = catalogue.ENTRIES.get(workload.subject) if isinstance(workload, TrainingSpec) else None
    return entry.title if entry is not None else workload.subject


def choices(spec: AnyAgent) -> str:
    """What it chooses from: "1 to 32 actors"."""
    if isinstance(spec, SirenWorkload):
        memory = f"{spec.memory_min_mb:,} to {spec.memory_max_mb:,} MB"
        return f"{spec.actors_min:,} to {spec.actors_max:,} functions of {memory}"
    return f"1 to {spec.actors_max:,} actors"


def format_target(spec: AnyAgent, value: float | None) -> str:
    """A score of its trainings as text."""
    return format_score(value, decimals=spec.workload.score.decimals)


def unit_of_rounds(spec: AnyAgent) -> str:
    return "epoch" if isinstance(spec, SirenWorkload) else "round"


def gap(facts: dict[str, Any], spec: AnyAgent) -> list[RehearsalLine]:
    """Rehearsals beside real episodes: what a scheduler learns from recorded rounds may not hold in real ones."""
    rehearsed, real = facts.get("rehearsed"), facts.get("real")
    if not rehearsed or not real:
        return []
    round_, score = unit_of_rounds(spec), spec.workload.score.name
    rows: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("Score", "score", "{:.2f}".format),
        (f"{round_}s".capitalize(), "rounds", "{:.1f}".format),
        (
            f"{spec.unit.capitalize()} {'an' if round_ == 'epoch' else 'a'} {round_}",
            "actors",
            "{:.1f}".format,
        ),
        ("Time on the cloud", "platform_s", format_duration),
        (f"Best {score}", "best_return", lambda value: format_target(spec, value)),
    )
    return [
        RehearsalLine(title, *(words(of[name]).replace("-", "−") for of in (rehearsed, real)))
        for title, name, words in rows
    ]


def dots(episodes: Sequence[Episode]) -> list[EpisodeDot]:
    """Scores over episodes, the last few hundred of them."""
    scored = _scored(episodes)
    if not scored:
        return []
    scores = [episode.score or 0.0 for episode in scored]
    low, high = min(scores), max(scores)
    span = high - low or 1.0
    points = []
    for at, one in enumerate(scored):
        x = _WIDTH * (at + 0.5) / len(scored)
        y = _HEIGHT * (1 - ((one.score or 0.0) - low) / span)
        points.append(EpisodeDot(round(x, 1), round(y, 1), one.kind, one.number, f"{one.score:.2f}"))
    return points


def scale(episodes: Sequence[Episode]) -> dict[str, str]:
    """The ends of the chart's upright axis."""
    scores = [episode.score or 0.0 for episode in _scored(episodes)]
    return {"low": f"{min(scores):.2f}", "high": f"{max(scores):.2f}"} if scores else {}


def _scored(episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes of the training itself. Judged agents do not explore, so their scores are not comparable."""
    scored = [one for one in episodes if one.score is not None and one.kind != EpisodeKind.JUDGED]
    return scored[-_CHART_EPISODES:]


def chosen(facts: dict[str, Any]) -> str:
    """A sentence that says which agent of its training a version is; empty if there was no choice."""
    pick = facts.get("chosen")
    if not pick:
        return ""
    best, last = pick["scores"].get("best", 0.0), pick["scores"].get("last", 0.0)
    of_best = f"the agent of real episode {pick['episode']:,}, the one with the highest score"
    if pick["agent"] == "best":
        words = f"It is {of_best}: without exploring it scored {best:.2f}, the last agent {last:.2f}."
    else:
        words = f"It is the last agent: without exploring it scored {last:.2f}, {of_best}, {best:.2f}."
    return words.replace("-", "−")


def format_decisions(decided: Sequence[int]) -> str:
    """The decisions of an episode as short text, such as "26 → 24 ×2 → 21": repeated numbers are written once."""
    parts: list[tuple[int, int]] = []
    for decision in decided:
        if parts and parts[-1][0] == decision:
            parts[-1] = (decision, parts[-1][1] + 1)
        else:
            parts.append((decision, 1))
    shown = [f"{size:,} ×{count}" if count > 1 else f"{size:,}" for size, count in parts]
    return " → ".join(shown[:8]) + (" …" if len(shown) > 8 else "")


def step_line(step: EpisodeStep) -> str:
    """An episode as a line of the command's output."""
    best = "no score" if step.best_return is None else f"best {step.best_return:.4g}"
    if step.kind == EpisodeKind.REHEARSAL:
        return f"rehearsal {step.number:,}: score {step.score:.2f}, {step.rounds} rounds, {best}"
    names = {
        EpisodeKind.GRID: "recorded",
        EpisodeKind.JUDGED: f"the {JUDGED[(step.number - 1) % len(JUDGED)]} agent, judged",
    }
    name = names.get(EpisodeKind(step.kind), f"episode {step.number:,}")
    score = "" if step.score is None else f"score {step.score:.2f}, "
    done = ", target reached" if step.reached else ""
    memory = f" of {format_decisions(step.memory_mb)} MB" if step.memory_mb else ""
    return (
        f"{name}: {score}{step.rounds} rounds with {format_decisions(step.actors)}{memory}, {best}{done},"
        f" {format_duration(step.platform_s)} and {display_usd(step.cost_picodollars)} simulated,"
        f" {format_duration(step.wall_s)} here"
    )


def version_line(version: Version) -> str:
    facts, spec = version.facts, version.training.parsed_spec
    return (
        f"{version.key}  {version}: {spec.workload.subject}, {choices(spec)},"
        f" {facts['episodes']} real episodes ({facts['reached']} reached {spec.target:g}),"
        f" {display_usd(facts['cost_picodollars'])} simulated, {format_duration(facts['wall_s'])} here;"
        f" {worth_of(version).word.lower()}"
    )
