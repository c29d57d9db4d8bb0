"""The doors of the house: what the engine needs from outside, and what platforms need from whoever hosts them.

`Platform` and `CheckpointStore` are the engine's. `Ledger` is used by metered platforms; it is defined here,
once, so that the database ledger of the web application and the in-memory one of the command line are the same
thing to a platform. `Mailbox` likewise, for platforms whose actors come and fetch their work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from training.messages import BlobRef, Call, Outcome
from training.reports import Spend
from training.scaling.plan import Bounds


class Platform(Protocol):
    """Calls in flight, whatever runs them. The engine's only clock is `now_s`."""

    def publish(self, version: int, blob: bytes) -> BlobRef:
        """Hold `blob` for calls that name it. Older versions may be dropped once no call in flight names them."""

    def submit(self, call: Call) -> None:
        """Take a call on; returns at once. Its outcome comes from `next`, exactly once, whatever happens."""

    def next(self, timeout_s: float) -> Outcome | None:
        """The next call to finish in this platform's time; None after `timeout_s`, or at once if none flies."""

    def cancel(self, call_id: str) -> None:
        """Stop a call. Its outcome still comes: cancelled, or done if it was faster. Unknown ids are ignored."""

    def now_s(self) -> float:
        """Seconds since some fixed moment, in this platform's time."""

    def close(self) -> None:
        """Stop everything. Afterwards nothing of ours runs or bills. Safe to call twice."""


@runtime_checkable
class Preparing(Protocol):
    """A platform with standing actors, which are ordered before there are calls for them."""

    def prepare(self, actors: int) -> None:
        """Have so many actors from now on. Whoever pays for them decides how many; those at work are not stopped."""


@runtime_checkable
class Metered(Protocol):
    """What a platform behind a ledger can tell beside its calls."""

    def spend(self) -> Spend:
        """The job's money now, with all settlements booked."""


@dataclass(frozen=True)
class CheckpointRef:
    name: str
    round_no: int
    sha256: str
    byte_count: int


class CheckpointStore(Protocol):
    """Durable bytes by round. A name that can be listed is complete: writes are atomic."""

    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        """Keep `data`; with `best` as the one best checkpoint, apart from those to go on from."""

    def load(self, name: str) -> bytes:
        """The bytes, or CheckpointError with one clear sentence when missing or not what was written."""


@dataclass(frozen=True)
class Reservation:
    """A request to set money aside for one call or one slice of rent, before anything is spent."""

    id: str
    kind: Literal["rollout", "evaluate", "update", "rent"]
    round_no: int
    picodollars: int


@dataclass(frozen=True)
class PriceLine:
    """One line of a bill: a quantity of one SKU, rounded half up to a picodollar once."""

    sku: str
    quantity: str
    unit: str
    picodollars: int


@dataclass(frozen=True)
class Settlement:
    """What a reservation came to. `basis` is "assumed" where the true figure is unknown and the whole was booked."""

    id: str
    picodollars: int
    basis: Literal["metered", "assumed"]
    lines: tuple[PriceLine, ...]
    usage: dict[str, object]


@dataclass(frozen=True)
class Room:
    """What may still be reserved, and the name of the limit that leaves no more."""

    picodollars: int
    limit: str


class Ledger(Protocol):
    """Money that cannot be spent around. Each reservation ends exactly once: settled or released."""

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        """Set aside each in order as long as it fits; False where it did not. One transaction."""

    def settle(self, batch: Sequence[Settlement]) -> None:
        """Book what reservations came to. Repeating a settlement changes nothing."""

    def release(self, ids: Sequence[str]) -> None:
        """Give reservations back unused. Repeating changes nothing; a settled one stays settled."""

    def headroom(self) -> int:
        """Picodollars that can still be reserved."""

    def room(self) -> Room:
        """The same, and which of the limits that hold the job it is."""

    def spend(self) -> Spend: ...


Desired = Literal["run", "paused", "cancelled"]


@dataclass(frozen=True)
class Control:
    """What the person wants of a running job, asked about once a second.

    `drain`: why its money is about to end, if it is. The round under way is finished, and none begun.
    """

    desired: Desired = "run"
    bounds: Bounds = field(default_factory=Bounds)
    checkpoint_now: bool = False
    drain: str = ""


ControlSource = Callable[[], Control]


@dataclass(frozen=True)
class Offer:
    """A call for whoever comes to fetch one: `request` as the actor is to get it.

    It is handed out until `begin_by_unix_s` and at most `most_starts` times. Whoever has it keeps it for `lease_s`, as
    often as he says that he is still at it, but not longer than `most_s`; then it goes to the next. An answer may have
    `most_bytes`.
    """

    call_id: str
    request: bytes
    begin_by_unix_s: float
    lease_s: float
    most_s: float
    most_bytes: int
    most_starts: int = 3


@dataclass(frozen=True)
class Delivery:
    """The end of an offer: an answer as it arrived, unread; or None, when its time or its starts were used up.

    `starts` counts how often it was handed out. The moments are those of the mailbox's clock; `leased_unix_s` is that
    of the start which gave the answer, 0.0 if there was none.
    """

    call_id: str
    answer: bytes | None
    starts: int
    offered_unix_s: float
    leased_unix_s: float
    received_unix_s: float
    puller: str = ""


@dataclass(frozen=True)
class Puller:
    """A process that comes for work: `name` is its own, `unit` that of the machine or container group it is on.

    `call_id` is what it has in hand. `leaving`: it was dismissed or has said that it goes.
    """

    name: str
    unit: str
    first_seen_unix_s: float
    last_seen_unix_s: float
    call_id: str | None = None
    leaving: bool = False


class Mailbox(Protocol):
    """Where one run's calls lie until actors come for them: this side is the coordinator's, for one thread.

    The other side is the actor gateway's (`cloud.gateway`), which hands each offer to one puller at a time.
    """

    def publish(self, sha256: str, blob: bytes) -> None:
        """Hold weights for pullers to fetch by their hash, until they are dropped. Repeating changes nothing."""

    def drop(self, sha256s: Sequence[str]) -> None:
        """Hold these weights no longer."""

    def offer(self, batch: Sequence[Offer]) -> None:
        """Lay calls out. An id that was offered before is ignored: each ends in at most one delivery."""

    def withdraw(self, call_ids: Sequence[str]) -> None:
        """Hand these out no more; who has one is told to drop it. No delivery follows, though one may lie here."""

    def take(self, timeout_s: float) -> list[Delivery]:
        """What came in since, each once; waits until there is something, `wake` is called or the time is over."""

    def wake(self) -> None:
        """Have `take` return soon. From any thread."""

    def stay(self, seconds: float) -> None:
        """Pullers may live so long from now, and are told so when they call; without this they end by themselves."""

    def pullers(self) -> list[Puller]:
        """Everyone who ever called, in order of first sight."""

    def dismiss(self, names: Sequence[str]) -> None:
        """Give these pullers nothing more and tell them to leave at their next call. Work in hand is finished."""

    def close(self) -> None:
        """Hand out nothing more, take nothing in, tell all to leave, forget calls and weights. Safe to call twice."""
