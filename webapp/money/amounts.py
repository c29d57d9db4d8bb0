"""Money without rounding: whole picodollars (1 USD = 10**12), and its texts for files and input."""

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Literal

from cloud.money.billing.price_book import PICODOLLARS_PER_USD as PICODOLLARS_PER_USD
from webapp.formatting import display_usd, ungroup

Unreal = Literal["simulated", "emulated"]
"""Prices that are not charged."""
Prices = Literal["actual", Unreal]
"""Whether prices are charged, and if not, why."""
BUDGET_DECIMALS = 6
"""The decimals of a budget."""


MOST_USD = 1_000_000
"""The largest budget."""
HOW_TO_WRITE_USD = (
    "Write dollars with a point before the cents, such as 1.50; commas only separate thousands: 1,500."
)


def read_usd(text: str) -> Decimal:
    """Return the typed dollars. ValueError, whose text says how to write them, for what is no amount."""
    try:
        amount = Decimal(ungroup(text))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise ValueError(f"“{text.strip()[:20]}” is no amount. {HOW_TO_WRITE_USD}")
    if abs(amount) > MOST_USD:
        raise ValueError(f"“{text.strip()[:20]}” is too much: an amount is at most ${MOST_USD:,}.")
    return amount


def picodollars(usd: Decimal) -> int:
    """Return dollars as picodollars. ValueError for more than 12 decimals: nothing is rounded silently."""
    amount = usd * PICODOLLARS_PER_USD
    if amount != amount.to_integral_value():
        raise ValueError(f"{usd} USD has more than 12 decimal places")
    return int(amount)


def exact_usd(amount_picodollars: int) -> str:
    """Return the exact dollars as decimal text for files and messages: no sign, exponent or trailing zeros."""
    sign, digits = ("-" if amount_picodollars < 0 else ""), f"{abs(amount_picodollars):013d}"
    fraction = digits[-12:].rstrip("0")
    return f"{sign}{digits[:-12]}{'.' + fraction if fraction else ''}"


def display_least_usd(amount_picodollars: int) -> str:
    """Format a required minimum: rounded up, with at most the decimals of a budget."""
    return display_usd(amount_picodollars, ROUND_CEILING, BUDGET_DECIMALS)


def unreal_word(simulated: bool, emulated: bool) -> Literal["", Unreal]:
    """Return the word for money that is not charged: simulated or emulated; empty for real money."""
    return "simulated" if simulated else "emulated" if emulated else ""
