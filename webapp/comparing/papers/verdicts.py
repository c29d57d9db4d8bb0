"""A stored verdict as a row of a page: its word, the claim in parts, our figure beside the paper's, and what is known
against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webapp.comparing.papers.drawing import Ruler, ruler

_TONES = {
    "holds": ("ok", "check-circle-fill"),
    "does not hold": ("failed", "x-circle-fill"),
    "open": ("waiting", "hourglass-split"),
    "not run": ("waiting", "slash-circle"),
    "shown": ("waiting", "eye"),
    "on demand": ("waiting", "eye"),
}
_UNDECIDED = ("warning", "question-circle")
LETTERS = {"learned": "L", "assumed timing": "T", "bill": "B", "measured": "M"}
_DECIDED = ("holds", "does not hold")
# How sentences begin that say what a verdict hangs on. They stand first in its reason.
_CAVEATS = (
    "Not testable",
    "Its sign turns",
    "It is not decided",
    "Alone it would hold",
    "Alone it would not hold",
    "Of its ",
    "It was declared",
    "The target asks",
    "No pilots say",
)


def pill_of(word: str) -> tuple[str, str]:
    """The tone and the icon of a verdict's word."""
    return _TONES.get(word, _UNDECIDED)


@dataclass(frozen=True)
class VerdictRow:
    """A claim as a row: its word, what it says in parts, our figure on a line, and the paper's.

    `hangs_on` and `rest` are the reason in two parts, and `caveats` the first of them in short.
    """

    word: str
    tone: str
    icon: str
    label: str
    letter: str
    what: str
    ours: str
    theirs: str
    where: str
    figure: str
    interval: dict[str, float] | None
    ruler: Ruler | None
    paper: str
    reason: str
    environments: str
    alone: tuple[tuple[str, str, str], ...]
    repeats: tuple[str, ...]
    primary: bool
    by_paper: bool
    without_startup: str
    earlier: str
    turned_by: tuple[str, ...]
    caveats: tuple[str, ...]
    hangs_on: str
    rest: str


def verdict(found: dict[str, Any]) -> VerdictRow:
    claim, figures = found.get("asked", {}), found.get("figures", {})
    kind = claim.get("kind", "plain")
    ratio = kind in ("cheaper", "higher", "higher_in_time", "not_worse", "sooner")
    interval = figures.get("interval")
    tone, icon = pill_of(found["verdict"])
    hangs_on, rest = _parted(found.get("reason", ""))
    limit = claim["margin"] if kind == "not_worse" else None
    paper = claim.get("paper_value")
    where = ""
    if claim.get("at"):
        same = claim["at"] == claim["against_at"]
        where = claim["at"] if same else f"{claim['at']}, against {claim['against_at']}"
    return VerdictRow(
        found["verdict"],
        tone,
        icon,
        found.get("label", ""),
        LETTERS.get(found.get("label", ""), ""),
        _what(claim, found) + (", alike" if claim.get("alike") else ""),
        claim.get("ours", ""),
        claim.get("theirs", ""),
        where,
        "" if interval is None else interval_words(interval, ratio=ratio),
        interval,
        None if interval is None else ruler(interval, ratio=ratio, paper=paper, limit=limit),
        found.get("paper", ""),
        found.get("reason", ""),
        ", ".join(claim.get("environments", ())),
        tuple(
            (row["environment"], interval_words(row["interval"], ratio=ratio), row["word"])
            for row in figures.get("by_environment", ())
            if row["interval"] is not None
        ),
        tuple(claim.get("repeats", ())),
        bool(claim.get("primary")),
        kind in ("higher", "higher_in_time", "not_worse") or claim.get("accounting") == "paper",
        _without_startup(figures, ratio=ratio),
        _earlier(figures, ratio=ratio),
        tuple(_turned_by(figures, found["verdict"], ratio=ratio)),
        tuple(map(_in_short, hangs_on)),
        " ".join(hangs_on),
        rest,
    )


def _parted(reason: str) -> tuple[list[str], str]:
    """The sentences of a reason that say what the verdict hangs on, and the rest."""
    sentences, rest = [], reason
    while rest.startswith(_CAVEATS):
        sentence, _, rest = rest.partition(". ")
        sentences.append(sentence.rstrip(".") + ".")
    return sentences, rest


def _in_short(sentence: str) -> str:
    """Without the readings behind it, but with their environments."""
    words, _, readings = sentence.partition("; first readings: ")
    if not readings:
        return sentence
    names = ", ".join(reading.split(" ")[0] for reading in readings.split(", ") if reading[:1].isalpha())
    return f"{words} on {names}."


def _without_startup(figures: dict[str, Any], *, ratio: bool) -> str:
    """The figure without the start of machines and functions, and how much of both bills or times that start is."""
    other = next((one for one in figures.get("variants", ()) if one["name"] == "no_startup"), None)
    if other is None:
        return ""
    ours, theirs = (f"{100 * share:.0f} %" for share in figures["startup_shares"])
    return (
        f"Without start-ups {interval_words(other['interval'], ratio=ratio)}: {other['word']}. They are {ours} of ours"
        f" and {theirs} of theirs."
    )


def _earlier(figures: dict[str, Any], *, ratio: bool) -> str:
    """What was said of the claim before the questions were repaired, and what changed it."""
    earlier = figures.get("earlier")
    if earlier is None:
        return ""
    before = f"Before the repairs: {interval_words(earlier['interval'], ratio=ratio)}, {earlier['verdict']}."
    return " ".join(filter(None, (before, earlier.get("why", ""))))


def _turned_by(figures: dict[str, Any], word: str, *, ratio: bool) -> Iterator[str]:
    """What turns the sign or undoes the verdict: other accounts of the same runs, and the clouds' numbers within their
    ranges.
    """
    for variant in figures.get("variants", ()):
        if variant["turned"] or (word in _DECIDED and variant["word"] != word):
            yield f"{variant['words']}: {interval_words(variant['interval'], ratio=ratio)}, {variant['word']}"
    over = figures.get("over_draws") or {}
    if over:
        low, high = (_change(over[name]) for name in ("ratio_p10", "ratio_p90"))
        yield (
            f"the clouds' numbers: ours is less in {over['cheaper_in']} of {over['draws']} draws;"
            f" eight of ten are from {low} to {high}"
        )


def _what(claim: dict[str, Any], found: dict[str, Any]) -> str:
    kind = claim.get("kind", "plain")
    if kind == "better":
        meter = " in training" if claim.get("meter") == "training" else ""
        return f"Return{meter} at equal dollars, as a share of the target"
    if kind == "higher":
        return "Return after all rounds"
    if kind == "not_worse":
        return f"Return after all rounds, no less than {claim['margin']:g} times the other"
    if kind == "higher_in_time":
        return "Return in the time of the quicker side, without the start of machines"
    if kind == "sooner":
        return "Seconds for all rounds" + ("" if claim["startup"] else ", without the start of machines")
    if kind == "repeatable":
        return "Reliability of R, measured twice"
    if kind == "foretells":
        return "Rank correlation of R with what more actors bring, the round taken out"
    if kind == "cheaper":
        what = "Seconds" if claim["measure"] == "seconds" else "Dollars"
        how = ", by the paper's own formula" if claim["accounting"] == "paper" else ""
        if claim.get("until") == "end":
            return f"{what} for all rounds{how}"
        target = "target in training" if claim.get("meter") == "training" else "target"
        return f"{what} to the {target}{how}"
    return str(found["claim"])


def interval_words(interval: dict[str, float], *, ratio: bool) -> str:
    """A ratio is written as a change, as in the papers. Seeds that do not differ leave no interval."""
    value, low, high = (
        _change(interval[name]) if ratio else f"{interval[name]:+.2f}".replace("-", "−")
        for name in ("value", "low", "high")
    )
    return f"{value}, alike on all seeds" if value == low == high else f"{value} [{low}, {high}]"


def _change(ratio: float) -> str:
    percent = round(100 * (ratio - 1))
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"
