"""What a person does with alerts: hears the bell, looks, acknowledges, puts off; adds a webhook and sees it work."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.factories import make_alert, make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.receivers import WebReceiver
from webapp.alerts import outbox
from webapp.alerts.models import Alert, AlertState

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def service_environment(service_environment: dict[str, str], receiver: WebReceiver) -> dict[str, str]:
    """The site may post to this test's receiver."""
    return service_environment | {"STARLING_ALERT_HOSTS": f"127.0.0.1:{receiver.port}"}


def test_the_bell_rings_on_an_open_page_and_an_alert_is_looked_after(live_site: str, page: "Page") -> None:
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/members/")
    assert not page.is_visible("[data-bell-count]")
    alert = make_alert(project, sentence="Hopper has spent $0.50 of $1.00.")
    page.wait_for_selector("[data-bell-count]:has-text('1')")
    page.click("[data-bell] summary")
    page.wait_for_selector("text=Hopper has spent $0.50 of $1.00.")
    page.wait_for_selector("[data-bell-count]", state="hidden")
    page.click("text=All alerts")
    page.wait_for_selector("h1:has-text('Alerts')")
    page.click("button:has-text('Acknowledge')")
    page.wait_for_selector(f"text=Acknowledged, by {user.email}")
    page.click(".alert-more summary")
    page.click("text=For a day")
    page.wait_for_selector("text=Snoozed until")
    alert.refresh_from_db()
    assert (alert.state, alert.state_by) == (AlertState.SNOOZED, user)
    make_alert(project, sentence="Something else began.")
    page.wait_for_selector("li.alert-row:has-text('Something else began.')")
    assert Alert.objects.count() == 2
    assert faults == []


def test_a_webhook_is_added_its_key_copied_and_a_test_arrives(
    live_site: str, page: "Page", receiver: WebReceiver, tmp_path: Path
) -> None:
    faults = watch_for_faults(page)
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/alerts/channels/")
    page.wait_for_selector("text=No mail server is set, so no mail leaves this installation.")
    page.click("a.way-card:has-text('Webhook')")
    page.fill("[name=name]", "Ops")
    page.fill("[name=url]", "https://127.0.0.1/hook")
    page.click("text=Add the channel")
    page.wait_for_selector("text=is an address of a private network")
    assert page.input_value("[name=url]") == ""
    page.fill("[name=url]", receiver.url)
    page.click("text=Add the channel")
    key = page.inner_text("[data-copy-text=signing-key]")
    assert re.fullmatch(r"whsec_[\w-]{43}", key)
    page.click("text=Send a test message")
    page.wait_for_selector("[data-waiting]")
    assert key not in page.content()
    outbox.send_due()
    page.wait_for_selector("text=HTTP 204")
    page.wait_for_selector(".pill:has-text('Working')")
    assert [json.loads(post.body)["type"] for post in receiver.posts] == ["test"]
    page.click("text=Send again")
    outbox.send_due()
    page.wait_for_selector("text=sent again 1×")
    assert len(receiver.posts) == 2
    assert faults == []
