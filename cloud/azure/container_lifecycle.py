"""The life of each container group, in a thread of its own: asked for, standing, taken away, certainly gone.

What happens is told as news to the platform's own thread, which alone pays and writes things down. Nothing here gives
up a group before Azure has taken the order to delete it and a later list does not show it any more.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cloud.azure.create_limit import CreateLimit
from cloud.azure.groups import AzureGroups, Container, NotNow, NotSure, Refused, Seen

_UNSURE_TRIES = 6
_DENIED_AGAIN_S = 30.0


@dataclass(frozen=True)
class Pace:
    """How often Azure is asked. An emulated one may be asked more often.

    A group that no list ever showed may be one that does not show yet: `shows_within_s` after its request its absence
    means something.
    """

    poll_s: float = 3.0
    delete_again_s: float = 15.0
    wear_s: float = 600.0
    shows_within_s: float = 30.0


EMULATED_PACE = Pace(poll_s=0.1, delete_again_s=0.5, shows_within_s=2.5)


@dataclass(frozen=True)
class Order:
    """A group as it is wanted. `tags` are asked for anew each time that they are put on."""

    name: str
    containers: tuple[Container, ...]
    tags: Callable[[], Mapping[str, str]]
    spot: bool = False


@dataclass(frozen=True)
class Made:
    name: str
    provider_id: str


@dataclass(frozen=True)
class NotMade:
    """Certainly there is none of that name. `full`: later there may be room."""

    name: str
    words: str
    full: bool


@dataclass(frozen=True)
class FoundOut:
    """Why a group did not do what it should."""

    name: str
    words: str


@dataclass(frozen=True)
class Gone:
    name: str


@dataclass(frozen=True)
class Surveyed:
    """All groups that show now. `began_s` on the monotonic clock."""

    groups: Mapping[str, Seen]
    began_s: float


News = Made | NotMade | FoundOut | Gone | Surveyed


@dataclass
class _Life:
    order: Order
    unwanted: threading.Event
    find_out: bool = False
    seen: bool = False
    asked_s: float = 0.0


class Lives:
    """`wake` is called after each piece of news, from any thread."""

    def __init__(
        self, groups: AzureGroups, limit: CreateLimit, wake: Callable[[], None], pace: Pace | None = None
    ) -> None:
        self._groups = groups
        self._limit = limit
        self._wake = wake
        self._pace = pace or Pace()
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._lives: dict[str, _Life] = {}
        self._over = threading.Event()
        self._looked = threading.Condition()
        self._begun = self._finished = 0
        self._shown: Mapping[str, Seen] = {}
        self._put_off = ("", 0.0)
        self._surveyor: threading.Thread | None = None

    def begin(self, order: Order) -> None:
        """Ask for a group; news follow."""
        life = self._lives[order.name] = _Life(order, threading.Event())
        if self._surveyor is None:
            self._surveyor = self._start("azure-survey", self._survey)
        self._start(f"azure-{order.name}", lambda: self._live(life))

    def end(self, name: str, *, find_out: bool = False) -> None:
        """Take it away; `find_out`: and tell why it is as it is. Gone follows, or NotMade if it never was."""
        life = self._lives[name]
        life.find_out = life.find_out or find_out
        life.unwanted.set()

    def news(self) -> list[News]:
        """What happened since, in order."""
        told: list[News] = []
        while True:
            try:
                told.append(self._news.get_nowait())
            except queue.Empty:
                return told

    def throttling_reasons(self) -> str:
        """Why nothing is created now, in words; empty when nothing stands against it."""
        words, until_s = self._put_off
        return self._limit.words() or (words if time.monotonic() < until_s else "")

    def close(self) -> None:
        """Ask nothing more. What is on its way ends with its own time limit."""
        self._over.set()
        with self._looked:
            self._looked.notify_all()

    # What follows runs in the groups' own threads.

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _tell(self, news: News) -> None:
        self._news.put(news)
        self._wake()

    def _live(self, life: _Life) -> None:
        if not self._make(life):
            return
        worn_s = time.monotonic()
        while not self._over.is_set() and not life.unwanted.wait(self._pace.poll_s):
            if time.monotonic() - worn_s > self._pace.wear_s:
                worn_s = time.monotonic()
                self._wear(life)
        if life.find_out:
            self._tell(FoundOut(life.order.name, self._reason(life)))
        self._end(life)

    def _make(self, life: _Life) -> bool:
        """Whether there may be one now."""
        order, unsure = life.order, 0
        while not self._over.is_set():
            if life.unwanted.is_set() and not unsure:
                self._tell(NotMade(order.name, "it is not wanted any more", True))
                return False
            if wait_s := self._limit.take():
                life.unwanted.wait(min(wait_s, 1.0))
                continue
            life.asked_s = time.monotonic()
            try:
                made = self._groups.create(order.name, order.containers, order.tags(), spot=order.spot)
            except NotNow as later:
                self._put_off = (str(later).rstrip("."), time.monotonic() + later.wait_s)
                life.unwanted.wait(later.wait_s)
            except Refused as refusal:
                if unsure:
                    # An earlier request may have come through all the same.
                    return True
                self._tell(NotMade(order.name, str(refusal), refusal.full))
                return False
            except NotSure as doubt:
                unsure += 1
                found = (self._fresh() or {}).get(order.name)
                if found is not None:
                    self._tell(Made(order.name, found.provider_id))
                    return True
                if unsure >= _UNSURE_TRIES or life.unwanted.is_set():
                    self._tell(FoundOut(order.name, str(doubt)))
                    life.unwanted.set()
                    return True
            else:
                self._tell(Made(order.name, made))
                return True
        return False

    def _wear(self, life: _Life) -> None:
        try:
            self._groups.wear(life.order.name, life.order.tags())
        except (NotNow, NotSure, Refused):
            # The tags are a courtesy to whoever looks at the account; the next time will do.
            pass

    def _reason(self, life: _Life) -> str:
        """How it is, and the last words of its first container."""
        name = life.order.name
        try:
            looked = self._groups.look(name)
        except (NotNow, NotSure, Refused) as error:
            return str(error)
        if looked is None:
            return "it is not there any more"
        said = self._groups.log(name, life.order.containers[0].name).splitlines()
        return f"{looked.words}{': ' + said[-1][:300] if said else ''}"

    def _end(self, life: _Life) -> None:
        name = life.order.name
        while not self._over.is_set():
            try:
                self._groups.delete(name)
            except NotNow as later:
                self._over.wait(later.wait_s)
                continue
            except NotSure:
                self._over.wait(self._pace.poll_s)
                continue
            except Refused as refusal:
                self._tell(FoundOut(name, f"it cannot be taken away: {refusal}"))
                self._over.wait(_DENIED_AGAIN_S)
                continue
            asked_s = time.monotonic()
            while time.monotonic() - asked_s < self._pace.delete_again_s:
                shown = self._fresh()
                if shown is None:
                    return
                certain = life.seen or time.monotonic() - life.asked_s > self._pace.shows_within_s
                if name not in shown and certain:
                    self._tell(Gone(name))
                    return

    def _fresh(self) -> Mapping[str, Seen] | None:
        """The groups as a list shows them that was asked for after this moment; None if it is over."""
        with self._looked:
            wanted = self._begun + 1
            self._looked.wait_for(lambda: self._finished >= wanted or self._over.is_set())
            return self._shown if self._finished >= wanted else None

    def _survey(self) -> None:
        while not self._over.wait(self._pace.poll_s):
            with self._looked:
                self._begun += 1
                number = self._begun
            began_s = time.monotonic()
            try:
                shown = self._groups.all()
            except (NotNow, NotSure, Refused):
                continue
            with self._looked:
                self._shown, self._finished = shown, number
                for name in shown:
                    if (life := self._lives.get(name)) is not None:
                        life.seen = True
                self._looked.notify_all()
            self._tell(Surveyed(shown, began_s))
