"""Regions that people can choose. These are suggestions: clouds open new ones, and any well-formed name is accepted.

Jobs run only in regions with prices, because a budget needs them. `python -m cloud.accounts.provision.regions
docs/clouds.md` writes the lists of those regions into the document.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cloud.money.billing.price_book import PRICES, PriceBook, UnknownSku

AWS: dict[str, str] = {
    "us-east-1": "N. Virginia",
    "us-east-2": "Ohio",
    "us-west-1": "N. California",
    "us-west-2": "Oregon",
    "ca-central-1": "Montreal",
    "sa-east-1": "São Paulo",
    "eu-central-1": "Frankfurt",
    "eu-west-1": "Ireland",
    "eu-west-2": "London",
    "eu-west-3": "Paris",
    "eu-north-1": "Stockholm",
    "eu-south-1": "Milan",
    "ap-south-1": "Mumbai",
    "ap-southeast-1": "Singapore",
    "ap-southeast-2": "Sydney",
    "ap-northeast-1": "Tokyo",
    "ap-northeast-2": "Seoul",
}
AZURE: dict[str, str] = {
    "eastus": "Virginia",
    "eastus2": "Virginia",
    "westus2": "Washington",
    "westus3": "Arizona",
    "northeurope": "Ireland",
    "westeurope": "Netherlands",
    "germanywestcentral": "Frankfurt",
    "francecentral": "Paris",
    "uksouth": "London",
    "swedencentral": "Gävle",
    "southeastasia": "Singapore",
    "japaneast": "Tokyo",
    "australiaeast": "New South Wales",
}

_PLACE = re.compile(r"(<!-- (aws|azure) regions -->).*?(<!-- end -->)", re.DOTALL)
_SKUS = {"aws": ("lambda.duration.x86", "lambda.request"), "azure": ("aci.vcpu.linux", "aci.memory.linux")}


def known(cloud: str) -> dict[str, str]:
    """Return a cloud's regions with the place of each."""
    return AZURE if cloud == "azure" else AWS


def has_prices(cloud: str, region: str, book: PriceBook) -> bool:
    """Return True if everything that an actor is billed for has a price there."""
    try:
        for sku in _SKUS[cloud]:
            book.row(sku, region)
    except UnknownSku:
        return False
    return True


def priced(cloud: str, book: PriceBook) -> list[str]:
    """Return the regions with prices: known ones first, then others of the book."""
    others = sorted({row.region for row in book.rows() if row.sku in _SKUS[cloud]} - set(known(cloud)))
    return [region for region in (*known(cloud), *others) if has_prices(cloud, region, book)]


def offered(cloud: str, book: PriceBook) -> list[tuple[str, str]]:
    """Return every region with a description, those with prices first."""
    good = priced(cloud, book)
    places = known(cloud)
    rest = [region for region in places if region not in good]
    found = [(region, places.get(region, "by prices of this installation")) for region in good]
    return found + [(region, f"{places[region]}, no prices yet") for region in rest]


def with_regions(text: str) -> str:
    """Return the document with each cloud's list of regions with prices in its place."""
    book = PriceBook.read(PRICES)

    def filled(place: re.Match[str]) -> str:
        names = ", ".join(f"`{region}`" for region in priced(place[2], book))
        return f"{place[1]}{names}{place[3]}"

    return _PLACE.sub(filled, text)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_regions(file.read_text("utf-8")), "utf-8")
