"""A person takes a policy away and watches it: download, film by the worker, play, stop."""

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_a_policy_is_downloaded_filmed_and_watched(live_site: str, live_worker: Path, page: "Page") -> None:
    faults = watch_for_faults(page)
    user = make_user()
    job = job_with_checkpoints(make_project(user), 2)
    sign_in(page, live_site, user)
    page.goto(f"{live_site}/p/{job.project.slug}/jobs/{job.pk}/")
    page.click(".tabs >> text=Checkpoints & video")
    with page.expect_download() as awaited:
        page.click("text=Download the newest policy")
    archive = zipfile.ZipFile(io.BytesIO(awaited.value.path().read_bytes()))
    assert sorted(archive.namelist()) == ["README.md", "play.py", "policy.onnx"]
    page.click("[aria-label='Film it: the policy of round 2']")
    page.wait_for_selector("#policy .film", timeout=120_000)  # without loading the page again
    picture = page.locator("#policy .film img")
    still = picture.get_attribute("src")
    page.click("text=Watch")
    assert picture.get_attribute("src") == picture.get_attribute("data-moving") != still
    page.click("text=Stop >> visible=true >> nth=-1")
    assert (picture.get_attribute("src") or "").endswith(still or "?")
    page.wait_for_function("document.querySelector('#policy .film img').naturalWidth === 400")
    assert faults == []
