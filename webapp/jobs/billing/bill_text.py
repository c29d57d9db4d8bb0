"""A stored bill as its page shows it: rows with amounts and shares, and sentences about other clouds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloud.money.billing.paper_formulas import FORMULAS
from cloud.money.billing.parts import BillPart, bill_parts
from cloud.platforms.options import PlatformOptions
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.quantity import Kind, ProfileError, quantities
from webapp.formatting import display_usd, format_percent, format_rough_duration
from webapp.money.models import BillSheet

_PLACES = {
    "one-machine": "On one c5.4xlarge",
    "one-machine-spot": "On the same machine at the spot price",
}
_ALIKE = 0.01
_PARTS_NAMED = 5
_PAPER_TITLES = {
    "nitro-intended": "Nitro, as intended",
    "nitro-active": "Nitro, as implemented",
    "minionsrl": "MinionsRL",
    "stellaris": "Stellaris",
    "siren": "Siren",
}
_KINDS: dict[Kind, str] = {
    "measured": "measured",
    "documented": "documented",
    "paper": "from the papers",
    "assumed": "assumed",
}


@dataclass(frozen=True)
class BillShare:
    """One part of the bill. `share` is in percent; `begin` is its start in a bar of 100."""

    part: BillPart
    picodollars: int
    share: float
    begin: float

    @property
    def share_words(self) -> str:
        return format_percent(self.share, 100, decimals=1)


@dataclass(frozen=True)
class PaperRow:
    title: str
    words: str
    source: str
    picodollars: int


@dataclass(frozen=True)
class Numbers:
    """How many numbers a simulated cloud has, and how many of each kind."""

    profile: str
    title: str
    stack: str
    stack_title: str
    count: int
    words: str


@dataclass(frozen=True)
class BillSummary:
    """The content of the page's section. `learner_idle` is in percent; None without a learner machine."""

    sheet: BillSheet
    rows: list[BillShare]
    papers: list[PaperRow]
    elsewhere: list[str]
    counts: Mapping[str, int]
    time_s: float
    learner_idle: int | None
    free_tier: str
    problem: str

    @property
    def total(self) -> int:
        return sum(row.picodollars for row in self.rows)

    @property
    def breakdown(self) -> str:
        return breakdown_sentence(self.rows)

    @property
    def of_actors(self) -> str:
        return actors_sentence(self.rows)


def summarize_bill(sheet: BillSheet, options: PlatformOptions) -> BillSummary:
    document = sheet.document
    problem = str(document.get("problem", ""))
    if problem:
        return BillSummary(sheet, [], [], [], {}, 0.0, None, "", problem)
    counts = dict.fromkeys(("calls", "cold_starts", "failed_calls"), 0) | document["counts"]
    rented, busy = counts.get("learner_stood_ms", 0), counts.get("learner_busy_ms", 0)
    return BillSummary(
        sheet=sheet,
        rows=_rows(document["parts"], document["total"]),
        papers=[
            PaperRow(_PAPER_TITLES.get(name, name), FORMULAS[name].words, FORMULAS[name].source, cost)
            for name, cost in document["papers"].items()
            if name in FORMULAS
        ],
        elsewhere=list(_elsewhere(document, options)),
        counts=counts,
        time_s=document["time_s"],
        learner_idle=round(100 * (1 - busy / rented)) if rented else None,
        free_tier=_free_tier(document["free_tier"]),
        problem="",
    )


def _rows(parts: Mapping[str, int], total: int) -> list[BillShare]:
    """Return the parts that cost anything, most expensive first."""
    rows: list[BillShare] = []
    begin = 0.0
    for part in sorted(bill_parts(), key=lambda part: -parts.get(part.key, 0)):
        amount = parts.get(part.key, 0)
        if not amount:
            continue
        share = 100 * amount / total if total else 0.0
        rows.append(BillShare(part, amount, share, begin))
        begin += share
    return rows


def breakdown_sentence(rows: Sequence[BillShare]) -> str:
    """ "Of $1.27: learner 77 %, actors 17 %, cold starts 4 %, the rest 2 %." Empty if nothing was spent."""
    if not rows:
        return ""
    named = [row for row in rows[:_PARTS_NAMED] if row.share >= 0.5]
    shares = [f"{row.part.title.lower()} {format_percent(row.share, 100)}" for row in named]
    rest = sum(row.share for row in rows) - sum(row.share for row in named)
    if rest >= 0.5:
        shares.append(f"the rest {format_percent(rest, 100)}")
    return f"Of {display_usd(sum(row.picodollars for row in rows))}: {', '.join(shares)}."


def actors_sentence(rows: Sequence[BillShare]) -> str:
    """ "Actors came to $0.21: environments 53 %, start-up 24 %, inference 18 %, transfer 5 %." Empty if
    unknown.

    Idle actors and failed calls are parts of the bill of their own.
    """
    words = {
        "environment": "environments",
        "inference": "inference",
        "transfer": "transfer",
        "cold_starts": "start-up",
    }
    amounts = {words[row.part.key]: row.picodollars for row in rows if row.part.key in words}
    if not amounts.keys() - {"start-up"}:
        return ""
    total = sum(amounts.values())
    shares = (f"{word} {format_percent(amount, total)}" for word, amount in amounts.items())
    return f"Actors came to {display_usd(total)}: {', '.join(shares)}."


def _free_tier(share: Mapping[str, int]) -> str:
    if not share["covered"]:
        return ""
    covered = display_usd(share["covered"])
    return f"The free tier of a fresh account would cover {covered} of it, once a month."


def _elsewhere(document: Mapping[str, Any], options: PlatformOptions) -> Iterator[str]:
    here = document.get("own") or {"picodollars": document["total"], "time_s": document["time_s"]}
    own, own_s = here["picodollars"], here["time_s"]
    for compared in document["compared"]:
        place = _PLACES.get(compared["profile"], f"On {compared['title']}")
        if compared["problem"]:
            yield f"{place}: unknown, because {compared['problem']}."
            continue
        elsewhere = (
            f"{place} this would have cost about {display_usd(compared['picodollars'])} and taken"
            f" {format_rough_duration(compared['time_s'])}"
        )
        if not own:
            yield f"{elsewhere}; here it took {format_rough_duration(own_s)}."
        else:
            dearer = _difference_in_money(own, compared["picodollars"])
            slower = _difference_in_time(own_s, compared["time_s"])
            yield f"{elsewhere}: {options.subject} {dearer} and {slower}."


def _difference_in_money(own: int, other: int) -> str:
    if abs(own - other) <= _ALIKE * max(own, other):
        return "cost as much"
    more = "more" if own > other else "less"
    return f"cost {display_usd(abs(own - other))} {more}"


def _difference_in_time(own_s: float, other_s: float) -> str:
    if abs(own_s - other_s) <= _ALIKE * max(own_s, other_s):
        return "took as long"
    if own_s < other_s:
        return f"saved {format_rough_duration(other_s - own_s)}"
    return f"took {format_rough_duration(own_s - other_s)} longer"


def numbers_behind(options: PlatformOptions) -> Numbers | None:
    """Return the numbers of a simulated job; None for other jobs, or if the profile or stack no longer exists."""
    if not options.is_simulated:
        return None
    simulated = options.alike
    try:
        profile, stack = profiles.load(simulated.profile), stacks.load(simulated.stack)
    except ProfileError:
        return None
    kinds = Counter(quantity.kind for quantity in quantities(profile).values())
    listed = [f"{kinds[kind]} {word}" for kind, word in _KINDS.items() if kinds[kind]]
    words = f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else listed[0]
    return Numbers(simulated.profile, profile.title, simulated.stack, stack.title, sum(kinds.values()), words)
