"""Trains a scheduler: an update after each real episode, and after every few rehearsals.

Several rehearsals share an update because the steps within one episode are only compared with each other; only other
episodes show whether it was a good one. This is a generator like the engine: the caller plays the episodes (`play`),
stores what it yields, and may stop and resume from any of its states. Rehearsals come first, then real episodes; only
the latter cost anything and count as results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from training.learner import LearnerState
from training.reports import RoundReport
from training.scaling.learned import Learned, as_text
from training.scheduling.episode import (
    ScoredEpisode,
    UsualRound,
    batch_of,
    best_return,
    reached,
    rewards_of,
    score_of,
)
from training.scheduling.model import SchedulingSpec
from training.scheduling.rehearsal import Rehearsal
from training.seeds import derive

Play = Callable[[Learned, int], Sequence[RoundReport]]


class Point(Protocol):
    """The point that an earlier process reached: all that resuming needs."""

    @property
    def number(self) -> int: ...
    @property
    def state(self) -> bytes: ...


@dataclass(frozen=True)
class EpisodeFinished:
    """One episode and the agent after it. `score` is the sum of its rewards; `state` is all that resuming needs, and
    `decided` the agent that played it, if it was real.
    """

    number: int
    kind: Literal["rehearsal", "real"]
    rounds: int
    platform_s: float
    cost_picodollars: int
    best_return: float | None
    reached: bool
    score: float
    actors: tuple[int, ...]
    state: bytes
    decided: bytes | None = None


def initial_state(spec: SchedulingSpec, *, begin_with: bytes | None = None) -> LearnerState:
    """Return a fresh agent, or one that continues from a scheduler of another task: its weights, with a new
    optimiser. Raises ValueError if that one chooses from another number of actors.
    """
    fresh = spec.algorithm().initial_state(spec.network, spec.spaces, derive(spec.seed, "scheduler"))
    if begin_with is None:
        return fresh
    other = LearnerState.decode(begin_with)
    if other.spaces != spec.spaces:
        raise ValueError(
            f"the scheduler to begin with chooses from 1 to {other.spaces.action_counts[0]} actors, this one is to"
            f" choose from 1 to {spec.actors_max}: set the most actors to {other.spaces.action_counts[0]}"
        )
    return LearnerState(
        version=0,
        spaces=spec.spaces,
        parameters=other.parameters,
        first_moments=fresh.first_moments,
        second_moments=fresh.second_moments,
        optimiser_steps=0,
        observation_moments=fresh.observation_moments,
        return_moments=fresh.return_moments,
        target_parameters=fresh.target_parameters,
    )


def train_scheduler(
    spec: SchedulingSpec,
    play: Play,
    *,
    recorded: Sequence[Sequence[RoundReport]] = (),
    budget_picodollars: int | None = None,
    begin_with: bytes | None = None,
    resume: Point | None = None,
) -> Iterator[EpisodeFinished]:
    """Yield rehearsals on `recorded` trainings, if there are any, then real episodes by `play`.

    `budget_picodollars` is that of one episode. `resume` is the last episode of an earlier process.
    """
    state = LearnerState.decode(resume.state) if resume else initial_state(spec, begin_with=begin_with)
    usual = UsualRound.of([report for rounds in recorded for report in rounds])
    rehearsals = spec.rehearsals if recorded else 0
    stage = Rehearsal(recorded, spec) if rehearsals else None
    done = resume.number if resume else 0
    lessons: list[ScoredEpisode] = []
    for number in range(_first(done, rehearsals, spec.together), rehearsals + spec.episodes + 1):
        weights = state.actor_weights(spec.network)
        policy = spec.policy(as_text(weights), explore=True)
        seed = derive(spec.seed, "episode", number)
        rehearsing = stage is not None and number <= rehearsals
        if stage is not None and rehearsing:
            rounds: Sequence[RoundReport] = stage.play(policy, seed, budget_picodollars)
        else:
            rounds = play(policy, seed)
        rewards = rewards_of(rounds, spec, usual)
        decided = None if rehearsing else state.encode()
        if len(rounds):
            lessons.append(ScoredEpisode(rounds, rewards))
        if lessons and (not rehearsing or number % spec.together == 0 or number == rehearsals):
            batch, seed = batch_of(lessons, policy, weights), derive(spec.seed, "learn", number)
            state = spec.algorithm(len(lessons)).learn(state, batch, spec.network, 0.0, seed).state
            lessons = []
        if number <= done:
            continue
        yield EpisodeFinished(
            number=number,
            kind="rehearsal" if rehearsing else "real",
            rounds=len(rounds),
            platform_s=sum(report.total_s for report in rounds),
            cost_picodollars=sum(report.cost_picodollars for report in rounds),
            best_return=best_return(rounds),
            reached=reached(rounds, spec.target_return, spec.readings),
            score=score_of(rounds, spec, usual),
            actors=tuple(report.actors for report in rounds),
            state=state.encode(),
            decided=decided,
        )


def _first(done: int, rehearsals: int, together: int) -> int:
    """Return the number to resume at. Rehearsals before their update are played again, with the same result."""
    return done + 1 if done >= rehearsals else done - done % together + 1
