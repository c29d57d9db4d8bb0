"""The container groups of a run: requested when calls wait, kept while they may be needed, deleted when idle.

Used by the platform's thread only. A group is paid for and registered before it is requested, and until it is certainly
gone.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cloud.accounts.register import Register
from cloud.money.pricing import group_resource
from cloud.money.rents.payer import Payer
from cloud.platforms.azure.container_lifecycle import (
    ContainerLifecycle,
    Created,
    Failed,
    Gone,
    Listed,
    NotCreated,
    Order,
)
from cloud.platforms.azure.groups import ListedGroup
from training.engine.ports import Puller

log = logging.getLogger(__name__)

_SILENT_S = 60.0
_LISTED_WITHIN_S = 120.0
_BACKOFF_S = (5.0, 10.0, 20.0, 40.0, 60.0)
_FAILED_STARTS = 3


@dataclass(frozen=True)
class FleetPlan:
    """`order` returns the order of the n-th group with so many actors. `stay_s`: how long actors live without us."""

    most: int
    a_group: int
    idle_s: float
    start_cap_s: float
    stay_s: float
    order: Callable[[int, int], Order]


@dataclass
class _Held:
    """One group that may exist. `came_s`: the first sign of one of its actors. `reason_due`: its reason will follow."""

    number: int
    name: str
    actors: int
    ordered_s: float
    state: Literal["requested", "created", "ending"] = "requested"
    came_s: float | None = None
    reason_due: bool = False


@dataclass
class _FailedStarts:
    """Failed starts since the last success. `reported`: calls have been failed for this reason."""

    count: int = 0
    words: str = ""
    lasting: bool = False
    not_before_s: float = float("-inf")
    reported: bool = False


class Fleet:
    """Call `attend` often. `failing` says why no actor will come; `unpaid` why no group can be paid for."""

    def __init__(
        self,
        plan: FleetPlan,
        lifecycle: ContainerLifecycle,
        register: Register,
        payer: Payer,
        *,
        now_s: Callable[[], float] = time.monotonic,
        now_unix_s: Callable[[], float] = time.time,
    ) -> None:
        self.payer = payer
        self.failing = ""
        self.unpaid = ""
        self._plan = plan
        self._lifecycle = lifecycle
        self._register = register
        self._now_s = now_s
        self._now_unix_s = now_unix_s
        self._held: dict[str, _Held] = {}
        self._needed_s: list[float] = []
        self._failures = _FailedStarts()
        self._ordered = 0
        self._renewed_s = now_s()
        self._logged = ""

    @property
    def actors(self) -> int:
        """The actors of groups that exist or were requested."""
        return sum(group.actors for group in self._held.values() if group.state != "ending")

    @property
    def names(self) -> list[str]:
        """All groups that may exist."""
        return list(self._held)

    def throttling_reasons(self) -> str:
        """Return why no actor comes for waiting calls; empty if no reason is known."""
        requested = sum(group.state == "requested" for group in self._held.values())
        if requested and (words := self._lifecycle.throttling_reasons()):
            return f"{words}. Until then {requested} order{' waits' if requested == 1 else 's wait'}."
        wait_s = self._failures.not_before_s - self._now_s()
        if self._failures.words and wait_s > 0.0:
            why = self._failures.words.rstrip(".")
            return f"A container group did not start: {why}. The next try is in {wait_s:.0f} s."
        return ""

    def attend(self, waiting: int, pullers: Sequence[Puller]) -> None:
        """Handle events, and have as many actors as `waiting` calls need, within the plan."""
        self._handle_events()
        self._check_actors(pullers)
        wanted = self._wanted(waiting)
        self.unpaid, self.failing = "", self._why_none(waiting)
        if self.failing:
            return
        if wanted > self.actors:
            self._grow(wanted)
        elif wanted < self.actors:
            self._shrink(wanted, pullers)
        self._renew()

    def close(self, patience_s: float) -> bool:
        """Delete every group and wait for it. Return True if all are certainly gone."""
        for held in list(self._held.values()):
            self._end(held)
        end_s = self._now_s() + patience_s
        while self._held and self._now_s() < end_s:
            time.sleep(0.02)
            self._handle_events()
        self._lifecycle.close()
        if self._held:
            log.error("container groups may still exist: %s", ", ".join(self._held))
        return not self._held

    # Events

    def _handle_events(self) -> None:
        for event in self._lifecycle.events():
            match event:
                case Created(name, provider_id):
                    if (held := self._held.get(name)) is not None:
                        self._register.made(name, provider_id)
                        held.state = "created" if held.state == "requested" else held.state
                case NotCreated(name, words, full):
                    if (held := self._held.get(name)) is not None and held.state == "requested":
                        self._note_failure(words, lasting=not full)
                    self._forget(name)
                case Failed(name, words):
                    self._note_failure(words, lasting=False)
                    if (held := self._held.get(name)) is not None:
                        held.reason_due = False
                        self._end(held)
                case Gone(name):
                    self._forget(name)
                case Listed(groups, began_s):
                    self._compare(groups, began_s)

    def _forget(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            self.payer.leave(held.number)
            self._register.gone(name)

    def _compare(self, groups: Mapping[str, ListedGroup], began_s: float) -> None:
        """End groups that failed to start, or that were deleted from outside."""
        for held in [group for group in self._held.values() if group.state == "created"]:
            listed = groups.get(held.name)
            failed = listed is not None and listed.provisioning == "failed"
            vanished = listed is None and began_s - held.ordered_s > _LISTED_WITHIN_S
            if failed or vanished:
                self._end(held, with_reason=True)

    def _check_actors(self, pullers: Sequence[Puller]) -> None:
        """End groups whose actors do not fetch work."""
        now_s = self._now_s()
        seen_after_unix_s = self._now_unix_s() - _SILENT_S
        alive = Counter(
            one.unit for one in pullers if not one.leaving and one.last_seen_unix_s > seen_after_unix_s
        )
        busy = _busy(pullers)
        for held in [group for group in self._held.values() if group.state == "created"]:
            if alive[held.name] and held.came_s is None:
                held.came_s = now_s
                self._failures = _FailedStarts()
            if held.came_s is None:
                fit = now_s - held.ordered_s <= self._plan.start_cap_s
            else:
                fit = now_s - held.came_s <= _SILENT_S or alive[held.name] >= held.actors
            if not fit and held.name not in busy:
                self._end(held, with_reason=True)

    def _note_failure(self, words: str, *, lasting: bool) -> None:
        count = self._failures.count + 1
        wait_s = _BACKOFF_S[min(count, len(_BACKOFF_S)) - 1]
        self._failures = _FailedStarts(count, words, lasting, self._now_s() + wait_s)
        if words != self._logged:
            self._logged = words
            log.warning("a container group did not start: %s", words)

    def _why_none(self, waiting: int) -> str:
        """Return why there is no actor and none will come: at least once, and until the next try."""
        failures = self._failures
        enough = failures.count and (failures.lasting or failures.count >= _FAILED_STARTS)
        if not waiting or self.actors or not enough:
            return ""
        if failures.reported and self._now_s() >= failures.not_before_s:
            return ""
        failures.reported = True
        return f"no container group could be started: {failures.words}"

    # Orders

    def _wanted(self, waiting: int) -> int:
        """Return how many actors are wanted: the n-th while n calls wait, and for `idle_s` after that."""
        now_s = self._now_s()
        waiting = min(waiting, self._plan.most)
        self._needed_s[:waiting] = [now_s] * waiting
        while self._needed_s and now_s - self._needed_s[-1] >= self._plan.idle_s:
            self._needed_s.pop()
        return len(self._needed_s)

    def _grow(self, wanted: int) -> None:
        # While the reason of a failure is being read, another group would fail likewise.
        reason_due = any(group.reason_due for group in self._held.values())
        if reason_due or self._now_s() < self._failures.not_before_s:
            return
        while self.actors < wanted:
            actors = min(self._plan.a_group, wanted - self.actors)
            self._ordered += 1
            self.unpaid = self.payer.take(self._ordered, actors)
            if self.unpaid:
                self.unpaid = "" if self.actors else self.unpaid
                return
            order = self._plan.order(self._ordered, actors)
            facts = {"actors": actors, "resource": group_resource(self._ordered)}
            self._register.intend(order.name, "container_group", self._expires(), facts)
            self._held[order.name] = _Held(self._ordered, order.name, actors, self._now_s())
            self._lifecycle.begin(order)

    def _shrink(self, wanted: int, pullers: Sequence[Puller]) -> None:
        """End groups that are not needed and have no call, the youngest first."""
        busy = _busy(pullers)
        for held in sorted(self._held.values(), key=lambda group: -group.number):
            if held.state != "ending" and held.name not in busy and self.actors - held.actors >= wanted:
                self._end(held)

    def _end(self, held: _Held, *, with_reason: bool = False) -> None:
        if held.state == "ending":
            return
        held.state, held.reason_due = "ending", with_reason
        self._register.ending(held.name)
        self._lifecycle.end(held.name, with_reason=with_reason)

    def _renew(self) -> None:
        """Record in the register that the groups are still wanted."""
        now_s = self._now_s()
        if now_s - self._renewed_s < self._plan.stay_s / 4:
            return
        self._renewed_s = now_s
        for held in self._held.values():
            if held.state != "ending":
                self._register.renew(held.name, self._expires())

    def _expires(self) -> float:
        return self._now_unix_s() + self._plan.stay_s


def _busy(pullers: Sequence[Puller]) -> set[str]:
    """Return the groups with a call. A dead actor's call goes to another actor and then no longer counts."""
    return {puller.unit for puller in pullers if puller.call_id is not None}
