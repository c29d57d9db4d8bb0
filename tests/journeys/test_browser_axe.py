"""Every page, in light and dark, wide and narrow: axe-core finds nothing to complain of."""

from typing import TYPE_CHECKING

import pytest

from tests.journeys.axe import violations
from tests.journeys.signed_in import sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


def test_no_violations_on_any_page(live_site: str, page: "Page") -> None:
    from tests.journeys.screenshots import GATES, WIDTHS, pages
    from webapp.accounts.models import User

    shown = pages()
    page.set_default_timeout(30_000)
    found: list[str] = []

    def look(name: str) -> None:
        """The page as it stands, in each theme and size: it follows both without being loaded again."""
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme="light" if theme == "light" else "dark")
            for size, (width, height) in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": height})
                found.extend(f"{name}, {theme}, {size}: {problem}" for problem in violations(page))

    for name, path in GATES.items():
        page.goto(live_site + path)
        look(name)
    sign_in(page, live_site, User.objects.get(email="ada@example.org"))
    for name, (path, act) in shown.items():
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(live_site + path)
        if act is not None:
            act(page)
        look(name)
    assert not found, "\n".join(found)
