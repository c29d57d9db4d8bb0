"""Shared pages in a browser that nobody signed in to: live, framed on the named site alone, closed when revoked. Then
the way from a second project over an invited person to a shared job, with a mouse and by keyboard alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.factories import make_user, round_finished
from tests.journeys import scenes
from tests.journeys.hands import Hands, Keyboard, Mouse
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.webapp.sharing.shares import make_secret_job, share
from webapp.accounts.models import Project
from webapp.accounts.services import ensure_personal_project
from webapp.sharing.services import revoke_link

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.stack, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct horse battery"


def test_a_shared_job_is_live_without_a_cookie_and_closes_when_it_is_revoked(
    live_site: str, page: "Page"
) -> None:
    job, recorder = make_secret_job()
    link, path = share(job)
    faults = watch_for_faults(page)
    page.goto(live_site + path)
    expect(page.locator("[data-live=round]")).to_have_text("round 3")
    recorder.record(round_finished(4, mean=24.0))
    recorder.flush()
    expect(page.locator("[data-live=round]")).to_have_text("round 4")
    assert "$" not in page.inner_text("main")
    assert page.context.cookies() == []
    assert "spent" not in _saved_return(page)
    revoke_link(link)
    expect(page.locator("h1")).to_contain_text("does not work", timeout=30_000)
    _, paid = share(job, money=True)
    page.goto(live_site + paid)
    expect(page.locator("[data-live=round]")).to_have_text("round 4")
    assert "spent [USD, simulated]" in _saved_return(page)
    assert faults == []


def _saved_return(page: "Page") -> str:
    """The first line of the file that the first chart's menu saves, whose name says what kind of money it holds."""
    with page.expect_download() as saving:
        page.locator("[data-chart=return] .chart-menu > summary").click()
        page.locator("[data-chart=return] [data-export=csv]").click()
    assert saving.value.suggested_filename == "walker-return-simulated.csv"
    return Path(saving.value.path()).read_text().splitlines()[0]


@pytest.mark.slow
def test_it_is_framed_on_the_named_site_and_nowhere_else(live_site: str, page: "Page") -> None:
    """Another port of this machine is another site for a browser."""
    job, _ = make_secret_job()
    with _wiki() as wiki:
        for sites, rounds in (([wiki.url], 1), (["https://wiki.example.org"], 0)):
            _, path = share(job, sites=sites)
            wiki.page = f'<iframe src="{live_site}{path}embed/" width="900" height="700"></iframe>'
            page.goto(wiki.url)
            page.wait_for_load_state("networkidle")
            assert page.frame_locator("iframe").locator("[data-live=round]").count() == rounds


class _Wiki(ThreadingHTTPServer):
    """A site that shows one page."""

    page = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _WikiPage(BaseHTTPRequestHandler):
    server: _Wiki

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    def log_message(self, *args: object) -> None:
        """Nothing is logged."""


@contextmanager
def _wiki() -> Iterator[_Wiki]:
    with _Wiki(("127.0.0.1", 0), _WikiPage) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        try:
            yield site
        finally:
            site.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("hands_of", [Mouse, Keyboard])
def test_from_a_second_project_to_a_shared_job(live_site: str, page: "Page", hands_of: type[Hands]) -> None:
    ada = make_user("ada@example.org", PASSWORD)
    ensure_personal_project(ada)
    faults, hands = watch_for_faults(page), hands_of(page)  # type: ignore[call-arg]
    page.set_default_timeout(60_000)
    sign_in(page, live_site, ada)
    page.goto(f"{live_site}/projects/")
    hands.write("Name", "Walking robots")
    hands.press("button", "Create the project")
    page.wait_for_url("**/p/walking-robots/")
    hands.go("Members")
    hands.write("E-mail address", "bob@example.org")
    hands.press("button", "Make the invitation")
    invitation = live_site + _path(page.inner_text("[data-copy-text=link]"))
    _is_joined_by(hands_of(_other_browser(page)), invitation)  # type: ignore[call-arg]
    project = Project.objects.get(slug="walking-robots")
    assert project.people.filter(email="bob@example.org").exists()
    job = scenes.running_job(project, ada)
    page.goto(f"{live_site}/p/walking-robots/links/?of={job.pk}")
    hands.press("button", "Make the link")
    visitor = _other_browser(page)
    visitor.goto(live_site + _path(page.inner_text("[data-copy-text=link]")))
    expect(visitor.locator("h1")).to_have_text(job.name)
    hands.press("button", "Revoke")
    page.wait_for_selector("text=No one has a link to this job")
    expect(visitor.locator("h1")).to_contain_text("does not work", timeout=30_000)
    hands.go("Members")
    hands.press("link", "Project settings")
    hands.press("button", "Archive")
    hands.press("checkbox", "End what runs")
    hands.press("button", "Archive the project")
    page.wait_for_url("**/projects/")
    assert faults == []


def _path(link: str) -> str:
    return urlsplit(link).path


def _other_browser(page: "Page") -> "Page":
    """A tab of a person who shares no cookie with this one."""
    browser = page.context.browser
    assert browser is not None
    return browser.new_context().new_page()


def _is_joined_by(hands: Hands, invitation: str) -> None:
    """An invited person signs up by the link, and joins."""
    hands.page.set_default_timeout(60_000)
    hands.page.goto(invitation)
    hands.press("link", "Create an account")
    hands.write("E-mail address", "bob@example.org")
    hands.write("Password", PASSWORD)
    hands.write("Repeat the password", PASSWORD)
    hands.press("button", "Create the account")
    hands.press("button", "Join as bob@example.org")
    hands.page.wait_for_url("**/p/walking-robots/")
    hands.page.context.close()
