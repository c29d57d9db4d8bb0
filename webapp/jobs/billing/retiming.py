"""A stored run re-timed on another cloud: time, bill, ranges, and which of two clouds is cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cloud.money.billing.bill import Bill
from cloud.money.billing.replay_schedule import ReplaySchedule, schedules_of
from cloud.money.billing.retiming import RetimedRun, retime
from cloud.money.billing.work import WorkError
from cloud.money.billing.work_file import RunSegment, read_work_file
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers.ranges import Flip, Spread, TimeAndCost, draw_outcomes, flips, time_and_cost
from cloud.timing.place import TimingPlace
from webapp.formatting import display_usd, format_duration
from webapp.jobs.billing.bills import works_of
from webapp.jobs.models import Job
from webapp.money.amounts import PICODOLLARS_PER_USD, exact_usd

Document = dict[str, Any]


@dataclass(frozen=True)
class RunToRetime:
    """A run to re-time. `options` are those of its simulated cloud, else the defaults."""

    name: str
    segments: list[RunSegment]
    options: SimulatedOptions
    simulated: bool


def stored_run(name: str) -> RunToRetime:
    """Return the run of a work file or a job id. WorkError with a sentence for users."""
    segments = read_work_file(Path(name)) if Path(name).is_file() else _of_job(name)
    segments = [segment for segment in segments if segment.works]
    if not segments:
        raise WorkError(f"{name} has no record of any call")
    platform, simulated = segments[-1].spec.get("platform", {}), segments[-1].simulated
    try:
        options = SimulatedOptions.model_validate(platform) if simulated else SimulatedOptions()
    except ValidationError as error:
        raise WorkError(f"the platform of {name} is not known here: {error.errors()[0]['msg']}") from None
    return RunToRetime(name, segments, options, simulated)


def _of_job(name: str) -> list[RunSegment]:
    from django.db import DatabaseError

    try:
        job = Job.objects.filter(pk=name).first()
    except DatabaseError:  # no database exists here
        job = None
    if job is None:
        raise WorkError(f"{name!r} is neither a file of work nor the id of a job here")
    return works_of(job)


def retime_run(run: RunToRetime, place: TimingPlace) -> Document:
    """Return the run at `place`: totals, the bill by line, each round, and what re-timing cannot know."""
    schedules = _schedules(run)
    runs = [retime(schedule, place, seed=run.options.seed) for schedule in schedules]
    bill = Bill()
    for retimed in runs:
        bill.include(retimed.bill)
    booked = [settlement for segment in run.segments for settlement in segment.settlements]
    return {
        "kind": "retimed",
        "run": run.name,
        "profile": place.profile.title,
        "stack": place.stack.title,
        "prices_as_of": place.book.as_of.isoformat(),
        "time_s": sum(retimed.time_s for retimed in runs),
        "cost_usd": exact_usd(bill.picodollars),
        "picodollars": bill.picodollars,
        "calls": sum(retimed.calls for retimed in runs),
        "failed_calls": sum(retimed.failed for retimed in runs),
        "cold_starts": sum(retimed.cold_starts for retimed in runs),
        "bill": _lines(bill),
        "rounds": _rounds(runs),
        "stored": {
            "time_s": sum(_ended_s(segment) for segment in run.segments),
            "picodollars": sum(settlement.picodollars for settlement in booked),
            "calls": sum(len(segment.works) for segment in run.segments),
            "bill": _lines(Bill.of(booked)),
        },
        "notes": list(dict.fromkeys(note for schedule in schedules for note in schedule.notes)),
    }


def ranges(
    run: RunToRetime, place: TimingPlace, against: TimingPlace | None, draws: int, seed: int
) -> Document:
    """Return p10, p50 and p90 of time and cost over `draws`; with `against`, how often each cloud is cheaper."""
    places = [place] if against is None else [place, against]
    drawn = draw_outcomes(_schedules(run), places, draws, seed)
    document: Document = {"draws": {"count": draws, "seed": seed, **_spreads([pair[0] for pair in drawn])}}
    if against is not None:
        cheaper = sum(one.picodollars < other.picodollars for one, other in drawn)
        faster = sum(one.time_s < other.time_s for one, other in drawn)
        document["verdict"] = {
            "draws": draws,
            "cheaper_in": cheaper,
            "faster_in": faster,
            "against_draws": _spreads([pair[1] for pair in drawn]),
        }
    return document


def verdict(run: RunToRetime, place: TimingPlace, against: TimingPlace) -> Document:
    """Return which cloud is cheaper at the central values, and which number alone would change that."""
    schedules, seed = _schedules(run), run.options.seed
    one, other = (time_and_cost(schedules, where, seed) for where in (place, against))
    return {
        "against": against.profile.title,
        "against_stack": against.stack.title,
        "cheaper": one.picodollars < other.picodollars,
        "faster": one.time_s < other.time_s,
        "against_time_s": other.time_s,
        "against_cost_usd": exact_usd(other.picodollars),
        "flips": [_flip(flip) for flip in flips(schedules, place, against, seed)],
    }


def words(document: Document) -> list[str]:
    """Yield the document as lines of text."""
    lines = [
        f"{document['profile']}, {document['stack']}: {_sums(document)} (stored run: {_sums(document['stored'])})."
    ]
    lines += [f"  {row['category']:12} {row['sku']:32} {row['usd']} USD" for row in document["bill"]]
    if "draws" in document:
        lines.append(_spread_words(document["draws"]))
    if "verdict" in document:
        lines += _verdict_words(document["verdict"])
    return lines + [f"Note: {note}" for note in document["notes"]]


def _sums(document: Document) -> str:
    return f"{format_duration(document['time_s'])}, {display_usd(document['picodollars'])}"


def _verdict_words(document: Document) -> list[str]:
    usual = "cheaper" if document["cheaper"] else "not cheaper"
    lines = [f"At the values: {usual} than {document['against']} ({document['against_cost_usd']} USD)."]
    if "cheaper_in" in document:
        lines.append(
            f"Cheaper in {document['cheaper_in']} of {document['draws']} draws, faster in {document['faster_in']}."
        )
    for flip in document["flips"]:
        lines.append(
            f"  {flip['of']}: {flip['name']} turns this by itself at {flip['at']:.4g}"
            f" ({flip['value']:.4g}, {flip['kind']}, range to {flip['end']:.4g})"
        )
    return lines if document["flips"] else [*lines, "No single number changes this within its range."]


def _spread_words(document: Document) -> str:
    time_s, cost = document["time_s"], document["cost_usd"]
    return (
        f"{document['count']} draws: {format_duration(time_s['p10'])} to {format_duration(time_s['p90'])},"
        f" {cost['p10']:.6g} to {cost['p90']:.6g} USD (one in ten below, one in ten above)."
    )


def _schedules(run: RunToRetime) -> list[ReplaySchedule]:
    return schedules_of(run.segments)


def _ended_s(segment: RunSegment) -> float:
    usages: list[Any] = [settlement.usage for settlement in segment.settlements]
    return max((usage["landed_s"] for usage in usages if "landed_s" in usage), default=0.0)


def _lines(bill: Bill) -> list[Document]:
    return [
        {
            "category": line.category,
            "sku": line.sku,
            "quantity": f"{line.quantity.normalize():f}",
            "unit": line.unit,
            "usd": exact_usd(line.picodollars),
        }
        for line in bill.lines
    ]


def _rounds(runs: Sequence[RetimedRun]) -> list[Document]:
    return [{"segment": number} | asdict(times) for number, run in enumerate(runs, 1) for times in run.rounds]


def _spreads(outcomes: Sequence[TimeAndCost]) -> Document:
    dollars = [outcome.picodollars / PICODOLLARS_PER_USD for outcome in outcomes]
    return {
        "time_s": asdict(Spread.of([outcome.time_s for outcome in outcomes])),
        "cost_usd": asdict(Spread.of(dollars)),
    }


def _flip(flip: Flip) -> Document:
    source = {"kind": flip.quantity.kind, "source": flip.quantity.source}
    return {"of": flip.of, "name": flip.name, "value": flip.value, "at": flip.at, "end": flip.end, **source}
