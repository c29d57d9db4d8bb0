"""Amounts for people and for files. Inside, money is a whole number of picodollars (1 USD = 10**12)."""

from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal

PICODOLLARS_PER_USD = 10**12
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


def display_usd(amount_picodollars: int) -> str:
    """For reading: two decimals from one dollar on, below it three significant digits."""
    return _displayed(amount_picodollars, ROUND_HALF_UP)


def display_least_usd(amount_picodollars: int) -> str:
    """The same of what somebody has to give at least: never less than it is, and no finer than a budget can be."""
    return _displayed(amount_picodollars, ROUND_CEILING, BUDGET_DECIMALS)


def unreal_word(simulated: bool, emulated: bool) -> str:
    """The word for money that nobody pays: simulated or emulated; empty for real money."""
    return "simulated" if simulated else "emulated" if emulated else ""


def _displayed(amount_picodollars: int, rounding: str, most_places: int = 99) -> str:
    usd = Decimal(amount_picodollars) / PICODOLLARS_PER_USD
    sign, usd = ("-" if usd < 0 else ""), abs(usd)
    if usd >= 1 or usd == 0:
        return f"{sign}${usd.quantize(Decimal('0.01'), rounding):,}"
    places = min(most_places, max(2, 2 - usd.adjusted()))
    rounded = usd.quantize(Decimal(1).scaleb(-places), rounding)
    if rounded >= 1:
        rounded = rounded.quantize(Decimal("0.01"))
    return f"{sign}${rounded:f}"
