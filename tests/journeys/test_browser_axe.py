"""Every page, in light and dark, wide and narrow: axe-core finds nothing to complain of, and nothing is too wide."""

from typing import TYPE_CHECKING

import pytest

from tests.journeys.axe import Axe
from tests.journeys.signed_in import sign_in, watch_for_faults

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


def test_no_violations_on_any_page(live_site: str, page: "Page") -> None:
    from tests.journeys.every_page import GATES, SAYS_NO, pages, unseen
    from webapp.accounts.models import User

    shown = pages()
    page.set_default_timeout(30_000)
    faults = watch_for_faults(page)
    axe = Axe(page)
    visits = [(name, path, None) for name, path in GATES.items()]
    visits += [(name, path, act) for name, (path, act) in shown.items()]
    for name, path, act in visits:
        if name == next(iter(shown)):
            sign_in(page, live_site, User.objects.get(email="ada@example.org"))
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        answer = page.goto(live_site + path)
        assert answer is not None
        assert answer.status == SAYS_NO.get(name, 200), f"{name}: {path} answers {answer.status}"
        if act is not None:
            act(page)
        axe.look(name)
    assert not axe.found, "\n".join(axe.found)
    assert not faults, "\n".join(faults)
    assert not unseen(path for _, path, _ in visits), "pages that are not in tests/journeys/every_page.py"
