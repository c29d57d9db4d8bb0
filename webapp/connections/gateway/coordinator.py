"""The coordinator's side of a mailbox in the database, for the job's own process (`training.engine.ports.Mailbox`)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

import redis
from django.conf import settings
from django.db import transaction

from cloud.platforms.options import PLATFORMS
from cloud.platforms.pulled import ReachableMailbox
from training.engine.ports import Offer, OfferEnd, Puller
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.gateway import queries, services
from webapp.connections.gateway.models import Box, CallState, HeldWeights, Parcel, PulledCall, SeenPuller

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_LOOK_UNHEARD_S = 0.2
_REMEMBERED_S = 3600.0
_FORGET_EVERY_S = 60.0


class MailboxClosed(Exception):
    """The box is no longer this run's: another run opened it, or the job is over."""


def open_mailbox(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> ReachableMailbox:
    """The job's mailbox, opened for this run, and what pullers need to reach it.

    A user starts their own machines once. These outlive the job's process, though not the job.
    """
    box = services.open_box(job_id=job_id, epoch=epoch, clock=clock)
    own_machines = PLATFORMS[box.job.spec["platform"]["kind"]].people_start_actors
    return ReachableMailbox(
        DatabaseMailbox(job_id, epoch, clock=clock, sends_away=not own_machines),
        settings.STARLING_BASE_URL,
        lambda: services.new_token(job_id=job_id, clock=clock),
    )


class DatabaseMailbox:
    """For one thread, except `wake`. Raises MailboxClosed once another run has opened the box."""

    def __init__(
        self, job_id: str, epoch: int, *, clock: Clock = SYSTEM_CLOCK, sends_away: bool = True
    ) -> None:
        self._sends_away = sends_away
        self._job_id = job_id
        self._epoch = epoch
        self._clock = clock
        self._calls = PulledCall.objects.filter(box_id=job_id)
        self._listener = _DoorbellListener(job_id)
        self._forgot_s = time.monotonic()

    @transaction.atomic
    def publish(self, sha256: str, blob: bytes) -> None:
        self._require_mine()
        HeldWeights.objects.update_or_create(box_id=self._job_id, sha256=sha256, defaults={"data": blob})

    def drop(self, sha256s: Sequence[str]) -> None:
        HeldWeights.objects.filter(box_id=self._job_id, sha256__in=list(sha256s)).delete()

    @transaction.atomic
    def offer(self, batch: Sequence[Offer]) -> None:
        self._require_mine()
        now = self._now()
        known = set(
            self._calls.filter(call_id__in=[call.call_id for call in batch]).values_list("call_id", flat=True)
        )
        new = {call.call_id: call for call in batch if call.call_id not in known}
        rows = PulledCall.objects.bulk_create(
            PulledCall(
                box_id=self._job_id,
                call_id=call.call_id,
                begin_by_unix_s=call.begin_by_unix_s,
                lease_s=call.lease_s,
                most_s=call.most_s,
                most_bytes=call.most_bytes,
                most_starts=call.most_starts,
                offered_unix_s=now,
            )
            for call in new.values()
        )
        Parcel.objects.bulk_create(Parcel(call=row, data=new[row.call_id].request) for row in rows)
        services.offers_on_commit(self._job_id)

    def withdraw(self, call_ids: Sequence[str]) -> None:
        open_calls = self._calls.filter(
            call_id__in=list(call_ids), state__in=(CallState.WAITING, CallState.LEASED)
        )
        open_calls.update(state=CallState.WITHDRAWN, taken=True)

    def take(self, timeout_s: float) -> list[OfferEnd]:
        end_s = time.monotonic() + timeout_s
        while True:
            self._listener.clear()
            taken = self._found()
            left_s = end_s - time.monotonic()
            if taken or left_s <= 0 or self._listener.woken():
                return taken
            self._listener.wait(min(left_s, _LOOK_EVERY_S if self._listener.hears else _LOOK_UNHEARD_S))

    def wake(self) -> None:
        self._listener.wake()

    def stay(self, seconds: float) -> None:
        mine = Box.objects.filter(pk=self._job_id, epoch=self._epoch, closed=False)
        if not mine.update(stay_until_unix_s=self._now() + seconds):
            raise MailboxClosed(f"the mailbox of {self._job_id} is another run's, or closed")

    def pullers(self) -> list[Puller]:
        return queries.pullers(self._job_id)

    def dismiss(self, names: Sequence[str]) -> None:
        SeenPuller.objects.filter(box_id=self._job_id, name__in=list(names)).update(leaving=True)
        services.offers_on_commit(self._job_id)

    def close(self) -> None:
        if self._sends_away:
            services.close_box(job_id=self._job_id, epoch=self._epoch)
        else:
            services.leave_box(job_id=self._job_id, epoch=self._epoch, clock=self._clock)
        self._listener.close()

    def _found(self) -> list[OfferEnd]:
        now = self._now()
        self._forget(now)
        if self._calls.filter(services.due(now)).exists():
            with transaction.atomic():
                services.sweep(self._job_id, now)
        ends = self._calls.filter(state__in=(CallState.ANSWERED, CallState.USED_UP), taken=False)
        calls = list(ends.order_by("heard_unix_s", "pk"))
        answered = [call.pk for call in calls if call.state == CallState.ANSWERED]
        answers = dict(Parcel.objects.filter(pk__in=answered).values_list("pk", "data"))
        if calls:
            taken = [call.pk for call in calls]
            with transaction.atomic():
                self._calls.filter(pk__in=taken).update(taken=True)
                Parcel.objects.filter(pk__in=taken).delete()
        # No write follows this one: deliveries that are marked as taken are returned.
        return [_delivery(call, answers.get(call.pk), now) for call in calls]

    def _forget(self, now: float) -> None:
        """Delete calls that ended long ago: no second answer to one can still arrive."""
        if time.monotonic() - self._forgot_s > _FORGET_EVERY_S:
            self._calls.filter(taken=True, offered_unix_s__lt=now - _REMEMBERED_S).delete()
            self._forgot_s = time.monotonic()

    def _require_mine(self) -> None:
        mine = Box.objects.select_for_update().filter(pk=self._job_id, epoch=self._epoch, closed=False)
        if not mine.exists():
            raise MailboxClosed(f"the mailbox of {self._job_id} is another run's, or closed")

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _delivery(call: PulledCall, answer: bytes | memoryview | None, now: float) -> OfferEnd:
    return OfferEnd(
        call.call_id,
        None if answer is None else bytes(answer),
        len(call.began),
        call.offered_unix_s,
        call.leased_unix_s,
        call.heard_unix_s if answer is not None else now,
        call.puller,
    )


class _DoorbellListener:
    """Listens for the doorbell in a thread without the database. Without Redis, the mailbox polls more often."""

    def __init__(self, job_id: str) -> None:
        self._channel = f"{services.ANSWERS}{job_id}"
        self._rung = threading.Event()
        self._woken = False
        self._over = threading.Event()
        self.hears = False
        self._thread = threading.Thread(target=self._listen, name="mailbox bell", daemon=True)
        self._thread.start()

    def clear(self) -> None:
        self._rung.clear()

    def wait(self, seconds: float) -> None:
        self._rung.wait(seconds)

    def wake(self) -> None:
        self._woken = True
        self._rung.set()

    def woken(self) -> bool:
        woken, self._woken = self._woken, False
        return woken

    def close(self) -> None:
        self._over.set()
        self._thread.join(2.0)

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                with (
                    redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, retry=None) as client,
                    client.pubsub() as ear,
                ):
                    ear.subscribe(self._channel)
                    while not self._over.is_set():
                        message = ear.get_message(timeout=0.5)
                        if message is not None:
                            # The first message confirms the subscription. Look then: an earlier ring was missed.
                            self.hears = True
                            self._rung.set()
            except (redis.RedisError, OSError) as error:
                log.debug("no bells for a mailbox: %s", error)
            self.hears = False
            self._over.wait(1.0)
