"""Sends deliveries: one sender at a time holds a delivery, attempts it and records the outcome.

A sender holds a row before it sends and records the outcome afterwards. If it dies in between, the row is released at
once when its process is known to be gone, else when the hold ends. The delivery is then sent again under the same id,
by which a receiver recognises a repetition. In the table every delivery is sent once.
"""

from __future__ import annotations

import logging
import os
import platform
import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from webapp.alerts import services, text
from webapp.alerts.message import SendingOutcome, later, message_of
from webapp.alerts.models import About, AlertKind, Channel, Delivery, DeliveryState, Severity
from webapp.alerts.senders import SENDERS
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs import failpoints

log = logging.getLogger(__name__)

HELD_FOR = timedelta(seconds=60)
"""Far longer than an attempt may take."""
ATTEMPTS = 8
FIRST_PAUSE_S = 5.0
PAUSE_GROWS = 3.0
LONGEST_PAUSE_S = 3600.0
ALERT_AFTER_FAILURES = 3
"""After so many failed attempts of a channel in a row, the other channels send an alert about it."""
BEGINNING_NOT_SENT = "The alert itself was not sent, so its end is not sent either."
_AT_ONCE = 2
_LOOKED_AT = 20

# A worker's threads are for jobs: receivers that answer slowly must not take them all, nor hold up other channels.
_places = threading.BoundedSemaphore(_AT_ONCE)
_busy_lock = threading.Lock()
_busy: set[str] = set()


def send_due(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Send everything that is due, channel by channel. Returns the number of attempts, 0 if others are sending."""
    attempts = 0
    if not _places.acquire(blocking=False):
        return attempts
    try:
        while True:
            with _free_channel(clock.now()) as channel_id:
                if channel_id is None:
                    return attempts
                while delivery := take(channel_id, clock=clock):
                    attempt(delivery, clock=clock)
                    attempts += 1
    finally:
        _places.release()


def take(channel_id: str, *, clock: Clock = SYSTEM_CLOCK) -> Delivery | None:
    """The next due delivery of the channel, which the caller now holds. None if none is due."""
    now = clock.now()
    due = _due(now).filter(channel_id=channel_id)
    for delivery_id in due.order_by("due_at", "created_at", "pk").values_list("pk", flat=True)[:_LOOKED_AT]:
        holder = f"{_process()} {uuid.uuid4().hex}"
        taken = Delivery.objects.filter(pk=delivery_id, state=DeliveryState.WAITING, due_at__lte=now).update(
            state=DeliveryState.SENDING, holder=holder, held_until=now + HELD_FOR, attempts=F("attempts") + 1
        )
        if taken:
            return Delivery.objects.select_related("alert__project", "channel").get(pk=delivery_id)
    return None


def attempt(delivery: Delivery, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Attempt a delivery that the caller holds, and record the outcome."""
    channel = delivery.channel
    if not channel.on:
        record(delivery, SendingOutcome(False, "The channel is off."), clock=clock)
        return
    try:
        outcome = SENDERS[channel.way](channel, message_of(delivery), clock)
    except Exception as error:  # a message that fails must not block the ones behind it
        log.exception("delivery %s could not be tried", delivery.pk)
        outcome = later(f"The message could not be sent: {type(error).__name__}. See the worker's log.")
    failpoints.reach("after_alert_sent")
    record(delivery, outcome, clock=clock)


@transaction.atomic
def record(delivery: Delivery, outcome: SendingOutcome, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Record the outcome of an attempt. False if another sender holds the delivery by now."""
    now = clock.now()
    changes: dict[str, object] = {
        "holder": "",
        "held_until": None,
        "last_error": outcome.words,
        "response_status": outcome.status,
    }
    if outcome.sent:
        changes |= {"state": DeliveryState.SENT, "sent_at": now}
    elif not outcome.tried:
        wait = timedelta(seconds=outcome.retry_after_s or 0.0)
        changes |= {"state": DeliveryState.WAITING, "due_at": now + wait, "attempts": F("attempts") - 1}
    elif outcome.again and delivery.attempts < ATTEMPTS:
        changes |= {"state": DeliveryState.WAITING, "due_at": now + _pause(delivery.attempts, outcome)}
    else:
        changes |= {"state": DeliveryState.FAILED}
    held = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.SENDING, holder=delivery.holder)
    if not held.update(**changes):
        return False
    if changes["state"] == DeliveryState.FAILED and not delivery.over:
        ends = Delivery.objects.filter(alert=delivery.alert_id, channel=delivery.channel_id, over=True)
        ends.filter(state=DeliveryState.WAITING).update(
            state=DeliveryState.FAILED, last_error=BEGINNING_NOT_SENT
        )
    if outcome.tried and delivery.channel.on and not text.is_missing(delivery.channel):
        _note_on_channel(delivery.channel, outcome, now, clock, changes["state"] == DeliveryState.FAILED)
    return True


def _due(now: datetime) -> QuerySet[Delivery]:
    """Deliveries to send now. The end of an alert waits until its beginning was sent."""
    under_way = Delivery.objects.filter(
        alert=OuterRef("alert"),
        channel=OuterRef("channel"),
        over=False,
        state__in=(DeliveryState.WAITING, DeliveryState.SENDING),
    )
    due = Delivery.objects.filter(state=DeliveryState.WAITING, due_at__lte=now)
    return due.exclude(Q(over=True) & Exists(under_way))


def release_lost(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Release deliveries whose sender died. Returns how many."""
    now, freed = clock.now(), 0
    held = Delivery.objects.filter(state=DeliveryState.SENDING)
    for delivery_id, holder, until in held.values_list("pk", "holder", "held_until"):
        if (until is not None and until <= now) or _is_gone(holder):
            lost = Delivery.objects.filter(pk=delivery_id, state=DeliveryState.SENDING, holder=holder)
            freed += lost.update(state=DeliveryState.WAITING, due_at=now, holder="", held_until=None)
    return freed


def _pause(attempts: int, outcome: SendingOutcome) -> timedelta:
    """Grows with each attempt, with jitter, so that a recovering receiver is not flooded."""
    pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * PAUSE_GROWS ** (attempts - 1)) * random.uniform(0.8, 1.2)
    return timedelta(seconds=max(pause_s, min(outcome.retry_after_s or 0.0, LONGEST_PAUSE_S)))


def _note_on_channel(
    channel: Channel, outcome: SendingOutcome, now: datetime, clock: Clock, given_up: bool
) -> None:
    row, key = Channel.objects.filter(pk=channel.pk), About.CHANNEL.subject(channel.pk)
    if outcome.sent:
        row.update(failures=0, last_error="", last_sent_at=now)
        if channel.failures:
            words = f"{channel.name} sends alerts again."
            services.resolve_alert(project_id=channel.project_id, dedupe_key=key, words=words, clock=clock)
        return
    row.update(failures=F("failures") + 1, last_error=outcome.words, last_failed_at=now)
    failures = row.values_list("failures", flat=True).get()
    if given_up or failures >= ALERT_AFTER_FAILURES:
        services.raise_alert(
            project_id=channel.project_id,
            kind=AlertKind.CHANNEL,
            subject=key,
            sentence=f"{channel.name} cannot send alerts. {outcome.words}",
            severity=Severity.WARNING,
            dedupe_key=key,
            clock=clock,
        )


@contextmanager
def _free_channel(now: datetime) -> Iterator[str | None]:
    """A channel with a due delivery that no other thread of this process uses. None if there is none."""
    due = _due(now).order_by("due_at")
    waiting = list(dict.fromkeys(due.values_list("channel_id", flat=True)[:500]))
    with _busy_lock:
        chosen = next((channel_id for channel_id in waiting if channel_id not in _busy), None)
        if chosen is not None:
            _busy.add(chosen)
    try:
        yield chosen
    finally:
        if chosen is not None:
            with _busy_lock:
                _busy.discard(chosen)


def _place() -> str:
    """The process namespace: this machine and container, within which process ids are comparable."""
    try:
        return f"{platform.node()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _process() -> str:
    return f"{_place()} {os.getpid()}"


def _is_gone(holder: str) -> bool:
    """Whether the holder was a process of this namespace that has ended. False if unknown."""
    place, _, rest = holder.partition(" ")
    number = rest.partition(" ")[0]
    if not place or place != _place() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
