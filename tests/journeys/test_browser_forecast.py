"""The forecast beside the form follows what is typed, and says nothing while the form has a fault."""

from typing import TYPE_CHECKING

import pytest

from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_it_follows_the_form_and_stays_in_its_slot(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    faults = watch_for_faults(page)
    page.goto(f"{live_site}/p/{project.slug}/jobs/new/?preset=hopper-simulated")
    height = page.locator("[data-forecast]").bounding_box()["height"]  # type: ignore[index]
    page.wait_for_selector(".forecast-sentence:has-text('for 1,000,000 steps')")
    assert page.locator("[data-forecast]").bounding_box()["height"] == height  # type: ignore[index]
    page.click("[data-forecast-more] > summary")
    page.fill("[name='training.stop.env_steps']", "250,000")
    page.wait_for_selector(".forecast-sentence:has-text('for 250,000 steps')")
    assert page.get_attribute("[data-forecast-more]", "open") is not None
    page.fill("[name='training.stop.env_steps']", "many")
    page.wait_for_selector("[data-forecast-words]:has-text('once every field is valid')")
    assert page.locator(".forecast-sentence:has-text('for 250,000 steps')").count() == 0
    page.select_option("[name='platform.kind']", "local")
    page.fill("[name='training.stop.env_steps']", "250,000")
    page.wait_for_selector(".forecast-sentence:has-text('Costs nothing; about')")
    assert faults == []
