"""Looking closely at a run: a view that can be sent, zoom, what is drawn taken away, tabs that follow the run."""

import re
from typing import TYPE_CHECKING

import pytest

from tests.factories import call_failed, evaluated, round_finished
from tests.journeys.test_browser_live import Watched
from tests.ledger_contract import reservation, settlement
from tests.webapp.jobs.policies.test_evaluation_films import ready
from training.engine.messages import RoundFinished
from training.engine.reports import GradientsReport
from webapp.formatting import plural
from webapp.jobs.models import Film
from webapp.jobs.running.run_log import RunLog
from webapp.money.ledger import DatabaseLedger

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

RETURN = "[data-chart=return]"


def _long(watched: Watched, rounds: int) -> None:
    from benchmarks.watching.rounds import long_history

    long_history(watched.job, rounds)


def test_a_spike_among_thousands_of_rounds_is_found_by_looking_closer(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    _long(watched, 3_000)
    watched.page.goto(f"{watched.address}?x=rounds&smooth=0")
    watched.seen()
    assert page.inner_text("[data-bucket-words]").startswith("1 point = 8 rounds")
    place = page.locator(f"{RETURN} [data-plot] .u-over").bounding_box()
    assert place is not None
    y = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + place["width"] * 0.4, y)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] * 0.5, y, steps=4)
    page.mouse.up()
    page.wait_for_selector("[data-bucket-words]:has-text('1 point = 1 round')")
    assert "from=" in page.url
    assert "x=rounds" in page.url
    page.go_back()
    page.wait_for_selector("[data-bucket-words]:has-text('1 point = 8 rounds')")
    assert watched.faults == []


def test_what_is_drawn_as_picture_file_and_table(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.record(
        *(round_finished(no, mean=float(no), spent=no * 10**9) for no in range(1, 6)), evaluated(5)
    )
    watched.open()
    for kind, start in (("csv", b"round,steps,"), ("png", b"\x89PNG")):
        page.click(f"{RETURN} .chart-menu summary")
        with page.expect_download() as download:
            page.click(f"{RETURN} [data-export={kind}]")
        assert download.value.path().read_bytes().startswith(start)
    page.click(f"{RETURN} .chart-menu summary")
    page.click(f"{RETURN} [data-export=table]")
    assert page.locator(f"{RETURN} [data-table] tbody tr").count() == 5
    assert watched.faults == []


def test_one_cursor_for_all_charts(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    watched.record(*(round_finished(no, mean=float(no), actors=no) for no in range(1, 31)))
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.goto(f"{watched.address}?x=rounds&smooth=0")
    watched.seen()
    page.hover(f"{RETURN} [data-plot] .u-over")
    shown = page.inner_text(f"{RETURN} [data-legend]")
    number = shown.rsplit("round", 1)[1].strip()
    assert f"round {number}" in page.inner_text("[data-chart=actors] [data-legend]")
    assert page.inner_text("[data-chart=actors] [data-legend] b >> nth=0") == number


def test_the_spend_chart_looks_ahead_to_the_limit(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    ledger = DatabaseLedger(watched.job.account.pk, watched.job.lease_epoch)
    for no in range(1, 31):
        ledger.reserve([reservation(f"r{no}", 10**10)])
        ledger.settle([settlement(f"r{no}", 10**10)])
        watched.record(round_finished(no, spent=no * 10**10))
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.goto(f"{watched.address}?x=rounds")
    watched.seen()
    page.wait_for_selector("[data-chart=spend] [data-legend]:has-text('reached')")
    legend = page.inner_text("[data-chart=spend] [data-legend]")
    assert re.search(r"reached\s+(\d+ \w+ )?\d\d:\d\d UTC \(± ", legend)
    label = page.get_attribute("[data-chart=spend] [data-plot]", "aria-label")
    assert "Expected: " in (label or "")
    place = page.locator("[data-chart=spend] [data-plot] .u-over").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + place["width"] * 0.92, place["y"] + place["height"] / 2)
    page.wait_for_selector("[data-chart=spend] [data-legend]:has-text(' to $')")
    assert watched.faults == []


def test_how_far_gradients_are_behind_is_a_band_from_the_least_to_the_most_with_mean_and_bound(
    live_site: str, page: "Page"
) -> None:
    """The axis begins at 0, so heights above it are in the ratio of the numbers: 6 at the most, 2 at the least."""
    watched = Watched(live_site, page)
    gradients = GradientsReport(
        learners=4,
        gradients=40,
        steps=20,
        released={"bound": 40},
        staleness_least=2.0,
        staleness_mean=4.0,
        staleness_most=6.0,
        bound=5.0,
        queue_mean=1.0,
        queue_most=3,
        held_share=0.5,
        learners_busy=3.0,
        actors_busy=4.0,
        starved_share=0.1,
        learning_s=0.5,
        step_length=0.5,
    )
    for no in range(1, 31):
        report = round_finished(no).report.model_copy(update={"gradients": gradients})
        watched.record(RoundFinished(report=report))
    page.goto(f"{watched.address}?x=rounds&smooth=0")
    watched.seen()
    chart = page.locator("[data-chart=gradient_staleness]")
    chart.scroll_into_view_if_needed()
    page.wait_for_selector("[data-chart=gradient_staleness] [data-legend]:has-text('6')")
    legend = " ".join(chart.locator("[data-legend]").inner_text().split())
    assert "Mean 4" in legend
    assert "Range 2 to 6" in legend
    assert "Bound 5" in legend
    above_zero = chart.evaluate(
        """
        (chart) => {
          const canvas = chart.querySelector("[data-plot] canvas");
          const place = chart.querySelector("[data-plot] .u-over").getBoundingClientRect();
          const scale = canvas.width / canvas.getBoundingClientRect().width;
          const top = (place.top - canvas.getBoundingClientRect().top) * scale;
          const left = (place.left - canvas.getBoundingClientRect().left + place.width * 0.37) * scale;
          const height = Math.round(place.height * scale);
          const pixels = canvas.getContext("2d").getImageData(Math.round(left), Math.round(top), 1, height).data;
          const colours = Array.from({ length: height }, (_, y) => pixels.slice(4 * y, 4 * y + 4).join());
          const seen = colours.filter((colour) => !colour.endsWith(",0"));
          const often = (colour) => seen.filter((other) => other === colour).length;
          const band = seen.reduce((a, b) => (often(b) > often(a) ? b : a));
          return [colours.indexOf(band), colours.lastIndexOf(band)].map((y) => height - y);
        }
        """
    )
    most, least = above_zero
    assert most / least == pytest.approx(3.0, rel=0.1)
    assert watched.faults == []


def test_events_and_log_follow_the_run(live_site: str, page: "Page") -> None:
    watched = Watched(live_site, page)
    page.goto(f"{watched.address}events/")
    page.wait_for_selector("[data-live=mark][data-state=live]")
    watched.record(round_finished(1), call_failed())
    page.wait_for_selector("text=It fell over. It is retried.")
    with RunLog(watched.job.pk) as log:
        log.tell(round_finished(1))
        page.goto(f"{watched.address}logs/")
        page.wait_for_selector("text=Round 1: return 20.0")
        log.tell(round_finished(2))
        page.wait_for_selector("text=Round 2: return 20.0")
    assert watched.faults == []


def test_a_bar_moves_the_film_the_cursors_the_actors_and_the_money_together(
    live_site: str, page: "Page"
) -> None:
    watched = Watched(live_site, page)
    watched.record(*(round_finished(no, mean=float(no), actors=no, spent=no * 10**10) for no in range(1, 31)))
    early, late = (ready(watched.job, round_no) for round_no in (10, 20))
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{watched.address}?x=rounds&smooth=0")
    watched.seen()
    words = page.locator("[data-scrub-words]")

    def at(round_no: int, shown: Film, part: str = "still") -> None:
        line = f"Round {round_no} · {plural(round_no, 'actor')} · ${round_no / 100:.3f}"
        page.wait_for_function(
            "words => document.querySelector('[data-scrub-words]').textContent.startsWith(words)", arg=line
        )
        page.wait_for_selector(f"[data-film-picture][src$='films/{shown.pk}-{part}.webp']")

    at(30, late)
    page.click("[data-film-play]")  # it stood still, as motion is to be reduced
    at(30, late, "film")
    page.click("[data-film-play]")
    page.focus("[data-scrub-round]")
    for _ in range(15):
        page.keyboard.press("ArrowLeft")
    at(15, early)
    for chart in ("return", "actors", "spend"):
        assert "round 15" in page.inner_text(f"[data-chart={chart}] [data-legend]")
    watched.record(round_finished(31, mean=31.0, actors=31, spent=31 * 10**10))
    watched.seen()
    at(15, early)
    track = page.locator("[data-scrub-round]").bounding_box()
    assert track is not None
    page.mouse.click(track["x"] + 9, track["y"] + track["height"] / 2)
    at(1, early)
    page.click("[data-scrub-newest]")
    at(31, late)
    assert words.inner_text() == page.get_attribute("[data-scrub-round]", "aria-valuetext")
    assert watched.faults == []
