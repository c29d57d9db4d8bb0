"""The overview's sentences. Pure: figures in, words out."""

from __future__ import annotations

from datetime import date

from webapp.jobs.telling.event_words import plural
from webapp.money.amounts import display_usd
from webapp.overview.month import Month
from webapp.overview.running import Rate


def state_sentence(rate: Rate) -> str:
    """What is under way, and at what rate. Real money first, and never added to what nobody pays."""
    if not rate.jobs:
        return "Nothing of this project runs, so nothing of it costs anything."
    jobs = f"{plural(rate.jobs, 'job')} {'is' if rate.jobs == 1 else 'are'} under way"
    parts = [f"{display_usd(rate.real)} an hour"] if rate.real else []
    if rate.unreal:
        parts.append(f"{display_usd(rate.unreal)} an hour that is only {rate.unreal_word}")
    if not parts:
        return f"{jobs}. What {'it spends' if rate.jobs == 1 else 'they spend'} an hour is not known yet."
    return f"{jobs}, spending {' and '.join(parts)}."


def pace_sentence(month: Month) -> str:
    """What the month comes to if it goes on like its last days; empty where too little is known."""
    expected = month.expected()
    if expected is None:
        return ""
    low, middle, high = (display_usd(amount) for amount in expected)
    return (
        f"At the pace of the last days it comes to about {middle} by {_day(month.last_day)} ({low}–{high})."
    )


def month_in_words(month: Month, limit: int | None) -> str:
    """What the drawing shows, for those who hear it."""
    words = (
        f"Spent this month, day by day: {display_usd(month.spent)} by {_day(month.today)},"
        f" {display_usd(month.spent_today)} of it today."
    )
    if limit is not None:
        words += f" The budget's line is at {display_usd(limit)}."
    return f"{words} {pace_sentence(month)}".strip()


def _day(one: date) -> str:
    return f"{one.day} {one:%B}"
