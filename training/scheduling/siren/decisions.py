"""One training as an episode of Siren's agent: from epochs to states, actions and rewards.

    r_t = −β P_t     and at the end:  + C if ℓ_T ≤ L and b_T ≥ 0, − C otherwise

With the objective `cost` an epoch is charged its dollars, and b is what is left of the time until a deadline. A
normalised reward is in units of a usual epoch, and C in units of what a usual training is charged in all. There, a
training that missed its target is also charged eight times the usual for each epoch that it did not get to: as printed,
one that spends its budget at once does better than one that fails late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from training.engine.reports import RoundReport
from training.scheduling.decisions import PICODOLLARS, Floats, UsualRound
from training.scheduling.siren.choices import Choices
from training.scheduling.siren.state import state_of

if TYPE_CHECKING:
    from training.scheduling.siren.model import SirenSpec

_MISSED = 8.0
"""What a missing epoch is charged, in usual ones. With less, rehearsals seldom find a budget that is scarce."""


@dataclass(frozen=True)
class FunctionDecisions:
    """How Siren's agent reads the rounds of a training; a round is an epoch."""

    spec: SirenSpec
    usual: UsualRound

    def states(self, rounds: Sequence[RoundReport]) -> Floats:
        seen = [state_of(rounds[:i], self.spec.state, self.spec.scales) for i in range(len(rounds) + 1)]
        return np.stack(seen)

    def actions(self, rounds: Sequence[RoundReport]) -> Floats:
        return drawn_in(rounds, self.spec.choices)

    def rewards(self, rounds: Sequence[RoundReport]) -> Floats:
        if not len(rounds):
            return np.zeros(0, dtype=np.float32)
        dollars = [report.cost_picodollars / PICODOLLARS for report in rounds]
        charged = [report.total_s for report in rounds] if self.spec.objective == "time" else dollars
        return self.rewards_of(np.array(charged), made_it=self.reached(rounds))

    def rewards_of(self, charged: npt.NDArray[np.float64], *, made_it: bool) -> Floats:
        """Return the rewards of epochs that were charged so much."""
        rewards = -self.spec.beta * charged / (self._usual_charge if self._normalised else 1.0)
        rewards[-1] += self._final(made_it=made_it, missing=self.spec.rounds - len(charged))
        return rewards.astype(np.float32)

    def _final(self, *, made_it: bool, missing: int) -> float:
        """Return ±C, and the charge for epochs that it did not get to."""
        spec = self.spec
        if not self._normalised:
            return spec.final_reward if made_it else -spec.final_reward
        final = spec.final_reward * spec.beta * spec.rounds
        return final if made_it else -final - _MISSED * spec.beta * missing

    def score(self, rounds: Sequence[RoundReport]) -> float:
        if len(rounds):
            return float(self.rewards(rounds).sum())
        usual = 0.0 if self._normalised else self.spec.beta * self.spec.rounds * self._usual_charge
        return self._final(made_it=False, missing=self.spec.rounds) - usual

    def best(self, rounds: Sequence[RoundReport]) -> float | None:
        """Return the lowest loss."""
        return min((report.score for report in rounds if report.score is not None), default=None)

    def reached(self, rounds: Sequence[RoundReport]) -> bool:
        """Whether the last loss is the target's or less, within the limit."""
        if not len(rounds) or rounds[-1].score is None or rounds[-1].score > self.spec.target_loss:
            return False
        last, spend = rounds[-1], rounds[-1].spend
        if self.spec.objective == "cost":
            return self.spec.deadline_s is None or last.started_s + last.total_s <= self.spec.deadline_s
        return (
            spend is None
            or spend.limit_picodollars <= 0
            or spend.spent_picodollars <= spend.limit_picodollars
        )

    @property
    def _normalised(self) -> bool:
        return self.spec.reward == "normalised"

    @property
    def _usual_charge(self) -> float:
        return self.usual.round_s if self.spec.objective == "time" else self.usual.round_usd


def drawn_in(rounds: Sequence[RoundReport], choices: Choices) -> Floats:
    """Return the network's numbers behind each epoch: of the pair that was drawn, where the agent planned it, or of
    what was carried out.
    """
    pairs = [
        report.drawn or (report.actors, report.memory_mb or report.usage.memory_mb or choices.memory_min_mb)
        for report in rounds
    ]
    return choices.drawn(np.array(pairs, dtype=np.float64).reshape(-1, 2))
