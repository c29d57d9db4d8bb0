"""Money as a new person meets it: a budget, its mail, the forecast, the stop at its line, and finance's files."""

import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.sessions.models import Session
from openpyxl import load_workbook
from pypdf import PdfReader

from rig.servers import reserved_port, wait_until
from tests.journeys.signed_in import watch_for_faults
from tests.receivers import MailCatcher, mail_catcher
from tests.webapp.bookkeeping import assert_whole
from tests.webapp.reports import focus_check
from tests.webapp.settled import booked
from webapp.accounts.hashed_sessions import SessionStore
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.money.models import Budget

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

PASSWORD = "correct horse battery"
LINE = 6 * 10**10


@pytest.fixture
def mails() -> Iterator[MailCatcher]:
    with mail_catcher(reserved_port()) as catcher:
        yield catcher


@pytest.fixture
def service_environment(service_environment: dict[str, str], mails: MailCatcher) -> dict[str, str]:
    """The site and its worker have a mail server."""
    return service_environment | {"STARLING_SMTP_URL": f"smtp+plain://127.0.0.1:{mails.port}"}


class Visit:
    """Ada, who has just heard of the site."""

    def __init__(self, site: str, page: "Page", mails: MailCatcher) -> None:
        self.site, self.page, self.mails = site, page, mails
        self.faults = watch_for_faults(page)
        page.set_default_timeout(60_000)

    def signs_up(self) -> None:
        self.page.goto(self.site)
        self.page.click("text=Create an account")
        self.page.fill("[name=email]", "ada@example.org")
        self.page.fill("[name=password1]", PASSWORD)
        self.page.fill("[name=password2]", PASSWORD)
        self.page.click("text=Create the account")
        self.page.wait_for_selector("text=0 of 5 taken")

    def confirms_her_address(self) -> None:
        """Alerts are mailed to confirmed addresses only."""
        self.gets_a_mail("confirm it here")
        links = re.findall(r"http\S+/accounts/confirm-email/\S+", " ".join(self.letters()))
        self.page.goto(self.site + links[-1][links[-1].index("/accounts/") :])
        self.page.click("text=Confirm the address")
        self.page.wait_for_url(lambda address: "confirm-email" not in address)
        self.page.goto(self.site)

    def sets_a_budget(self, usd: str) -> None:
        self.page.click("nav >> text=Budgets")
        self.page.click("text=Set a budget")
        self.page.fill("[name=name]", "First tries")
        self.page.fill("[name=limit]", usd)
        self.page.select_option("[name=period]", "total")
        self.page.click("text=Set this budget")
        self.page.wait_for_selector("text=of $0.0600")

    def launches(self, **fields: Any) -> Job:
        self.page.click("nav >> text=Jobs")
        self.page.click("a.preset:has-text('Hopper, simulated cloud')")
        for name, value in fields.items():
            place = self.page.locator(f"[name='{name.replace('__', '.')}']")
            if not place.is_visible():
                place.evaluate("element => element.closest('details').open = true")
            place.fill(str(value))
        self.page.click("[data-launch]")
        self.page.wait_for_url("**/jobs/job_*/")
        return Job.objects.get()

    def gets_a_mail(self, words: str, within_s: float = 180) -> None:
        wait_until(
            lambda: any(words in text for text in self.letters()), within_s=within_s, what=f"a mail: {words}"
        )

    def letters(self) -> list[str]:
        bodies = [mail.message.get_body(("plain",)) for mail in list(self.mails.mails)]
        return [" ".join(str(body.get_content()).split()) for body in bodies if body is not None]

    def raises_the_budget(self, usd: str) -> None:
        """Long after the password was given last."""
        _an_hour_passes()
        self.page.click("nav >> text=Budgets")
        self.page.click("a.name:has-text('First tries')")
        self.page.fill("[name=limit]", usd)
        self.page.click("main >> button:has-text('Save')")
        self.page.fill("[name=password]", PASSWORD)
        self.page.press("[name=password]", "Enter")
        self.page.wait_for_selector(f"text=The budget is changed: “First tries”, ${usd}.00")

    def takes_away(self, kind: str) -> Path:
        with self.page.expect_download() as awaited:
            self.page.click(f".downloads a:has-text('{kind}')")
        return Path(awaited.value.path())


def _an_hour_passes() -> None:
    for row in Session.objects.all():
        session = row.get_decoded()
        for method in session.get("account_authentication_methods", ()):
            method["at"] -= 3600
        row.session_data = SessionStore().encode(session)
        row.save()


def test_from_a_new_budget_to_the_files_for_finance(
    live_site: str, live_worker: Path, page: "Page", mails: MailCatcher
) -> None:
    ada = Visit(live_site, page, mails)
    ada.signs_up()
    ada.confirms_her_address()
    ada.sets_a_budget("0.06")
    job = ada.launches(
        training__scaling__fixed__actors=1,
        training__rollout__steps_per_call=256,
        # Slow functions and no evaluations: much of the cloud's time in little of ours.
        training__rollout__memory_mb=128,
        training__evaluation__every_rounds=10_000,
    )
    page.wait_for_selector(
        "[data-live=burn]:has-text('it meets the limit of “First tries”')", timeout=120_000
    )
    ada.gets_a_mail("50 % of its limit")
    ada.gets_a_mail("will reach its limit")
    page.wait_for_selector(".pill:has-text('Stopped by budget')", timeout=180_000)
    _drained_with_a_checkpoint(job)
    stopped_at = job.round_no
    ada.gets_a_mail("stopped at its budget with a checkpoint")
    address = page.url
    ada.raises_the_budget("1")
    page.goto(address)
    page.click("text=Resume within its budget")
    wait_until(lambda: _now(job).round_no > stopped_at, within_s=120, what="the job goes on")
    assert job.events.get(kind="resumed").payload["from_round"] == stopped_at
    page.click("[data-live=stop-form] button")
    page.click("text=Stop the job for good")
    page.wait_for_selector(".pill:has-text('Stopped')", timeout=60_000)
    wait_until(lambda: not _now(job).lease_owner, within_s=60, what="the lease is given back")
    assert_whole(job)
    page.click("nav >> text=Reports")
    _every_file_says(booked(job), ada)
    assert ada.faults == []


def _now(job: Job) -> Job:
    job.refresh_from_db()
    return job


def _drained_with_a_checkpoint(job: Job) -> None:
    """At the line and not over it, with what it learned saved."""
    budget = Budget.objects.get()
    assert 0.5 * LINE < budget.spent_picodollars <= budget.limit_picodollars == LINE
    assert (budget.reserved_picodollars, budget.overrun_picodollars) == (0, 0)
    assert _now(job).checkpoints.latest("round_no").round_no == job.round_no
    assert_whole(job)


def _every_file_says(picodollars: int, ada: Visit) -> None:
    exact = exact_usd(picodollars)
    assert ada.page.get_attribute("[data-total]", "value") == exact
    table = list(csv.DictReader(io.StringIO(ada.takes_away("CSV").read_text())))
    assert table[-1]["cost [USD]"] == exact
    assert json.loads(ada.takes_away("JSON").read_text())["total"]["cost_usd"] == exact
    focus = ada.takes_away("FOCUS").read_text()
    assert focus_check.problems(io.StringIO(focus)) == []
    assert sum(Decimal(row["BilledCost"]) for row in csv.DictReader(io.StringIO(focus))) == Decimal(exact)
    book = load_workbook(io.BytesIO(ada.takes_away("Excel").read_bytes()))
    about = {row[0].value: row[1].value for row in book["About"].iter_rows()}
    assert about["Total, exact [USD]"] == exact
    text = "".join(sheet.extract_text() for sheet in PdfReader(ada.takes_away("PDF")).pages)
    assert re.search(rf"exactly {re.escape(exact)} USD", text)
