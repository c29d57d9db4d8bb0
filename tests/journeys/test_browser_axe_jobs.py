"""Every page of jobs and of comparing them, in light and dark, wide and narrow: as in test_browser_axe.py."""

from typing import TYPE_CHECKING

import pytest

from tests.journeys.axe import complaints

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


def test_no_violations_on_any_page_of_jobs(live_site: str, page: "Page") -> None:
    from tests.journeys.every_page import is_of_jobs, pages
    from webapp.accounts.models import User

    shown = {name: one for name, one in pages().items() if is_of_jobs(one[0])}
    found = complaints(page, live_site, shown, User.objects.get(email="ada@example.org"))
    assert not found, "\n".join(found)
