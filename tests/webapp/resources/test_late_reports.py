"""The terminal ledger is the meter: runs with faults through the database, their assumptions corrected from the log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws_lambda import LambdaOptions
from emulator.aws.demo import DemoAccount
from emulator.aws.meter import BilledInvocation, log_of
from emulator.aws.server import AwsEmulator
from emulator.aws.stub_functions import StubFunction
from emulator.faults import AwsFaults
from rig.servers import wait_until
from tests.cloud import calls
from tests.cloud.emulated_bills import executions, picodollars_of_calls
from tests.factories import FixedClock
from tests.figures import figures_in
from tests.webapp import held
from tests.webapp.bookkeeping import assert_whole
from tests.webapp.held import FUNCTION, MB
from training.engine.ports import Reservation
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Charge
from webapp.money.services import settle_leftovers
from webapp.resources import late_reports, queries
from webapp.resources.models import LogReading

pytestmark = pytest.mark.django_db

BOOK = PriceBook.load()
REGION = "us-east-1"
CALLS = 30
_SHARES = ("throttle", "service_error", "error_after", "lost_request", "lost_reply")


@pytest.fixture(scope="module")
def cloud() -> Iterator[tuple[AwsEmulator, DemoAccount]]:
    with held.account() as (aws, demo):
        yield aws, demo


@pytest.fixture(scope="module")
def result() -> Result:
    """What a call of the kind that is sent really gives."""
    found = execute(calls.rollout("any", None), calls.weights(), WarmCache())
    assert isinstance(found, Result)
    return found


@pytest.fixture
def job(cloud: tuple[AwsEmulator, DemoAccount], settings: Any, tmp_path: Any) -> Job:
    aws, demo = cloud
    settings.STARLING_DATA, settings.STARLING_MASTER_KEYS = tmp_path, []
    settings.STARLING_AWS_ENDPOINT = aws.endpoint
    aws.meter.invocations.clear()
    aws.logs.groups.clear()
    job = held.make_lambda_job(held.connect(demo))
    held.run_of(job)
    return job


class Run:
    """A job's platform behind its ledger, as the job's process has it."""

    def __init__(self, demo: DemoAccount, job: Job) -> None:
        self.job = job
        ledger = DatabaseLedger(job.account.pk, job.lease_epoch)
        options = LambdaOptions(region=REGION)
        self.inner = options.open(demo.by_keys)
        self.platform = MeteredPlatform(self.inner, ledger, options.tariff(BOOK, MB))
        self._weights = self.platform.publish(0, calls.weights())

    def submit(self, count: int) -> None:
        for number in range(count):
            name = f"{self.job.pk}-e{self.job.lease_epoch}-c{number}"
            self.platform.submit(calls.rollout(name, self._weights, deadline_s=10.0, memory_mb=MB))

    def hear(self, count: int) -> None:
        heard = 0
        while heard < count:
            heard += self.platform.next(10.0) is not None


def _bad_day(aws: AwsEmulator, result: Result, seed: int) -> None:
    luck = random.Random(seed)
    shares: Any = {kind: luck.uniform(0.0, 0.12) for kind in _SHARES}
    fresh = AwsFaults(seed=seed, shares=shares)
    aws.faults.shares, aws.faults._chance = fresh.shares, fresh._chance
    aws.invocations.stubs[FUNCTION] = StubFunction(luck.uniform(0.001, 0.02), result)


def _booked(job: Job) -> int:
    job.account.refresh_from_db()
    assert job.account.reserved_picodollars == 0
    return int(job.account.spent_picodollars + job.account.overrun_picodollars)


def _at_last(job: Job) -> FixedClock:
    """When nothing more can come to the log."""
    return FixedClock(SYSTEM_CLOCK.now() + timedelta(minutes=25))


SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_books_equal_the_meter_once_the_log_is_read(
    seed: int, cloud: tuple[AwsEmulator, DemoAccount], job: Job, result: Result
) -> None:
    aws, demo = cloud
    _bad_day(aws, result, seed)
    run = Run(demo, job)
    run.submit(CALLS)
    run.hear(CALLS)
    run.platform.close()
    aws.faults.end()
    wait_until(lambda: aws.invocations.in_flight == 0, within_s=60, what="all functions have ended")
    metered = picodollars_of_calls(aws.meter, BOOK, REGION)
    assert max(executions(aws.meter).values()) == 1
    assert _booked(job) >= metered
    assumed, _ = queries.assumed_in(job)
    reading = late_reports.read(job.pk)
    assert reading.sentence == ""
    assert _booked(job) >= metered
    # Some were lost on their way there: that these did not run is said only when they cannot run any more.
    assert reading.corrected + reading.left == assumed
    last = late_reports.read(job.pk, clock=_at_last(job))
    assert last.left == 0
    assert _booked(job) == metered
    assert queries.assumed_in(job) == (0, 0)
    job.refresh_from_db()
    assert_whole(job)


def test_the_days_are_bad(cloud: tuple[AwsEmulator, DemoAccount], job: Job, result: Result) -> None:
    """Calls that ran and were not heard of, and such as never ran, are both among them."""
    aws, demo = cloud
    found = absent = 0
    for seed in (2001, 2002, 2003):
        _bad_day(aws, result, seed)
        Charge.objects.all().delete()
        run = Run(demo, job)
        run.submit(CALLS)
        run.hear(CALLS)
        run.platform.close()
        aws.faults.end()
        reading = late_reports.read(job.pk)
        found, absent = found + reading.corrected, absent + reading.left
    assert found > 0
    assert absent > 0


def test_what_a_killed_process_had_in_flight_is_billed_as_it_ran(
    cloud: tuple[AwsEmulator, DemoAccount], job: Job, result: Result
) -> None:
    aws, demo = cloud
    aws.invocations.stubs[FUNCTION] = StubFunction(0.05, result)
    run = Run(demo, job)
    run.submit(CALLS)
    run.hear(3)
    run.inner.close()  # no one books what flies on
    wait_until(lambda: aws.invocations.in_flight == 0, within_s=60, what="all functions have ended")
    held.run_dies(job)
    assert settle_leftovers(job_id=job.pk, before_epoch=job.lease_epoch + 1, clock=SYSTEM_CLOCK) > 0
    metered = picodollars_of_calls(aws.meter, BOOK, REGION)
    assumed, amount = queries.assumed_in(job)
    assert assumed > 0
    assert _booked(job) - metered > amount / 2
    reading = late_reports.read(job.pk, clock=_at_last(job))
    assert (reading.corrected, reading.left) == (assumed, 0)
    assert _booked(job) == metered
    corrected = Charge.objects.exclude(corrected_at=None).exclude(settled_picodollars=0).first()
    assert corrected is not None
    assert corrected.usage["from_log"] is True
    assert corrected.usage["executions"] == 1
    assert sum(line["picodollars"] for line in corrected.lines) == corrected.settled_picodollars
    text = job.events.last().payload["text"]
    assert figures_in(text) == [str(assumed)]
    assert "corrected" in text


def _assume(job: Job, name: str) -> None:
    ledger = DatabaseLedger(job.account.pk, job.lease_epoch)
    assert ledger.reserve([Reservation(name, "rollout", 1, 10**9)]) == [True]
    held.run_dies(job)
    settle_leftovers(job_id=job.pk, before_epoch=job.lease_epoch + 1, clock=SYSTEM_CLOCK)


def test_an_execution_that_names_no_call_keeps_the_assumption(
    cloud: tuple[AwsEmulator, DemoAccount], job: Job
) -> None:
    """The actor's process was killed before it could write which call it was: it may have been this one."""
    aws, _ = cloud
    _assume(job, f"{job.pk}-e1-c1")
    killed = BilledInvocation("r-1", FUNCTION, None, MB, 120, 0.0, provisioned=False)
    aws.logs.write(f"/aws/lambda/{FUNCTION}", log_of(killed, "$LATEST", 0.12, 100, ""))
    reading = late_reports.read(job.pk, clock=_at_last(job))
    assert (reading.corrected, reading.left) == (0, 1)
    assert figures_in(reading.sentence) == ["1", "1"]
    assert queries.assumed_in(job) == (1, 10**9)


def test_a_call_that_never_ran_is_corrected_within_21_minutes_however_often_the_log_was_read(
    cloud: tuple[AwsEmulator, DemoAccount], job: Job
) -> None:
    aws, _ = cloud
    _assume(job, f"{job.pk}-e1-c1")
    begun = Charge.objects.get().opened_at
    other = BilledInvocation("r-1", FUNCTION, "another", MB, 120, 0.0, provisioned=False)
    aws.logs.write(
        f"/aws/lambda/{FUNCTION}", log_of(other, "1", 0.12, 100, "starling call another request r-1")
    )
    clock = FixedClock(begun)
    readings = 0
    while late_reports.read(job.pk, clock=clock).left:
        readings += 1
        again_at = LogReading.objects.get(job=job).again_at
        assert again_at is not None
        clock.moment = again_at
    assert queries.assumed_in(job) == (0, 0)
    assert clock.now() - begun <= timedelta(minutes=21)
    assert readings < 10, "the log is read seldom meanwhile"


@pytest.mark.parametrize("ready", [False, True])
def test_time_on_instances_kept_ready_has_its_own_price(
    ready: bool, cloud: tuple[AwsEmulator, DemoAccount], job: Job
) -> None:
    aws, _ = cloud
    Job.objects.filter(pk=job.pk).update(
        spec={**job.spec, "platform": {**job.spec["platform"], "provisioned": 1}}
    )
    name = f"{job.pk}-e1-c1"
    _assume(job, name)
    billed = BilledInvocation("r-1", FUNCTION, name, MB, 120, 0.0, provisioned=ready)
    line = f"starling call {name} request r-1{' ready' if ready else ''}"
    aws.logs.write(f"/aws/lambda/{FUNCTION}", log_of(billed, "1", 0.12, 100, line))
    aws.meter.invocations.append(billed)
    assert late_reports.read(job.pk).corrected == 1
    assert _booked(job) == picodollars_of_calls(aws.meter, BOOK, REGION)


def test_another_jobs_calls_of_the_same_name_are_not_ours(
    cloud: tuple[AwsEmulator, DemoAccount], job: Job
) -> None:
    aws, _ = cloud
    _assume(job, "e1-c1")
    other = BilledInvocation("r-1", FUNCTION, "e1-c1", MB, 120, 0.0, provisioned=False)
    aws.logs.write(
        f"/aws/lambda/{FUNCTION}", log_of(other, "1", 0.12, 100, "starling call e1-c1 request r-1")
    )
    assert late_reports.read(job.pk).corrected == 0
    assert queries.assumed_in(job) == (1, 10**9)


def test_a_log_that_cannot_be_read_is_said_and_read_again(
    cloud: tuple[AwsEmulator, DemoAccount], job: Job
) -> None:
    _assume(job, f"{job.pk}-e1-c1")
    clock = FixedClock(SYSTEM_CLOCK.now())
    reading = late_reports.read(job.pk, clock=clock)
    assert FUNCTION in reading.sentence
    assert reading.corrected == 0

    def refused(job: Job) -> Any:
        raise late_reports.decrypt.CannotOpen("The lab has no credentials yet.")

    assert (
        late_reports.read(job.pk, clock=clock, connect=refused).sentence == "The lab has no credentials yet."
    )
    row = LogReading.objects.get(job=job)
    assert row.again_at == clock.now() + timedelta(seconds=120)
    assert late_reports.due(clock.now()) == []
    assert late_reports.due(row.again_at) == [job.pk]


def test_a_job_that_is_over_and_settled_is_read_no_more(
    cloud: tuple[AwsEmulator, DemoAccount], job: Job
) -> None:
    _assume(job, "e1-c1")
    assert late_reports.due(SYSTEM_CLOCK.now()) == [job.pk]
    Charge.objects.update(basis="metered")
    Job.objects.filter(pk=job.pk).update(observed=Observed.FAILED, finished_at=SYSTEM_CLOCK.now())
    late_reports.read(job.pk)
    assert LogReading.objects.get(job=job).again_at is None
    assert late_reports.due(SYSTEM_CLOCK.now() + timedelta(days=1)) == []
