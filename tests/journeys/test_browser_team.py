"""From the printed link to a comparison of PPO and A2C, a second project and an invited person, with a mouse and by
keyboard alone."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command

from tests.factories import make_project, make_user
from tests.journeys.hands import Hands, Keyboard, Mouse
from tests.journeys.signed_in import watch_for_faults
from tests.journeys.steps import compare_jobs, create_account, launch_pole
from webapp.accounts.models import Project
from webapp.jobs.models import Job

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]
PASSWORD = "correct horse battery"


@pytest.mark.parametrize("hands_of", [Mouse, Keyboard])
def test_from_the_printed_link_to_an_invited_person(
    live_site: str, live_worker: Path, page: Page, browser: Browser, hands_of: type[Hands]
) -> None:
    faults, hands = watch_for_faults(page), hands_of(page)  # type: ignore[call-arg]
    page.set_default_timeout(90_000)
    _signs_in(hands, live_site)
    hands.go("Jobs")  # which has presets in place of the list
    launch_pole(hands, "Pole with PPO")
    hands.go("Jobs")
    hands.press("link", "New job")
    launch_pole(hands, "Pole with A2C", algorithm="A2C")
    assert "Algorithm" in compare_jobs(hands, ("Pole with PPO", "Pole with A2C"))
    assert Job.objects.count() == 2
    _makes_a_project(hands)
    link = _invites(hands)
    context = browser.new_context()
    try:
        _joins(hands_of(context.new_page()), live_site + urlsplit(link).path)  # type: ignore[call-arg]
    finally:
        context.close()
    project = Project.objects.get(name="Second thoughts")
    assert {(one.user.email, one.role) for one in project.memberships.all()} == {
        ("ada@example.org", "owner"),
        ("grace@example.org", "viewer"),
    }
    assert faults == []


def _signs_in(hands: Hands, live_site: str) -> None:
    """By the link that the command prints, and with a first password."""
    make_project(make_user("ada@example.org"), "Poles")
    printed = StringIO()
    call_command("sign-in-link", "ada@example.org", stdout=printed)
    hands.page.goto(live_site + urlsplit(printed.getvalue().strip()).path)
    hands.press("button", "Sign in")
    hands.page.get_by_role("heading", name="Overview").wait_for()


def _makes_a_project(hands: Hands) -> None:
    hands.go("Members")
    hands.press("link", "Project settings")
    hands.press("link", "Projects")
    hands.write("Name", "Second thoughts")
    hands.press("button", "Create the project")
    hands.page.get_by_role("heading", name="Overview").wait_for()


def _invites(hands: Hands) -> str:
    """Who may use a project outlasts a session, so a first password is set on the way. Returns the link."""
    hands.go("Members")
    hands.write("E-mail address", "grace@example.org")
    hands.press("button", "Make the invitation")
    hands.write("Password", PASSWORD)
    hands.write("Repeat the password", PASSWORD)
    hands.press("button", "Set the password")
    hands.page.wait_for_selector("text=Send this link to grace@example.org")
    return hands.page.inner_text("[data-copy-text=link]")


def _joins(hands: Hands, link: str) -> None:
    hands.page.set_default_timeout(90_000)
    hands.page.goto(link)
    create_account(hands, "grace@example.org", PASSWORD)
    hands.press("button", "Join as grace@example.org")
    hands.page.get_by_role("heading", name="Overview").wait_for()
