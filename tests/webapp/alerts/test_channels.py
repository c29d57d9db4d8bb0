"""Channels: mails and webhooks that really arrive, tried again and booked once; secrets that never come out."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import subprocess
from typing import Any

import pytest
from django.test import Client

from tests.factories import FixedClock, make_alert, make_project, make_user, make_webhook
from tests.figures import figures_in
from tests.members import add_member
from tests.receivers import MailCatcher, WebReceiver
from tests.signed_in import signed_in
from webapp.alerts import channels, outbox, services
from webapp.alerts import text as alerts_text
from webapp.alerts.models import Alert, AlertKind, AlertState, Channel, Delivery
from webapp.alerts.outbox import BEGINNING_NOT_SENT
from webapp.alerts.senders import mail
from webapp.connections.sealing import Secret

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Any:
    return make_user("ada@example.org")


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner, "Walking")


def _client(user: Any) -> Client:
    return signed_in(user)


# Mail


def test_a_mail_reaches_the_owners_without_any_set_up(project: Any, catcher: MailCatcher) -> None:
    add_member(project, make_user("bob@example.org").email, "editor")
    make_alert(project, sentence="Hopper has spent <half> & more.")
    assert outbox.send_due() == 1
    (got,) = catcher.mails
    delivery = Delivery.objects.get()
    assert got.to == ["ada@example.org"]
    assert got.message["Subject"] == f"Starling: {AlertKind.ORPHAN.label} – Walking"
    assert got.message["Message-ID"] == f"<{delivery.pk}@127.0.0.1>"
    text, page = (got.message.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert page is not None
    assert "Hopper has spent <half> & more." in text.get_content()
    assert "Hopper has spent &lt;half&gt; &amp; more." in page.get_content()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("sent", 1, "")
    assert outbox.send_due() == 0
    assert alerts_text.channel_status(delivery.channel).word == "Working"


def test_without_a_mail_server_the_channel_is_missing_and_says_so(owner: Any, project: Any) -> None:
    make_alert(project)
    outbox.send_due()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.last_error) == ("failed", mail.NO_SERVER)
    assert alerts_text.channel_status(delivery.channel).word == "Missing"
    assert not Alert.objects.filter(kind=AlertKind.CHANNEL).exists(), (
        "the page says it; an alert would be noise"
    )
    page = _client(owner).get(f"/p/{project.slug}/alerts/channels/").content.decode()
    assert mail.NO_SERVER in page


def test_a_mail_server_that_says_no_for_now_is_asked_again(project: Any, catcher: MailCatcher) -> None:
    clock = FixedClock()
    catcher.refuse_with = "451 try later"
    make_alert(project, clock)
    outbox.send_due(clock=clock)
    delivery = Delivery.objects.get()
    assert (delivery.state, figures_in(delivery.last_error)) == ("waiting", ["451"])
    catcher.refuse_with = ""
    clock.forward(10)
    outbox.send_due(clock=clock)
    assert len(catcher.mails) == 1


# Webhook


def test_a_webhook_is_signed_so_that_its_receiver_can_check_it(project: Any, receiver: WebReceiver) -> None:
    made, key = channels.add_webhook(project=project, name="Ops", url=Secret(receiver.url))
    alert = make_alert(project, sentence="Grüße & <b>")
    outbox.send_due()
    (post,) = receiver.posts
    delivery = Delivery.objects.get(channel=made)
    # As docs/alerts.md has it for receivers.
    found = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", post.headers["Starling-Signature"])
    assert found is not None
    signed = found[1].encode() + b"." + post.body
    wanted = hmac.new(key.reveal().encode(), signed, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(wanted, found[2])
    assert abs(int(found[1]) - post.at) < 5
    assert post.headers["Starling-Delivery"] == delivery.pk
    document = json.loads(post.body)
    assert (document["version"], document["type"], document["id"]) == (1, "alert", delivery.pk)
    sent = document["alert"]
    assert (sent["id"], sent["sentence"], sent["project"]) == (alert.pk, "Grüße & <b>", project.slug)
    assert (delivery.state, delivery.response_status) == ("sent", 204)


def _over(project: Any, alert: Alert, clock: FixedClock) -> bool:
    key = alert.dedupe_key
    return services.resolve_alert(project_id=project.pk, dedupe_key=key, words="All gone.", clock=clock)


def test_the_end_is_reported_once_by_the_channels_that_reported_the_beginning(
    project: Any, receiver: WebReceiver, catcher: MailCatcher
) -> None:
    clock = FixedClock()
    silent, _ = channels.add_webhook(project=project, name="Ops", url=Secret(receiver.url))
    Channel.objects.filter(pk=silent.pk).update(on=False)
    alert = make_alert(project, clock, sentence="Something stands.")
    outbox.send_due(clock=clock)
    Channel.objects.filter(pk=silent.pk).update(on=True)
    assert _over(project, alert, clock)
    assert not _over(project, alert, clock)
    assert outbox.send_due(clock=clock) == 1
    assert outbox.send_due(clock=clock) == 0
    assert not receiver.posts, "it had not told the beginning"
    began, ended = catcher.mails
    was = began.message["Subject"].removeprefix("Starling: ")
    assert ended.message["Subject"].strip() == f"Starling: Over: {was}"
    assert ended.message["Message-ID"] != began.message["Message-ID"]
    text = ended.message.get_body(("plain",))
    assert text is not None
    assert "All gone. Earlier" in text.get_content()
    assert "Earlier: Something" in text.get_content()


def test_an_end_never_comes_before_its_beginning(project: Any, receiver: WebReceiver) -> None:
    clock = FixedClock()
    made, _ = channels.add_webhook(project=project, name="Ops", url=Secret(receiver.url))
    receiver.status = 500
    alert = make_alert(project, clock)
    outbox.send_due(clock=clock)
    receiver.status = 204
    _over(project, alert, clock)
    assert outbox.take(made.pk, clock=clock) is None, "the beginning is tried again first"
    clock.forward(60)
    outbox.send_due(clock=clock)
    types = [json.loads(post.body)["type"] for post in receiver.posts]
    assert types == ["alert", "alert", "over"]


def test_what_never_got_out_has_no_end_to_tell(project: Any, receiver: WebReceiver) -> None:
    clock = FixedClock()
    made, _ = channels.add_webhook(project=project, name="Ops", url=Secret(receiver.url))
    receiver.status = 500
    alert = make_alert(project, clock)
    outbox.send_due(clock=clock)
    receiver.status = 404
    _over(project, alert, clock)
    clock.forward(60)
    outbox.send_due(clock=clock)
    assert len(receiver.posts) == 2
    end = Delivery.objects.get(channel=made, over=True)
    assert (end.state, end.last_error) == ("failed", BEGINNING_NOT_SENT)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_get_better_is_tried_again_ever_more_slowly(
    project: Any, receiver: WebReceiver, status: int
) -> None:
    clock, channel = FixedClock(), make_webhook(project, receiver.url)
    make_alert(project, clock)
    receiver.status = status
    pauses = []
    for _ in range(outbox.ATTEMPTS - 1):
        outbox.send_due(clock=clock)
        delivery = Delivery.objects.get(channel=channel)
        assert (delivery.state, delivery.response_status) == ("waiting", status)
        pauses.append((delivery.due_at - clock.now()).total_seconds())
        assert outbox.send_due(clock=clock) == 0, "not before its time"
        clock.forward(pauses[-1])
    outbox.send_due(clock=clock)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, len(receiver.posts)) == ("failed", 8, 8)
    assert len({post.body for post in receiver.posts}) == 1
    for at, pause in enumerate(pauses):
        usual = min(outbox.LONGEST_PAUSE_S, 5 * 3**at)
        assert 0.8 * usual <= pause <= 1.2 * usual


def test_a_receiver_that_says_when_is_heeded(project: Any, receiver: WebReceiver) -> None:
    clock, channel = FixedClock(), make_webhook(project, receiver.url)
    receiver.status, receiver.headers = 429, {"Retry-After": "120"}
    make_alert(project, clock)
    outbox.send_due(clock=clock)
    due = Delivery.objects.get(channel=channel).due_at
    assert (due - clock.now()).total_seconds() == 120


@pytest.mark.parametrize("status", [302, 400, 404, 410])
def test_what_would_meet_the_same_again_is_given_up_at_once(
    project: Any, receiver: WebReceiver, status: int
) -> None:
    channel = make_webhook(project, receiver.url)
    receiver.status = status
    make_alert(project)
    outbox.send_due()
    delivery = Delivery.objects.get(channel=channel, alert__kind=AlertKind.ORPHAN)
    assert (delivery.state, delivery.response_status) == ("failed", status)


def test_a_failing_channel_is_reported_by_the_others_once_and_over_when_it_works(
    project: Any, receiver: WebReceiver
) -> None:
    clock = FixedClock()
    bad, good = make_webhook(project, receiver.url), make_webhook(project, receiver.url + "/good")
    receiver.status = 500
    make_alert(project, clock)
    Channel.objects.filter(pk=good.pk).update(silent_kinds=["orphan"])
    for _ in range(4):
        outbox.send_due(clock=clock)
        clock.forward(400)
    alert = Alert.objects.get(kind=AlertKind.CHANNEL, subject=f"channel:{bad.pk}")
    assert f"{bad.name} cannot send" in alert.sentence
    assert "answered 500." in alert.sentence
    assert not alert.deliveries.filter(channel=bad).exists()
    assert alert.deliveries.filter(channel=good).count() == 1
    receiver.status = 200
    clock.forward(4000)
    outbox.send_due(clock=clock)
    alert.refresh_from_db()
    assert alert.state == AlertState.RESOLVED
    bad.refresh_from_db()
    assert (bad.failures, alerts_text.channel_status(bad).word) == (0, "Working")


def test_a_channel_takes_what_it_was_told_to_and_nothing_while_off(
    project: Any, receiver: WebReceiver
) -> None:
    off, quiet = make_webhook(project, receiver.url, on=False), make_webhook(project, receiver.url)
    channels.change(channel=quiet, name="Quiet", on=True, kinds=["budget"])
    make_alert(project)
    assert not Delivery.objects.filter(channel__in=[off, quiet]).exists()
    make_alert(project, kind="budget", dedupe_key="b")
    assert Delivery.objects.get(channel=quiet).alert.kind == "budget"


# Held by one at a time


def test_what_one_holds_no_one_else_takes(project: Any) -> None:
    clock, channel = FixedClock(), make_webhook(project)
    make_alert(project, clock)
    held = outbox.take(channel.pk, clock=clock)
    assert held is not None
    assert outbox.take(channel.pk, clock=clock) is None
    assert outbox.release_lost(clock=clock) == 0, "its holder, this process, lives"
    clock.forward(61)
    assert outbox.release_lost(clock=clock) == 1
    second = outbox.take(channel.pk, clock=clock)
    assert second is not None
    assert (second.pk, second.attempts) == (held.pk, 2)
    sent = outbox.SendingOutcome(True)
    assert not outbox.record(held, sent, clock=clock), "the first came back too late"
    assert outbox.record(second, sent, clock=clock)


def test_what_a_dead_process_held_is_free_at_once(project: Any) -> None:
    channel = make_webhook(project)
    make_alert(project)
    held = outbox.take(channel.pk)
    assert held is not None
    gone = subprocess.Popen(["true"])
    gone.wait()
    place = held.holder.partition(" ")[0]
    for holder, freed in ((f"elsewhere/1 {gone.pid} x", 0), (f"{place} {gone.pid} x", 1)):
        Delivery.objects.filter(pk=held.pk).update(holder=holder)
        assert outbox.release_lost() == freed


def test_a_message_that_cannot_be_made_holds_up_no_one(project: Any, receiver: WebReceiver) -> None:
    channel = make_webhook(project, receiver.url)
    bad, good = make_alert(project), make_alert(project, sentence="This one is well.")
    Alert.objects.filter(pk=bad.pk).update(unreal="nonsense")
    outbox.send_due()
    states = dict(Delivery.objects.filter(channel=channel).values_list("alert_id", "state"))
    assert states == {bad.pk: "waiting", good.pk: "sent"}
    assert ": ValidationError" in bad.deliveries.get(channel=channel).last_error


def test_a_replay_goes_out_again_under_the_same_id(
    project: Any, receiver: WebReceiver, catcher: MailCatcher
) -> None:
    make_webhook(project, receiver.url)
    make_alert(project)
    outbox.send_due()
    for delivery in Delivery.objects.all():
        assert channels.replay(delivery=delivery)
        assert not channels.replay(delivery=delivery), "it is on its way already"
    outbox.send_due()
    assert len({post.headers["Starling-Delivery"] for post in receiver.posts}) == 1
    assert len(receiver.posts) == 2
    # A mailbox would drop a second mail of the same id; someone asked for this one.
    assert len({got.message["Message-ID"] for got in catcher.mails}) == 2
    assert set(Delivery.objects.values_list("state", "replays")) == {("sent", 1)}


def test_a_test_message_goes_the_usual_way_and_stands_in_no_list(
    owner: Any, project: Any, receiver: WebReceiver
) -> None:
    channel, client = make_webhook(project, receiver.url), _client(owner)
    path = f"/p/{project.slug}/alerts/channels/{channel.pk}/"
    client.post(f"{path}test/")
    client.post(f"{path}test/")  # one at a time
    assert "data-waiting" in client.get(f"{path}?log=1").content.decode()
    outbox.send_due()
    assert [json.loads(post.body)["type"] for post in receiver.posts] == ["test"]
    log = client.get(f"{path}?log=1").content.decode()
    assert "HTTP 204" in log
    assert "data-waiting" not in log
    assert "Test message" not in client.get(f"/p/{project.slug}/alerts/?state=all").content.decode()
