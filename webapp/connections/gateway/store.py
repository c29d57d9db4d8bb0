"""The gateway's side of the mailboxes in the database (`cloud.platforms.gateway.store.Store`).

Called from threads of several web processes at once. A thread hands out the calls that its conditional UPDATE changed.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import Q

from cloud.actor.protocol import Beat, Receipt
from cloud.platforms.gateway import store as gateway
from cloud.platforms.gateway.store import HandOut, LeasedCall, WaitingPuller
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.gateway import services
from webapp.connections.gateway.models import Box, CallState, HeldWeights, Parcel, PulledCall, SeenPuller
from webapp.connections.gateway.queries import valid_tokens
from webapp.connections.gateway.services import digest, due, sweep
from webapp.job_states import TERMINAL, Observed

_SEEN_EVERY_S = 5.0
_NEEDS_NO_PULLER = (*TERMINAL, Observed.PAUSED)


class DatabaseStore:
    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock

    def admitted(self, token: str) -> str | None:
        number, _, secret = token.partition(".")
        if not number.isdecimal() or len(number) > 18:
            return None
        row = valid_tokens().filter(pk=int(number)).values_list("sha256", "box_id").first()
        if row is None or not hmac.compare_digest(digest(secret), row[0]):
            return None
        return str(row[1])

    def hand_out(self, box: str, callers: Sequence[WaitingPuller]) -> HandOut:
        now = self._now()
        wanting = Box.objects.filter(pk=box, closed=False).exclude(job__observed__in=_NEEDS_NO_PULLER)
        stay = wanting.values_list("stay_until_unix_s", flat=True).first()
        if stay is None:
            return HandOut(open=False)
        leaving = self._seen(box, callers, now)
        staying = [caller.name for caller in callers if caller.name not in leaving]
        # Most requests find no work, and then nothing is written.
        calls = PulledCall.objects.filter(box_id=box)
        work: dict[str, LeasedCall] = {}
        if calls.filter(due(now) | Q(state=CallState.WAITING) | _held_by(staying)).exists():
            with transaction.atomic():
                sweep(box, now)
                work = _handed(box, staying, now)
        return HandOut(True, stay, now, work, frozenset(leaving))

    def beat(self, box: str, puller: str, call_id: str) -> Beat:
        now = self._now()
        if not (row := Box.objects.filter(pk=box, closed=False).first()):
            return Beat(word="leave")
        held = PulledCall.objects.filter(box_id=box, call_id=call_id, state=CallState.LEASED, puller=puller)
        call = held.first()
        if call is None:
            return Beat(word="drop")
        until = min(now + call.lease_s, call.leased_unix_s + call.most_s)
        if until <= now or not held.update(lease_until_unix_s=until, heard_unix_s=now):
            return Beat(word="drop")
        return Beat(word="go_on", live_s=max(0.0, row.stay_until_unix_s - now))

    def room(self, box: str, puller: str, call_id: str) -> int:
        wanted = PulledCall.objects.filter(
            box_id=box, call_id=call_id, state__in=(CallState.WAITING, CallState.LEASED)
        )
        call = wanted.only("began", "most_bytes").first()
        return call.most_bytes if call is not None and puller in call.began else 0

    @transaction.atomic
    def receive(self, box: str, puller: str, call_id: str, answer: bytes) -> Receipt:
        call = PulledCall.objects.select_for_update().filter(box_id=box, call_id=call_id).first()
        if call is None or puller not in call.began:
            return Receipt(word="unwanted")
        if call.state not in (CallState.WAITING, CallState.LEASED):
            return Receipt(word="known" if call.state == CallState.ANSWERED else "unwanted")
        # Also from a puller whose lease has run out: a call's result does not depend on who runs it.
        PulledCall.objects.filter(pk=call.pk).update(
            state=CallState.ANSWERED, puller=puller, heard_unix_s=self._now()
        )
        Parcel.objects.filter(pk=call.pk).update(data=answer)
        services.answers_on_commit(box)
        return Receipt(word="taken")

    @transaction.atomic
    def leave(self, box: str, puller: str) -> None:
        now = self._now()
        held = PulledCall.objects.filter(box_id=box, state=CallState.LEASED, puller=puller)
        if held.update(lease_until_unix_s=0.0):
            sweep(box, now)
        SeenPuller.objects.filter(box_id=box, name=puller).update(leaving=True, last_seen_unix_s=now)
        services.offers_on_commit(box)

    def weights(self, box: str, sha256: str) -> bytes | None:
        data = HeldWeights.objects.filter(box_id=box, sha256=sha256).values_list("data", flat=True).first()
        return None if data is None else bytes(data)

    def _seen(self, box: str, callers: Sequence[WaitingPuller], now: float) -> set[str]:
        """Record the callers every few seconds. Returns the names that must leave or exceed their token's limit."""
        of_box = SeenPuller.objects.filter(box_id=box)
        known = {
            name: (seen, leaving)
            for name, seen, leaving in of_box.filter(
                name__in=[caller.name for caller in callers]
            ).values_list("name", "last_seen_unix_s", "leaving")
        }
        new = {caller.name: caller for caller in callers if caller.name not in known}
        welcome = _within_their_limits(box, list(new.values()), now)
        seen = {"box_id": box, "first_seen_unix_s": now, "last_seen_unix_s": now}
        SeenPuller.objects.bulk_create(
            [SeenPuller(name=one.name, unit=one.unit, token=one.token, **seen) for one in welcome],
            ignore_conflicts=True,
        )
        if stale := [name for name, (seen, _) in known.items() if seen < now - _SEEN_EVERY_S]:
            of_box.filter(name__in=stale).update(last_seen_unix_s=now)
        refused = set(new) - {caller.name for caller in welcome}
        return refused | {name for name, (_, leaving) in known.items() if leaving}

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _within_their_limits(box: str, new: Sequence[WaitingPuller], now: float) -> list[WaitingPuller]:
    """The new callers within their token's limit of names."""
    welcome: list[WaitingPuller] = []
    for token in {caller.token for caller in new}:
        named = SeenPuller.objects.filter(box_id=box, token=token)
        callers = [caller for caller in new if caller.token == token]
        if named.count() + len(callers) > gateway.NAMES_A_TOKEN:
            at_work = PulledCall.objects.filter(box_id=box, state=CallState.LEASED).values("puller")
            silent = named.filter(last_seen_unix_s__lt=now - gateway.FORGOTTEN_AFTER_S)
            silent.exclude(name__in=at_work).delete()
        welcome += callers[: max(0, gateway.NAMES_A_TOKEN - named.count())]
    return welcome


def _held_by(names: Sequence[str]) -> Q:
    return Q(state=CallState.LEASED, puller__in=names)


def _handed(box: str, names: Sequence[str], now: float) -> dict[str, LeasedCall]:
    """A call for each name, while there are any. A puller that holds a call missed the response, and gets it again."""
    calls = PulledCall.objects.filter(box_id=box)
    chosen = {call.puller: call for call in calls.filter(_held_by(names))}
    free = [name for name in names if name not in chosen]
    # Where rows can be locked, another gateway skips these rows instead of waiting.
    skips = connection.features.has_select_for_update_skip_locked
    waiting = calls.filter(state=CallState.WAITING).order_by("pk").select_for_update(skip_locked=skips)
    for name, call in zip(free, waiting[: len(free)], strict=False):
        changed = calls.filter(pk=call.pk, state=CallState.WAITING).update(
            state=CallState.LEASED,
            puller=name,
            began=[*call.began, name],
            leased_unix_s=now,
            heard_unix_s=now,
            lease_until_unix_s=now + call.lease_s,
        )
        if changed:
            chosen[name] = call
    parcels = dict(
        Parcel.objects.filter(pk__in=[call.pk for call in chosen.values()]).values_list("pk", "data")
    )
    return {
        name: LeasedCall(call.call_id, bytes(parcels[call.pk]), call.lease_s, call.most_bytes)
        for name, call in chosen.items()
    }
