"""What was said of the same claims before the questions were repaired: both verdicts stand side by side.

`docs/results/earlier/verdicts.json` holds the verdicts of 22 November 2026: percentile intervals with environments
drawn, costs until the first of three readings, equality by an interval that contains 1, and the best of several chosen
on half of the seeds. They are of the first recipe, as are the runs that they were made from. Stellaris' are of runs in
which each actor of a machine started at a moment of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from webapp.papers.figures import RESULTS

_PATH = RESULTS / "earlier" / "verdicts.json"
_PARTS = ("kind", "environments", "ours", "at", "against_at", "measure", "accounting", "meter", "startup")


def add_earlier(name: str, verdicts: Sequence[dict[str, Any]]) -> None:
    """Put the earlier verdict of each claim beside it, where there was one: its word and its interval."""
    known = {_key(one["asked"]): one for one in _stored().get(name, [])}
    for one in verdicts:
        before = known.get(_key(one["asked"])) if one.get("asked") else None
        if before is not None:
            one["figures"]["earlier"] = {"verdict": before["verdict"], "interval": before["interval"]}


def _key(claim: Mapping[str, Any]) -> str:
    """A claim by its parts. The best of several has no name of its own: which arm it was may have changed."""
    theirs = str(claim.get("theirs", ""))
    parts = {name: claim.get(name) for name in _PARTS}
    return json.dumps({**parts, "theirs": "the best" if "the best of" in theirs else theirs})


@cache
def _stored() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(_PATH.read_text()) if _PATH.exists() else {}
    return found
