"""The mailbox in the database keeps the contract of all mailboxes, also between processes that race."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from cloud.platforms.gateway.store import WaitingPuller
from tests.factories import FixedClock, make_job, make_running_job
from tests.mailbox_contract import WEIGHTS, MailboxContract, Post
from training.engine.ports import Offer
from webapp.connections.gateway import services
from webapp.connections.gateway.coordinator import DatabaseMailbox, MailboxClosed, open_mailbox
from webapp.connections.gateway.models import (
    Box,
    BoxToken,
    CallState,
    HeldWeights,
    Parcel,
    PulledCall,
    SeenPuller,
)
from webapp.connections.gateway.store import DatabaseStore
from webapp.jobs.models import Job


@pytest.mark.django_db
class TestDatabaseMailbox(MailboxContract):
    @pytest.fixture
    def post(self, db: None) -> Iterator[Post]:
        clock = FixedClock()
        job, epoch = make_running_job(clock=clock)
        found = open_mailbox(job_id=job.pk, epoch=epoch, clock=clock)
        yield Post(
            found.mailbox,
            DatabaseStore(clock),
            job.pk,
            found.new_token(),
            lambda: clock.now().timestamp(),
            clock.forward,
        )
        found.mailbox.close()

    def test_nothing_but_the_box_and_its_tokens_outlives_the_run(self, post: Post) -> None:
        post.mailbox.publish(WEIGHTS, b"numbers")
        post.offer("c1", "c2")
        post.given("p1")
        post.mailbox.close()
        for table in (PulledCall, Parcel, HeldWeights, SeenPuller):
            assert not table.objects.exists()
        assert Box.objects.get().closed

    def test_bytes_go_once_they_are_taken(self, post: Post) -> None:
        post.offer("c1")
        post.given("p1")
        post.bring("p1", "c1")
        assert bytes(Parcel.objects.get().data) == b"done"
        post.taken()
        assert not Parcel.objects.exists()


@pytest.mark.django_db
def test_a_token_is_stored_as_a_hash_and_ends_with_its_job() -> None:
    job, _ = make_running_job()
    token = services.new_token(job_id=job.pk, user=job.created_by)
    row = BoxToken.objects.get()
    assert token.partition(".")[2] not in (row.sha256, *map(str, vars(row).values()))
    assert DatabaseStore().admitted(token) == job.pk
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    assert DatabaseStore().admitted(token) is None


@pytest.mark.django_db
def test_a_token_of_one_job_does_not_open_anothers_box() -> None:
    first, second = make_running_job()[0], make_running_job()[0]
    token = services.new_token(job_id=first.pk)
    services.new_token(job_id=second.pk)
    assert DatabaseStore().admitted(token) == first.pk
    number = BoxToken.objects.get(box_id=second.pk).pk
    assert DatabaseStore().admitted(f"{number}.{token.partition('.')[2]}") is None


@pytest.mark.django_db
def test_a_later_run_finds_an_empty_box_and_the_earlier_one_cannot_write() -> None:
    job, epoch = make_running_job()
    earlier = open_mailbox(job_id=job.pk, epoch=epoch).mailbox
    earlier.offer([Offer("e1-c", b"", 2e9, 10.0, 10.0, 10)])
    token = services.new_token(job_id=job.pk)
    later = open_mailbox(job_id=job.pk, epoch=epoch + 1)
    assert not PulledCall.objects.exists()
    with pytest.raises(MailboxClosed):
        earlier.offer([Offer("e1-d", b"", 2e9, 10.0, 10.0, 10)])
    with pytest.raises(MailboxClosed):
        earlier.stay(10.0)
    with pytest.raises(MailboxClosed):
        earlier.publish(WEIGHTS, b"")
    earlier.close()
    assert not Box.objects.get().closed
    # Machines that wait for the job need not be told anew.
    assert DatabaseStore().admitted(token) == job.pk
    later.mailbox.close()


@pytest.mark.django_db
def test_what_a_dead_run_left_is_tidied_once_its_job_is_over() -> None:
    job, epoch = make_running_job()
    mailbox = open_mailbox(job_id=job.pk, epoch=epoch).mailbox
    mailbox.offer([Offer("c", b"", 2e9, 10.0, 10.0, 10)])
    services.new_token(job_id=job.pk)
    assert services.tidy() == 0
    Job.objects.filter(pk=job.pk).update(observed="cancelled")
    assert services.tidy() == 1
    assert services.tidy() == 0
    assert not PulledCall.objects.exists()
    assert not BoxToken.objects.exists()
    mailbox.close()


@pytest.mark.django_db(transaction=True)
def test_gateways_that_race_hand_each_call_to_one_puller() -> None:
    job, epoch = make_running_job()
    mailbox = DatabaseMailbox(services.open_box(job_id=job.pk, epoch=epoch).pk, epoch)
    mailbox.offer([Offer(f"c{n}", b"", 2e9, 1000.0, 1000.0, 10) for n in range(60)])
    handed: list[str] = []

    def gateway(number: int) -> None:
        store = DatabaseStore()
        try:
            for turn in range(10):
                callers = [WaitingPuller(f"p{number}-{turn}-{n}", "u") for n in range(4)]
                handed.extend(given.call_id for given in store.hand_out(job.pk, callers).work.values())
        finally:
            connection.close()

    threads = [threading.Thread(target=gateway, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One may come away with less while another holds the rows; what is left is there for the next.
    rest = DatabaseStore().hand_out(job.pk, [WaitingPuller(f"last-{n}", "u") for n in range(60)])
    handed.extend(given.call_id for given in rest.work.values())
    assert sorted(handed) == sorted(f"c{n}" for n in range(60))
    assert all(len(call.began) == 1 for call in PulledCall.objects.filter(state=CallState.LEASED))
    mailbox.close()


@pytest.mark.django_db
def test_looking_into_an_empty_box_writes_nothing(django_assert_num_queries: object) -> None:
    job, epoch = make_running_job()
    mailbox = open_mailbox(job_id=job.pk, epoch=epoch).mailbox
    store, callers = DatabaseStore(), [WaitingPuller(f"p{n}", "u") for n in range(200)]
    store.hand_out(job.pk, callers)
    with django_assert_num_queries(3) as queries:  # type: ignore[operator]
        store.hand_out(job.pk, callers)
    assert all(query["sql"].startswith("SELECT") for query in queries.captured_queries)
    mailbox.close()


@pytest.mark.django_db
def test_a_machine_may_come_before_its_job() -> None:
    clock = FixedClock()
    job = make_job()
    token = services.new_token(job_id=job.pk, clock=clock)
    store = DatabaseStore(clock)
    assert store.admitted(token) == job.pk
    found = store.hand_out(job.pk, [WaitingPuller("p", "u")])
    assert found.open
    assert found.stay_until_unix_s > found.now_unix_s + 60
