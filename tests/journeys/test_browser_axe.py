"""Every page: axe-core finds nothing, and nothing is wider than the window.

`make check` looks at each page once, `make check-all` at all states of each, in light and dark, wide and narrow.
"""

from typing import TYPE_CHECKING, Any

import pytest

from tests.journeys.axe import MATRIX, ONCE, complaints

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
    pytest.mark.parametrize(
        "looks",
        [pytest.param(ONCE, id="once"), pytest.param(MATRIX, id="matrix", marks=pytest.mark.slow)],
    ),
]


def test_no_violations_before_signing_in(live_site: str, page: "Page", looks: Any) -> None:
    from tests.journeys.every_page import GATES

    found = complaints(page, live_site, {name: (path, None) for name, path in GATES.items()}, looks)
    assert not found, "\n".join(found)


def test_no_violations_on_any_page_of_jobs(live_site: str, page: "Page", looks: Any) -> None:
    """About half of all pages, so that two processes can share them."""
    from tests.journeys.every_page import pages
    from tests.journeys.seen_addresses import is_of_jobs, one_of_each
    from webapp.accounts.models import User

    shown = {name: one for name, one in pages().items() if is_of_jobs(one[0])}
    shown = one_of_each(shown) if looks is ONCE else shown
    found = complaints(page, live_site, shown, looks, User.objects.get(email="ada@example.org"))
    assert not found, "\n".join(found)


def test_no_violations_on_any_other_page(live_site: str, page: "Page", looks: Any) -> None:
    from tests.journeys.every_page import GATES, pages
    from tests.journeys.seen_addresses import is_of_jobs, one_of_each, unseen
    from webapp.accounts.models import User

    shown = pages()
    others = {name: one for name, one in shown.items() if not is_of_jobs(one[0])}
    others = one_of_each(others) if looks is ONCE else others
    found = complaints(page, live_site, others, looks, User.objects.get(email="ada@example.org"))
    assert not found, "\n".join(found)
    paths = [*GATES.values(), *(path for path, _ in shown.values())]
    assert not unseen(paths), "pages that are not in tests/journeys/every_page.py"
