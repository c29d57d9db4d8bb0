"""Two ways to use a page: with a mouse, and with a keyboard alone. What is used is named as people see and hear it."""

import re
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MOST_TABS = 150


class Hands(Protocol):
    page: "Page"

    def press(self, role: Any, name: str) -> None:
        """A button, link or box with that name."""

    def write(self, label: str, text: str) -> None:
        """Into the field with that label, instead of what is in it."""

    def choose(self, label: str, option: str) -> None:
        """An option of the list with that label, by the words it begins with."""

    def go(self, place: str) -> None:
        """To a place of the rail, or any other that the palette knows."""


class Mouse:
    def __init__(self, page: "Page") -> None:
        self.page = page

    def press(self, role: Any, name: str) -> None:
        self.page.get_by_role(role, name=name).first.click()

    def write(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).first.fill(text)

    def choose(self, label: str, option: str) -> None:
        there = self.page.get_by_label(label, exact=True).first
        words = there.locator("option").filter(has_text=re.compile(f"^\\s*{option}")).first.inner_text()
        there.select_option(label=words)

    def go(self, place: str) -> None:
        self.page.get_by_role("navigation", name="Places").get_by_role("link", name=place).click()


class Keyboard:
    """Tab, Space, Enter and letters: nothing is clicked, and nothing gets the focus but by Tab."""

    def __init__(self, page: "Page") -> None:
        self.page = page

    def press(self, role: Any, name: str) -> None:
        self._come_to(self.page.get_by_role(role, name=name).first)
        self.page.keyboard.press("Space" if role in ("checkbox", "button") else "Enter")

    def write(self, label: str, text: str) -> None:
        self._come_to(self.page.get_by_label(label, exact=True).first)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def choose(self, label: str, option: str) -> None:
        there = self.page.get_by_label(label, exact=True).first
        self._come_to(there)
        self.page.keyboard.type(option)
        chosen = there.evaluate("element => element.selectedOptions[0].text.trim()")
        assert chosen.startswith(option), chosen

    def go(self, place: str) -> None:
        self.page.wait_for_load_state()  # a page that is seen already may still load what listens to keys
        self.page.keyboard.press("Control+k")
        self.page.wait_for_selector("#palette [role=option]")
        self.page.keyboard.type(place)
        chosen = self.page.locator("#palette [aria-selected=true] .palette-title")
        chosen.filter(has_text=re.compile(f"^{place}$")).wait_for()
        self.page.keyboard.press("Enter")

    def _come_to(self, there: "Locator") -> None:
        there.wait_for()
        for _ in range(MOST_TABS):
            if there.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{there} is not reached by {MOST_TABS} presses of Tab")
