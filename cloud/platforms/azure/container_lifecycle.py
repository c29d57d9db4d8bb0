"""The life of each container group, in its own thread: requested, running, deleted, certainly gone.

Events go to the platform's thread, the only one that pays and writes to the register. A group counts as gone only when
Azure has accepted its deletion and a later listing does not show it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cloud.platforms.azure.create_limit import CreateLimit
from cloud.platforms.azure.groups import AzureGroups, Container, ListedGroup, NotNow, NotSure, Refused

_UNSURE_TRIES = 6
_DENIED_AGAIN_S = 30.0


@dataclass(frozen=True)
class Pace:
    """How often to poll Azure. An emulated one may be polled more often.

    `listed_within_s`: how long after its request a group may be missing from listings.
    """

    poll_s: float = 3.0
    delete_again_s: float = 15.0
    tag_again_s: float = 600.0
    listed_within_s: float = 30.0


EMULATED_PACE = Pace(poll_s=0.1, delete_again_s=0.5, listed_within_s=2.5)


@dataclass(frozen=True)
class Order:
    """A group to create. `tags` returns its current tags."""

    name: str
    containers: tuple[Container, ...]
    tags: Callable[[], Mapping[str, str]]
    spot: bool = False


@dataclass(frozen=True)
class Created:
    name: str
    provider_id: str


@dataclass(frozen=True)
class NotCreated:
    """There certainly is no group of that name. `full`: later there may be room."""

    name: str
    words: str
    full: bool


@dataclass(frozen=True)
class Failed:
    """Why a group did not do what it should."""

    name: str
    words: str


@dataclass(frozen=True)
class Gone:
    name: str


@dataclass(frozen=True)
class Listed:
    """All groups in a listing that began at `began_s` on the monotonic clock."""

    groups: Mapping[str, ListedGroup]
    began_s: float


Event = Created | NotCreated | Failed | Gone | Listed


@dataclass
class _Life:
    order: Order
    unwanted: threading.Event
    with_reason: bool = False
    listed: bool = False
    requested_s: float = 0.0


class ContainerLifecycle:
    """`wake` is called after each event, from any thread."""

    def __init__(
        self, groups: AzureGroups, limit: CreateLimit, wake: Callable[[], None], pace: Pace | None = None
    ) -> None:
        self._groups = groups
        self._limit = limit
        self._wake = wake
        self._pace = pace or Pace()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._lives: dict[str, _Life] = {}
        self._closed = threading.Event()
        self._listing = threading.Condition()
        self._begun = self._finished = 0
        self._groups_listed: Mapping[str, ListedGroup] = {}
        self._throttled = ("", 0.0)
        self._lister: threading.Thread | None = None

    def begin(self, order: Order) -> None:
        """Request a group. Its events follow."""
        life = self._lives[order.name] = _Life(order, threading.Event())
        if self._lister is None:
            self._lister = self._start("azure-listing", self._list)
        self._start(f"azure-{order.name}", lambda: self._live(life))

    def end(self, name: str, *, with_reason: bool = False) -> None:
        """Delete a group. Gone follows, or NotCreated if it never existed; before it Failed, if `with_reason`."""
        life = self._lives[name]
        life.with_reason = life.with_reason or with_reason
        life.unwanted.set()

    def events(self) -> list[Event]:
        """Return the events since the last call, in order."""
        events: list[Event] = []
        while True:
            try:
                events.append(self._events.get_nowait())
            except queue.Empty:
                return events

    def throttling_reasons(self) -> str:
        """Return why no group is created now; empty if nothing prevents it."""
        words, until_s = self._throttled
        return self._limit.words() or (words if time.monotonic() < until_s else "")

    def close(self) -> None:
        """Send no more requests. Those in flight end by their own time limits."""
        self._closed.set()
        with self._listing:
            self._listing.notify_all()

    # These run in the groups' own threads.

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _emit(self, event: Event) -> None:
        self._events.put(event)
        self._wake()

    def _live(self, life: _Life) -> None:
        if not self._create(life):
            return
        tagged_s = time.monotonic()
        while not self._closed.is_set() and not life.unwanted.wait(self._pace.poll_s):
            if time.monotonic() - tagged_s > self._pace.tag_again_s:
                tagged_s = time.monotonic()
                self._tag_again(life)
        if life.with_reason:
            self._emit(Failed(life.order.name, self._reason(life)))
        self._delete(life)

    def _create(self, life: _Life) -> bool:
        """Return True if the group may exist now."""
        order, unsure = life.order, 0
        while not self._closed.is_set():
            if life.unwanted.is_set() and not unsure:
                self._emit(NotCreated(order.name, "it is no longer wanted", True))
                return False
            if wait_s := self._limit.take():
                life.unwanted.wait(min(wait_s, 1.0))
                continue
            life.requested_s = time.monotonic()
            try:
                provider_id = self._groups.create(order.name, order.containers, order.tags(), spot=order.spot)
            except NotNow as later:
                self._throttled = (str(later).rstrip("."), time.monotonic() + later.wait_s)
                life.unwanted.wait(later.wait_s)
            except Refused as refusal:
                if unsure:
                    # An earlier request may have succeeded all the same.
                    return True
                self._emit(NotCreated(order.name, str(refusal), refusal.full))
                return False
            except NotSure as doubt:
                unsure += 1
                there = (self._fresh_listing() or {}).get(order.name)
                if there is not None:
                    self._emit(Created(order.name, there.provider_id))
                    return True
                if unsure >= _UNSURE_TRIES or life.unwanted.is_set():
                    self._emit(Failed(order.name, str(doubt)))
                    life.unwanted.set()
                    return True
            else:
                self._emit(Created(order.name, provider_id))
                return True
        return False

    def _tag_again(self, life: _Life) -> None:
        try:
            self._groups.set_tags(life.order.name, life.order.tags())
        except (NotNow, NotSure, Refused):
            # Nothing depends on the tags' renewal; the next one will do.
            pass

    def _reason(self, life: _Life) -> str:
        """Return the group's state and the last line of its first container."""
        name = life.order.name
        try:
            status = self._groups.status(name)
        except (NotNow, NotSure, Refused) as error:
            return str(error)
        if status is None:
            return "it does not exist any more"
        try:
            lines = self._groups.log(name, life.order.containers[0].name).splitlines()
        except Refused as refused:
            lines = [str(refused)]
        return f"{status.words}{': ' + lines[-1][:300] if lines else ''}"

    def _delete(self, life: _Life) -> None:
        """Delete the group, again and again until a listing shows that it is gone."""
        name = life.order.name
        while not self._closed.is_set():
            try:
                self._groups.delete(name)
            except NotNow as later:
                self._closed.wait(later.wait_s)
                continue
            except NotSure:
                self._closed.wait(self._pace.poll_s)
                continue
            except Refused as refusal:
                self._emit(Failed(name, f"it cannot be deleted: {refusal}"))
                self._closed.wait(_DENIED_AGAIN_S)
                continue
            deleted_s = time.monotonic()
            while time.monotonic() - deleted_s < self._pace.delete_again_s:
                groups = self._fresh_listing()
                if groups is None:
                    return
                certain = life.listed or time.monotonic() - life.requested_s > self._pace.listed_within_s
                if name not in groups and certain:
                    self._emit(Gone(name))
                    return

    def _fresh_listing(self) -> Mapping[str, ListedGroup] | None:
        """Return a listing that began after this call; None if the lifecycle was closed."""
        with self._listing:
            wanted = self._begun + 1
            self._listing.wait_for(lambda: self._finished >= wanted or self._closed.is_set())
            return self._groups_listed if self._finished >= wanted else None

    def _list(self) -> None:
        while not self._closed.wait(self._pace.poll_s):
            with self._listing:
                self._begun += 1
                number = self._begun
            began_s = time.monotonic()
            try:
                groups = self._groups.all()
            except (NotNow, NotSure, Refused):
                continue
            with self._listing:
                self._groups_listed, self._finished = groups, number
                for name in groups:
                    if (life := self._lives.get(name)) is not None:
                        life.listed = True
                self._listing.notify_all()
            self._emit(Listed(groups, began_s))
