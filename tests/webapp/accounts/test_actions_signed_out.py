"""Someone who was signed out in another tab loses no action without a word, and meets no blank page."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import make_job, make_user
from webapp.accounts.access import SIGNED_OUT
from webapp.http.responses import PRESS_AGAIN
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def test_a_button_pressed_while_signed_out_leads_back_to_its_page_which_says_that_nothing_was_changed() -> (
    None
):
    user = make_user(password="a long enough password 7")
    job = make_job(user=user)
    page = f"/p/{job.project.slug}/jobs/{job.pk}/"
    client = Client(headers=BROWSER)
    sign_in = client.post(f"{page}stop/", follow=True)
    assert sign_in.redirect_chain[-1][0].startswith("/accounts/login/?next=")
    assert SIGNED_OUT in sign_in.content.decode()
    typed = {"login": user.email, "password": "a long enough password 7", "next": f"{page}stop/"}
    answer = client.post("/accounts/login/", typed, follow=True)
    assert (answer.status_code, answer.redirect_chain[-1][0]) == (200, page)
    assert PRESS_AGAIN in answer.content.decode()
    assert Job.objects.get().desired == "run"
    assert PRESS_AGAIN not in client.get(page).content.decode()


@pytest.mark.parametrize(
    ("action", "page"),
    [
        ("/p/{slug}/links/make/", "/p/{slug}/links/"),
        ("/p/{slug}/jobs/{job}/actors/bounds/", "/p/{slug}/jobs/{job}/actors/"),
        ("/p/{slug}/jobs/new/drafts/delete/", "/p/{slug}/jobs/new/"),
        ("/account/sign-out-everywhere/", "/account/"),
    ],
)
def test_the_answer_of_an_action_can_be_loaded_again(action: str, page: str) -> None:
    job = make_job()
    names = {"slug": job.project.slug, "job": job.pk}
    client = Client(headers=BROWSER)
    client.force_login(job.created_by)
    assert client.get(action.format(**names)).headers["Location"] == page.format(**names)
    assert PRESS_AGAIN in client.get(page.format(**names)).content.decode()


def test_programs_still_read_that_an_address_takes_no_get() -> None:
    job = make_job()
    client = Client()
    client.force_login(job.created_by)
    assert client.get(f"/p/{job.project.slug}/jobs/{job.pk}/stop/").status_code == 405
