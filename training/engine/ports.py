"""The ports: the interfaces that the engine and the platforms need from outside.

The engine needs `Platform` and `CheckpointStore`. Metered platforms need `Ledger`. It is defined here, once, so that
the web application's ledger in the database and the command line's ledger in memory are the same to a platform.
Platforms whose actors fetch their work need `Mailbox`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from training.engine.messages import BlobRef, Call, Outcome
from training.engine.reports import Spend
from training.scaling.plan import Bounds


class Platform(Protocol):
    """Runs calls anywhere and returns their outcomes. The engine's only clock is `now_s`."""

    def publish(self, version: int, blob: bytes) -> BlobRef:
        """Store `blob` for calls that name it. Older versions may be dropped once no call in flight names them."""

    def submit(self, call: Call) -> None:
        """Accept a call and return at once. `next` returns its outcome exactly once, whatever happens."""

    def next(self, timeout_s: float) -> Outcome | None:
        """Return the next call to finish in this platform's time; None after `timeout_s`, or at once if none is in
        flight.
        """

    def cancel(self, call_id: str) -> None:
        """Stop a call. Its outcome still comes: cancelled, or done if it was faster. Unknown ids are ignored."""

    def now_s(self) -> float:
        """Return the seconds since some fixed moment, in this platform's time."""

    def close(self) -> None:
        """Stop everything. Afterwards nothing of this run exists or bills. Safe to call twice."""


@runtime_checkable
class Preparable(Protocol):
    """A platform with kept actors, which are ordered before there are calls for them."""

    def prepare(self, actors: int) -> None:
        """Keep this many actors from now on. The ledger's owner decides how many; actors at work are not stopped."""


@runtime_checkable
class Metered(Protocol):
    """A platform behind a ledger."""

    def spend(self) -> Spend:
        """Return the job's money now, with all settlements booked."""


@dataclass(frozen=True)
class CheckpointRef:
    name: str
    round_no: int
    sha256: str
    byte_count: int


class CheckpointStore(Protocol):
    """Durable bytes by round. A name that is listed is complete: writes are atomic."""

    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        """Store `data`; with `best` as the one best checkpoint, apart from those that a run continues from."""

    def load(self, name: str) -> bytes:
        """Return the bytes. Raises CheckpointError, one clear sentence, if they are missing or not what was written."""


@dataclass(frozen=True)
class Reservation:
    """A request to set money aside for one call or one slice of rent, before anything is spent.

    `kind` is the call's kind (`training.calls.KINDS`), or "rent".
    """

    id: str
    kind: str
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
    """The final amount of a reservation. `basis` is "assumed" if the true amount is unknown and the
    whole was booked.
    """

    id: str
    picodollars: int
    basis: Literal["metered", "assumed"]
    lines: tuple[PriceLine, ...]
    usage: dict[str, object]


@dataclass(frozen=True)
class Room:
    """How much can still be reserved, and the name of the limit that allows no more."""

    picodollars: int
    limit: str


class Ledger(Protocol):
    """Money that cannot be spent around. Each reservation ends exactly once: settled or released."""

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        """Set aside each in order as long as it fits; False where it did not. One transaction."""

    def settle(self, batch: Sequence[Settlement]) -> None:
        """Book the final amounts of reservations. Repeating a settlement changes nothing."""

    def release(self, ids: Sequence[str]) -> None:
        """Return unused reservations. Repeating changes nothing; a settled one stays settled."""

    def headroom(self) -> int:
        """Return the picodollars that can still be reserved."""

    def room(self) -> Room:
        """Return the same, with the tightest of the job's limits."""

    def spend(self) -> Spend: ...


Desired = Literal["run", "paused", "cancelled"]


@dataclass(frozen=True)
class Control:
    """What the user wants of a running job, polled once a second.

    `drain`: why its money is about to end, if it is. The round in progress is finished, and no other begins.
    """

    desired: Desired = "run"
    bounds: Bounds = field(default_factory=Bounds)
    checkpoint_now: bool = False
    drain: str = ""


ControlSource = Callable[[], Control]


@dataclass(frozen=True)
class Offer:
    """A call that an actor can fetch: `request` is what the actor receives.

    It is handed out until `begin_by_unix_s` and at most `most_starts` times. The actor that has it keeps it for
    `lease_s`, renewed each time it reports, but not longer than `most_s`; then it goes to the next actor. An answer
    may have `most_bytes`.
    """

    call_id: str
    request: bytes
    begin_by_unix_s: float
    lease_s: float
    most_s: float
    most_bytes: int
    most_starts: int = 3


@dataclass(frozen=True)
class OfferEnd:
    """The end of an offer: an answer as it arrived, not parsed; None if its time or its starts were used up.

    `starts` counts how often it was handed out. Times are by the mailbox's clock; `leased_unix_s` is when the start
    that gave the answer was handed out, 0.0 if there was none.
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
    """A process that fetches work: `name` is its own name, `unit` that of its machine or container group.

    `call_id` is the call it works on. `leaving`: it was dismissed or has said that it leaves.
    """

    name: str
    unit: str
    first_seen_unix_s: float
    last_seen_unix_s: float
    call_id: str | None = None
    leaving: bool = False


class Mailbox(Protocol):
    """One run's calls, waiting for actors to fetch them. This is the coordinator's side, for one thread.

    The other side is the actor gateway (`cloud.platforms.gateway`), which hands each offer to one puller at a time.
    """

    def publish(self, sha256: str, blob: bytes) -> None:
        """Store weights that pullers fetch by their hash, until they are dropped. Repeating changes nothing."""

    def drop(self, sha256s: Sequence[str]) -> None:
        """Delete these weights."""

    def offer(self, batch: Sequence[Offer]) -> None:
        """Offer calls. An id that was offered before is ignored: each ends in at most one delivery."""

    def withdraw(self, call_ids: Sequence[str]) -> None:
        """Withdraw offers; an actor that has one drops it. They get no delivery, though one may have
        arrived already.
        """

    def take(self, timeout_s: float) -> list[OfferEnd]:
        """Return what has arrived since, each once; waits until there is something, `wake` is called or the time is
        over.
        """

    def wake(self) -> None:
        """Make `take` return soon. From any thread."""

    def stay(self, seconds: float) -> None:
        """Allow pullers to live this long from now; they learn it at their next request. Without this they end by
        themselves.
        """

    def pullers(self) -> list[Puller]:
        """Return every puller that ever called, in order of first sight."""

    def dismiss(self, names: Sequence[str]) -> None:
        """Give these pullers no more work and let them leave at their next request. Work in progress is finished."""

    def close(self) -> None:
        """Hand out no work, accept no answer, dismiss all pullers, delete calls and weights. Safe to call twice."""
