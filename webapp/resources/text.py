"""What stands, in sentences for pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cloud.unattended_cost import UnattendedCost
from webapp.formatting import display_usd, format_time_limit, plural
from webapp.resources.models import Holding, HoldingKind, State
from webapp.resources.queries import Standing

_THINGS: dict[str, tuple[str, str]] = {
    HoldingKind.PROVISIONED: ("function kept ready", "functions kept ready"),
    HoldingKind.CONTAINER_GROUP: ("container group", "container groups"),
}


def headline(standing: Standing, *, of_job: bool = False) -> str:
    """The line in the window, without when it was checked."""
    where = "for this job" if of_job else "in the clouds"
    if standing.things:
        return f"{_sums(standing.things)} {_verb(standing.things)} {where}"
    if standing.problems:
        return f"What stands {where} is not known"
    return (
        "Nothing of this job stands in the clouds"
        if of_job
        else "All clear: nothing of ours stands in the clouds"
    )


def thing(row: Holding) -> str:
    """One of them, for the list below."""
    whose = f" for {row.job.name}" if row.job is not None else ", of a run that is not known"
    ends = " · being taken away" if row.state == State.ENDING else ""
    return f"{_sums([row]).capitalize()}{whose}{ends}"


def last_will(will: UnattendedCost) -> str:
    """If this server dies now."""
    what = "everything stops by itself" if not will.endless else "its calls end by themselves"
    if not will.within_s and not will.picodollars:
        sentence = "If this server dies now, nothing of this job goes on anywhere."
        if will.endless:
            sentence = "If this server dies now, no call of this job goes on anywhere."
    else:
        when = f"within {format_time_limit(will.within_s)}" if will.within_s else "at once"
        noun = "costs" if not will.endless else "cost"
        sentence = (
            f"If this server dies now, {what} {when} and {noun} at most {display_usd(will.picodollars)} more."
        )
    if not will.endless:
        return sentence
    count = plural(will.endless, "function kept ready stands", "functions kept ready stand")
    return f"{sentence} {count} on, at {display_usd(will.endless_per_hour)} an hour, until it is back."


def _sums(rows: Sequence[Holding]) -> str:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.kind] += _number(row)
    words = [plural(count, *_THINGS[kind]) for kind, count in counts.items()]
    return " and ".join(words)


def _verb(rows: Sequence[Holding]) -> str:
    return "stands" if sum(map(_number, rows)) == 1 else "stand"


def _number(row: Holding) -> int:
    instances = row.facts.get("instances", 1)
    return int(instances) if row.kind == HoldingKind.PROVISIONED else 1


def assumed(calls: int, picodollars: int) -> str:
    """Of calls whose cost nobody has told yet."""
    one = calls == 1
    return (
        f"{calls:,} {'call is' if one else 'calls are'} booked at the most {'it' if one else 'they'} can have cost,"
        f" {display_usd(picodollars)}, until the provider's log tells what {'it' if one else 'they'} did."
    )
