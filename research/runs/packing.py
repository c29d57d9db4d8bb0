"""A record of work, small enough to stand with the project: what was done and who waited for whom, without its prices.

Times and bills are computed again from the work alone, so nothing that a report tells is lost. When a call landed is
kept only where calls were cancelled, since a re-timing asks for it there and nowhere else.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def packed(work: Path) -> bytes:
    """The file's content, thinned and compressed; the same work is the same bytes."""
    lines = [json.loads(line) for line in work.read_text().splitlines()]
    cut_short = any(line.get("usage", {}).get("work", {}).get("cancelled") for line in lines)
    kept = [
        line if line.get("kind") == "work" else _thinned(line, with_moment=cut_short)
        for line in lines
        if line.get("kind") == "work" or "work" in line["usage"]
    ]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in kept)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def _thinned(settlement: dict[str, Any], *, with_moment: bool) -> dict[str, Any]:
    usage = {"work": settlement["usage"]["work"]}
    if with_moment and "landed_s" in settlement["usage"]:
        usage["landed_s"] = settlement["usage"]["landed_s"]
    return {**settlement, "picodollars": 0, "lines": [], "usage": usage}
