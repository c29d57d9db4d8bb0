"""Tokens read a job's events as server-sent events: in order, resumed, with heartbeats, and no longer than they may."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest

from client.starling import Starling
from rig.servers import wait_until
from tests.factories import make_job, make_project, make_user
from webapp.api.event_stream import STREAMS_A_PERSON
from webapp.api.models import ApiToken
from webapp.api.tokens import make_token, revoke_token
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.models import Job
from webapp.jobs.services import stop_job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


class Scene:
    def __init__(self, site: str) -> None:
        self.site, self.user = site, make_user()
        self.project = make_project(self.user)
        self.job: Job = make_job(self.project, self.user)
        self.token, self.key = make_token(user=self.user, name="t", scopes=("jobs",))

    def open(self, after: int = 0) -> HTTPResponse:
        place = urlsplit(self.site)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.key}", "Last-Event-ID": str(after)}
        path = f"/api/v1/projects/{self.project.slug}/jobs/{self.job.pk}/events/stream"
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def say(self, text: str) -> None:
        append_events(self.job.pk, [note(text)], clock=SYSTEM_CLOCK)


@pytest.fixture
def scene(live_site: str) -> Scene:
    return Scene(live_site)


def _events(stream: HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in stream:
        if line.startswith(b"data: {") and b'"seq"' in line:
            yield json.loads(line[len(b"data: ") :])


def test_events_come_as_they_happen_and_from_the_last_one_on(scene: Scene) -> None:
    stream = scene.open()
    assert (stream.status, stream.getheader("Content-Type")) == (200, "text/event-stream")
    events = _events(stream)
    first = next(events)
    assert first["payload"]["text"].startswith("Submitted by")
    scene.say("one")
    scene.say("two")
    first_two = [next(events), next(events)]
    assert [one["payload"]["text"] for one in first_two] == ["one", "two"]
    stream.close()
    resumed = _events(scene.open(after=first_two[0]["seq"]))
    assert next(resumed) == first_two[1]


def test_a_stream_ends_when_its_job_is_over(scene: Scene) -> None:
    stream = scene.open()
    stop_job(job=scene.job, user=scene.user)
    assert Job.objects.get(pk=scene.job.pk).observed == "cancelled"
    lines = stream.read().decode()
    assert lines.endswith("event: end\ndata: {}\n\n")
    last = Job.objects.get(pk=scene.job.pk).last_seq
    assert f"id: {last}\n" in lines
    assert scene.open(after=last).status == 204


def test_a_quiet_stream_shows_that_it_is_alive(scene: Scene) -> None:
    stream = scene.open(after=10**6)
    started = time.monotonic()
    while not stream.readline().startswith(b": still here"):
        assert time.monotonic() - started < 60


def test_a_revoked_token_ends_its_stream(scene: Scene) -> None:
    stream = scene.open(after=10**6)
    stream.readline()
    revoke_token(token=ApiToken.objects.get(pk=scene.token.pk))
    started = time.monotonic()
    assert b"event: end" not in stream.read()
    assert time.monotonic() - started < 30
    assert scene.open().status == 401


def test_a_person_has_so_many_streams_and_who_leaves_frees_one(scene: Scene) -> None:
    streams = [scene.open(after=10**6) for _ in range(STREAMS_A_PERSON)]
    assert {one.status for one in streams} == {200}
    refused = scene.open()
    assert refused.status == 429
    assert json.loads(refused.read())["type"] == "urn:starling:streams"
    # As many as the site has threads for pages, and more: none of them is held.
    assert scene.open().status == 429
    streams.pop().close()
    wait_until(lambda: scene.open(after=10**6).status == 200, within_s=30, what="a place is free again")
    for one in streams:
        one.close()


def test_the_client_follows_by_a_stream_and_few_requests(scene: Scene, settings: Any) -> None:
    client = Starling(scene.site, scene.key, scene.project.slug)
    asked: list[str] = []
    fetch = client.fetch
    client.fetch = lambda method, path, *given, **query: (  # type: ignore[method-assign]
        asked.append(path),
        fetch(method, path, *given, **query),
    )[1]
    events = client.follow(scene.job.pk, every_s=0.1)
    assert next(events)["seq"] == 1
    for number in range(20):
        scene.say(str(number))
        while (event := next(events))["payload"].get("text") != str(number):
            assert event
    stop_job(job=scene.job, user=scene.user)
    assert list(events)[-1]["payload"]["observed"] == "cancelled"
    assert len(asked) < 10
