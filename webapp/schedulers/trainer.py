"""A scheduler's training from its beginning to its end, without a database: recorded rounds, rehearsals, real episodes.

A generator of steps. The caller stores each, and can continue later from what it stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cloud.platforms.simulated_options import SimulatedOptions
from training.engine.messages import RoundFinished
from training.engine.reports import RoundReport
from training.engine.seeds import derive
from training.scaling.fixed import Fixed
from training.scaling.plan import ScalingPolicy
from training.scheduling.agents import AnyAgent
from training.scheduling.decisions import FixedPlan
from training.scheduling.judging import judge
from training.scheduling.siren.model import SirenWorkload
from training.scheduling.trainer import EarlierPoint, initial_state, train_scheduler
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD

_SEEDS = 2**31


class Interrupted(Exception):
    """The episode was stopped before its end, so it does not count."""


@dataclass(frozen=True)
class PlayedEpisode:
    """The rounds that ran, their cost in the ledger including rent, and how long they took on this machine."""

    rounds: tuple[RoundReport, ...]
    cost_picodollars: int
    wall_s: float


class Stage:
    """Plays episodes of one scheduler. After each round it calls `on_round`, and ends if `stopping` returns True."""

    def __init__(
        self,
        spec: AnyAgent,
        platform: SimulatedOptions,
        budget_picodollars: int,
        on_round: Callable[[Sequence[RoundReport]], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._spec = spec
        self._platform = platform
        self._budget_usd = Decimal(budget_picodollars) / PICODOLLARS_PER_USD
        self._on_round = on_round
        self._stopping = stopping

    def play(self, scaling: ScalingPolicy, seed: int, memory_mb: int | None = None) -> PlayedEpisode:
        """Play an episode to its target, budget, last round or the workload's own end, with actors of that memory.
        None: of the workload's. Raises Interrupted.
        """
        run = Headless(self._job(scaling, seed % _SEEDS, memory_mb))
        rounds: list[RoundReport] = []
        begun_s = time.monotonic()
        for event in run.events():
            if not isinstance(event, RoundFinished):
                continue
            rounds.append(event.report)
            self._on_round(rounds)
            score = event.report.score
            if self._stopping() or (score is not None and self._is_enough(score)):
                run.stop()
        if self._stopping():
            raise Interrupted
        return PlayedEpisode(tuple(rounds), run.spent_picodollars, time.monotonic() - begun_s)

    def _is_enough(self, score: float) -> bool:
        return self._spec.workload.score.reaches(score, self._spec.target)

    def _job(self, scaling: Any, seed: int, memory_mb: int | None) -> JobSpec:
        training = self._spec.episode(scaling, seed, memory_mb)
        platform = self._platform.model_copy(update={"seed": seed})
        return JobSpec(name="episode", training=training, platform=platform, budget_usd=self._budget_usd)


class NothingLearned(Exception):
    """The requested training cannot work; the message says why and what to do."""


@dataclass(frozen=True)
class TrainerPoint:
    """The point that an earlier process reached."""

    number: int
    state: bytes


@dataclass(frozen=True)
class Past:
    """What earlier work left: trainings to rehearse with, recorded plans of the grid, and the agent."""

    recorded: Sequence[Sequence[RoundReport]] = ()
    plans_done: frozenset[FixedPlan] = frozenset()
    begin_with: bytes | None = None
    resume: EarlierPoint | None = None


@dataclass(frozen=True)
class EpisodeStep:
    """One finished episode. One of the grid has no score and no agent."""

    kind: str
    number: int
    rounds: int
    platform_s: float
    wall_s: float
    cost_picodollars: int
    best_return: float | None
    reached: bool
    actors: tuple[int, ...]
    memory_mb: tuple[int, ...] = ()
    score: float | None = None
    state: bytes | None = field(default=None, repr=False)
    decided: bytes | None = field(default=None, repr=False)
    reports: tuple[RoundReport, ...] = field(default=(), repr=False)


def missing_plans(spec: AnyAgent, past: Past) -> list[tuple[int, FixedPlan]]:
    """The plans of the grid that are still to be recorded, each with the number of its step: its actors, or its place
    where memory is decided as well.
    """
    plans = enumerate(spec.fixed_plans, start=1)
    numbered = [(place if plan.memory_mb else plan.actors, plan) for place, plan in plans]
    return [(number, plan) for number, plan in numbered if plan not in past.plans_done]


def record_grid(spec: AnyAgent, stage: Stage, past: Past) -> Iterator[EpisodeStep]:
    """The trainings with a fixed plan that are still missing."""
    for number, plan in missing_plans(spec, past):
        played = stage.play(Fixed(actors=plan.actors), derive(spec.seed, "grid", number), plan.memory_mb)
        yield _step("grid", number, played, played.rounds, spec)


def learn(spec: AnyAgent, stage: Stage, past: Past, budget_picodollars: int) -> Iterator[EpisodeStep]:
    """Play rehearsals and real episodes. Raises NothingLearned if not even one round fits the budget."""
    last: list[PlayedEpisode] = []

    def play(policy: ScalingPolicy, seed: int) -> Sequence[RoundReport]:
        last[:] = [stage.play(policy, seed)]
        if not last[0].rounds:
            raise NothingLearned(
                "An episode ended before its first round: its budget does not hold what a round may cost. Train again"
                f" with a higher budget of an episode, or with fewer {spec.unit}."
            )
        return last[0].rounds

    _require_a_beginning(spec, past)
    begun_s = time.monotonic()
    for step in train_scheduler(
        spec,
        play,
        recorded=past.recorded,
        budget_picodollars=budget_picodollars,
        begin_with=past.begin_with,
        resume=past.resume,
    ):
        real = last[0] if step.kind == "real" else None
        yield EpisodeStep(
            kind=step.kind,
            number=step.number,
            rounds=step.rounds,
            platform_s=step.platform_s,
            wall_s=time.monotonic() - begun_s,
            # Rehearsed rounds were paid for when they were recorded.
            cost_picodollars=real.cost_picodollars if real else 0,
            best_return=step.best_return,
            reached=step.reached,
            actors=step.actors,
            memory_mb=_memory_of(real.rounds, spec) if real else (),
            score=step.score,
            state=step.state,
            decided=step.decided,
            reports=real.rounds if real else (),
        )
        begun_s = time.monotonic()


def judge_agent(spec: AnyAgent, stage: Stage, past: Past, number: int, agent: bytes) -> EpisodeStep:
    """An agent's episode without exploration, as a step of that number."""
    played: list[PlayedEpisode] = []

    def play(policy: ScalingPolicy, seed: int) -> Sequence[RoundReport]:
        played.append(stage.play(policy, seed))
        return played[0].rounds

    judged = judge(spec, agent, play, recorded=past.recorded)
    return _step("judged", number, played[0], judged.rounds, spec, judged.score)


def _require_a_beginning(spec: AnyAgent, past: Past) -> None:
    try:
        initial_state(spec, begin_with=past.begin_with)
        if spec.rehearsals:
            spec.rehearsing(past.recorded)
    except ValueError as error:
        raise NothingLearned(f"It could not begin: {error}.") from None


def _step(
    kind: str,
    number: int,
    played: PlayedEpisode,
    rounds: Sequence[RoundReport],
    spec: AnyAgent,
    score: float | None = None,
) -> EpisodeStep:
    decisions = spec.decisions(())
    return EpisodeStep(
        kind=kind,
        number=number,
        rounds=len(rounds),
        platform_s=sum(report.total_s for report in rounds),
        wall_s=played.wall_s,
        cost_picodollars=played.cost_picodollars,
        best_return=decisions.best(rounds),
        reached=decisions.reached(rounds),
        actors=tuple(report.actors for report in rounds),
        memory_mb=_memory_of(rounds, spec),
        score=score,
        reports=played.rounds,
    )


def _memory_of(rounds: Sequence[RoundReport], spec: AnyAgent) -> tuple[int, ...]:
    """The memory of each round's actors; empty if the agent leaves it as it is."""
    if not isinstance(spec, SirenWorkload):
        return ()
    return tuple(report.memory_mb or report.usage.memory_mb for report in rounds)
