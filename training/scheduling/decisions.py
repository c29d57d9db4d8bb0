"""What any agent that scales a training has: its settings, and how it reads a training as an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from training.engine.reports import RoundReport
from training.rl.algorithms.algorithm import UpdateResult
from training.rl.batch import Batch
from training.rl.learner import LearnerState
from training.rl.networks import MLP, Network
from training.rl.spaces import Spaces

if TYPE_CHECKING:
    from training.scaling.plan import ScalingPolicy

PICODOLLARS = 10**12
Floats = npt.NDArray[np.float32]


class FixedPlan(NamedTuple):
    """A training to record: the same number of actors in every round, of so much memory. None: of the workload's."""

    actors: int
    memory_mb: int | None = None


@dataclass(frozen=True)
class UsualRound:
    """A usual round of this workload: the unit of normalised rewards."""

    round_s: float
    round_usd: float

    @staticmethod
    def of(rounds: Sequence[RoundReport]) -> UsualRound:
        """Return the means, or 1 where there is no round."""
        seconds = float(np.mean([report.total_s for report in rounds])) if rounds else 0.0
        dollars = float(np.mean([one.cost_picodollars for one in rounds])) / PICODOLLARS if rounds else 0.0
        return UsualRound(seconds if seconds > 0 else 1.0, dollars if dollars > 0 else 1.0)


class Decisions(Protocol):
    """How an agent reads the rounds of a training: what it saw, what it did and what that earned."""

    def states(self, rounds: Sequence[RoundReport]) -> Floats:
        """Return the state before each round and after the last: one more than there are rounds."""

    def actions(self, rounds: Sequence[RoundReport]) -> npt.NDArray[Any]:
        """Return the action that each round was carried out with, as the agent's network draws it."""

    def rewards(self, rounds: Sequence[RoundReport]) -> Floats:
        """Return a reward for each round; an episode without rounds has none."""

    def score(self, rounds: Sequence[RoundReport]) -> float:
        """Return the sum of all rewards. An episode without rounds scores as if all rounds had been paid for in
        vain: otherwise it would score best because it cost nothing.
        """

    def best(self, rounds: Sequence[RoundReport]) -> float | None:
        """Return the best score that the training showed, None if it showed none."""

    def reached(self, rounds: Sequence[RoundReport]) -> bool:
        """Whether the training reached what it was to reach."""


@dataclass(frozen=True)
class Samples:
    """What is learned from one episode: a state more than there are actions, with their log-probabilities."""

    states: Floats
    actions: npt.NDArray[Any]
    log_probs: Floats
    rewards: Floats


@dataclass(frozen=True)
class EpisodeResult:
    """What an episode came to. `score` is the sum of its rewards; `actors` are its decisions, round by round. One
    without rounds has no samples.
    """

    rounds: int
    platform_s: float
    cost_picodollars: int
    best: float | None
    reached: bool
    score: float
    actors: tuple[int, ...]
    samples: Samples | None


class Rehearsals(Protocol):
    """Episodes that cost nothing, made from recorded trainings."""

    def play(
        self, weights: bytes, seeds: Sequence[int], budget_picodollars: int | None
    ) -> Sequence[EpisodeResult]:
        """Return an episode for each seed, decided with `weights`, each decision drawn."""


P_co = TypeVar("P_co", bound="ScalingPolicy", covariant=True)


class Learning(Protocol):
    """An algorithm: how an agent begins and what it becomes by a batch."""

    def initial_state(self, network: Network, spaces: Spaces, seed: int) -> LearnerState: ...

    def learn(
        self, state: LearnerState, batch: Batch, network: Network, progress: float, seed: int
    ) -> UpdateResult: ...


class AgentSpec(Protocol[P_co]):
    """The settings of an agent's training."""

    @property
    def seed(self) -> int: ...
    @property
    def episodes(self) -> int: ...
    @property
    def rehearsals(self) -> int: ...
    @property
    def together(self) -> int:
        """How many rehearsals an update learns from."""

    @property
    def network(self) -> MLP: ...
    @property
    def spaces(self) -> Spaces: ...

    def algorithm(self, episodes: int = 1) -> Learning:
        """Return what learns from so many episodes at once."""

    def policy(self, weights: str, *, explore: bool) -> P_co:
        """Return the scaling policy that decides with these weights."""

    def decisions(self, recorded: Sequence[Sequence[RoundReport]]) -> Decisions:
        """Return how it reads a training; a usual round is one of the recorded trainings'."""

    def rehearsing(self, recorded: Sequence[Sequence[RoundReport]]) -> Rehearsals:
        """Return rehearsals on recorded trainings. Raises ValueError if they cannot be rehearsed with."""

    def mismatch(self, other: Spaces) -> str:
        """Return why an agent with these spaces cannot be trained on; empty if it can."""
