"""Sentences about running resources, for pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cloud.money.unattended_cost import UnattendedCost
from webapp.formatting import display_usd, format_time_limit, plural
from webapp.resources.models import Holding, HoldingKind, ResourceState
from webapp.resources.queries import RunningResources

_THINGS: dict[str, tuple[str, str]] = {
    HoldingKind.PROVISIONED: ("warm function", "warm functions"),
    HoldingKind.CONTAINER_GROUP: ("container group", "container groups"),
}


def headline(resources: RunningResources, *, of_job: bool = False) -> str:
    """The line on the page, without when it was checked."""
    where = " for this job" if of_job else ""
    if resources.things:
        return f"{_sums(resources.things)} {_verb(resources.things)} running{where}"
    if resources.problems:
        return f"It is not known which cloud resources are running{where}"
    return (
        "No cloud resources are running for this job"
        if of_job
        else "All clear: no cloud resources are running"
    )


def describe_resource(row: Holding) -> str:
    """A resource, for the list below the headline."""
    whose = f" for {row.job.name}" if row.job is not None else " of an unknown run"
    ends = " · being ended" if row.state == ResourceState.ENDING else ""
    return f"{_sums([row]).capitalize()}{whose}{ends}"


def unattended_cost_sentence(will: UnattendedCost) -> str:
    """What the job costs if this server dies now, and how long it takes to stop."""
    what = "everything stops by itself" if not will.endless else "its calls end by themselves"
    if not will.within_s and not will.picodollars:
        sentence = "If this server dies now, this job stops and costs nothing more."
        if will.endless:
            sentence = "If this server dies now, no call of this job keeps running."
    else:
        when = f"within {format_time_limit(will.within_s)}" if will.within_s else "at once"
        noun = "costs" if not will.endless else "cost"
        sentence = (
            f"If this server dies now, {what} {when} and {noun} at most {display_usd(will.picodollars)} more."
        )
    if not will.endless:
        return sentence
    count = plural(will.endless, "warm function keeps", "warm functions keep")
    return f"{sentence} {count} running, at {display_usd(will.endless_per_hour)} an hour, until it is back."


def _sums(rows: Sequence[Holding]) -> str:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.kind] += _number(row)
    words = [plural(count, *_THINGS[kind]) for kind, count in counts.items()]
    return " and ".join(words)


def _verb(rows: Sequence[Holding]) -> str:
    return "is" if sum(map(_number, rows)) == 1 else "are"


def _number(row: Holding) -> int:
    instances = row.facts.get("instances", 1)
    return int(instances) if row.kind == HoldingKind.PROVISIONED else 1


def assumed(calls: int, picodollars: int) -> str:
    """How many calls are booked by assumption, and at what amount."""
    one = calls == 1
    return (
        f"{calls:,} {'call is' if one else 'calls are'} booked at the most {'it' if one else 'they'} can have cost,"
        f" {display_usd(picodollars)}, until the provider's log shows what {'it' if one else 'they'} did."
    )
