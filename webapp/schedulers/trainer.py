"""A scheduler's training from its beginning to its end, without a database: recorded rounds, rehearsals, real episodes.

A generator of steps. The caller stores each, and can continue later from what it stored.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from training.reports import RoundReport
from training.scaling.fixed import Fixed
from training.scaling.learned import Learned
from training.scheduling.episode import best_return, reached
from training.scheduling.judging import judge
from training.scheduling.model import SchedulingSpec
from training.scheduling.rehearsal import Rehearsal
from training.scheduling.trainer import Point, initial_state, train_scheduler
from training.seeds import derive
from webapp.schedulers.episode import Played, Stage


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
            yield _of_grid(actors, played, spec)


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
    return Step(
        kind="judged",
        number=number,
        rounds=len(found.rounds),
        platform_s=sum(one.total_s for one in found.rounds),
        wall_s=played[0].wall_s,
        cost_picodollars=played[0].cost_picodollars,
        best_return=best_return(found.rounds),
        reached=reached(found.rounds, spec.target_return, spec.readings),
        actors=tuple(one.actors for one in found.rounds),
        score=found.score,
        reports=played[0].rounds,
    )


def _require_a_beginning(spec: SchedulingSpec, past: Past) -> None:
    try:
        initial_state(spec, begin_with=past.begin_with)
        if spec.rehearsals:
            Rehearsal(past.recorded, spec)
    except ValueError as error:
        raise NothingLearned(f"It could not begin: {error}.") from None


def _of_grid(actors: int, played: Played, spec: SchedulingSpec) -> Step:
    rounds = played.rounds
    return Step(
        kind="grid",
        number=actors,
        rounds=len(rounds),
        platform_s=sum(one.total_s for one in rounds),
        wall_s=played.wall_s,
        cost_picodollars=played.cost_picodollars,
        best_return=best_return(rounds),
        reached=reached(rounds, spec.target_return, spec.readings),
        actors=tuple(one.actors for one in rounds),
        reports=rounds,
    )
