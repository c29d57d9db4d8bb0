"""What a platform says of itself reaches the job's page; creates are counted over all jobs of a subscription."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.test import Client
from django.urls import reverse

from cloud.platforms.azure.create_limit import WINDOWS
from cloud.platforms.trajectory_cache import CachingPlatform, TrajectoryCache
from rig.stored_rounds import store_rounds
from tests.cloud import calls
from tests.factories import FixedClock, make_connection, make_project, make_user, round_finished
from tests.training.inline_platform import InlinePlatform
from tests.webapp.held import make_lambda_job, run_of
from webapp.connections.models import Connection
from webapp.job_states import Observed
from webapp.jobs.events.job_summary import why_waiting
from webapp.jobs.models import Job, PlatformNote
from webapp.jobs.running.platform_notes import Notes
from webapp.resources.models import CreateTimes
from webapp.resources.register import SubscriptionCreates

pytestmark = pytest.mark.django_db


class Waiting(InlinePlatform):
    def __init__(self) -> None:
        super().__init__()
        self.words = "Throttled. 3 calls wait."

    def throttling_reasons(self) -> str:
        return self.words


class Scene:
    def __init__(self) -> None:
        self.clock = FixedClock()
        self.now_s = 0.0
        self.user = make_user()
        connection = make_connection(make_project(self.user), self.user, region="us-east-1")
        self.job = make_lambda_job(connection, self.clock)
        self.epoch = run_of(self.job, self.clock)

    def notes(self, epoch: int | None = None) -> Notes:
        return Notes(self.job.pk, epoch or self.epoch, clock=self.clock, now_s=lambda: self.now_s)

    def waiting(self) -> str:
        job = Job.objects.select_related("account").get(pk=self.job.pk)
        assert job.observed == Observed.RUNNING
        return why_waiting(job, self.clock.now())


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_why_calls_wait_stands_on_the_jobs_page_while_they_do(
    scene: Scene, django_assert_num_queries: Any
) -> None:
    platform, notes = Waiting(), scene.notes()
    assert notes.of(platform) is platform
    notes.look()
    assert scene.waiting() == "Throttled. 3 calls wait."
    platform.words = "Throttled. 2 calls wait."
    with django_assert_num_queries(0):
        notes.look()
    scene.now_s += 2.0
    notes.look()
    assert scene.waiting() == "Throttled. 2 calls wait."
    scene.now_s += 2.0
    with django_assert_num_queries(0):
        notes.look()
    client = Client()
    client.force_login(scene.user)
    page = client.get(reverse("jobs:detail", args=[scene.job.project.slug, scene.job.pk])).content.decode()
    assert "Throttled. 2 calls wait." in page
    scene.clock.forward(100)
    assert scene.waiting() == "Throttled. 2 calls wait."
    notes.end()
    assert scene.waiting().startswith("Round 1 has")
    assert "1 min 40 s" in scene.waiting()


def test_a_run_that_was_overtaken_says_nothing_any_more(scene: Scene) -> None:
    old, new = scene.notes(), scene.notes(scene.epoch + 1)
    old.of(Waiting())
    old.look()
    new.of(InlinePlatform())
    assert scene.waiting() == ""
    scene.now_s += 2.0
    old.look()
    new.look()
    assert scene.waiting() == ""


def test_what_the_cache_did_adds_up_over_a_jobs_runs(scene: Scene, valkey: str) -> None:
    for run in range(2):
        with redis.Redis.from_url(valkey) as store:
            cache = TrajectoryCache(store, scene.job.pk, 10**7)
            notes = scene.notes(scene.epoch + run)
            platform = notes.of(CachingPlatform(InlinePlatform(), cache))
            ref = platform.publish(0, calls.weights())
            for number in range(3):
                platform.submit(calls.rollout(f"r{run}-{number}", ref, slot=number))
                assert platform.next(5.0) is not None
            notes.end()
    note = PlatformNote.objects.get()
    assert (note.cache_hits, note.cache_misses) == (3, 3)
    client = Client()
    client.force_login(scene.user)
    page = client.get(reverse("jobs:actors", args=[scene.job.project.slug, scene.job.pk])).content.decode()
    assert re.search(r"cache: 3 of 6 rollouts .* 0 kB", page)


def _azure(subscription: str, region: str = "eastus") -> Connection:
    made = make_connection(make_project(), kind="azure_principal", region=region)
    Connection.objects.filter(pk=made.pk).update(subscription_id=subscription)
    made.refresh_from_db()
    return made


def test_creates_are_counted_over_all_jobs_of_a_subscription() -> None:
    clock = FixedClock()
    jobs = [SubscriptionCreates(_azure("one").pk, clock=clock) for _ in range(2)]
    other = SubscriptionCreates(_azure("two").pk, clock=clock)
    elsewhere = SubscriptionCreates(_azure("one", "swedencentral").pk, clock=clock)
    for number in range(100):
        assert jobs[number % 2].take(WINDOWS) == 0.0
        clock.forward(1)
    assert jobs[0].take(WINDOWS) == pytest.approx(200.0)
    assert other.take(WINDOWS) == elsewhere.take(WINDOWS) == 0.0
    for _ in range(2):
        clock.forward(300)
        assert [jobs[1].take(WINDOWS) for _ in range(100)] == [0.0] * 100
    clock.forward(310)
    assert jobs[0].take(WINDOWS) == pytest.approx(3600 - 1010, abs=1)
    clock.forward(timedelta(hours=1).total_seconds())
    assert jobs[0].take(WINDOWS) == 0.0
    assert len(CreateTimes.objects.get(place="azure/one/eastus").moments) == 1, "what is over is forgotten"


@pytest.mark.django_db(transaction=True)
def test_jobs_that_ask_at_once_are_let_through_one_by_one() -> None:
    connection = _azure("one")

    def ask() -> int:
        creates = SubscriptionCreates(connection.pk)
        return sum(creates.take(((20, 300.0),)) == 0.0 for _ in range(5))

    with ThreadPoolExecutor(8) as jobs:
        assert sum(jobs.map(lambda _: ask(), range(8))) == 20


def _report(round_no: int) -> dict[str, Any]:
    return round_finished(round_no).report.model_dump(mode="json")


def test_a_pause_is_no_part_of_how_long_a_round_takes(scene: Scene) -> None:
    for minute in range(4):
        store_rounds(scene.job, [_report(minute + 1)], scene.clock.now())
        scene.clock.forward(60)
    Job.objects.filter(pk=scene.job.pk).update(round_no=4)
    assert scene.waiting() == ""
    scene.clock.forward(16 * 60)
    assert re.search(r"Round 5 .* 17 min .* 60 s", scene.waiting())
    Job.objects.filter(pk=scene.job.pk).update(since=scene.clock.now())  # it was paused, and has just resumed
    assert scene.waiting() == ""
    store_rounds(scene.job, [_report(5)], scene.clock.now())
    scene.clock.forward(10 * 60)
    assert "it took 60 s" in scene.waiting()
