"""Every page, in light and dark, wide and narrow: axe-core finds nothing to complain of."""

from typing import TYPE_CHECKING

import pytest

from tests.journeys.axe import violations
from tests.journeys.signed_in import sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.stack, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("size", ["wide", "narrow"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_violations_on_any_page(live_site: str, browser: "Browser", theme: str, size: str) -> None:
    from tests.journeys.screenshots import GATES, WIDTHS, pages
    from webapp.accounts.models import User

    shown = {**{name: (path, None) for name, path in GATES.items()}, **pages()}
    width, height = WIDTHS[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="light" if theme == "light" else "dark"
    )
    context.set_default_timeout(15_000)
    page = context.new_page()
    found: dict[str, list[str]] = {}
    for name, (path, act) in shown.items():
        if name == next(iter(set(shown) - set(GATES))) or name not in GATES:
            sign_in(page, live_site, User.objects.get(email="ada@example.org"))
        page.goto(live_site + path)
        if act is not None:
            act(page)
        if problems := violations(page):
            found[name] = problems
    context.close()
    assert found == {}
