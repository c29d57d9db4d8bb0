"""What learners that compute gradients have not finished when a run is saved: slices with passes left, gradients that
wait to be applied, and what the bound of their staleness comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from training.engine.codec import Document, decode, encode
from training.engine.replay import Contribution, ReplaySlice

_NOT_PREPARED = b""


@dataclass(frozen=True)
class WaitingGradient:
    """A gradient that no version has taken: its payload, the version of its parameters, its number in the order of
    launch, and the name of its task.
    """

    payload: bytes
    version: int
    order: int
    name: str = ""


@dataclass(frozen=True)
class Unfinished:
    """By version, `policies` are those which slices with passes left were sampled with, if their passes need them.

    `slices_made` and `launched` number the next slice and gradient. `largest_staleness` was measured in the rounds
    until `calibrated_round` with so many learners and actors (`measured_with`); None: not measured yet.
    """

    slices: tuple[ReplaySlice, ...] = ()
    gradients: tuple[WaitingGradient, ...] = ()
    policies: dict[int, bytes] = field(default_factory=dict)
    slices_made: int = 0
    launched: int = 0
    largest_staleness: float | None = None
    calibrated_round: int = 0
    measured_with: tuple[int, ...] = ()

    def within(self, limit_bytes: int) -> Unfinished:
        """Return it without the last slices, and policies of theirs alone, if all have more bytes than the limit."""
        room, kept, needed = limit_bytes, 0, set[int]()
        for slice_ in self.slices:
            versions = {contribution.version for contribution in slice_.contributions} - needed
            room -= sum(len(contribution.payload) for contribution in slice_.contributions) + len(
                slice_.prepared or b""
            )
            room -= sum(len(self.policies.get(version, b"")) for version in versions)
            if room < 0:
                break
            kept, needed = kept + 1, needed | versions
        policies = {version: policy for version, policy in self.policies.items() if version in needed}
        return replace(self, slices=self.slices[:kept], policies=policies)

    def encode(self) -> bytes:
        """Return all of it. Nothing is empty bytes."""
        if self == Unfinished():
            return b""
        contributions = [contribution for slice_ in self.slices for contribution in slice_.contributions]
        return encode(
            {
                "slices": [
                    [one.number, len(one.contributions), one.passes, one.failures] for one in self.slices
                ],
                "trajectories": [contribution.payload for contribution in contributions],
                "trajectory_versions": [contribution.version for contribution in contributions],
                "prepared": [slice_.prepared or _NOT_PREPARED for slice_ in self.slices],
                "gradients": [gradient.payload for gradient in self.gradients],
                "gradient_facts": [[one.version, one.order, one.name] for one in self.gradients],
                "policy_versions": list(self.policies),
                "policies": list(self.policies.values()),
                "slices_made": self.slices_made,
                "launched": self.launched,
                "largest_staleness": self.largest_staleness,
                "calibrated_round": self.calibrated_round,
                "measured_with": list(self.measured_with),
            }
        )

    @staticmethod
    def decode(data: bytes) -> Unfinished:
        """Return what was encoded. Raises CodecError, KeyError, TypeError or ValueError for other bytes."""
        if not data:
            return Unfinished()
        document = decode(data)
        return Unfinished(
            slices=tuple(_slices_in(document)),
            gradients=tuple(
                WaitingGradient(payload, *facts)
                for payload, facts in zip(document["gradients"], document["gradient_facts"], strict=True)
            ),
            policies=dict(zip(document["policy_versions"], document["policies"], strict=True)),
            slices_made=document["slices_made"],
            launched=document["launched"],
            largest_staleness=document["largest_staleness"],
            calibrated_round=document["calibrated_round"],
            measured_with=tuple(document["measured_with"]),
        )


def _slices_in(document: Document) -> list[ReplaySlice]:
    both = zip(document["trajectories"], document["trajectory_versions"], strict=True)
    contributions = iter([Contribution(payload, version) for payload, version in both])
    facts: Sequence[Any] = document["slices"]
    return [
        ReplaySlice(number, tuple(islice(contributions, size)), passes, prepared or None, failures)
        for (number, size, passes, failures), prepared in zip(facts, document["prepared"], strict=True)
    ]
