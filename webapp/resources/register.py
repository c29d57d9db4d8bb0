"""The register of one run's resources in one account, in the database. Each method commits before it returns."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q, QuerySet

from cloud.accounts.register import Holder, Kind, NameTaken, RegisterClosed, wait_s
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.models import Connection
from webapp.jobs import failpoints
from webapp.jobs.models import Job
from webapp.resources import late_rent
from webapp.resources.models import LIVE, CreateTimes, Holding, ResourceState


class SubscriptionCreates:
    """Implements `cloud.accounts.register.CreateCounter` for the subscription and region of a connection. For any
    thread.

    Projects that connect the same subscription share its count. Requests of other programs are unknown here.
    """

    def __init__(self, connection_id: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection_id = connection_id
        self._clock = clock

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        with no_connection_left(), transaction.atomic():
            account = Connection.objects.only("subscription_id", "region").get(pk=self._connection_id)
            place = f"azure/{account.subscription_id}/{account.region}"
            CreateTimes.objects.get_or_create(place=place)
            row = CreateTimes.objects.select_for_update().get(place=place)
            now_s = self._clock.now().timestamp()
            longest_s = max(window_s for _, window_s in windows)
            lately = [at for at in row.moments if now_s - longest_s < at <= now_s]
            left_s = wait_s(lately, windows, now_s)
            if not left_s:
                row.moments = [*lately, now_s]
                row.save(update_fields=["moments"])
            return left_s


@contextmanager
def no_connection_left() -> Iterator[None]:
    """Close the database connection of a platform's own thread when the block ends; nothing else would close it."""
    try:
        yield
    finally:
        if threading.current_thread() is not threading.main_thread():
            connection.close()


TAKEN_OVER = "The next run of the job took its name."


def held(now: datetime) -> Q:
    """Holdings whose run goes on: their job's lease is valid by the database's clock, under their epoch."""
    return Q(job__lease_epoch=F("epoch"), job__lease_expires_at__gt=now) & ~Q(job__lease_owner="")


class DatabaseRegister:
    """Implements `cloud.accounts.register.Register` for the run of `job_id` under `epoch`. Safe in any thread."""

    def __init__(self, connection_id: str, job_id: str, epoch: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection_id = connection_id
        self._job_id = job_id
        self._epoch = epoch
        self._clock = clock

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        try:
            with no_connection_left(), transaction.atomic():
                self._require_run()
                self._intend(name, kind, expires_unix_s, facts)
        except IntegrityError:
            raise NameTaken(f"Another run is creating {name} at this moment.") from None
        failpoints.reach("after_intent")

    def _intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        holding = self._locked(Holding.objects.filter(connection_id=self._connection_id, name=name))
        now = self._clock.now()
        if holding is not None and (holding.job_id, holding.epoch) == (self._job_id, self._epoch):
            return
        if holding is not None:
            self._take_over(holding, now)
        Holding.objects.create(
            connection_id=self._connection_id,
            job_id=self._job_id,
            epoch=self._epoch,
            kind=kind,
            name=name,
            state=ResourceState.INTENDED,
            facts=dict(facts),
            intended_at=now,
            since=now,
            expires_at=_moment(expires_unix_s),
        )

    def _take_over(self, holding: Holding, now: datetime) -> None:
        """Close the row of a run that has ended, so that its name is free. Its rent is booked to that run."""
        if holding.state == ResourceState.ENDING:
            raise NameTaken(f"{holding.name} is being ended at this moment.")
        if Holding.objects.filter(held(self._clock.shared_now()), pk=holding.pk).exists():
            assert holding.job is not None
            raise NameTaken(f"{holding.name} is held by {holding.job.name}.")
        holding.state, holding.reason, holding.ended_at, holding.since = (
            ResourceState.GONE,
            TAKEN_OVER,
            now,
            now,
        )
        holding.save()
        late_rent.book(holding, now, clock=self._clock)

    def made(self, name: str, provider_id: str) -> None:
        failpoints.reach("before_made")
        with no_connection_left(), transaction.atomic():
            self._require_run()
            rows = self._mine(name).filter(state=ResourceState.INTENDED)
            rows.update(state=ResourceState.EXISTS, provider_id=provider_id, since=self._clock.now())
        failpoints.reach("after_made")

    def renew(self, name: str, expires_unix_s: float) -> None:
        with transaction.atomic():
            self._require_run()
            self._mine(name).exclude(state=ResourceState.ENDING).update(expires_at=_moment(expires_unix_s))

    def ending(self, name: str) -> None:
        rows = self._mine(name).exclude(state=ResourceState.ENDING)
        rows.update(state=ResourceState.ENDING, since=self._clock.now(), reason="Its run releases it.")
        failpoints.reach("after_ending")

    def gone(self, name: str) -> None:
        failpoints.reach("before_gone")
        now = self._clock.now()
        self._mine(name).update(state=ResourceState.GONE, since=now, ended_at=now)
        failpoints.reach("after_gone")

    def _mine(self, name: str) -> QuerySet[Holding]:
        return Holding.objects.filter(
            connection_id=self._connection_id,
            name=name,
            job_id=self._job_id,
            epoch=self._epoch,
            state__in=LIVE,
        )

    def _require_run(self) -> None:
        held_by_us = Job.objects.filter(pk=self._job_id, lease_epoch=self._epoch).exclude(lease_owner="")
        if not held_by_us.exists():
            raise RegisterClosed(f"job {self._job_id} is no longer run under epoch {self._epoch}")

    def _locked(self, rows: QuerySet[Holding]) -> Holding | None:
        rows = rows.filter(state__in=LIVE)
        if connection.features.has_select_for_update:
            rows = rows.select_for_update(of=("self",))
        return rows.select_related("job").first()


def _moment(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)


def holder(job: Job, epoch: int, connection_id: str, clock: Clock) -> Holder:
    """The holder of resources that the run of `job` under `epoch` creates in the account of a connection."""
    register = DatabaseRegister(connection_id, job.pk, epoch, clock=clock)
    creates = SubscriptionCreates(connection_id, clock=clock)
    return Holder(register, connection_id, job.pk, epoch, job.project.slug, creates=creates)
