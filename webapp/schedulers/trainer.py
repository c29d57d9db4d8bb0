"""A scheduler's training from its beginning to its end, without a database: recorded rounds, rehearsals, real episodes.

A generator of steps. The caller stores each, and can continue later from what it stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cloud.simulated_options import SimulatedOptions
from training.messages import RoundFinished
from training.reports import RoundReport
from training.scaling import AnyScaling
from training.scaling.fixed import Fixed
from training.scaling.learned import Learned
from training.scheduling.judging import judge
from training.scheduling.minionsrl.decisions import best_return, reached
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.minionsrl.rehearsal import Rehearsal
from training.scheduling.trainer import Point, initial_state, train_scheduler
from training.seeds import derive
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD

_SEEDS = 2**31


class Interrupted(Exception):
    """The episode was stopped before its end, so it does not count."""


@dataclass(frozen=True)
class Played:
    """The rounds that ran, their cost in the ledger including rent, and how long they took on this machine."""

    rounds: tuple[RoundReport, ...]
    cost_picodollars: int
    wall_s: float


class Stage:
    """Plays episodes of one scheduler. After each round it calls `on_round`, and ends if `stopping` returns True."""

    def __init__(
        self,
        spec: SchedulingSpec,
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

    def play(self, scaling: AnyScaling, seed: int) -> Played:
        """Play an episode to its target, budget, last round or the workload's own end. Raises Interrupted."""
        run = Headless(self._job(scaling, seed % _SEEDS))
        rounds: list[RoundReport] = []
        begun_s = time.monotonic()
        for event in run.events():
            if not isinstance(event, RoundFinished):
                continue
            rounds.append(event.report)
            self._on_round(rounds)
            mean = event.report.score
            if self._stopping() or (mean is not None and mean >= self._spec.target_return):
                run.stop()
        if self._stopping():
            raise Interrupted
        return Played(tuple(rounds), run.spent_picodollars, time.monotonic() - begun_s)

    def _job(self, scaling: AnyScaling, seed: int) -> JobSpec:
        workload = self._spec.workload
        own = workload.stop
        rounds = self._spec.rounds if own.rounds is None else min(own.rounds, self._spec.rounds)
        stop = own.model_copy(update={"rounds": rounds, "target_return": None})
        training = workload.model_copy(update={"scaling": scaling, "seed": seed, "stop": stop})
        platform = self._platform.model_copy(update={"seed": seed})
        return JobSpec(name="episode", training=training, platform=platform, budget_usd=self._budget_usd)


class NothingLearned(Exception):
    """The requested training cannot work; the message says why and what to do."""


@dataclass(frozen=True)
class Reached:
    """The point that an earlier process reached."""

    number: int
    state: bytes


@dataclass(frozen=True)
class Past:
    """What earlier work left: trainings to rehearse with, recorded sizes of the grid, and the agent."""

    recorded: Sequence[Sequence[RoundReport]] = ()
    sizes_done: frozenset[int] = frozenset()
    begin_with: bytes | None = None
    resume: Point | None = None


@dataclass(frozen=True)
class Step:
    """One finished episode. For the grid, `number` is its number of actors, and it has no score and no agent."""

    kind: str
    number: int
    rounds: int
    platform_s: float
    wall_s: float
    cost_picodollars: int
    best_return: float | None
    reached: bool
    actors: tuple[int, ...]
    score: float | None = None
    state: bytes | None = field(default=None, repr=False)
    decided: bytes | None = field(default=None, repr=False)
    reports: tuple[RoundReport, ...] = field(default=(), repr=False)


def grid_sizes(spec: SchedulingSpec) -> list[int]:
    """Fixed numbers of actors to record beforehand: an eighth to all of the range, for rehearsals. Without any
    rehearsals a single one, which says what a usual round takes and costs.
    """
    most = spec.actors_max
    if not spec.rehearsals:
        return [max(1, most // 2)]
    return sorted({max(1, most // part) for part in (8, 4, 2, 1)})


def record_grid(spec: SchedulingSpec, stage: Stage, past: Past) -> Iterator[Step]:
    """The trainings with a fixed number of actors that are still missing."""
    for actors in grid_sizes(spec):
        if actors not in past.sizes_done:
            played = stage.play(Fixed(actors=actors), derive(spec.seed, "grid", actors))
            yield _step("grid", actors, played, played.rounds, spec)


def learn(spec: SchedulingSpec, stage: Stage, past: Past, budget_picodollars: int) -> Iterator[Step]:
    """Play rehearsals and real episodes. Raises NothingLearned if not even one round fits the budget."""
    last: list[Played] = []

    def play(policy: Learned, seed: int) -> Sequence[RoundReport]:
        last[:] = [stage.play(policy, seed)]
        if not last[0].rounds:
            raise NothingLearned(
                "An episode ended before its first round: its budget does not hold what a round may cost. Train again"
                " with a higher budget of an episode, or with fewer actors."
            )
        return last[0].rounds

    _require_a_beginning(spec, past)
    begun_s = time.monotonic()
    for one in train_scheduler(
        spec,
        play,
        recorded=past.recorded,
        budget_picodollars=budget_picodollars,
        begin_with=past.begin_with,
        resume=past.resume,
    ):
        real = last[0] if one.kind == "real" else None
        yield Step(
            kind=one.kind,
            number=one.number,
            rounds=one.rounds,
            platform_s=one.platform_s,
            wall_s=time.monotonic() - begun_s,
            # Rehearsed rounds were paid for when they were recorded.
            cost_picodollars=real.cost_picodollars if real else 0,
            best_return=one.best_return,
            reached=one.reached,
            actors=one.actors,
            score=one.score,
            state=one.state,
            decided=one.decided,
            reports=real.rounds if real else (),
        )
        begun_s = time.monotonic()


def judge_agent(spec: SchedulingSpec, stage: Stage, past: Past, number: int, agent: bytes) -> Step:
    """An agent's episode without exploration, as a step of that number."""
    played: list[Played] = []

    def play(policy: Learned, seed: int) -> Sequence[RoundReport]:
        played.append(stage.play(policy, seed))
        return played[0].rounds

    found = judge(spec, agent, play, recorded=past.recorded)
    return _step("judged", number, played[0], found.rounds, spec, found.score)


def _require_a_beginning(spec: SchedulingSpec, past: Past) -> None:
    try:
        initial_state(spec, begin_with=past.begin_with)
        if spec.rehearsals:
            Rehearsal(past.recorded, spec)
    except ValueError as error:
        raise NothingLearned(f"It could not begin: {error}.") from None


def _step(
    kind: str,
    number: int,
    played: Played,
    rounds: Sequence[RoundReport],
    spec: SchedulingSpec,
    score: float | None = None,
) -> Step:
    return Step(
        kind=kind,
        number=number,
        rounds=len(rounds),
        platform_s=sum(one.total_s for one in rounds),
        wall_s=played.wall_s,
        cost_picodollars=played.cost_picodollars,
        best_return=best_return(rounds),
        reached=reached(rounds, spec.target_return, spec.readings),
        actors=tuple(one.actors for one in rounds),
        score=score,
        reports=played.rounds,
    )
