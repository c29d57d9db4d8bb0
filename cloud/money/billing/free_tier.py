"""What a fresh account's free allowance would cover of a bill. It is shown beside the bill and never subtracted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from cloud.formatting import display_usd
from cloud.money.billing.price_book import FreeTier, PriceBook
from cloud.money.pricing import total
from training.engine.ports import PriceLine


@dataclass(frozen=True)
class FreeTierShare:
    """`covered_picodollars` of a bill of `total_picodollars`, in an account that has used nothing else this month."""

    covered_picodollars: int
    total_picodollars: int

    @property
    def words(self) -> str:
        if not self.covered_picodollars:
            return "no free tier covers any of this"
        covered, whole = display_usd(self.covered_picodollars), display_usd(self.total_picodollars)
        return f"the free tier of a fresh account would cover {covered} of {whole}, once a month"


def free_tier_share(lines: Iterable[PriceLine], book: PriceBook) -> FreeTierShare:
    """Return the share that is free. Lines of one SKU count together; an allowance for several SKUs is spread over
    them by the quantity of each.
    """
    bill = tuple(lines)
    covered = sum(_covered(bill, tier) for tier in book.free_tiers)
    return FreeTierShare(covered, total(bill))


def _covered(lines: tuple[PriceLine, ...], tier: FreeTier) -> int:
    """Return the covered picodollars, rounded down, so that it never promises too much."""
    mine = [line for line in lines if line.sku in tier.covers]
    quantity = sum((Fraction(line.quantity) for line in mine), Fraction(0))
    if not quantity:
        return 0
    return int(total(mine) * min(Fraction(1), tier.quantity / quantity))
