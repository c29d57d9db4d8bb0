"""What pages show only when someone opens it: menus, dialogs that ask again, folded parts, and pages that say no."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.template.loader import render_to_string
from playwright.sync_api import Page

from webapp.database.storage_faults import FULL

Act = Callable[[Page], None]


def opened(base: str, live: str, budget: str, channel: str, connection: str) -> dict[str, tuple[str, Act]]:
    """By name: the address, and what opens there. `base` is the project's address, the others are of single things."""
    jobs, tokens = f"{base}jobs/", "/account/tokens/"
    return {
        "open-account": (jobs, _press("summary[aria-label^=Account]")),
        "open-theme": (jobs, _press("summary[aria-label=Appearance]")),
        "open-projects": (jobs, _press(".menu > summary:has(> .name)")),
        "open-more": (jobs, _unfold(".bar-more details")),
        "open-folded": (live, _press("[data-fold-rail]")),
        "open-views": (jobs, _press("summary:has-text('Views')")),
        "open-stop-chosen": (jobs, _stop_chosen),
        "open-stop": (live, _press("[data-dialog=stop-dialog]")),
        "open-about": (live, _press("[data-about] > summary")),
        "open-job-more": (live, _press(".job-menu > summary")),
        "open-chart": (live, _chart_as_table),
        "open-file": (f"{jobs}new/?preset=cartpole", _press(".from-file:not(.preset-words) > summary")),
        "open-budget-close": (budget, _press("[data-dialog=close-dialog]")),
        "open-channel-remove": (channel, _press("[data-dialog=remove]")),
        "open-connection-remove": (connection, _press("[data-dialog=remove]")),
        "open-member-remove": (f"{base}members/", _press("[data-dialog^=remove-] >> nth=1")),
        "open-project-archive": (f"{base}settings/", _press("[data-dialog=archive-dialog]")),
        "open-sign-out-everywhere": ("/account/", _press("[data-dialog=everywhere]")),
        "open-token-revoke": (tokens, _press("[data-dialog^=revoke-] >> nth=0")),
        "open-plan": (f"{base}reports/", _press(".new-plan > summary")),
        "form-switched": (f"{jobs}new/?preset=cartpole", _switch),
        "form-forecasts-again": (f"{jobs}new/?preset=hopper-minionsrl", _forecasts_again),
        "job-not-heard-of": (live, _not_heard_of),
        "open-models": ("/api/", _unfold(".models, .models details >> nth=0")),
        "says-not-allowed": (jobs, _says_no("403.html")),
        "says-old-page": (jobs, _says_no("403_csrf.html")),
        "says-fault": (jobs, _says_no("500.html")),
        "says-full-disk": (jobs, _says_no("storage_fault.html")),
    }


def _press(selector: str) -> Act:
    return lambda page: page.click(selector)


def _unfold(selector: str) -> Act:
    def act(page: Page) -> None:
        for details in page.locator(selector).all():
            details.evaluate("(details) => { details.open = true; }")

    return act


def _stop_chosen(page: Page) -> None:
    page.locator("[name=job]").first.check()
    page.click("[data-dialog=stop-chosen]")


def _chart_as_table(page: Page) -> None:
    page.wait_for_selector("html[data-drawn-seq]", state="attached")
    page.locator(".chart-menu summary").first.click()


def _switch(page: Page) -> None:
    """Another algorithm and another rule for the actors than the preset has."""
    page.select_option("[name='training.algorithm.kind']", "impala")
    page.click("#more > summary")
    page.select_option("[name='training.scaling.kind']", "schedule")


def _forecasts_again(page: Page) -> None:
    """The form while forecast and checks are being worked out, as a busy machine takes its time over them."""
    page.wait_for_selector(".forecast-sentence")
    page.route(re.compile("/new/(forecast|checks)"), lambda route: None, times=2)
    page.fill("[name='training.stop.env_steps']", "250,000")
    for panel in (".forecast", ".checks"):
        page.wait_for_selector(f"{panel}[aria-busy]")


def _not_heard_of(page: Page) -> None:
    """A job's page to which each look at the clock is an hour after the last."""
    page.wait_for_selector("html[data-drawn-seq]", state="attached")
    page.evaluate("let hours = 0, now = Date.now; Date.now = () => now() + 3600000 * ++hours; undefined")
    page.wait_for_selector(".job.stale")


def _says_no(template: str) -> Act:
    """The page as the site would answer it; nothing here can be asked for that fails on purpose."""

    def act(page: Page) -> None:
        body = render_to_string(template, {"reference": "9f31c0d2", "fault": FULL})
        page.route("**/says-no/", lambda route: route.fulfill(body=body, content_type="text/html"))
        page.evaluate("location.assign('/says-no/')")
        page.wait_for_selector(".gate")

    return act
