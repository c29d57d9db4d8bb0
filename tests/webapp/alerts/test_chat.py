"""Chat: which services are taken, and that a message arrives at one that the operator named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies

from tests.factories import make_alert, make_project
from tests.receivers import WebReceiver
from webapp.alerts import channels, outbox
from webapp.alerts.models import AlertKind, Delivery, DeliveryState
from webapp.alerts.senders import chat
from webapp.connections.sealing import Secret
from webapp.http import safe_http

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "Slack"),
        ("https://discord.com/api/webhooks/123456789/abcDEFghi", "Discord"),
        (
            "https://prod-15.uksouth.logic.azure.com:443/workflows/3XXX5/triggers/manual/paths/invoke"
            "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=iXXXU",
            "Power Automate",
        ),
        ("tgram://123456789:abcdefghijklmnopqrstuvwxyzABCDEFGHI/12315544/", "Telegram"),
    ],
)
def test_services_with_hosts_of_their_own_are_taken(url: str, service: str) -> None:
    made = chat.notifier(url + ("&verify=no&redirect=yes" if "?" in url else "?verify=no&redirect=yes"))
    assert service in chat.service_of(made)
    assert made.verify_certificate
    assert not made.redirects


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.org/workflows/3XXX5/triggers/manual/paths/invoke?api-version=1&sp=x&sv=1.0&sig=iXXXU",
        "workflows://evil.example.org/WORKFLOW/SIGNATURE",
        "workflows://logic.azure.com.evil.example.org/WORKFLOW/SIGNATURE",
        *("json://127.0.0.1/", "jsons://example.org", "xml://example.org", "mailto://me:you@example.org"),
        *(
            "syslog://",
            "dbus://",
            "mqtt://localhost/topic",
            "matrix://example.org/#room",
            "gotifys://h.example.org/t0ken",
        ),
        *("ntfy://127.0.0.1/topic", "apprise://localhost/token", "sms://x", "windows://", "nonsense", ""),
    ],
)
def test_whatever_could_lead_elsewhere_is_not(url: str) -> None:
    with pytest.raises(safe_http.AddressRefused):
        chat.notifier(url)


def test_chat_reaches_a_host_that_the_operator_named(receiver: WebReceiver) -> None:
    project = make_project(name="Walking")
    made = channels.add_chat(
        project=project, name="Team", url=Secret(f"json://127.0.0.1:{receiver.port}/team")
    )
    make_alert(project, sentence="Hopper is done.")
    outbox.send_due()
    (post,) = receiver.posts
    sent = json.loads(post.body)
    assert sent["title"] == f"{AlertKind.ORPHAN.label} – Walking"
    assert sent["message"].startswith("Hopper is done.\n")
    receiver.status = 500
    make_alert(project)
    outbox.send_due()
    delivery = Delivery.objects.filter(channel=made).latest("created_at")
    assert delivery.state == DeliveryState.WAITING
    assert delivery.last_error.startswith("JSON did not")


def _spelled(letters: list[tuple[str, int]]) -> str:
    forms = [str.lower, str.upper, lambda one: f"%{ord(one):02x}", lambda one: f"%{ord(one.upper()):02X}"]
    return "".join(forms[form](letter) for letter, form in letters)


@given(
    strategies.sampled_from(
        ["template", "attach", "attachment", "retry", "wait", "store", "tz", "+host", ":x"]
    ),
    strategies.lists(strategies.integers(0, 3), min_size=10, max_size=10),
    strategies.sampled_from(["", "%20", "footer=no&", "footer=no;", "template=&"]),
)
def test_an_argument_that_is_not_the_services_own_is_refused_in_every_spelling(
    name: str, forms: list[int], before: str
) -> None:
    spelled = _spelled([(letter, form) for letter, form in zip(name, forms, strict=False)])
    with pytest.raises(safe_http.AddressRefused, match="service's own arguments"):
        chat.notifier(
            f"slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX/?{before}{spelled}=/etc/hostname"
        )


def test_what_services_give_out_is_taken_with_its_own_arguments() -> None:
    for url in (
        "slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX/#ops?footer=no&image=no",
        "https://discord.com/api/webhooks/123456789/abcDEFghi?thread=123&footer=yes",
        "https://chat.googleapis.com/v1/spaces/AAA/messages?key=k&token=t",
        "https://webexapis.com/v1/webhooks/incoming/" + "a" * 80,
        "https://default3a.b.environment.api.powerplatform.com:443/powerautomate/automations/direct/workflows/aaa"
        "/triggers/manual/paths/invoke?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=xyz",
        "pagerduty://integrationkey@apikey?region=eu&severity=warning",
    ):
        assert chat.notifier(url)
