"""What a run would have cost and taken elsewhere: the same work, timed and priced on other clouds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cloud.money.billing.price_book import PriceBook, UnknownSku
from cloud.money.billing.replay_schedule import ReplaySchedule, schedules_of
from cloud.money.billing.retiming import retime
from cloud.money.billing.work_file import RunSegment
from cloud.platforms.options import PlatformOptions
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.place import TimingPlace

ELSEWHERE = (
    "one-machine",
    "one-machine-spot",
    "one-small-machine",
    "lambda",
    "nitro-cluster",
    "minionsrl-cluster",
    "stellaris-cluster",
)


@dataclass(frozen=True)
class CloudComparison:
    """The run on another cloud. `problem` says why the figures are unknown; they are 0 then."""

    profile: str
    title: str
    picodollars: int
    time_s: float
    problem: str = ""


def compare(
    segments: Sequence[RunSegment],
    options: PlatformOptions,
    book: PriceBook,
    elsewhere: Iterable[str] = ELSEWHERE,
) -> tuple[list[CloudComparison], tuple[str, ...]]:
    """Return the run on each of these clouds but its own, and notes on what the comparison leaves out.

    The software is the run's own; chance is drawn from its seed; the learner has the machine that the profile names.
    """
    schedules = schedules_of(segments)
    own = options.alike.profile if options.is_simulated else None
    compared = [_compared(schedules, name, options, book) for name in elsewhere if name != own]
    notes = dict.fromkeys(note for schedule in schedules for note in schedule.notes)
    return compared, tuple(notes)


def compare_until_now(
    segments: Sequence[RunSegment], options: SimulatedOptions, book: PriceBook
) -> CloudComparison:
    """Return the run on its own cloud, as if it ended with its last call. Its ledger does not know that while rent
    runs.
    """
    schedules = schedules_of(segments)
    return _at(TimingPlace.of(options, book), options.profile, schedules, options.seed)


def _compared(
    schedules: Iterable[ReplaySchedule], name: str, options: PlatformOptions, book: PriceBook
) -> CloudComparison:
    elsewhere = SimulatedOptions(profile=name, stack=options.alike.stack, seed=options.alike.seed)
    return _at(TimingPlace.of(elsewhere, book), name, schedules, elsewhere.seed)


def _at(place: TimingPlace, name: str, schedules: Iterable[ReplaySchedule], seed: int) -> CloudComparison:
    title = place.profile.title
    try:
        runs = [retime(schedule, place, seed=seed) for schedule in schedules]
    except UnknownSku as error:
        return CloudComparison(name, title, 0, 0.0, str(error))
    return CloudComparison(
        name, title, sum(run.bill.picodollars for run in runs), sum(run.time_s for run in runs)
    )
