"""Which container groups a run has: ordered when calls wait, kept while they may be needed, given up when idle.

For the platform's own thread. Before a group is asked for it is paid for and written down; it is paid for and written
down until it is certainly gone.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cloud.azure.container_lifecycle import FoundOut, Gone, Lives, Made, NotMade, Order, Surveyed
from cloud.azure.groups import Seen
from cloud.pricing import group_resource
from cloud.register import Register
from cloud.rents.payer import Payer
from training.ports import Puller

log = logging.getLogger(__name__)

_SILENT_S = 60.0
_SHOWS_WITHIN_S = 120.0
_BACKOFF_S = (5.0, 10.0, 20.0, 40.0, 60.0)
_FAILED_STARTS = 3


@dataclass(frozen=True)
class FleetPlan:
    """`order` makes the order of the n-th group with so many actors. `stay_s`: what actors live on without us."""

    most: int
    a_group: int
    idle_s: float
    start_cap_s: float
    stay_s: float
    order: Callable[[int, int], Order]


@dataclass
class _Held:
    """One group that may stand. `came_s`: when an actor of it was first heard of. `asked_why`: how it ended."""

    number: int
    name: str
    actors: int
    ordered_s: float
    state: Literal["asked", "made", "ending"] = "asked"
    came_s: float | None = None
    asked_why: bool = False


@dataclass
class _Trouble:
    """Starts that failed since the last one that did not."""

    failed: int = 0
    words: str = ""
    lasting: bool = False
    not_before_s: float = float("-inf")
    told: bool = False


class Fleet:
    """`attend` is to be called often. `failing` says why calls wait in vain, `poor` that the money does not reach."""

    def __init__(
        self,
        plan: FleetPlan,
        lives: Lives,
        register: Register,
        payer: Payer,
        *,
        now_s: Callable[[], float] = time.monotonic,
        now_unix_s: Callable[[], float] = time.time,
    ) -> None:
        self.payer = payer
        self.failing = ""
        self.poor = ""
        self._plan = plan
        self._lives = lives
        self._register = register
        self._now_s = now_s
        self._now_unix_s = now_unix_s
        self._held: dict[str, _Held] = {}
        self._needed_s: list[float] = []
        self._trouble = _Trouble()
        self._ordered = 0
        self._renewed_s = now_s()
        self._said = ""

    @property
    def actors(self) -> int:
        """Those of groups that stand or were asked for."""
        return sum(one.actors for one in self._held.values() if one.state != "ending")

    @property
    def names(self) -> list[str]:
        """All groups that may stand."""
        return list(self._held)

    def throttling_reasons(self) -> str:
        """Why calls wait for actors that do not come; empty where nothing that is known keeps them away."""
        asked = sum(one.state == "asked" for one in self._held.values())
        if asked and (words := self._lives.throttling_reasons()):
            return f"{words}. Until then {asked} order{' waits' if asked == 1 else 's wait'}."
        wait_s = self._trouble.not_before_s - self._now_s()
        if self._trouble.words and wait_s > 0.0:
            why = self._trouble.words.rstrip(".")
            return f"A container group did not start: {why}. Another is asked for in {wait_s:.0f} s."
        return ""

    def attend(self, waiting: int, pullers: Sequence[Puller]) -> None:
        """Hear what happened, and have as many actors as `waiting` calls need, within reason."""
        self._hear()
        self._look_at(pullers)
        wanted = self._wanted(waiting)
        self.poor, self.failing = "", self._why_none(waiting)
        if self.failing:
            return
        if wanted > self.actors:
            self._grow(wanted)
        elif wanted < self.actors:
            self._shrink(wanted, pullers)
        self._renew()

    def close(self, patience_s: float) -> bool:
        """Take everything away and wait for it; whether all is certainly gone."""
        for held in list(self._held.values()):
            self._end(held)
        end_s = self._now_s() + patience_s
        while self._held and self._now_s() < end_s:
            time.sleep(0.02)
            self._hear()
        self._lives.close()
        if self._held:
            log.error("container groups may stand still: %s", ", ".join(self._held))
        return not self._held

    # News

    def _hear(self) -> None:
        for news in self._lives.news():
            match news:
                case Made(name, provider_id):
                    if (held := self._held.get(name)) is not None:
                        self._register.made(name, provider_id)
                        held.state = "made" if held.state == "asked" else held.state
                case NotMade(name, words, full):
                    if (held := self._held.get(name)) is not None and held.state == "asked":
                        self._failed(words, lasting=not full)
                    self._forget(name)
                case FoundOut(name, words):
                    self._failed(words, lasting=False)
                    if (held := self._held.get(name)) is not None:
                        held.asked_why = False
                        self._end(held)
                case Gone(name):
                    self._forget(name)
                case Surveyed(groups, began_s):
                    self._compare(groups, began_s)

    def _forget(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            self.payer.leave(held.number)
            self._register.gone(name)

    def _compare(self, shown: Mapping[str, Seen], began_s: float) -> None:
        """Groups that failed to start, or that somebody else took away."""
        for held in [one for one in self._held.values() if one.state == "made"]:
            seen = shown.get(held.name)
            failed = seen is not None and seen.provisioning == "failed"
            vanished = seen is None and began_s - held.ordered_s > _SHOWS_WITHIN_S
            if failed or vanished:
                self._end(held, find_out=True)

    def _look_at(self, pullers: Sequence[Puller]) -> None:
        """Groups of which nobody comes for work, or not all that should."""
        now_s = self._now_s()
        heard_after_unix_s = self._now_unix_s() - _SILENT_S
        alive = Counter(
            one.unit for one in pullers if not one.leaving and one.last_seen_unix_s > heard_after_unix_s
        )
        busy = _busy(pullers)
        for held in [one for one in self._held.values() if one.state == "made"]:
            if alive[held.name] and held.came_s is None:
                held.came_s = now_s
                self._trouble = _Trouble()
            if held.came_s is None:
                fit = now_s - held.ordered_s <= self._plan.start_cap_s
            else:
                fit = now_s - held.came_s <= _SILENT_S or alive[held.name] >= held.actors
            if not fit and held.name not in busy:
                self._end(held, find_out=True)

    def _failed(self, words: str, *, lasting: bool) -> None:
        failed = self._trouble.failed + 1
        wait_s = _BACKOFF_S[min(failed, len(_BACKOFF_S)) - 1]
        self._trouble = _Trouble(failed, words, lasting, self._now_s() + wait_s)
        self._say(f"a container group did not start: {words}")

    def _why_none(self, waiting: int) -> str:
        """Why there is no actor and none to come, if so: told once at least, and until it is tried again."""
        trouble = self._trouble
        enough = trouble.failed and (trouble.lasting or trouble.failed >= _FAILED_STARTS)
        if not waiting or self.actors or not enough:
            return ""
        if trouble.told and self._now_s() >= trouble.not_before_s:
            return ""
        trouble.told = True
        return f"no container group could be started: {trouble.words}"

    # Orders

    def _wanted(self, waiting: int) -> int:
        """The n-th actor is wanted while n calls wait, and until that was `idle_s` ago."""
        now_s = self._now_s()
        waiting = min(waiting, self._plan.most)
        self._needed_s[:waiting] = [now_s] * waiting
        while self._needed_s and now_s - self._needed_s[-1] >= self._plan.idle_s:
            self._needed_s.pop()
        return len(self._needed_s)

    def _grow(self, wanted: int) -> None:
        # As long as it is being found out why one failed, no other is asked for: it would fail likewise.
        if self._now_s() < self._trouble.not_before_s or any(one.asked_why for one in self._held.values()):
            return
        while self.actors < wanted:
            actors = min(self._plan.a_group, wanted - self.actors)
            self._ordered += 1
            self.poor = self.payer.take(self._ordered, actors)
            if self.poor:
                self.poor = "" if self.actors else self.poor
                return
            order = self._plan.order(self._ordered, actors)
            facts = {"actors": actors, "resource": group_resource(self._ordered)}
            self._register.intend(order.name, "container_group", self._expires(), facts)
            self._held[order.name] = _Held(self._ordered, order.name, actors, self._now_s())
            self._lives.begin(order)

    def _shrink(self, wanted: int, pullers: Sequence[Puller]) -> None:
        """Give up whole groups that are not needed, the youngest first, and none with work in hand."""
        busy = _busy(pullers)
        for held in sorted(self._held.values(), key=lambda one: -one.number):
            if held.state != "ending" and held.name not in busy and self.actors - held.actors >= wanted:
                self._end(held)

    def _end(self, held: _Held, *, find_out: bool = False) -> None:
        if held.state == "ending":
            return
        held.state, held.asked_why = "ending", find_out
        self._register.ending(held.name)
        self._lives.end(held.name, find_out=find_out)

    def _renew(self) -> None:
        """Say in the register that they are wanted still."""
        now_s = self._now_s()
        if now_s - self._renewed_s < self._plan.stay_s / 4:
            return
        self._renewed_s = now_s
        for held in self._held.values():
            if held.state != "ending":
                self._register.renew(held.name, self._expires())

    def _expires(self) -> float:
        return self._now_unix_s() + self._plan.stay_s

    def _say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            log.warning("%s", words)


def _busy(pullers: Sequence[Puller]) -> set[str]:
    """Groups with work in hand. What a dead actor had goes to somebody else, and then is not in its hand any more."""
    return {one.unit for one in pullers if one.call_id is not None}
