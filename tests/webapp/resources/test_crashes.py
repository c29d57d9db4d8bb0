"""Processes that are killed at every named point: nothing they held outlives its expiry by a minute, and all is paid.

Real processes, killed with SIGKILL; the real SDK against the emulated cloud, which knows what lives; the reconciler on
a clock that is moved on ten seconds with each look.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import provisioned_capacity
from cloud.money.pricing import total
from cloud.workers.processes import bound_to_this_process
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from emulator.aws.stub_functions import StubFunction
from emulator.azure.demo import DemoSubscription, furnish
from emulator.azure.server import AzureEmulator
from rig.servers import ROOT, wait_until
from tests.cloud import calls
from tests.cloud.emulated_bills import picodollars_of_calls, picodollars_of_groups
from tests.factories import FixedClock, make_project, make_user
from tests.webapp import held
from tests.webapp.held import FUNCTION, MB
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Connection
from webapp.connections.sealing import Secret
from webapp.connections.services import create_connection, set_identity
from webapp.jobs.models import Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running.recovery import run_ended
from webapp.jobs.services import stop_job
from webapp.money.models import RENT, Charge
from webapp.resources import late_reports
from webapp.resources.models import LIVE, Holding
from webapp.resources.scanner import EVERY, finder_of, scan

pytestmark = [pytest.mark.stack, pytest.mark.django_db(transaction=True)]

BOOK = PriceBook.load()
REGION = "us-east-1"
UNIT = total(provisioned_capacity(BOOK, REGION, MB, 1).lines(300 * 10**9))
POINTS = (
    "after_intent",
    "before_made",
    "after_made",
    "after_ending",
    "before_gone",
    "after_gone",
    "after_reserve",
    "after_reserve@2",
    "before_settle",
    "after_settle",
    "at random",
)
FEW = ("after_made", "after_ending", "after_reserve@2", "after_settle")
AFTER_EXPIRY = timedelta(seconds=60)
_LOOKS = 40
_A_LOOK_S = 0.02


class Victims:
    """The process that forks them."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        with open(log, "wb") as errors:
            self._process = subprocess.Popen(
                bound_to_this_process([sys.executable, "-m", "tests.webapp.victim"]),
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._line() == "ready"

    def run(self, job: Job, seconds: float, *, point: str = "", killed_after_s: float | None = None) -> int:
        """How a run of the job ended that is killed there, or waits at most so long for its calls."""
        name, _, at = point.partition("@")
        orders = {
            "job": job.pk,
            "calls": 3,
            "seconds": seconds,
            "failpoints": f"{name}:kill@{at or 1}" if name and "settle" not in name else "",
            "killed_at": name if "settle" in name else "",
            "killed_after_s": killed_after_s,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class Lambda:
    """The emulated AWS with functions kept ready: what a trial needs to know of a cloud."""

    aws: AwsEmulator
    demo: DemoAccount
    seconds: float = 30.0
    random_s: float = 0.4
    """Within it a run that is killed at random dies."""

    def reached_by(self) -> dict[str, str]:
        return {"STARLING_AWS_ENDPOINT": self.aws.endpoint}

    def connect(self, project: Any = None) -> Connection:
        return held.connect(self.demo, project)

    def job_on(self, connection: Connection) -> Job:
        return held.make_lambda_job(connection, provisioned=1)

    def alive(self) -> list[str]:
        return held.stand(self.aws)

    def begin(self, luck: random.Random) -> None:
        """A day of its own: nothing on the meter yet, and a cloud in some mood."""
        self.aws.meter.invocations.clear()
        self.aws.meter.provisioned.clear()
        self.aws.logs.groups.clear()
        faults = self.aws.faults
        # A look is ten seconds on the reconciler's clock, so this is half a minute there.
        faults.visibility_delay_s = luck.choice([0.0, 0.0, 0.03, 3 * _A_LOOK_S])
        faults.order("zombie_delete", luck.choice([0, 0, 1, 2]))
        faults.order("lost_reply", luck.choice([0, 0, 1]))

    def at_rest(self) -> None:
        self.aws.faults.end()
        wait_until(lambda: self.aws.invocations.in_flight == 0, within_s=60, what="all functions have ended")

    def rent_owed(self) -> int:
        """Started units of five minutes; nothing here stands for longer than one."""
        assert all(span.to_s is not None for span in self.aws.meter.provisioned)
        return len(self.aws.meter.provisioned) * UNIT

    def assert_calls_paid(self, job: Job) -> None:
        """Never below the meter; equal to it once the log is read."""
        charges = Charge.objects.filter(account=job.account, kind="rollout")
        booked = charges.exclude(settled_picodollars=None)
        owed = picodollars_of_calls(self.aws.meter, BOOK, REGION)
        assert sum(booked.values_list("settled_picodollars", flat=True)) >= owed
        at_last = FixedClock(SYSTEM_CLOCK.now() + timedelta(minutes=25))
        if self.aws.logs.groups:
            assert late_reports.read(job.pk, clock=at_last).left == 0
            assert sum(booked.values_list("settled_picodollars", flat=True)) == owed


@dataclass
class Groups:
    """The emulated Azure with container groups that stand, and have no processes."""

    azure: AzureEmulator
    demo: DemoSubscription
    seconds: float = 1.0
    """No one answers the calls here, so a run lasts only until its group surely stands."""
    random_s: float = 1.5

    def reached_by(self) -> dict[str, str]:
        return {"STARLING_AZURE_ENDPOINT": self.azure.endpoint, "STARLING_EMULATOR_CA": self.azure.ca}

    def connect(self) -> Connection:
        there = self.demo.connection
        owner = make_user()
        made = create_connection(
            project=make_project(owner),
            user=owner,
            kind="azure_principal",
            name="Lab",
            region=there.region,
            subscription_id=there.subscription_id,
            resource_group=there.resource_group,
        )
        access = there.access
        return set_identity(
            connection=made,
            plain={"tenant_id": access.tenant_id, "client_id": access.client_id},
            secrets={"client_secret": Secret(access.client_secret)},
        )

    def job_on(self, connection: Connection) -> Job:
        return held.make_lambda_job(
            connection, kind="azure_container", image=self.demo.image, most_actors=2, containers_a_group=1
        )

    def alive(self) -> list[str]:
        return [one.name for one in self.azure.groups.all() if one.state in ("Pending", "Running")]

    def begin(self, luck: random.Random) -> None:
        self.azure.meter.spans.clear()
        faults = self.azure.faults
        faults.zombie_s = 5 * _A_LOOK_S
        faults.visibility_delay_s = luck.choice([0.0, 0.0, 0.03, 3 * _A_LOOK_S])
        faults.order("zombie_delete", luck.choice([0, 0, 1]))
        faults.order("lost_reply", luck.choice([0, 0, 1]))

    def at_rest(self) -> None:
        self.azure.faults.end()

    def rent_owed(self) -> int:
        assert all(span.over for span in self.azure.meter.spans)
        return picodollars_of_groups(self.azure.meter.spans, BOOK, self.demo.connection.region)

    def assert_calls_paid(self, job: Job) -> None:
        """Calls cost nothing here."""


@contextmanager
def _lambda() -> Iterator[Lambda]:
    with held.account() as (aws, demo):
        result = execute(calls.rollout("any", None), calls.weights(), WarmCache())
        assert isinstance(result, Result)
        aws.invocations.stubs[FUNCTION] = StubFunction(0.01, result)
        yield Lambda(aws, demo)


@contextmanager
def _groups() -> Iterator[Groups]:
    with AzureEmulator() as azure:
        azure.groups.stubs = "*"
        yield Groups(azure, furnish(azure))


_CLOUDS = [pytest.param(_lambda, id="lambda"), pytest.param(_groups, id="groups", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=_CLOUDS)
def cloud(request: pytest.FixtureRequest) -> Iterator[Lambda | Groups]:
    with request.param() as made:
        yield made


@pytest.fixture
def victims(
    service_environment: dict[str, str], cloud: Lambda | Groups, settings: Any, tmp_path: Path
) -> Iterator[Victims]:
    for name, value in cloud.reached_by().items():
        setattr(settings, name, value)
    log = tmp_path / "victims.log"
    made = Victims({**service_environment, **cloud.reached_by()}, log)
    yield made
    made.close()
    assert "Traceback" not in log.read_text()


@dataclass(frozen=True)
class Trial:
    """What one crash came to. `ended_s`: how long after the death of the process the last thing lived."""

    died: bool
    stood: bool
    ended_s: float


def crash(cloud: Lambda | Groups, victims: Victims, connection: Connection, seed: int, point: str) -> Trial:
    """One life: a run that is killed, perhaps another one after it, and looks until nothing is believed to stand."""
    luck = random.Random(seed)
    cloud.begin(luck)
    finder = finder_of(connection)
    job = cloud.job_on(connection)
    at_random = luck.uniform(0.01, cloud.random_s) if point == "at random" else None
    place = "" if point == "at random" else point
    code = victims.run(job, cloud.seconds, point=place, killed_after_s=at_random)
    assert code in (0, -signal.SIGKILL), code
    clock = FixedClock(SYSTEM_CLOCK.now())
    stood = bool(cloud.alive())
    expiries = list(Holding.objects.filter(state__in=LIVE).values_list("expires_at", flat=True))
    limit = max(expiries, default=clock.now()) + AFTER_EXPIRY
    died_at, ended_s = clock.now(), -1.0
    _mourn(job)
    for number in range(_LOOKS):
        if number == 1 and luck.random() < 0.3:
            victims.run(job, cloud.seconds)  # the next run comes while things of the last one are being ended
            _mourn(job)
        if ended_s < 0 and not cloud.alive():
            ended_s = (clock.now() - died_at).total_seconds()
        if ended_s < 0:
            assert clock.now() <= limit, f"seed {seed}: {cloud.alive()} live a minute after their expiry"
        if number > 2 and not cloud.alive() and not Holding.objects.filter(state__in=LIVE).exists():
            break
        clock.forward(EVERY.total_seconds())
        time.sleep(_A_LOOK_S)
        scan(connection, clock=clock, find=lambda there: finder)
    assert cloud.alive() == []
    assert not Holding.objects.filter(state__in=LIVE).exists()
    _assert_paid(cloud, job)
    stop_job(job=job, user=job.created_by)
    return Trial(code != 0, stood, ended_s)


def _mourn(job: Job) -> None:
    """What the watcher of the process does when it has died; nothing if it ended well."""
    job.refresh_from_db()
    if job.lease_owner:
        assert run_ended(
            job_id=job.pk, epoch=job.lease_epoch, why=Reason.PROCESS_DIED.change(how="killed by SIGKILL")
        )
        Job.objects.filter(pk=job.pk).update(crashes=0)


def _assert_paid(cloud: Lambda | Groups, job: Job) -> None:
    cloud.at_rest()
    job.account.refresh_from_db()
    assert job.account.reserved_picodollars == 0
    charges = Charge.objects.filter(account=job.account)
    rent = sum(charges.filter(kind=RENT).values_list("settled_picodollars", flat=True))
    assert rent >= cloud.rent_owed()
    cloud.assert_calls_paid(job)


@pytest.mark.parametrize(
    "points", [pytest.param(FEW, id="few"), pytest.param(POINTS, id="every", marks=pytest.mark.slow)]
)
def test_a_crash_at_a_named_point_leaves_nothing(
    cloud: Lambda | Groups, victims: Victims, points: tuple[str, ...]
) -> None:
    connection = cloud.connect()
    for point in points:
        trial = crash(cloud, victims, connection, POINTS.index(point), point)
        # A delete that was not done is not said to be gone, so that these two are not always reached.
        assert trial.died or point in ("at random", "before_gone", "after_gone"), point


@pytest.mark.endurance
@pytest.mark.slow
def test_two_hundred_crashes_leave_nothing(cloud: Lambda | Groups, victims: Victims) -> None:
    """Its figures are printed: how many stood when their process died, and how long the last of them lived on."""
    connection = cloud.connect()
    places = [*POINTS, "at random"]
    trials = []
    for number in range(200):
        trials.append(crash(cloud, victims, connection, 1000 + number, places[number % len(places)]))
        print(f"{number + 1}: {places[number % len(places)]}: {trials[-1]}", flush=True)
    lives = sorted(trial.ended_s for trial in trials if trial.stood)
    print(
        f"{sum(trial.died for trial in trials)} of {len(trials)} died at their point; {len(lives)} left something"
        f" standing, ended after a median of {lives[len(lives) // 2]:.0f} s and {lives[-1]:.0f} s at most"
    )
    assert sum(trial.died for trial in trials) > 150
    assert len(lives) > 40


def test_a_jobs_own_process_registers_what_it_keeps_ready(
    cloud: Lambda | Groups, service_environment: dict[str, str], settings: Any
) -> None:
    """The whole of `run-job`, killed when AWS has said yes and no one has written that down."""
    if not isinstance(cloud, Lambda):
        pytest.skip("groups are kept for a job's process by its platform's own tests")
    cloud.begin(random.Random(0))
    cloud.aws.faults.end()
    settings.STARLING_AWS_ENDPOINT = cloud.aws.endpoint
    connection = cloud.connect()
    job = cloud.job_on(connection)
    environment = {
        **service_environment,
        "STARLING_AWS_ENDPOINT": cloud.aws.endpoint,
        "STARLING_FAILPOINTS": "before_made:kill",
    }
    killed = subprocess.run(
        [sys.executable, "manage.py", "run-job", job.pk, "--owner", "doomed"],
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=240,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert cloud.alive() == [f"{FUNCTION}:1"]
    row = Holding.objects.get()
    assert (row.state, row.job, row.epoch) == ("intended", job, 1)
    assert row.facts == {"resource": "provisioned", "instances": 1}
    (found,) = finder_of(connection).found()
    assert (found.deployment, found.run) == (connection.pk, f"{job.pk}/e1")
    _mourn(job)
    scan(connection)
    assert cloud.alive() == []
    cloud.at_rest()
