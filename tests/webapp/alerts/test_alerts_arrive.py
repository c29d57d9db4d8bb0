"""From a crossing to a mail and a webhook: within seconds, once each, also when workers are killed at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connection

from rig.servers import ROOT, reserved_port, server_process, wait_until
from tests.factories import make_alert, make_project, make_user, make_webhook
from tests.receivers import MailCatcher, WebReceiver, mail_catcher, web_receiver
from webapp.alerts import outbox
from webapp.alerts.models import Alert, Delivery
from webapp.clock import SYSTEM_CLOCK
from webapp.money.models import Budget, Crossing
from webapp.money.thresholds import note_crossings

pytestmark = [pytest.mark.stack, pytest.mark.django_db(transaction=True)]

SHARES = (50, 80, 90, 100)
_BUDGETS_A_PROJECT = 20
"""Their crossings are fewer than the mails that a project may send in an hour."""
_CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "webapp.celery")


class Outside(NamedTuple):
    """Who gets what goes out, and what a worker needs in its environment to reach them."""

    mails: MailCatcher
    web: WebReceiver
    environment: dict[str, str]


@pytest.fixture
def outside(service_environment: dict[str, str], settings: Any) -> Iterator[Outside]:
    port = reserved_port()
    with mail_catcher(port) as mails, web_receiver() as web:
        settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{web.port}"]
        reach = {
            "STARLING_SMTP_URL": f"smtp+plain://127.0.0.1:{port}",
            "STARLING_ALERT_HOSTS": f"127.0.0.1:{web.port}",
        }
        yield Outside(mails, web, service_environment | reach)


@contextmanager
def _beat(environment: dict[str, str], log: Path) -> Iterator[None]:
    with server_process([*_CELERY, "beat", "--pidfile="], environment=environment, log=log):
        wait_until(lambda: "beat is ready" in log.read_text(), within_s=120, what="beat is ready")
        yield


@contextmanager
def _worker(environment: dict[str, str], log: Path, number: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    options = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-n", f"w{number}@%h"]
    with server_process([*_CELERY, "worker", *options], environment=environment, log=log) as process:
        yield process


def _ready(log: Path, times: int = 1) -> None:
    wait_until(
        lambda: log.read_text().count("worker is ready") >= times, within_s=120, what="the worker is ready"
    )


def _cross(budgets: list[Budget], pause_s: float, shares: tuple[int, ...] = SHARES) -> dict[str, float]:
    """Let each budget cross each share of its limit, one after the other; when each did, by its alert's key.

    Shares that one crosses within a tick are told as one: between them, all others have their turn.
    """
    at: dict[str, float] = {}
    for before, share in zip((0, *shares), shares, strict=False):
        for budget in budgets:
            limit = budget.limit_picodollars
            note_crossings(budget, limit * before // 100, limit * share // 100, SYSTEM_CLOCK.now())
            at[f"limit:budget:{budget.pk}:actual:{share}:{budget.arming}"] = time.time()
            time.sleep(pause_s)
    return at


def _budgets(count: int, url: str) -> list[Budget]:
    """Limits that can be crossed, without jobs that a worker would run."""
    owner, now, made = make_user("ada@example.org"), SYSTEM_CLOCK.now(), []
    for number in range(count):
        if number % _BUDGETS_A_PROJECT == 0:
            project = make_project(owner)
            make_webhook(project, url)
        budget = Budget.objects.create(
            name=f"Budget {number}",
            project=project,
            scope="project",
            period_start=now,
            created_at=now,
            limit_picodollars=10**12,
        )
        made.append(budget)
    return made


class Measured(NamedTuple):
    """How long each took, by mail and by webhook, and what came more often than once."""

    mail_s: list[float]
    web_s: list[float]
    mail_doubles: int
    web_doubles: int


def _measured(outside: Outside, at: dict[str, float], first_of_all: Collection[str] = ()) -> Measured:
    """Fails unless every crossing was told once by each way in our book, and arrived by each. How long is told of all
    but those `first_of_all`, by which a worker that has just started loads what it needs."""
    keys = dict(Alert.objects.values_list("pk", "dedupe_key"))
    assert sorted(keys.values()) == sorted(at), "an alert for each crossing, and no other"
    assert not Crossing.objects.filter(handled_at=None).exists()
    book = Counter(Delivery.objects.values_list("alert_id", "channel__way", "state"))
    assert book == Counter({(pk, way, "sent"): 1 for pk in keys for way in ("email", "webhook")})
    of = dict(Delivery.objects.values_list("pk", "alert_id"))
    posts = [(post.headers["Starling-Delivery"], post.at) for post in list(outside.web.posts)]
    mails = [(str(mail.message["Starling-Delivery"]), mail.at) for mail in list(outside.mails.mails)]
    assert all(json.loads(post.body)["id"] in of for post in outside.web.posts)
    spans, doubles = [], []
    for came in (mails, posts):
        first: dict[str, float] = {}
        for delivery_id, moment in came:
            first[delivery_id] = min(moment, first.get(delivery_id, moment))
        assert {of[delivery_id] for delivery_id in first} == set(keys), "each arrived"
        assert len(first) == len(keys), "and under one id, by which receivers tell a second copy"
        came_after = {keys[of[delivery_id]]: moment for delivery_id, moment in first.items()}
        spans.append(sorted(came_after[key] - at[key] for key in at if key not in first_of_all))
        doubles.append(len(came) - len(first))
    return Measured(spans[0], spans[1], doubles[0], doubles[1])


def _all_sent(count: int) -> bool:
    return Delivery.objects.filter(state="sent").count() == 2 * count and Alert.objects.count() == count


def _words(what: str, measured: Measured) -> str:
    mail, web = measured.mail_s, measured.web_s
    middle, late = len(mail) // 2, len(mail) * 95 // 100
    return (
        f"{what}: {len(mail)} crossings; mail p50 {mail[middle]:.2f} s, p95 {mail[late]:.2f} s, max {mail[-1]:.2f} s;"
        f" webhook p50 {web[middle]:.2f} s, p95 {web[late]:.2f} s, max {web[-1]:.2f} s;"
        f" second copies: {measured.mail_doubles} mails, {measured.web_doubles} posts"
    )


@pytest.mark.slow
def test_a_crossing_is_mailed_and_posted_within_five_seconds(
    outside: Outside, valkey: str, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    first, *budgets = _budgets(9, outside.web.url)
    with _worker(outside.environment, log), _beat(outside.environment, tmp_path / "beat.log"):
        _ready(log)
        begun = _cross([first], 0, shares=(50,))
        wait_until(lambda: _all_sent(1), within_s=120, what="the first is sent")
        at = begun | _cross(budgets, 0.2, shares=(50,))
        wait_until(lambda: _all_sent(len(at)), within_s=120, what="everything is sent")
    measured = _measured(outside, at, begun)
    print(_words("undisturbed", measured))
    assert max(measured.mail_s[-1], measured.web_s[-1]) <= 5.0
    assert (measured.mail_doubles, measured.web_doubles) == (0, 0)


@pytest.mark.slow
def test_200_crossings_are_reported_once_each_while_workers_are_killed(
    outside: Outside, valkey: str, tmp_path: Path
) -> None:
    """Two workers, one of which is killed at any moment of its work and started again, over and over."""
    budgets, over, kills = _budgets(50, outside.web.url), threading.Event(), 0
    logs = [tmp_path / f"worker{number}.log" for number in range(2)]
    with ExitStack() as stack:
        stack.enter_context(_beat(outside.environment, tmp_path / "beat.log"))
        workers = [stack.enter_context(_worker(outside.environment, log, at)) for at, log in enumerate(logs)]
        for log in logs:
            _ready(log)
        at: dict[str, float] = {}

        def cross() -> None:
            try:
                at.update(_cross(budgets, 0.35))
            finally:
                connection.close()
                over.set()

        crossing = threading.Thread(target=cross)
        crossing.start()
        starts = [1, 1]
        while not over.is_set():
            victim = kills % 2
            seen = len(outside.web.posts)
            wait_until(
                lambda seen=seen: len(outside.web.posts) > seen or over.is_set(), within_s=60, what="posts"
            )
            os.killpg(workers[victim].pid, signal.SIGKILL)
            workers[victim].wait()
            kills += 1
            starts[victim] += 1
            workers[victim] = stack.enter_context(_worker(outside.environment, logs[victim], victim))
            _ready(logs[victim], starts[victim])
        crossing.join()
        wait_until(lambda: _all_sent(len(at)), within_s=90, what="everything is sent")
    measured = _measured(outside, at)
    print(_words(f"{kills} kills", measured))
    assert len(at) == 200
    assert kills >= 5
    # What was sent and not yet booked at a kill may come a second time, under the same id: one at a kill at most.
    assert measured.mail_doubles + measured.web_doubles <= 2 * kills
    assert max(measured.mail_s[-1], measured.web_s[-1]) <= 5.0


_SEND = "import django; django.setup(); from webapp.alerts import outbox; outbox.send_due()"


@pytest.mark.slow
def test_a_sender_that_dies_between_sending_and_booking_sends_again_under_the_same_id(
    outside: Outside,
) -> None:
    project = make_project()
    channel = make_webhook(project, outside.web.url)
    delivery = make_alert(project).deliveries.get(channel=channel)
    dying = {**os.environ, **outside.environment, "STARLING_FAILPOINTS": "after_alert_sent:exit@1"}
    Delivery.objects.exclude(pk=delivery.pk).delete()
    died = subprocess.run([sys.executable, "-c", _SEND], cwd=ROOT, env=dying, check=False)
    assert died.returncode == 86
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, len(outside.web.posts)) == ("sending", 1, 1)
    assert outbox.send_due() == 0, "it is held"
    assert outbox.release_lost() == 1, "by a process that is gone"
    assert outbox.send_due() == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("sent", 2)
    first, second = outside.web.posts
    assert first.headers["Starling-Delivery"] == second.headers["Starling-Delivery"] == delivery.pk
    assert first.body == second.body
