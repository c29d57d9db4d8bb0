"""What a loop says of itself. Users choose one by its model, which names the state machine that decides for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from training.base_model import FrozenModel
from training.loops.state import LoopState

if TYPE_CHECKING:
    from training.loops.staleness_aware import StalenessAware

Collects = Literal["before learning", "beside learning", "between learning", "beside gradients"]


class Loop(FrozenModel):
    """What every loop says of itself, so that forecasts, bills and pages need not know which one it is.

    `collects`: when a round's data is collected, seen from its learning. `decided_by_times`: what would be different in
    another run if calls took other times. `waits_for_slowest`: whether a round is as long as its slowest actor.
    """

    decides: ClassVar[type[LoopState]]
    """The loop's decisions: what is sent, made and reported."""
    over_epochs: ClassVar[bool] = False
    """Whether its rounds are epochs over the same data."""
    collects: ClassVar[Collects] = "between learning"
    decided_by_times: ClassVar[str] = ""
    waits_for_slowest: ClassVar[bool] = True

    @property
    def judges_beside(self) -> bool:
        """Whether an evaluation runs beside everything else; else all wait for it."""
        return False

    @property
    def goes_by_waves(self) -> bool:
        """Whether a round is what all actors sampled once, until all has been learned from it."""
        return True

    @property
    def gradients(self) -> StalenessAware | None:
        """How learners compute gradients; None where one learner makes each version by itself."""
        return None

    @property
    def versions_apart(self) -> int:
        """How many versions old data may be that is learned from, where rounds do not wait for their slowest actor."""
        return 0

    def learns_from(self, actors: int) -> int:
        """Return how many contributions an update learns from in a round of this many actors."""
        return actors

    def learning_from(self, contributions: float) -> Self:
        """Return the same loop with updates by so many contributions, where they do not follow from the actors."""
        return self
