"""What was said of the same claims before the questions were repaired: both verdicts stand side by side.

`research/results/earlier/verdicts.json` holds the verdicts of 22 November 2026: percentile intervals with environments
drawn, costs until the first of three readings, equality by an interval that contains 1, and the best of several chosen
on half of the seeds. They are of the first recipe, as are the runs that they were made from. Stellaris' are of runs in
which each actor of a machine started at a moment of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from webapp.comparing.papers.figures import RESULTS

_PATH = RESULTS / "earlier" / "verdicts.json"
_RATIOS = ("cheaper", "higher", "sooner")
_SAME = 0.02
_PARTS = ("kind", "environments", "ours", "at", "against_at", "measure", "accounting", "meter", "startup")


def add_earlier(name: str, verdicts: Sequence[dict[str, Any]]) -> None:
    """Put the earlier verdict of each claim beside it, where there was one: its word, its interval, and which repairs
    changed it.
    """
    known = {_key(stored["asked"]): stored for stored in _stored().get(name, [])}
    for verdict in verdicts:
        before = known.get(_key(verdict["asked"])) if verdict.get("asked") else None
        if before is not None:
            verdict["figures"]["earlier"] = {
                "verdict": before["verdict"],
                "interval": before["interval"],
                "why": changed_by(before, verdict),
            }


def changed_by(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Name the repairs between two verdicts that concern the estimate or the word; empty where neither changed."""
    figures, claim = now["figures"], now["asked"]
    interval = figures.get("interval")
    if interval is None or before["interval"] is None:
        return ""
    ratio = claim["kind"] in _RATIOS
    # A figure by another rule is between: what is left of the way is made by the other repairs.
    until_first = next(
        (figure["interval"] for figure in figures.get("variants", ()) if figure["name"] == "begin"), interval
    )
    causes = []
    if _moved(interval, until_first, ratio=ratio):
        causes.append("what is paid until: the last of three readings, no longer the first")
    if _moved(until_first, before["interval"], ratio=ratio):
        causes.append(_accounts(claim))
    if now["verdict"] != before["verdict"]:
        causes += _of_the_word(before, now)
    return "" if not causes else f"Repairs between the two: {'; '.join(causes)}."


def _moved(one: Mapping[str, float], other: Mapping[str, float], *, ratio: bool) -> bool:
    if ratio:
        return abs(math.log(one["value"] / other["value"])) > _SAME
    return abs(one["value"] - other["value"]) > _SAME


def _accounts(claim: Mapping[str, Any]) -> str:
    places = f"{claim.get('at', '')} {claim.get('against_at', '')}"
    if claim["kind"] in ("sooner", "higher"):
        return "new runs, on machines whose actors start together"
    if "cluster" in places or "One plain CPU machine" in places:
        return "clusters, whose workers persist and whose actors start together; readings at equal steps"
    if claim.get("accounting") == "paper":
        return "readings at equal steps on both sides"
    if claim["kind"] == "cheaper":
        return "workers are rebuilt in 0.15 s as measured, not in 1.6 s; readings at equal steps"
    return "workers are rebuilt in 0.15 s as measured, not in 1.6 s"


def _of_the_word(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What turned the word itself, beside an estimate that moved."""
    rules = (
        ("Alone it would be decided", "Holm's correction for many claims"),
        ("half of its runs", "the rule that an arm which seldom reached the target is not called cheaper"),
        ("at the edge of those tried", "the rule that the best of a grid must lie inside it"),
    )
    reasons = [words for part, words in rules if part in now["reason"]]
    if now["asked"].get("alike") and before["verdict"] == "holds":
        reasons.append("equality, which needs an interval within its margin and not one that contains 1")
    elif (
        not reasons
        and now["verdict"].startswith("not decided")
        and not before["verdict"].startswith("not decided")
    ):
        reasons.append("intervals, which are wider for few seeds")
    return reasons


def _key(claim: Mapping[str, Any]) -> str:
    """A claim by its parts. The best of several has no name of its own: which arm it was may have changed."""
    theirs = str(claim.get("theirs", ""))
    parts = {name: claim.get(name) for name in _PARTS}
    return json.dumps({**parts, "theirs": "the best" if "the best of" in theirs else theirs})


@cache
def _stored() -> dict[str, list[dict[str, Any]]]:
    stored: dict[str, list[dict[str, Any]]] = json.loads(_PATH.read_text()) if _PATH.exists() else {}
    return stored
