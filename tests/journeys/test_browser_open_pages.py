"""Pages that stay open: groups follow their runs, a site that is gone is named, Back keeps what was typed."""

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.factories import make_project, make_user
from tests.journeys import comparing_scenes
from tests.journeys.signed_in import sign_in, watch_for_faults
from webapp.jobs.models import Job

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_a_groups_page_and_the_list_of_groups_follow_their_runs(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    group = comparing_scenes.seeds_of(project, user, "Hopper", peak=2300, pace=35, usd=0.6, count=2)
    job = Job.objects.filter(groups=group).latest("pk")
    Job.objects.filter(pk=job.pk).update(observed="running", desired="run")
    faults = watch_for_faults(page)
    sign_in(page, live_site, user)
    listed = page.context.new_page()
    listed.goto(f"{live_site}/p/{project.slug}/groups/")
    expect(listed.locator("tbody .pill").first).to_contain_text("running")
    page.goto(f"{live_site}/p/{project.slug}/groups/{group.pk}/")
    steps = page.locator(f"tr:has(a[href*='{job.pk}']) td:nth-child(5)")
    chart = page.locator("[data-compare-chart] canvas")
    expect(chart).to_be_visible()
    shown = steps.inner_text()
    # The last round again, as if one more had been made: the group's page draws it without a reload.
    page.evaluate("window.stays = true")
    Job.objects.filter(pk=job.pk).update(total_progress=9_876_543)
    expect(steps).to_have_text("9,876,543", timeout=20_000)
    assert shown != "9,876,543"
    expect(chart).to_be_visible()
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    expect(page.locator("p.group-sentence")).not_to_contain_text("not over", timeout=20_000)
    expect(listed.locator("tbody .pill").first).not_to_contain_text("running", timeout=20_000)
    assert page.evaluate("window.stays") is True
    assert faults == []


def test_a_page_says_that_the_site_is_gone_and_that_it_is_back(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/jobs/")
    page.route("**/*", lambda route: route.abort())
    gone = page.get_by_role("alert")
    expect(gone).to_contain_text("not responded", timeout=30_000)
    page.unroute("**/*")
    expect(gone).to_have_count(0, timeout=30_000)


def test_back_after_a_launch_keeps_what_was_typed_and_a_failed_check_takes_the_launch_its_colour(
    live_site: str, page: "Page"
) -> None:
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{project.slug}/jobs/new/?preset=cartpole")
    page.get_by_label("Name", exact=True).fill("Typed by hand")
    environment = page.get_by_label("Environment", exact=True)
    launch = page.locator("[data-launch]")
    known = environment.input_value()
    environment.fill("NoSuchThing-v1")
    expect(launch).to_have_class(re.compile("btn-quiet"))
    environment.fill(known)
    expect(launch).to_have_class(re.compile("btn-primary"))
    page.locator("[name=budget_usd]").fill("0.37")
    launch.click()
    page.wait_for_url(re.compile("/jobs/job_"))
    page.go_back()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Typed by hand")
    expect(page.locator("[name=budget_usd]")).to_have_value("0.37")
    expect(launch).to_contain_text("$0.37")
    expect(launch).to_be_enabled()
