"""The live page: what happens to a job is seen without a reload, in order, and through a cut connection."""

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.factories import (
    call_failed,
    checkpoint_saved,
    evaluated,
    make_project,
    make_running_job,
    make_user,
    round_finished,
    stopped,
)
from tests.journeys import scenes
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.members import add_member
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.events.event_log import transition
from webapp.jobs.models import Desired, Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import resume_point

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


KEEP_SOCKETS = """
window.sockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...how) { super(...how); window.sockets.push(this); }
};
"""
NO_SOCKETS = """
window.WebSocket = class extends EventTarget {
  constructor() { super(); setTimeout(() => this.dispatchEvent(new CloseEvent("close", { code: 1006 })), 5); }
  close() {}
};
"""
PLACES = """
[...document.querySelectorAll(".figures, .tabs, .chart, [data-plot]")].map((element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x, y, width, height].join();
})
"""


class Watched:
    """A running job, and a page that shows it."""

    def __init__(self, site: str, page: "Page", role: str = "owner") -> None:
        owner = make_user()
        self.job, epoch = make_running_job(project=make_project(owner), user=owner)
        self.recorder = Recorder(self.job.pk, epoch, keep_checkpoints=3)
        viewer = owner
        if role != "owner":
            viewer = make_user()
            add_member(self.job.project, viewer.email, role)
        self.page = page
        self.faults = watch_for_faults(page)
        sign_in(page, site, viewer)
        self.address = f"{site}/p/{self.job.project.slug}/jobs/{self.job.pk}/"

    def open(self) -> None:
        self.page.goto(self.address)
        self.seen()

    def record(self, *events: Any) -> None:
        for event in events:
            self.recorder.record(event)
        self.recorder.flush()  # failed calls wait for company

    def seen(self) -> None:
        """Waits until the page has drawn the job's last event."""
        seq = Job.objects.values_list("last_seq", flat=True).get(pk=self.job.pk)
        self.page.wait_for_selector(f"html[data-drawn-seq='{seq}']", state="attached")

    def shown(self, slot: str) -> str:
        return self.page.inner_text(f"[data-live='{slot}']")


def test_rounds_and_evaluations_appear_as_they_happen(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.open()
    assert page.is_visible("[data-nothing-yet]")
    assert not page.is_visible("[data-chart=return]")
    watched.record(round_finished(1, mean=21.5), round_finished(2, mean=33.25))
    watched.seen()
    assert watched.shown("return") in ("33.3", "33.2")
    assert watched.shown("steps") == "512"
    assert not page.is_visible("[data-nothing-yet]")
    assert page.is_visible("[data-chart=return] canvas")
    watched.record(evaluated(2, mean=150.0), call_failed())
    watched.seen()
    assert (watched.shown("return"), watched.shown("evaluation")) == ("150.0", "evaluated")
    assert "Evaluated after round 2" in page.inner_text("[data-events]")
    assert "It fell over." in page.inner_text("[data-events]")
    assert "live" in watched.shown("mark")
    assert watched.faults == []


def test_a_cut_connection_is_reported_and_made_good(live_site: str, page: "Page") -> None:
    page.add_init_script(KEEP_SOCKETS)
    watched = Watched(live_site, page)
    watched.open()
    page.context.set_offline(True)
    page.evaluate("window.sockets.forEach((socket) => socket.close())")
    page.wait_for_selector("[data-live=mark][data-state=reconnecting]")
    watched.record(round_finished(1), round_finished(2), round_finished(3))
    page.context.set_offline(False)
    watched.record(round_finished(4))
    watched.seen()
    assert page.locator("li[data-kind=round]").count() == 4
    assert watched.shown("round") == "round 4"
    assert "after=" in page.evaluate("window.sockets.at(-1).url")  # it asked for the rest, not for everything


SHOWN_POINTS = """
async () => {
  const address = document.querySelector("script[src*='jobs/charts']").src;
  const columns = (await import(address)).columns;
  return { rounds: columns.axes.round, evaluations: columns.evaluations.steps };
}
"""


@pytest.mark.parametrize("script", ["", NO_SOCKETS], ids=["socket", "polling"])
def test_rounds_that_a_resume_repeats_are_gone_at_once(live_site: str, page: "Page", script: str) -> None:
    page.add_init_script(script)
    watched = Watched(live_site, page)
    watched.record(round_finished(1), round_finished(2), evaluated(2), checkpoint_saved(2))
    watched.open()
    watched.record(round_finished(3), round_finished(4), evaluated(4))
    watched.seen()
    assert page.evaluate(SHOWN_POINTS) == {"rounds": [1, 2, 3, 4], "evaluations": [512, 1024]}
    resume_point(job_id=watched.job.pk, epoch=watched.job.lease_epoch, load=lambda row: b"")
    watched.seen()
    assert page.evaluate(SHOWN_POINTS) == {"rounds": [1, 2], "evaluations": [512]}
    assert watched.shown("round") == "round 2"
    page.reload()  # a page opened only now shows the same
    watched.seen()
    assert page.evaluate(SHOWN_POINTS) == {"rounds": [1, 2], "evaluations": [512]}
    watched.record(round_finished(3))
    watched.seen()
    assert page.evaluate(SHOWN_POINTS) == {"rounds": [1, 2, 3], "evaluations": [512]}
    assert watched.faults == []


def test_a_resume_from_the_beginning_empties_the_charts(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.record(round_finished(1), evaluated(1))
    watched.open()
    resume_point(job_id=watched.job.pk, epoch=watched.job.lease_epoch, load=lambda row: None)
    watched.seen()
    assert page.evaluate(SHOWN_POINTS) == {"rounds": [], "evaluations": []}
    assert page.is_visible("[data-nothing-yet]")


def test_without_sockets_the_page_polls(live_site: str, page: "Page") -> None:
    page.add_init_script(NO_SOCKETS)
    watched = Watched(live_site, page)
    watched.record(round_finished(1))
    watched.open()
    page.wait_for_selector("[data-live=mark][data-state=polling]")  # the page is drawn before it is known
    assert "every 2 s" in watched.shown("mark")
    watched.record(round_finished(2))
    watched.seen()
    assert watched.shown("steps") == "512"


def test_stopping_asks_first_and_says_what_it_means(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.open()
    page.click("[data-live=stop-form] button")
    page.wait_for_selector("text=A stopped job cannot go on; a paused one can")
    page.click("dialog >> text=Keep it running")
    assert Job.objects.get(pk=watched.job.pk).desired == Desired.RUN
    page.click("[data-live=stop-form] button")
    page.click("text=Stop the job for good")
    page.wait_for_selector(".pill:has-text('Stopping')")
    assert Job.objects.get(pk=watched.job.pk).desired == Desired.CANCELLED


def test_a_menu_closes_before_the_dialog_it_opens_and_has_the_focus_after_it(
    live_site: str, page: "Page"
) -> None:
    user = make_user()
    project = make_project(user)
    archived, _ = scenes.jobs_put_away(project, user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/jobs/{archived.pk}/")
    page.click(".job-menu > summary")
    page.click("[data-dialog=delete-dialog]")
    page.wait_for_selector("#delete-dialog[open]")
    assert page.locator("details.menu[open]").count() == 0
    page.keyboard.press("Escape")
    page.wait_for_selector("#delete-dialog", state="hidden")
    assert page.evaluate("document.activeElement.matches('.job-menu > summary')")


def test_a_job_at_its_budget_offers_to_raise_it(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.open()
    assert not page.is_visible("[data-live=budget-box]")
    watched.record(round_finished(1), stopped("budget"))
    transition(watched.job.pk, Reason.BUDGET_SPENT.change(words="The budget is used."), clock=SYSTEM_CLOCK)
    watched.seen()
    assert page.is_visible("[data-live=budget-box]")
    assert "Stopped by budget" in watched.shown("pill")
    page.fill("[name=limit_usd]", "3")
    page.click("text=Raise the budget and resume")
    page.wait_for_selector(".pill:has-text('Queued')")
    assert "$3.00" in watched.shown("money-sentence")


def test_charts_follow_axis_smoothing_theme_and_tabs(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.record(
        *(round_finished(no, mean=float(no), spent=no * 10**9) for no in range(1, 31)), evaluated(20)
    )
    watched.open()
    for axis in ("rounds", "wall", "time", "usd", "steps"):
        page.click(f"[data-axis={axis}]")
        assert page.get_attribute(f"[data-axis={axis}]", "aria-pressed") == "true"
    page.fill("[data-smooth]", "0")
    page.check("[data-log]")
    page.click("[data-theme-menu] summary")
    page.click("[data-theme-menu] [data-theme=dark]")
    page.click(".tabs >> text=Cost")
    page.wait_for_selector("text=Cost by round (CSV)")
    page.go_back()
    assert page.is_checked("[data-log]")
    watched.record(round_finished(31))
    watched.seen()
    # The sentence about a picture is renewed every ten seconds at most, and the last word is not left out.
    said = '[data-chart=return] [data-plot][aria-label*="Training return over 31 rounds"]'
    page.wait_for_selector(said, state="attached", timeout=60_000)
    assert watched.faults == []


def test_viewers_watch_without_buttons(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page, role="viewer")
    watched.open()
    watched.record(round_finished(1))
    watched.seen()
    assert page.locator("[data-live=stop-form], #stop-dialog, .raise-form").count() == 0


def test_nothing_moves_while_values_change(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.record(round_finished(1, mean=9.9))
    watched.open()
    page.evaluate("document.fonts.ready.then(() => null)")
    before = page.evaluate(PLACES)
    watched.record(
        *(round_finished(no, mean=no * 1234.5, spent=no * 10**10) for no in range(2, 40)), evaluated(30)
    )
    watched.seen()
    assert page.evaluate(PLACES) == before


def test_no_round_is_said_to_lie_beyond_a_chart_that_shows_it(live_site: str, page: "Page") -> None:
    """The legend is written before the chart has its range; with nothing new to come it would stay so."""
    watched = Watched(live_site, page)
    watched.record(*(round_finished(no) for no in range(1, 61)))
    watched.open()
    page.wait_for_timeout(300)
    expect(page.locator("text=beyond the chart")).to_have_count(0, timeout=30_000)


ASK_AND_PAINT = """
async () => {
  const began = performance.now();
  await fetch("/livez");
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}
"""


def test_a_committed_event_is_drawn_within_150_ms(live_site: str, page: "Page") -> None:
    """Or, where this machine is busy, within a few times what the least of requests takes in the same moments. What
    else it does for a second is no fault of the page: a page that is slow is so all three times.
    """
    watched = Watched(live_site, page)
    watched.record(*(round_finished(no) for no in range(1, 201)))
    watched.open()
    measured = []
    for first in (201, 241, 281):
        late_ms, most_ms = _late_ms(watched, page, range(first, first + 40))
        if late_ms <= most_ms:
            return
        measured.append((late_ms, most_ms))
    raise AssertionError(f"milliseconds that 1 in 20 exceeded, and what was allowed: {measured}")


def _late_ms(watched: Watched, page: "Page", numbers: range) -> tuple[float, float]:
    """After how many milliseconds 19 of 20 of these rounds were drawn, and how many are allowed."""
    committed_at_ms, requested_ms = {}, []
    for no in numbers:
        watched.record(round_finished(no))
        seq = Job.objects.values_list("last_seq", flat=True).get(pk=watched.job.pk)
        committed_at_ms[seq] = time.time() * 1000
        page.wait_for_timeout(60)
        requested_ms.append(page.evaluate(ASK_AND_PAINT))
    watched.seen()
    marks = page.evaluate(
        "performance.getEntriesByType('mark').map((mark) => [mark.name, performance.timeOrigin + mark.startTime])"
    )
    drawn_at_ms = {int(name.split(":")[1]): moment for name, moment in marks if name.startswith("drawn:")}
    waits_ms = sorted(
        min(drawn for shown, drawn in drawn_at_ms.items() if shown >= seq) - moment
        for seq, moment in committed_at_ms.items()
    )
    late = int(0.95 * len(waits_ms))
    return waits_ms[late], max(150, 4 * sorted(requested_ms)[late])


def test_a_page_whose_reader_was_signed_out_says_so_with_a_link_that_comes_back(
    live_site: str, page: "Page"
) -> None:
    watched = Watched(live_site, page)
    watched.open()
    page.context.clear_cookies()
    message = page.get_by_role("alert")
    expect(message).to_contain_text("signed out", timeout=30_000)
    expect(page.locator("[data-stale]")).to_be_hidden()
    address = message.get_by_role("link").get_attribute("href") or ""
    assert address == f"/accounts/login/?next={quote(watched.address.removeprefix(live_site), safe='')}"
