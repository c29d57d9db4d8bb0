"""A database that is full or read-only while a job runs: the job waits, repeats no round and goes on by itself."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from cloud.accounts.register import Holder
from tests.factories import make_connection, make_job, make_project, make_spec
from tests.webapp.bookkeeping import assert_whole
from tests.webapp.held import make_lambda_job, run_of
from tests.webapp.spoiled_database import SPOILERS, make_read_only
from training.engine.ports import Offer
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.gateway.coordinator import open_mailbox
from webapp.connections.gateway.models import Box
from webapp.connections.gateway.store import DatabaseStore, WaitingPuller
from webapp.database.leases import LEASE_TTL, new_owner
from webapp.jobs.models import Event, EventKind, Job
from webapp.jobs.running import recovery
from webapp.jobs.running.database_wait import DatabaseWait, patient_holder, patient_mailbox
from webapp.jobs.running.leases import renew_lease, take_lease
from webapp.jobs.running.runner import run_job
from webapp.money.models import Charge
from webapp.resources.models import Holding, ResourceState
from webapp.resources.register import DatabaseRegister, SubscriptionCreates

pytestmark = pytest.mark.django_db(transaction=True)


class _Outage(threading.Event):
    """Spoils the run's database from `from_round` on, until the run has waited three times for it."""

    def __init__(self, job_id: str, spoil: Callable[[], Callable[[], object]], from_round: int) -> None:
        super().__init__()
        self._job_id = job_id
        self._spoil = spoil
        self._from_round = from_round
        self._mend: Callable[[], object] | None = None
        self.waits = 0

    def is_set(self) -> bool:
        if (
            self._mend is None
            and Job.objects.filter(pk=self._job_id, round_no__gte=self._from_round).exists()
        ):
            self._mend = self._spoil()
        return False

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        if self.waits == 3 and self._mend is not None:
            self._mend()
        return False


@pytest.mark.parametrize("from_round", [0, 3])
@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_run_waits_for_its_database_and_pays_no_round_twice(
    spoil: Callable[[], Callable[[], object]], from_round: int
) -> None:
    job = make_job(
        spec=make_spec(
            training__scaling__actors=2,
            training__rollout__steps_per_call=16,
            training__stop={"rounds": 6, "env_steps": None},
            training__checkpoints={"every_rounds": 4},
            training__evaluation={"every_rounds": 6, "episodes": 1},
            platform__workers=1,
        )
    )
    outage = _Outage(job.pk, spoil, from_round)
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=outage) == 0
    job.refresh_from_db()
    assert outage.waits >= 3
    assert (job.observed, job.round_no, job.crashes, job.losses) == ("succeeded", 6, 0, 0)
    assert not Event.objects.filter(job=job, kind=EventKind.RESUMED).exists()
    paid = Charge.objects.filter(account=job.account, kind="rollout").values_list("round_no", flat=True)
    assert sorted(paid) == sorted([*range(1, 7)] * 2)
    assert_whole(job)


class _ShortOutages(threading.Event):
    """A database that is read-only at the first try of each deed, and mended once the deed has waited."""

    def __init__(self) -> None:
        super().__init__()
        self._mend: Callable[[], object] | None = None

    def wait(self, timeout: float | None = None) -> bool:
        assert self._mend is not None
        self._mend()
        self._mend = None
        return False

    def __call__(self, deed: Callable[..., Any], *arguments: object) -> Any:
        self._mend = make_read_only()
        result = deed(*arguments)
        assert self._mend is None, "it did not wait"
        return result


def test_a_mailbox_waits_for_the_database_with_each_deed_and_delivers_each_answer_once() -> None:
    job = make_job()
    outage, store = _ShortOutages(), DatabaseStore()
    epoch = run_of(job, SYSTEM_CLOCK)
    opened = patient_mailbox(open_mailbox(job_id=job.pk, epoch=epoch), DatabaseWait(job.pk, outage))
    mailbox = opened.mailbox
    offers = [Offer(name, name.encode(), time.time() + 60, 60.0, 600.0, 100, 3) for name in ("c1", "c2")]
    outage(mailbox.publish, "a" * 64, b"weights")
    outage(mailbox.offer, offers)
    outage(mailbox.stay, 600.0)
    assert store.admitted(outage(opened.new_token)) == job.pk
    assert store.hand_out(job.pk, [WaitingPuller("p1", "", "")]).work["p1"].request == b"c1"
    assert store.receive(job.pk, "p1", "c1", b"done").word == "taken"
    assert [(one.call_id, one.answer) for one in outage(mailbox.take, 0.0)] == [("c1", b"done")]
    assert mailbox.take(0.0) == []
    outage(mailbox.withdraw, ["c2"])
    outage(mailbox.dismiss, ["p1"])
    outage(mailbox.drop, ["a" * 64])
    outage(mailbox.close)
    assert Box.objects.get().closed


def test_the_register_of_resources_waits_for_the_database_with_each_entry() -> None:
    account = make_connection(make_project(), region="us-east-1")
    job = make_lambda_job(account, SYSTEM_CLOCK, provisioned=2)
    outage = _ShortOutages()
    holder = patient_holder(
        Holder(
            DatabaseRegister(account.pk, job.pk, run_of(job, SYSTEM_CLOCK)),
            creates=SubscriptionCreates(account.pk),
        ),
        DatabaseWait(job.pk, outage),
    )
    register, soon = holder.register, time.time() + 100
    outage(register.intend, "f:1", "provisioned", soon, {"resource": "provisioned"})
    for deed, arguments, state in (
        (register.made, ("f:1", "arn"), ResourceState.EXISTS),
        (register.renew, ("f:1", soon + 60), ResourceState.EXISTS),
        (register.ending, ("f:1",), ResourceState.ENDING),
        (register.gone, ("f:1",), ResourceState.GONE),
    ):
        outage(deed, *arguments)
        assert Holding.objects.get().state == state
    assert outage(holder.creates.take, [(1, 60.0)]) == 0.0
    assert holder.creates.take([(1, 60.0)]) > 0.0


def test_a_run_whose_lease_ran_out_while_nothing_could_be_written_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = make_job()
    epoch = take_lease(job_id=job.pk, owner=new_owner())
    assert epoch is not None
    Job.objects.filter(pk=job.pk).update(observed="running")
    job.refresh_from_db()
    assert job.lease_expires_at is not None
    Job.objects.filter(pk=job.pk).update(lease_expires_at=job.lease_expires_at - 10 * LEASE_TTL)
    # The heartbeat's next try comes while the check waits for it.
    monkeypatch.setattr(recovery.time, "sleep", lambda _: renew_lease(job_id=job.pk, epoch=epoch))
    recovery.check_jobs()
    job.refresh_from_db()
    assert (job.observed, job.losses, job.lease_epoch) == ("running", 0, epoch)
