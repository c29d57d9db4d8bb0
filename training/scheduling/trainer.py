"""Trains a scheduler: an update after each real episode, and after every few rehearsals.

Several rehearsals share an update because the steps within one episode are only compared with each other; only other
episodes show whether it was a good one. This is a generator like the engine: the caller plays the episodes (`play`),
stores what it yields, and may stop and resume from any of its states. Rehearsals come first, then real episodes; only
the latter cost anything and count as results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from training.engine.reports import RoundReport
from training.engine.seeds import derive
from training.rl.learner import LearnerState
from training.scaling.agent_weights import as_text
from training.scaling.plan import ScalingPolicy
from training.scheduling.decisions import AgentSpec, EpisodeResult
from training.scheduling.episode import batch_of, episode_of

P = TypeVar("P", bound=ScalingPolicy)


class EarlierPoint(Protocol):
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


def initial_state(spec: AgentSpec[ScalingPolicy], *, begin_with: bytes | None = None) -> LearnerState:
    """Return a fresh agent, or one that continues from a scheduler of another task: its weights, with a new
    optimiser. Raises ValueError if that one cannot decide what this one is to.
    """
    fresh = spec.algorithm().initial_state(spec.network, spec.spaces, derive(spec.seed, "scheduler"))
    if begin_with is None:
        return fresh
    other = LearnerState.decode(begin_with)
    if why := spec.mismatch(other.spaces):
        raise ValueError(why)
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
    spec: AgentSpec[P],
    play: Callable[[P, int], Sequence[RoundReport]],
    *,
    recorded: Sequence[Sequence[RoundReport]] = (),
    budget_picodollars: int | None = None,
    begin_with: bytes | None = None,
    resume: EarlierPoint | None = None,
) -> Iterator[EpisodeFinished]:
    """Yield rehearsals on `recorded` trainings, if there are any, then real episodes by `play`.

    `budget_picodollars` is that of one episode. `resume` is the last episode of an earlier process.
    """
    state = LearnerState.decode(resume.state) if resume else initial_state(spec, begin_with=begin_with)
    decisions = spec.decisions(recorded)
    rehearsals = spec.rehearsals if recorded else 0
    stage = spec.rehearsing(recorded) if rehearsals else None
    done = resume.number if resume else 0
    for numbers in _groups(done, rehearsals, spec):
        weights = state.actor_weights(spec.network)
        seeds = [derive(spec.seed, "episode", number) for number in numbers]
        rehearsing = stage is not None and numbers[0] <= rehearsals
        decided = None
        if stage is not None and rehearsing:
            episodes = stage.play(weights, seeds, budget_picodollars)
        else:
            decided = state.encode()
            rounds = play(spec.policy(as_text(weights), explore=True), seeds[0])
            episodes = [episode_of(rounds, decisions, weights, spec.spaces)]
        before = state.encode()
        if samples := [episode.samples for episode in episodes if episode.samples is not None]:
            batch, seed = batch_of(samples, state.version), derive(spec.seed, "learn", numbers[-1])
            progress = numbers[0] / (rehearsals + spec.episodes + 1)
            state = spec.algorithm(len(samples)).learn(state, batch, spec.network, progress, seed).state
        after = state.encode()
        for number, episode in zip(numbers, episodes, strict=True):
            if number > done:
                kept = after if number == numbers[-1] else before
                yield _finished(number, "rehearsal" if rehearsing else "real", episode, kept, decided)


def _finished(
    number: int, kind: Literal["rehearsal", "real"], one: EpisodeResult, state: bytes, decided: bytes | None
) -> EpisodeFinished:
    return EpisodeFinished(
        number=number,
        kind=kind,
        rounds=one.rounds,
        platform_s=one.platform_s,
        cost_picodollars=one.cost_picodollars,
        best_return=one.best,
        reached=one.reached,
        score=one.score,
        actors=one.actors,
        state=state,
        decided=decided,
    )


def _groups(done: int, rehearsals: int, spec: AgentSpec[P]) -> Iterator[range]:
    """Yield the numbers of episodes that share an update. Rehearsals before their update are played again, with the
    same result.
    """
    first = done + 1 if done >= rehearsals else done - done % spec.together + 1
    while first <= rehearsals + spec.episodes:
        last = min(first + spec.together - 1, rehearsals) if first <= rehearsals else first
        yield range(first, last + 1)
        first = last + 1
