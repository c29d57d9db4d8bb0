"""Money without rounding: whole picodollars (1 USD = 10**12), as text for files and from what people type."""

from decimal import ROUND_CEILING, Decimal
from typing import Literal

from cloud.billing.price_book import PICODOLLARS_PER_USD
from webapp.formatting import display_usd

__all__ = [
    "BUDGET_DECIMALS",
    "PICODOLLARS_PER_USD",
    "Prices",
    "Unreal",
    "display_least_usd",
    "exact_usd",
    "picodollars",
    "unreal_word",
]

Unreal = Literal["simulated", "emulated"]
"""Money that nobody pays."""
Prices = Literal["actual", Unreal]
"""Whether money is paid, and if not, why."""
BUDGET_DECIMALS = 6
"""The decimals that a budget may have."""


def picodollars(usd: Decimal) -> int:
    """Dollars as picodollars. At most 12 decimals: nothing is rounded away unseen."""
    amount = usd * PICODOLLARS_PER_USD
    if amount != amount.to_integral_value():
        raise ValueError(f"{usd} USD has more than 12 decimal places")
    return int(amount)


def exact_usd(amount_picodollars: int) -> str:
    """The exact dollars as a plain decimal text, for files and messages: no sign, no exponent, no spare zeros."""
    sign, digits = ("-" if amount_picodollars < 0 else ""), f"{abs(amount_picodollars):013d}"
    fraction = digits[-12:].rstrip("0")
    return f"{sign}{digits[:-12]}{'.' + fraction if fraction else ''}"


def display_least_usd(amount_picodollars: int) -> str:
    """For reading, of what somebody has to give at least: never less than it is, and no finer than a budget can be."""
    return display_usd(amount_picodollars, ROUND_CEILING, BUDGET_DECIMALS)


def unreal_word(simulated: bool, emulated: bool) -> Literal["", Unreal]:
    """The word for money that nobody pays: simulated or emulated; empty for real money."""
    return "simulated" if simulated else "emulated" if emulated else ""
