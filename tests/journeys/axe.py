"""What axe-core finds on a page: what keeps people out who use a keyboard, a screen reader, or see few colours."""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.journeys.signed_in import sign_in, watch_for_faults

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.journeys.every_page import Act

_SCRIPT = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
# Rows of a long table are all made by one template: the first of them speak for the rest.
_RUN = """
async (rules) => {
  const where = { include: ["html"], exclude: ["tbody > tr:nth-child(n + 13)"] };
  const only = rules.length ? { runOnly: rules } : {};
  const found = await axe.run(where, { resultTypes: ["violations"], elementRef: false, ...only });
  return found.violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map((node) => node.html) }));
}
"""
_OF_COLOUR = ["color-contrast", "link-in-text-block"]
"""Those that axe has switched on of its `cat.color`. A theme changes colours and nothing else, so another theme can
change their verdicts alone; a width hides some places and shows others, so it can change every rule's.
"""


_PLACEHOLDER = re.compile(r"\{(?:an?_)?(?:actors?|rounds?)\}", re.IGNORECASE)
"""What `Declaration.say` fills."""
ONCE = (("wide", "light"),)
"""How `make check` looks at each page."""
MATRIX = tuple((size, theme) for size in ("wide", "narrow") for theme in ("light", "dark"))
"""How `make check-all` does."""


class Axe:
    """Looks at a tab's page as it stands, in some sizes and themes, without loading it again; keeps what it finds."""

    def __init__(self, page: "Page", looks: Iterable[tuple[str, str]]) -> None:
        self.page = page
        self.looks = list(looks)
        self.found: list[str] = []
        self._script = _SCRIPT.read_text(encoding="utf-8") + "; undefined"

    def look(self, name: str) -> None:
        """All rules in the light theme, those of colour in the dark one; and nothing reaches out of the window."""
        from tests.journeys.every_page import WIDTHS

        # Colours that are on their way are no one's: without motion a theme is there at once.
        self.page.emulate_media(reduced_motion="reduce")
        # As a debugger puts it in: the page's own policy allows no foreign script.
        self.page.evaluate(self._script)
        if left := _PLACEHOLDER.findall(self.page.content()):
            self.found.append(f"{name}: not filled: {left}")
        for size, themes in groupby(self.looks, key=itemgetter(0)):
            width, height = WIDTHS[size]
            self.page.set_viewport_size({"width": width, "height": height})
            for _, theme in themes:
                self.page.emulate_media(color_scheme=theme)
                problems = self._violations([] if theme == "light" else _OF_COLOUR)
                self.found.extend(f"{name}, {theme}, {size}: {problem}" for problem in problems)
            out = self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            if out > 0:
                self.found.append(f"{name}, {size}: {out} px wider than the window")

    def _violations(self, rules: list[str]) -> list[str]:
        """Each rule that is broken, with the first places where it is."""
        found: list[dict[str, Any]] = self.page.evaluate(_RUN, rules)
        return [
            f"{one['id']}: {one['help']} ({len(one['nodes'])}): {' | '.join(one['nodes'][:3])}"
            for one in found
        ]


def complaints(
    page: "Page",
    site: str,
    shown: "Mapping[str, tuple[str, Act | None]]",
    looks: Iterable[tuple[str, str]],
    person: Any = None,
) -> list[str]:
    """What axe, the widths and the pages' own scripts find fault with on these pages, as this person sees them."""
    from tests.journeys.every_page import SAYS_NO

    faults = watch_for_faults(page)
    axe = Axe(page, looks)
    if person is not None:
        sign_in(page, site, person)
    for name, (path, act) in shown.items():
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
        answer = page.goto(site + path)
        assert answer is not None
        assert answer.status == SAYS_NO.get(name, 200), f"{name}: {path} answers {answer.status}"
        if act is not None:
            act(page)
        axe.look(name)
    return axe.found + faults
