"""The pullers' side of mailboxes: the interface of a store, in memory or in a database, that a gateway needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cloud.actor.protocol import Beat, Receipt

NAMES_A_TOKEN = 4096
"""At most so many pullers may use one token. One that is silent for `FORGOTTEN_AFTER_S` makes room for another."""
FORGOTTEN_AFTER_S = 600.0


@dataclass(frozen=True)
class WaitingPuller:
    """A puller that waits for work, and a digest of its token."""

    name: str
    unit: str
    token: str = ""


@dataclass(frozen=True)
class LeasedCall:
    """A call that one caller received."""

    call_id: str
    request: bytes
    lease_s: float
    most_bytes: int


@dataclass(frozen=True)
class HandOut:
    """The callers' answers: calls by name; those in `leave` must leave, all of them unless `open`; others wait."""

    open: bool
    stay_until_unix_s: float = 0.0
    now_unix_s: float = 0.0
    work: Mapping[str, LeasedCall] = field(default_factory=dict)
    leave: frozenset[str] = frozenset()


class Store(Protocol):
    """All boxes of an installation. Called from several threads and, with a database, several processes."""

    def admitted(self, token: str) -> str | None:
        """Return the box that this token opens, if any. Tokens are compared in constant time."""

    def hand_out(self, box: str, callers: Sequence[WaitingPuller]) -> HandOut:
        """Lease each caller at most one call, and no call to two. A caller that has a call receives the same again.

        A new name beyond those that its token may use must leave, and is not stored.
        """

    def beat(self, box: str, puller: str, call_id: str) -> Beat:
        """Renew the puller's lease of this call, if it is still its call."""

    def room(self, box: str, puller: str, call_id: str) -> int:
        """Return how many bytes this puller's answer to this call may have; 0 if none is wanted."""

    def receive(self, box: str, puller: str, call_id: str, answer: bytes) -> Receipt:
        """Store the first answer to a call that was begun. Later ones change nothing."""

    def leave(self, box: str, puller: str) -> None:
        """Note that the puller leaves. Its call can be leased again at once."""

    def weights(self, box: str, sha256: str) -> bytes | None: ...
