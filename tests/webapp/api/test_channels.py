"""Channels by the API: messages that really arrive, keys shown once, addresses never, and the log page by page."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.factories import make_alert, make_project, make_user, make_webhook
from tests.members import add_member
from tests.receivers import WebReceiver
from tests.webapp.api_callers import ApiCaller
from webapp.alerts import outbox, secrets, services
from webapp.alerts.models import Channel

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Any:
    return make_project(make_user("ada@example.org"))


@pytest.fixture
def call(project: Any) -> ApiCaller:
    return ApiCaller(project.people.get())


def _base(project: Any) -> str:
    return f"/projects/{project.slug}/channels"


def test_a_webhook_is_added_tried_and_its_messages_sent_again(
    call: ApiCaller, project: Any, receiver: WebReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"{receiver.url}/t0p-s3cret-token"
    made = call.post(_base(project), {"way": "webhook", "name": "Ops", "url": url})
    assert made.status_code == 201, made.content
    channel = Channel.objects.get(way="webhook")
    key = secrets.open_secret(channel, "signing_key").reveal()
    assert made.json()["signing_key"] == key
    assert made.headers["Cache-Control"] == "no-store"
    address = f"{_base(project)}/{channel.pk}"
    sent = call.post(f"{address}/test")
    assert (sent.status_code, sent.json()["state"]) == (202, "waiting")
    again = call.post(f"{address}/test")
    assert (again.status_code, "on its way" in again.json()["why"]) == (409, True)
    outbox.send_due()
    body = call.get(sent.headers["Location"]).json()
    assert (body["state"], body["kind"], body["response_status"]) == ("sent", "test", 204)
    again = call.post(f"/projects/{project.slug}/deliveries/{body['id']}/replay").json()
    assert (again["state"], again["replays"]) == ("waiting", 1)
    outbox.send_due()
    assert [json.loads(post.body)["type"] for post in receiver.posts] == ["test", "test"]
    renewed = call.post(f"{address}/key").json()["signing_key"]
    assert renewed == secrets.open_secret(channel, "signing_key").reveal() != key
    everything = [
        call.get(path).content.decode() for path in (_base(project), address, f"{address}/deliveries")
    ]
    for place in (*everything, caplog.text):
        assert "t0p-s3cret-token" not in place
        assert key not in place
        assert renewed not in place
    assert call("DELETE", address).status_code == 204
    assert call.get(address).status_code == 404


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"way": "webhook", "url": "https://127.0.0.1/t0p-s3cret"}, "private network"),
        ({"way": "webhook", "url": "http://example.org/t0p-s3cret"}, "by https only"),
        ({"way": "webhook", "url": ["t0p-s3cret"]}, "url must be"),
        ({"way": "webhook", "url": "t0p-s3cret " * 500}, "url must be"),
        ({"way": "webhook", "addresses": ["ada@example.org"]}, "addresses does not"),
        ({"way": "email", "addresses": ["ada@example.org", "nobody"]}, "nobody is no"),
        ({"way": "email"}, "field is required"),
        ({"way": "chat", "url": "https://example.org/t0p-s3cret"}, "address of Slack"),
    ],
)
def test_what_is_wrong_is_said_without_the_address(
    wish: dict[str, Any], words: str, call: ApiCaller, project: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refused = call.post(_base(project), {"name": "x", **wish})
    assert refused.status_code in (409, 422)
    assert words in refused.json()["why"]
    assert "t0p-s3cret" not in refused.content.decode() + caplog.text
    assert not Channel.objects.filter(built_in=False).exists()


def test_only_what_is_given_is_changed(call: ApiCaller, project: Any) -> None:
    made = call.post(
        _base(project), {"way": "email", "name": "Team", "addresses": ["a@example.org", "b@example.org"]}
    )
    address = f"{_base(project)}/{made.json()['id']}"
    assert made.json()["signing_key"] is None
    assert (
        "named Team already"
        in call.post(_base(project), {"way": "email", "name": "Team", "addresses": ["c@example.org"]}).json()[
            "why"
        ]
    )
    quiet = call("PUT", address, {"kinds": ["budget", "job_failed"]}).json()
    assert (quiet["kinds"], quiet["name"], quiet["on"]) == (["budget", "job_failed"], "Team", True)
    assert quiet["to"] == ["a@example.org", "b@example.org"]
    off = call("PUT", address, {"on": False, "addresses": ["c@example.org"]}).json()
    assert (off["kinds"], off["to"], off["state"]) == (quiet["kinds"], ["c@example.org"], "Off")
    assert call("PUT", address, {"kinds": ["weather"]}).status_code == 422
    built_in = f"{_base(project)}/{services.built_in_channel(project.pk).pk}"
    assert "name does not" in call("PUT", built_in, {"name": "Mine"}).json()["why"]
    assert call("PUT", built_in, {"on": False}).json()["on"] is False
    assert "be turned off" in call("DELETE", built_in).json()["why"]
    assert "signs nothing" in call.post(f"{built_in}/key").json()["why"]


def test_viewers_see_that_there_are_channels_and_not_who_reads_them(project: Any) -> None:
    make_webhook(project)
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    body = ApiCaller(viewer).get(_base(project)).json()
    assert [(one["way"], one["to"]) for one in body] == [("email", None), ("webhook", None)]
    assert ApiCaller(viewer).get(f"{_base(project)}/{body[1]['id']}").status_code == 403


def test_the_log_comes_in_pages_while_more_goes_out(call: ApiCaller, project: Any) -> None:
    channel = make_webhook(project)
    for _ in range(5):
        make_alert(project)
    address, seen, cursor = f"{_base(project)}/{channel.pk}/deliveries?limit=2", [], ""
    while cursor is not None:
        page = call.get(f"{address}&cursor={cursor}").json()
        seen += [one["alert"] for one in page["results"]]
        cursor = page["next"]
        make_alert(project)
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 5
