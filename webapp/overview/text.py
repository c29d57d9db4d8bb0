"""The overview's sentences, from figures alone."""

from __future__ import annotations

from webapp.formatting import display_usd, format_day, plural
from webapp.overview.month import Month
from webapp.overview.spend_rate import Kind, Rate


def state_sentence(rate: Rate) -> str:
    """What is running, and its rate. Real money comes first, and is never added to money that no one pays."""
    if not rate.jobs:
        return "No job of this project is running, so it costs nothing now."
    parts = []
    if rate.real.jobs:
        parts.append(f"{plural(rate.real.jobs, 'costs', 'cost')} money ({_hourly(rate.real)})")
    for word, kind in rate.unreal.items():
        parts.append(f"{plural(kind.jobs, 'is', 'are')} {word} ({_hourly(kind)}, which no one pays)")
    if rate.free:
        parts.append(f"{plural(rate.free, 'costs', 'cost')} nothing")
    jobs = f"{plural(rate.jobs, 'job')} {'is' if rate.jobs == 1 else 'are'} under way"
    if len(parts) > 1:
        return f"{jobs}: {', '.join(parts[:-1])} and {parts[-1]}."
    return f"{jobs}{_of_one_kind(rate)}"


def _of_one_kind(rate: Rate) -> str:
    it = "it" if rate.jobs == 1 else "they"
    if rate.free:
        return f". {it.capitalize()} {'costs' if rate.jobs == 1 else 'cost'} nothing."
    kind = rate.unreal[rate.unreal_word] if rate.unreal_word else rate.real
    if not kind.hourly:
        return f". What {it} {'spends' if rate.jobs == 1 else 'spend'} an hour is not known yet."
    only = f" that is only {rate.unreal_word}" if rate.unreal_word else ""
    return f", spending {display_usd(kind.hourly)} an hour{only}."


def _hourly(kind: Kind) -> str:
    return f"{display_usd(kind.hourly)} an hour" if kind.hourly else "how much an hour is not known yet"


def pace_sentence(month: Month) -> str:
    """The expected cost of the month at the pace of its last days; empty if too little is known."""
    expected = month.expected()
    if expected is None:
        return ""
    low, middle, high = (display_usd(amount) for amount in expected)
    return f"At the pace of the last days it comes to about {middle} by {format_day(month.last_day)} ({low}–{high})."


def month_in_words(month: Month, limit: int | None) -> str:
    """The drawing as text for screen readers."""
    words = (
        f"Spent this month, day by day: {display_usd(month.spent)} by {format_day(month.today)},"
        f" {display_usd(month.spent_today)} of it today."
    )
    if limit is not None:
        words += f" The budget's line is at {display_usd(limit)}."
    return f"{words} {pace_sentence(month)}".strip()
