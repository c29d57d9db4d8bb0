"""How people read amounts, durations, shares and counts: the words that messages of the machines and pages share.

`webapp/formatting.py` adds what only pages need. What is not known is a dash, never a zero.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from cloud.money.billing.price_book import PICODOLLARS_PER_USD

UNKNOWN = "–"
MINUS = "\u2212"


def display_usd(picodollars: int, rounding: str = ROUND_HALF_UP, most_decimals: int = 12) -> str:
    """$1,250.00, $0.0312: two decimals from one dollar on, three significant digits below it."""
    usd = Decimal(picodollars) / PICODOLLARS_PER_USD
    sign, usd = ("-" if usd < 0 else ""), abs(usd)
    if usd >= 1 or usd == 0:
        return f"{sign}${usd.quantize(Decimal('0.01'), rounding):,}"
    places = min(most_decimals, max(2, 2 - usd.adjusted()))
    rounded = usd.quantize(Decimal(1).scaleb(-places), rounding)
    if rounded >= 1:
        rounded = rounded.quantize(Decimal("0.01"))
    return f"{sign}${rounded:f}"


def format_rough_duration(seconds: float | None) -> str:
    """4.2 s, 36 s, 1 min 48 s, 12 min, 2.4 h: as exact as an estimate is. What takes time at all is not 0."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return MINUS + format_rough_duration(-seconds)
    if seconds < 9.95:
        return f"{max(0.1, seconds) if seconds else 0.0:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 599.5:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def format_percent(part: float, whole: float = 1.0, decimals: int = 0) -> str:
    """77 %, or 77.3 % with one decimal; `< 1 %` for a part that would round to nothing. A dash without a whole."""
    if not whole:
        return UNKNOWN
    shown = f"{100 * part / whole:z.{decimals}f}"
    if part / whole > 0 and not float(shown):
        return f"< {10**-decimals:.{decimals}f} %"
    return f"{shown} %".replace("-", MINUS)


def plural(number: int, one: str, many: str = "") -> str:
    """1 call, 1,600 calls; `many` where a mere s does not make it."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
