"""What a project can have mailed: so much an hour, and nothing to strangers who did not agree."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as hypothesis_settings

from tests.factories import FixedClock, make_alert, make_project, make_user, make_webhook
from tests.receivers import MailCatcher, WebReceiver
from tests.signed_in import signed_in
from webapp.accounts.models import User
from webapp.alerts import channels, mail_consent, outbox, project_mail, text
from webapp.alerts.models import Alert, AlertKind, Channel, Delivery, HourlyUse
from webapp.alerts.senders import mail

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Any:
    return make_project(make_user("ada@example.org"), "Walking")


def _turn(clock: FixedClock) -> None:
    """What the worker does about mails every two seconds."""
    mail_consent.send_due_requests(clock=clock)
    outbox.send_due(clock=clock)


def _to(catcher: MailCatcher, address: str) -> list[str]:
    """The subjects of what came to this address."""
    return [str(one.message["Subject"]) for one in catcher.mails if address in one.to]


def _link(catcher: MailCatcher, address: str) -> str:
    """The path in the mail that asks this address."""
    (consent,) = [one for one in catcher.mails if one.to == [address]]
    found = re.search(r"http://[^/\s]+(/\S+)", consent.message.get_content())
    assert found is not None
    return found[1]


def _agree(project: Any, *addresses: str, clock: FixedClock) -> None:
    """As if each had been asked and had agreed."""
    mail_consent.request_consent(project.pk, addresses, clock=clock)
    for one in mail_consent.consents_of(project.pk):
        mail_consent.answer(one, agrees=True, clock=clock)


# An hour's worth


def _tries(channel: Channel, user: Any, clock: FixedClock) -> bool:
    try:
        channels.send_test(channel=channel, user=user, clock=clock)
    except channels.ChannelRefused:
        return False
    outbox.send_due(clock=clock)
    return True


def test_five_test_messages_an_hour_leave_a_project_by_whatever_channel(
    project: Any, receiver: WebReceiver
) -> None:
    clock, user = FixedClock(), project.people.get()
    hooks = [make_webhook(project, receiver.url) for _ in range(3)]
    assert sum(_tries(hooks[number % 3], user, clock) for number in range(12)) == 5
    cache.clear()
    clock.forward(3599)
    assert not _tries(hooks[0], user, clock), "what was sent is known to every process, and after a restart"
    for hook in hooks:
        channels.remove(channel=hook)
    assert not _tries(make_webhook(project, receiver.url), user, clock), "a new channel is no new hour"
    assert len(receiver.posts) == 5
    other = make_project()
    assert _tries(make_webhook(other, receiver.url), other.people.get(), clock)
    clock.forward(2)
    assert _tries(make_webhook(project, receiver.url), user, clock)


def test_a_test_message_sent_again_is_one_more(project: Any, receiver: WebReceiver) -> None:
    clock, user = FixedClock(), project.people.get()
    hook = make_webhook(project, receiver.url)
    assert _tries(hook, user, clock)
    delivery = Delivery.objects.get(channel=hook)
    for _ in range(4):
        assert channels.replay(delivery=delivery, clock=clock)
        outbox.send_due(clock=clock)
    with pytest.raises(channels.ChannelRefused, match="5 test messages"):
        channels.replay(delivery=delivery, clock=clock)
    assert len(receiver.posts) == 5


def test_a_page_says_when_the_next_test_message_can_go(
    project: Any, receiver: WebReceiver, client: Client
) -> None:
    user, hook = project.people.get(), make_webhook(project, receiver.url)
    for _ in range(5):
        channels.send_test(channel=hook, user=user)
        outbox.send_due()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    path = f"/p/{project.slug}/alerts/channels/{hook.pk}/"
    said = client.post(f"{path}test/", follow=True).content.decode()
    assert "5 test messages" in said
    delivery = Delivery.objects.filter(channel=hook).first()
    assert delivery is not None
    again = client.post(f"/p/{project.slug}/alerts/deliveries/{delivery.pk}/replay/", follow=True)
    assert "5 test messages" in again.content.decode()
    assert len(receiver.posts) == 5


def test_a_hundred_mails_an_hour_leave_a_project_and_the_rest_waits(
    project: Any, catcher: MailCatcher
) -> None:
    clock = FixedClock()
    everybody = [f"person{number}@example.net" for number in range(19)]
    _agree(project, *everybody, clock=clock)
    channels.add_mail(project=project, name="All", addresses=everybody, clock=clock)
    for _ in range(9):
        make_alert(project, clock)
    _turn(clock)
    assert sum(len(one.to) for one in catcher.mails) <= 100
    waiting = Delivery.objects.filter(state="waiting")
    assert waiting.exists()
    assert {one.attempts for one in waiting} == {0}, "nothing was tried"
    assert "100 mails an hour" in waiting[0].last_error
    assert text.channel_status(Channel.objects.get(name="All")).word == "Working"
    assert not Alert.objects.filter(kind=AlertKind.CHANNEL).exists()
    for _ in range(3):
        clock.forward(3601)
        before = sum(len(one.to) for one in catcher.mails)
        _turn(clock)
        assert sum(len(one.to) for one in catcher.mails) - before <= 100
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}
    assert len({str(one.message["Message-ID"]) for one in catcher.mails}) == len(catcher.mails) == 18


def test_what_the_mail_server_did_not_take_is_no_part_of_the_hundred(
    project: Any, catcher: MailCatcher
) -> None:
    clock = FixedClock()
    catcher.refuse_with = "451 try later"
    make_alert(project, clock)
    _turn(clock)
    assert not HourlyUse.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_senders_at_once_do_not_pass_the_limit_together() -> None:
    project, clock = make_project(), FixedClock()

    def take(_: int) -> int:
        try:
            project_mail.take(project.pk, "mail", 7, clock=clock)
        except project_mail.OverLimit:
            return 0
        finally:
            connection.close()
        return 7

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, range(24))) == 98


@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40
)
@given(
    strategies.lists(strategies.tuples(strategies.integers(0, 2400), strategies.integers(1, 40)), max_size=25)
)
def test_no_hour_anywhere_has_more_than_the_limit(project: Any, steps: list[tuple[int, int]]) -> None:
    HourlyUse.objects.all().delete()
    clock, began, taken = FixedClock(), FixedClock().now(), []
    for pause_s, count in steps:
        clock.forward(pause_s)
        now_s = (clock.now() - began).total_seconds()
        inside = sum(many for at_s, many in taken if at_s > now_s - 3600)
        try:
            project_mail.take(project.pk, "mail", count, clock=clock)
        except project_mail.OverLimit as over:
            assert inside + count > 100, "it is refused only where it would be too much"
            left = sum(many for at_s, many in taken if at_s > now_s + over.wait_s - 3600)
            assert left + count <= 100, "and what it says about when is so"
        else:
            taken.append((now_s, count))
            assert inside + count <= 100


# Who agreed


def test_a_stranger_is_asked_once_and_gets_nothing_else_before_agreeing(
    project: Any, catcher: MailCatcher
) -> None:
    clock = FixedClock()
    channel = channels.add_mail(project=project, name="All", addresses=["Eve@example.net"], clock=clock)
    for _ in range(3):
        make_alert(project, clock, sentence="Go to https://evil.example.com at once.")
        _turn(clock)
        clock.forward(60)
    channels.send_test(channel=channel, user=project.people.get(), clock=clock)
    channels.change(
        channel=channel, name="All", on=True, kinds=[], addresses=["ada@example.org"], clock=clock
    )
    for address in ("eve@example.net", "EVE@example.net"):
        channels.change(
            channel=channel, name="All", on=True, kinds=["orphan"], addresses=[address], clock=clock
        )
        _turn(clock)
    channels.remove(channel=channel)
    channel = channels.add_mail(project=project, name="New", addresses=["eve@example.net"], clock=clock)
    _turn(clock)
    (request,) = _to(catcher, "eve@example.net")
    assert request.startswith("Starling: alerts for")
    letter = next(one for one in catcher.mails if one.to == ["eve@example.net"]).message.as_string()
    assert "evil" not in letter
    assert project.name not in letter, "nothing that someone of the project wrote"

    path, anyone = _link(catcher, "eve@example.net"), Client(enforce_csrf_checks=False)
    assert project.name in anyone.get(path).content.decode()
    make_alert(project, clock)
    _turn(clock)
    assert len(_to(catcher, "eve@example.net")) == 1, "who looks at the link has not agreed yet"
    anyone.post(path, {"answer": "yes"})
    make_alert(project, clock, sentence="Hopper is done.")
    _turn(clock)
    assert _to(catcher, "eve@example.net")[1:] == [f"Starling: {AlertKind.ORPHAN.label} – Walking"]
    anyone.post(path, {"answer": "no"})
    make_alert(project, clock)
    _turn(clock)
    assert len(_to(catcher, "eve@example.net")) == 2, "a person who agreed can stop it"


def test_an_address_that_declined_gets_no_second_question(project: Any, catcher: MailCatcher) -> None:
    clock = FixedClock()
    channel = channels.add_mail(project=project, name="All", addresses=["eve@example.net"], clock=clock)
    _turn(clock)
    Client().post(_link(catcher, "eve@example.net"), {"answer": "no"})
    clock.forward(3600 * 24 * 400)
    channels.remove(channel=channel)
    channels.add_mail(project=project, name="All", addresses=["eve@example.net"], clock=clock)
    make_alert(project, clock)
    _turn(clock)
    assert len(_to(catcher, "eve@example.net")) == 1


def test_many_projects_do_not_ask_one_address_more_than_three_times_a_day(catcher: MailCatcher) -> None:
    clock = FixedClock()
    for _ in range(8):
        channels.add_mail(project=make_project(), name="All", addresses=["eve@example.net"], clock=clock)
    for _ in range(20):
        _turn(clock)
        clock.forward(3600)
    assert len(_to(catcher, "eve@example.net")) == 3
    clock.forward(3600 * 5)
    _turn(clock)
    assert len(_to(catcher, "eve@example.net")) == 6


def test_a_link_of_no_person_says_so_and_changes_nothing() -> None:
    for token in ("nonsense", "1:nonsense", "1"):
        assert Client().get(f"/alerts/mail/{token}/").status_code == 404
        assert Client().post(f"/alerts/mail/{token}/", {"answer": "yes"}).status_code == 404


def test_a_member_who_confirmed_the_address_needs_no_question(project: Any, catcher: MailCatcher) -> None:
    clock = FixedClock()
    channels.add_mail(project=project, name="All", addresses=["Ada@example.org"], clock=clock)
    make_alert(project, clock)
    _turn(clock)
    assert _to(catcher, "Ada@example.org") == [f"Starling: {AlertKind.ORPHAN.label} – Walking"]
    assert len(_to(catcher, "ada@example.org")) == 1, "and the built-in channel's"


def test_an_owner_who_never_confirmed_the_address_gets_no_mail(catcher: MailCatcher, client: Client) -> None:
    stranger = User.objects.create_user("victim@example.net")
    project, clock = make_project(stranger), FixedClock()
    make_alert(project, clock)
    _turn(clock)
    assert catcher.mails == []
    client.force_login(stranger, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(f"/p/{project.slug}/alerts/channels/").content.decode()
    assert "Unconfirmed" in page
    assert mail.NO_OWNER_CONFIRMED in page
    assert not Alert.objects.filter(kind=AlertKind.CHANNEL).exists(), (
        "the page says it; an alert would be noise"
    )


def test_the_channels_page_says_who_has_not_agreed(
    project: Any, catcher: MailCatcher, client: Client
) -> None:
    channel = channels.add_mail(project=project, name="All", addresses=["eve@example.net", "ada@example.org"])
    client.force_login(project.people.get(), backend="django.contrib.auth.backends.ModelBackend")
    path = f"/p/{project.slug}/alerts/channels/{channel.pk}/"
    page = client.get(path).content.decode()
    assert "Gets a mail" in page
    mail_consent.send_due_requests()
    assert "Got the mail" in client.get(path).content.decode()
    Client().post(_link(catcher, "eve@example.net"), {"answer": "no"})
    assert "Does not want" in client.get(path).content.decode()


@pytest.mark.parametrize("address", ["root@localhost", "eve@[127.0.0.1]", "eve@[IPv6:::1]", "eve@mailserver"])
def test_an_address_inside_this_network_is_refused_and_never_asked(
    address: str, project: Any, catcher: MailCatcher
) -> None:
    path = f"/p/{project.slug}/alerts/channels/new/email/"
    assert signed_in(project.people.get()).post(path, {"name": "x", "addresses": address}).status_code == 422
    clock = FixedClock()
    channels.add_mail(project=project, name="Old", addresses=[address], clock=clock)
    _turn(clock)
    assert catcher.mails == []
