"""What a person does on pages that stand still: signs in, fills the form, reads the list, changes the theme."""

from typing import TYPE_CHECKING

import pytest

from tests.factories import make_job, make_project, make_user
from tests.journeys import scenes
from tests.journeys.signed_in import sign_in, watch_for_faults
from webapp.accounts.services import create_person, one_time_sign_in_path
from webapp.job_states import Observed
from webapp.jobs.models import Job

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_a_new_person_signs_up_and_launches_a_job(live_site: str, page: "Page") -> None:
    faults = watch_for_faults(page)
    page.goto(f"{live_site}/")
    page.click("text=Create an account")
    page.fill("[name=email]", "ada@example.org")
    page.fill("[name=password1]", "correct horse battery")
    page.fill("[name=password2]", "correct horse battery")
    page.click("text=Create the account")
    page.wait_for_selector("text=0 of 5 taken")
    page.click("text=Launch the demo")
    page.wait_for_selector("text=This job cannot cost more than $1.00.")
    assert page.is_visible("[data-simulated-note]")
    page.fill("[name=budget_usd]", "2.5")
    page.click("text=Launch – at most $2.50")
    page.wait_for_url("**/jobs/job_*/")
    assert page.inner_text("h1") == "Hopper, simulated cloud"
    assert Job.objects.get().account.limit_picodollars == 25 * 10**11
    assert faults == []


def test_a_one_time_link_lands_on_the_overview(live_site: str, page: "Page") -> None:
    page.goto(live_site + one_time_sign_in_path(create_person("ada@example.org")))
    page.click("button:has-text('Sign in')")
    assert page.inner_text("h1") == "Overview"


def test_a_form_is_mended_kept_launched_with_two_seeds_and_cloned(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    faults = watch_for_faults(page)
    page.goto(f"{live_site}/p/{project.slug}/jobs/new/?preset=cartpole")
    assert page.is_visible("[name='training.scaling.fixed.actors']")
    assert not page.is_visible("[name='training.scaling.kind']")
    page.click("#more > summary")
    assert not page.is_visible("[name='training.scaling.ramp.over_rounds']")
    page.select_option("[name='training.scaling.kind']", "ramp")
    assert not page.is_visible("[name='training.scaling.fixed.actors']")
    page.fill("[name='training.scaling.ramp.over_rounds']", "0")
    page.fill("[name='budget_usd']", "")
    assert page.inner_text("[data-launch]") == "Launch"
    page.click("[data-launch]")
    page.wait_for_selector("[name='training.scaling.ramp.over_rounds'][aria-invalid=true]")
    assert page.is_visible("text=Length of the ramp (training.scaling.over_rounds) must be")
    assert page.is_visible("text=Correct 2 fields. Nothing")
    assert not Job.objects.exists()
    faults.clear()  # the browser tells of the 422
    # Each change is marked, with a way back.
    page.click("[aria-label='Scaling: back to Fixed']")
    page.fill("[name='training.scaling.fixed.actors']", "4")
    page.fill("[name='budget_usd']", "2")
    assert "changed from 8" in page.inner_text(".field:has([name='training.scaling.fixed.actors'])")
    assert page.inner_text("[data-changes]").splitlines() == ["Actors: 8 → 4", "Budget: 1.00 → 2"]
    page.wait_for_selector(".check.tone-ok:has-text('Quota')", state="attached")
    # It is kept as a draft, and goes on keeping itself.
    page.click("text=Save as a draft")
    page.wait_for_url("**/new/?draft=*")
    page.fill("[name=seeds]", "2")
    page.wait_for_selector("[data-draft]:has-text('Draft, saved')")
    page.reload()
    assert page.input_value("[name=seeds]") == "2"
    assert page.inner_text("[data-changes]").splitlines() == ["Actors: 8 → 4", "Budget: 1.00 → 2"]
    assert page.inner_text("[data-launch]") == "Launch – at most $2.00"
    # Enter alone looks; with Ctrl it launches: one group below one budget, and the draft is gone.
    page.press("[name=seeds]", "Enter")
    page.wait_for_selector(".checks-passed > summary")
    assert not Job.objects.exists()
    page.press("[name=seeds]", "Control+Enter")
    page.wait_for_url("**/groups/*/")
    assert "more than $2.00" in page.inner_text(".group-sentence")
    assert sorted(Job.objects.values_list("spec__training__seed", flat=True)) == [0, 1]
    page.click("section:has(#members-title) tbody a >> nth=0")
    page.click(".job-menu > summary")
    page.click(".job-menu >> text=Clone")
    page.wait_for_url("**/new/?clone=job_*")
    assert page.input_value("[name='training.scaling.fixed.actors']") == "4"
    page.wait_for_selector("[data-changed-part]", state="hidden")
    assert page.locator(".drafts").count() == 0
    assert faults == []


def test_the_list_keeps_itself_fresh(live_site: str, page: "Page") -> None:
    user = make_user()
    job = make_job(make_project(user), user)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{job.project.slug}/jobs/")
    assert page.inner_text("tr[data-job] .pill") == "Queued"
    scenes.put(job, Observed.RUNNING, "Round 3.", total_progress=4_096, last_seq=5)
    page.wait_for_selector("tr[data-job] .pill:has-text('Running')")
    assert "4,096" in page.inner_text("tr[data-job]")


def test_the_theme_is_kept(live_site: str, page: "Page") -> None:
    user = make_user()
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/account/")
    assert page.get_attribute("html", "data-bs-theme") == "light"
    page.click("main [data-theme=dark]")
    assert page.get_attribute("html", "data-bs-theme") == "dark"
    page.reload()
    assert page.get_attribute("html", "data-bs-theme") == "dark"
    assert page.get_attribute("main [data-theme=dark]", "aria-pressed") == "true"
