"""What the papers' figures imply by arithmetic alone: how many actors a schedule starts, dollars an hour."""

from __future__ import annotations

from cloud.money.billing.price_book import PICODOLLARS_PER_USD


def decayed_most(round_no: int, most: int, least: int, decay: float) -> int:
    """The most actors that a score of at most 1, decayed by round, can ask for (Nitro)."""
    share: float = decay**round_no
    return max(least, int(most * share))


def early_floor(round_no: int, most: int, least: int, decay: float) -> int:
    """The least actors of Nitro's released code: it floods the first rounds, whatever was measured."""
    return decayed_most(round_no * round_no, most, least, decay)


def doubling(round_no: int, first: int = 16, least: int = 8, most: int = 64, every: int = 10) -> int:
    """Hydrozoa as Nitro's authors ran it: doubled every tenth round, in force from the next one on."""
    if round_no == 1:
        return first
    return min(most, least << (round_no - 1) // every)


def creates_per_hour(actors: int, round_s: float) -> float:
    """How many actors an hour must create when each round starts all its own."""
    return actors * 3600 / round_s


def per_hour(picodollars: int, seconds: float) -> float:
    """US dollars an hour that a bill over so many seconds implies."""
    return picodollars / PICODOLLARS_PER_USD * 3600 / seconds


def cut(before: float, after: float) -> float:
    """The share by which `after` is less than `before`."""
    return 1 - after / before
