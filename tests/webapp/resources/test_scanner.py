"""Looks at accounts: what is left over is ended and billed, what is lost is settled, and no account stops another."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.accounts.reconciling import CREATOR_GONE, ENDED_BY_ITSELF, ReconcilingPatience
from cloud.accounts.register import FoundResource
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import provisioned_capacity
from cloud.money.pricing import total
from cloud.platforms.aws.provisioned import ProvisionedConcurrency
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from rig.servers import wait_until
from tests.factories import FixedClock
from tests.webapp import held
from tests.webapp.bookkeeping import assert_whole
from tests.webapp.held import FUNCTION, MB, PaperCloud
from training.engine.ports import Reservation
from webapp.alerts.models import Alert
from webapp.connections.models import Connection
from webapp.database.leases import LEASE_TTL
from webapp.jobs.models import Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running.leases import renew_lease
from webapp.jobs.running.recovery import run_ended
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Charge
from webapp.resources import scanner
from webapp.resources.models import Holding, Look, ResourceState
from webapp.resources.scanner import scan

pytestmark = pytest.mark.django_db

NAME = f"{FUNCTION}:1"
UNIT = total(provisioned_capacity(PriceBook.load(), "us-east-1", MB, 1).lines(300 * 10**9))


@pytest.fixture(scope="module")
def cloud() -> Iterator[tuple[AwsEmulator, DemoAccount]]:
    with held.account() as (aws, demo):
        yield aws, demo


@pytest.fixture
def connection(cloud: tuple[AwsEmulator, DemoAccount], settings: Any, tmp_path: Any) -> Connection:
    aws, demo = cloud
    settings.STARLING_DATA, settings.STARLING_MASTER_KEYS = tmp_path, []
    settings.STARLING_AWS_ENDPOINT = aws.endpoint
    return held.connect(demo)


def _paper(clock: FixedClock, connection: Connection, **platform: Any) -> tuple[PaperCloud, Job, Any]:
    """A job that asked for one instance, in an account that shows what it is told to."""
    job = held.make_lambda_job(connection, clock, provisioned=1, **platform)
    holder = held.holder(connection, job, held.run_of(job, clock), clock)
    expires = (clock.now() + timedelta(seconds=120)).timestamp()
    holder.register.intend(NAME, "provisioned", expires, {"resource": "provisioned", "instances": 1})
    return (
        PaperCloud([FoundResource(NAME, "provisioned", "arn", connection.pk, holder.run)]),
        job,
        holder.register,
    )


def _look(connection: Connection, clock: FixedClock, paper: PaperCloud, **options: Any) -> Any:
    return scan(connection, clock=clock, find=lambda there: paper, **options)


def _keep_lease(job: Job, clock: FixedClock) -> None:
    assert renew_lease(job_id=job.pk, epoch=job.lease_epoch, clock=clock)


def test_a_killed_run_leaves_nothing_behind(
    cloud: tuple[AwsEmulator, DemoAccount], connection: Connection
) -> None:
    """On the emulated cloud, with the real SDK: bought, its process gone, ended at the next look."""
    aws, demo = cloud
    job = held.make_lambda_job(connection, provisioned=1)
    epoch = held.run_of(job)
    ready = ProvisionedConcurrency(
        demo.by_keys.open().client("lambda"), 1, held.holder(connection, job, epoch)
    )
    ready._create(FUNCTION)
    assert ready.qualifier == "1"
    result = scan(connection)
    assert result is not None
    assert [(one.name, one.action) for one in result.decisions] == [(NAME, "leave")]
    assert held.stand(aws) == [NAME]
    held.run_dies(job)
    dry = scan(connection, dry_run=True)
    assert dry is not None
    assert [(one.action, one.orphaned) for one in dry.decisions] == [("end", True)]
    assert held.stand(aws) == [NAME]
    scan(connection)
    assert held.stand(aws) == []
    row = Holding.objects.get()
    assert (row.state, row.reason) == (ResourceState.ENDING, CREATOR_GONE)
    sentence = job.events.last().payload["text"]
    assert f"warm functions ({NAME})" in sentence
    assert CREATOR_GONE in sentence
    alert = Alert.objects.get()
    assert (alert.kind, alert.subject, alert.sentence) == ("orphan", f"job:{job.pk}", sentence)
    scan(connection)
    assert Look.objects.get(connection=connection).sentence == ""


def test_an_orphan_is_billed_to_its_job_for_all_the_time_it_stood(connection: Connection) -> None:
    clock = FixedClock()
    paper, job, register = _paper(clock, connection)
    ledger = DatabaseLedger(job.account.pk, 1, clock=clock)
    assert ledger.reserve([Reservation("rent-provisioned-1", "rent", 1, UNIT)]) == [True]
    register.made(NAME, "arn")
    clock.forward(1000)  # this server was down for a while
    assert run_ended(
        job_id=job.pk, epoch=1, why=Reason.PROCESS_DIED.change(how="killed by SIGKILL"), clock=clock
    )
    _look(connection, clock, paper)
    assert paper.ended == [NAME]
    paper.shown.clear()
    for _ in range(3):
        clock.forward(10)
        _look(connection, clock, paper)
    row = Holding.objects.get()
    assert row.state == ResourceState.GONE
    assert Alert.objects.get().state == "resolved"
    # 1,010 s stood in all are four started units of five minutes; the first was paid.
    late = Charge.objects.get(name__contains="late")
    assert (late.settled_picodollars, late.basis, late.epoch) == (3 * UNIT, "metered", 1)
    assert late.lines[0]["sku"] == "lambda.provisioned.x86"
    job.refresh_from_db()
    assert_whole(job)
    assert job.account.spent_picodollars == 4 * UNIT
    for _ in range(3):
        clock.forward(10)
        _look(connection, clock, paper)
    assert Charge.objects.filter(name__contains="late").count() == 1


def test_what_was_paid_for_costs_nothing_more(connection: Connection) -> None:
    clock = FixedClock()
    paper, job, register = _paper(clock, connection)
    DatabaseLedger(job.account.pk, 1, clock=clock).reserve(
        [Reservation("rent-provisioned-1", "rent", 1, UNIT)]
    )
    register.made(NAME, "arn")
    clock.forward(100)
    _look(connection, clock, paper)
    paper.shown.clear()
    for _ in range(3):
        clock.forward(10)
        _look(connection, clock, paper)
    assert Holding.objects.get().state == ResourceState.GONE
    assert not Charge.objects.filter(name__contains="late").exists()


def test_what_never_came_to_be_costs_nothing(connection: Connection) -> None:
    clock = FixedClock()
    paper, _, _ = _paper(clock, connection)
    paper.shown.clear()
    Job.objects.update(lease_expires_at=clock.now() + timedelta(seconds=12))
    clock.forward(12)
    states = []
    for _ in range(10):
        _look(connection, clock, paper)
        states.append(Holding.objects.get().state)
        clock.forward(10)
    # Twelve seconds old at the first look; at sixty and more it must show, and it has been absent for long.
    assert states == ["intended"] * 5 + ["gone"] * 5
    assert not Charge.objects.exists()
    assert paper.ended == []


def test_a_lost_reply_is_found_to_have_worked(connection: Connection) -> None:
    clock = FixedClock()
    paper, job, _ = _paper(clock, connection)
    clock.forward(5)
    _keep_lease(job, clock)
    _look(connection, clock, paper)
    row = Holding.objects.get()
    assert (row.state, row.provider_id) == (ResourceState.EXISTS, "arn")


def test_nothing_is_forgotten_for_one_look_that_does_not_show_it(connection: Connection) -> None:
    clock = FixedClock()
    paper, job, register = _paper(clock, connection)
    register.made(NAME, "arn")
    shown = list(paper.shown)
    for seconds, there in ((60, True), (10, False), (10, True), (10, False), (10, False), (10, False)):
        clock.forward(seconds)
        job.refresh_from_db()
        Job.objects.filter(pk=job.pk).update(lease_expires_at=clock.now() + LEASE_TTL)
        Holding.objects.update(expires_at=clock.now() + timedelta(seconds=60))
        paper.shown = list(shown) if there else []
        _look(connection, clock, paper)
        if seconds == 10 and there:
            assert Holding.objects.get().missing_since is None
    row = Holding.objects.get()
    assert row.state == ResourceState.LOST
    assert "cloud: warm functions" in job.events.last().payload["text"]


def test_a_delete_that_was_not_done_is_requested_again(connection: Connection) -> None:
    clock = FixedClock()
    paper, _, register = _paper(clock, connection)
    register.ending(NAME)
    for seconds in (5, 5, 5, 5):
        clock.forward(seconds)
        _look(connection, clock, paper)
    assert paper.ended == [NAME, NAME]
    assert Holding.objects.get().state == ResourceState.ENDING


def test_what_comes_back_from_the_dead_is_ended(connection: Connection) -> None:
    clock = FixedClock()
    paper, _, register = _paper(clock, connection)
    register.gone(NAME)
    clock.forward(20)
    _look(connection, clock, paper)
    assert paper.ended == [NAME]
    row = Holding.objects.get()
    assert (row.state, row.ended_at) == (ResourceState.ENDING, None)


def test_a_stranger_with_our_tags_is_ended_and_billed_to_the_run_it_names(connection: Connection) -> None:
    """As when rows were lost with a database that was restored from yesterday."""
    clock = FixedClock()
    paper, job, _ = _paper(clock, connection)
    Holding.objects.all().delete()
    found = paper.shown[0]
    paper.shown = [
        FoundResource(found.name, "provisioned", "arn", connection.pk, found.run, None, clock.now().timestamp() - 700,
              {"resource": "provisioned"}),
        FoundResource("other:1", "provisioned", "arn2", "con_theirs"),
    ]  # fmt: skip
    _look(connection, clock, paper)
    assert paper.ended == [found.name]
    assert Look.objects.get().others == ["other:1"]
    paper.shown.clear()
    for _ in range(3):
        clock.forward(10)
        _look(connection, clock, paper)
    row = Holding.objects.get()
    assert (row.state, row.job) == (ResourceState.GONE, job)
    assert Charge.objects.get().settled_picodollars == 3 * UNIT


def test_what_is_wanted_again_by_the_time_of_the_deed_is_left(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease was late by a moment: judged dead, and alive when its row is locked."""
    clock = FixedClock()
    paper, job, register = _paper(clock, connection)
    register.made(NAME, "arn")
    clock.forward(LEASE_TTL.total_seconds())
    compare = scanner.compare

    def while_it_comes_back(*arguments: Any, **options: Any) -> Any:
        decisions = compare(*arguments, **options)
        _keep_lease(job, clock)
        return decisions

    monkeypatch.setattr(scanner, "compare", while_it_comes_back)
    result = _look(connection, clock, paper)
    assert [one.action for one in result.decisions] == ["end"]
    assert paper.ended == []
    assert Holding.objects.get().state == ResourceState.EXISTS


def test_two_scans_do_not_run_at_once(connection: Connection) -> None:
    clock = FixedClock()
    paper = PaperCloud()
    inner: list[Any] = []

    def find(there: Connection) -> PaperCloud:
        inner.append(_look(connection, clock, paper))
        return paper

    assert scan(connection, clock=clock, find=find) is not None
    assert inner == [None]
    # A scan that died holds up no other for long.
    Look.objects.update(claimed_until=clock.now() + timedelta(seconds=90))
    assert _look(connection, clock, paper) is None
    clock.forward(90)
    assert _look(connection, clock, paper) is not None


def _denied() -> ClientError:
    return ClientError({"Error": {"Code": "ExpiredTokenException", "Message": "secret text"}}, "List")


def test_an_account_that_lets_no_one_in_is_said_and_asked_less_often(
    cloud: tuple[AwsEmulator, DemoAccount], connection: Connection
) -> None:
    clock = FixedClock()
    paper, _, _ = _paper(clock, connection)
    other = held.connect(cloud[1])
    paper.fails = _denied()
    due = []
    for _ in range(12):
        here = scanner.due(clock.now())
        due.append(connection in here)
        for one in here:
            scan(one, clock=clock, find=lambda there: paper if there == connection else PaperCloud())
        clock.forward(10)
    assert due == [True, False, True, False, False, False, True] + [False] * 5
    look = Look.objects.get(connection=connection)
    assert (look.at, look.failures) == (None, 3)
    assert Alert.objects.get().sentence.startswith("Starling runs resources")
    assert connection.name in Alert.objects.get().sentence
    assert "secret text" not in look.sentence
    assert look.sentence.endswith(".")
    assert Look.objects.get(connection=other).failures == 0
    assert clock.now() - Look.objects.get(connection=other).at <= scanner.SWEEP_EVERY + scanner.EVERY
    assert Holding.objects.get().state == ResourceState.INTENDED


def test_one_thing_that_cannot_be_ended_does_not_keep_the_next_standing(connection: Connection) -> None:
    clock = FixedClock()
    paper, _, _ = _paper(clock, connection)
    run = paper.shown[0].run
    paper.shown.insert(0, FoundResource("a:1", "provisioned", "arn0", connection.pk, run))
    clock.forward(LEASE_TTL.total_seconds())
    end = paper.end

    def refuse_the_first(found: FoundResource) -> None:
        if found.name == "a:1":
            raise _denied()
        end(found)

    paper.end = refuse_the_first  # type: ignore[method-assign]
    result = _look(connection, clock, paper)
    assert result.sentence.startswith("a:1 ")
    assert paper.ended == [NAME]
    look = Look.objects.get(connection=connection)
    assert (look.at, look.failures) == (clock.now(), 1)


def test_accounts_are_watched_from_their_set_up_on(
    cloud: tuple[AwsEmulator, DemoAccount], connection: Connection
) -> None:
    clock = FixedClock()
    fresh = held.connect(cloud[1])
    fresh.set_up.delete()
    assert scanner.scanned_connections() == [connection]
    scan(connection, clock=clock, find=lambda there: PaperCloud())
    assert scanner.due(clock.now()) == []
    clock.forward(59)
    assert scanner.due(clock.now()) == []
    clock.forward(1)
    assert scanner.due(clock.now()) == [connection]
    job = held.make_lambda_job(connection, clock)
    register = held.holder(connection, job, held.run_of(job, clock), clock).register
    scan(connection, clock=clock, find=lambda there: PaperCloud())
    register.intend(NAME, "provisioned", clock.now().timestamp() + 60, {})
    clock.forward(10)
    assert scanner.due(clock.now()) == [connection]


def test_expired_sessions_and_throttling_do_not_break_a_look_on_the_emulated_cloud(
    cloud: tuple[AwsEmulator, DemoAccount], connection: Connection
) -> None:
    aws, _ = cloud
    aws.faults.order("throttle", 10)
    result = scan(connection)
    assert result is not None
    assert result.sentence
    aws.faults.end()
    wait_until(lambda: scan(connection), within_s=60, what="a look that works")
    assert Look.objects.get(connection=connection).sentence == ""


def test_patience_may_be_less_where_a_cloud_shows_at_once(connection: Connection) -> None:
    clock = FixedClock()
    paper, _, register = _paper(clock, connection)
    register.ending(NAME)
    paper.shown.clear()
    quick = ReconcilingPatience(appears_within_s=0.0, disappears_within_s=0.0, ask_again_after_s=0.0)
    for _ in range(2):
        _look(connection, clock, paper, patience=quick)
    assert Holding.objects.get().state == ResourceState.GONE


def test_a_group_that_ended_by_itself_is_settled_and_cleared_away(connection: Connection) -> None:
    clock = FixedClock()
    job = held.make_lambda_job(connection, clock)
    register = held.holder(connection, job, held.run_of(job, clock), clock).register
    name = "starling-job-a-e1-1"
    register.intend(name, "container_group", clock.now().timestamp() + 60, {"resource": "actor_group-1"})
    register.made(name, "path")
    paper = PaperCloud()
    clock.forward(100)
    for _ in range(3):
        _look(connection, clock, paper)
        clock.forward(10)
    row = Holding.objects.get()
    assert (row.state, row.reason) == (ResourceState.GONE, ENDED_BY_ITSELF)
    assert paper.ended == [name]
    assert not Alert.objects.exists()
