"""Steps that several journeys take, by mouse or by keyboard."""

from __future__ import annotations

from collections.abc import Iterable

from tests.journeys.hands import Hands


def create_account(hands: Hands, email: str, password: str) -> None:
    hands.press("link", "Create an account")
    hands.write("E-mail address", email)
    hands.write("Password", password)
    hands.write("Repeat the password", password)
    hands.press("button", "Create the account")


def launch_pole(hands: Hands, name: str, *, algorithm: str = "") -> None:
    """Launches a small job by the form, from a preset with a few changes, and waits for its end."""
    hands.press("link", "Cart pole Balance a pole")
    hands.page.wait_for_url("**preset=cartpole")
    hands.write("Name", name)
    if algorithm:
        hands.choose("Algorithm", algorithm)
    hands.write("Actors", "1")
    hands.write("Steps", "2,000")
    hands.press("button", "Launch – at most $1.00")
    hands.page.wait_for_selector(".pill:has-text('Succeeded')")


def compare_jobs(hands: Hands, names: Iterable[str]) -> str:
    """Compares jobs of the list, and returns how they are said to differ."""
    hands.go("Jobs")
    choose_jobs(hands, names)
    hands.press("button", "Compare")
    hands.page.wait_for_selector(".compare-chart.has-data canvas")
    return hands.page.inner_text("[aria-labelledby=differences-title]")


def choose_jobs(hands: Hands, names: Iterable[str]) -> None:
    for name in names:
        hands.press("checkbox", f"Choose {name}")


def stop_job(hands: Hands) -> None:
    """Stops the job whose page is open, and waits for its end."""
    hands.press("button", "Stop")
    hands.press("button", "Stop the job for good")
    hands.page.wait_for_selector(".pill:has-text('Stopped')")
