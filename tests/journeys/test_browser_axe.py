"""Every page but those of jobs, in light and dark, wide and narrow: axe-core finds nothing, and nothing is too wide.

Two files look at the pages there are, so that two processes can.
"""

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


def test_no_violations_before_signing_in(live_site: str, page: "Page") -> None:
    from tests.journeys.every_page import GATES

    found = complaints(page, live_site, {name: (path, None) for name, path in GATES.items()})
    assert not found, "\n".join(found)


def test_no_violations_on_any_other_page(live_site: str, page: "Page") -> None:
    from tests.journeys.every_page import GATES, is_of_jobs, pages, unseen
    from webapp.accounts.models import User

    shown = pages()
    others = {name: one for name, one in shown.items() if not is_of_jobs(one[0])}
    found = complaints(page, live_site, others, User.objects.get(email="ada@example.org"))
    assert not found, "\n".join(found)
    paths = [*GATES.values(), *(path for path, _ in shown.values())]
    assert not unseen(paths), "pages that are not in tests/journeys/every_page.py"
