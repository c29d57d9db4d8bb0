"""The pullers' side of mailboxes: what a gateway needs of whoever keeps them, in memory or in a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cloud.actor.protocol import Beat, Receipt

NAMES_A_TOKEN = 4096
"""So many pullers one token may name; one that has not been heard of for `FORGOTTEN_AFTER_S` makes room for another."""
FORGOTTEN_AFTER_S = 600.0


@dataclass(frozen=True)
class Caller:
    """A puller that waits for work, and by which token it came (a digest of it)."""

    name: str
    unit: str
    token: str = ""


@dataclass(frozen=True)
class Given:
    """A call that was handed to one caller."""

    call_id: str
    request: bytes
    lease_s: float
    most_bytes: int


@dataclass(frozen=True)
class HandOut:
    """What the callers get: work by name; some are to leave, all of them if it is not `open`; others wait on."""

    open: bool
    stay_until_unix_s: float = 0.0
    now_unix_s: float = 0.0
    work: Mapping[str, Given] = field(default_factory=dict)
    leave: frozenset[str] = frozenset()


class Store(Protocol):
    """All boxes of an installation. Called from several threads and, over a database, several processes."""

    def admitted(self, token: str) -> str | None:
        """The box that this token opens, if any. Compared in constant time."""

    def hand_out(self, box: str, callers: Sequence[Caller]) -> HandOut:
        """Give each at most one call, and no call to two. Whoever has one already is given that same one again.

        A new name beyond those that its token may use is told to leave, and not kept.
        """

    def beat(self, box: str, puller: str, call_id: str) -> Beat:
        """The puller is still at this call: its lease begins anew, if it is wanted of him."""

    def room(self, box: str, puller: str, call_id: str) -> int:
        """How many bytes an answer of this puller to this call may have; 0 if none is wanted."""

    def receive(self, box: str, puller: str, call_id: str, answer: bytes) -> Receipt:
        """Keep the first answer to a call that was begun. Others change nothing."""

    def leave(self, box: str, puller: str) -> None:
        """The puller goes; what it has in hand is handed out anew at once."""

    def weights(self, box: str, sha256: str) -> bytes | None: ...
