"""The regions with prices as documents name them, drawn from the price book that comes with Starling.

`python -m cloud.provision.region_lists docs/clouds.md` writes them anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cloud.billing.price_book import PRICES, PriceBook
from cloud.provision import regions

_PLACE = re.compile(r"(<!-- (aws|azure) regions -->).*?(<!-- end -->)", re.DOTALL)


def with_regions(text: str) -> str:
    """The document with the list of each cloud in its place."""
    book = PriceBook.read(PRICES)

    def filled(place: re.Match[str]) -> str:
        names = ", ".join(f"`{region}`" for region in regions.priced(place[2], book))
        return f"{place[1]}{names}{place[3]}"

    return _PLACE.sub(filled, text)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_regions(file.read_text("utf-8")), "utf-8")
