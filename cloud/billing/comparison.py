"""What a run would have cost and taken elsewhere: the same work, timed and priced on other clouds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cloud.billing.price_book import PriceBook, UnknownSku
from cloud.billing.replay_schedule import Script
from cloud.billing.retiming import retime
from cloud.billing.work_file import Sitting
from cloud.place import Place
from cloud.platforms import PlatformOptions
from cloud.simulated_options import SimulatedOptions

ELSEWHERE = (
    "one-machine",
    "one-machine-spot",
    "lambda",
    "nitro-cluster",
    "minionsrl-cluster",
    "stellaris-cluster",
)
_PLAIN_STACK = "starling-stack"


@dataclass(frozen=True)
class Compared:
    """The run on another cloud. `problem` says why the figures are unknown; they are 0 then."""

    profile: str
    title: str
    picodollars: int
    time_s: float
    problem: str = ""


def compare(
    sittings: Sequence[Sitting],
    options: PlatformOptions,
    book: PriceBook,
    elsewhere: Iterable[str] = ELSEWHERE,
) -> tuple[list[Compared], tuple[str, ...]]:
    """Return the run on each of these clouds but its own, and notes on what the comparison leaves out.

    The software is the run's own; chance is drawn from its seed; the learner has the machine that the profile names.
    """
    scripts = [Script.of(sitting) for sitting in sittings if sitting.works]
    own = options.profile if isinstance(options, SimulatedOptions) else None
    found = [_compared(scripts, name, options, book) for name in elsewhere if name != own]
    notes = dict.fromkeys(note for script in scripts for note in script.notes)
    return found, tuple(notes)


def so_far(sittings: Sequence[Sitting], options: SimulatedOptions, book: PriceBook) -> Compared:
    """Return the run on its own cloud, as if it ended with its last call. Its ledger does not know that while rent
    runs.
    """
    scripts = [Script.of(sitting) for sitting in sittings if sitting.works]
    return _at(Place.of(options, book), options.profile, scripts, options.seed)


def _compared(scripts: Iterable[Script], name: str, options: PlatformOptions, book: PriceBook) -> Compared:
    stack, seed = _PLAIN_STACK, 0
    if isinstance(options, SimulatedOptions):
        stack, seed = options.stack, options.seed
    return _at(Place.of(SimulatedOptions(profile=name, stack=stack, seed=seed), book), name, scripts, seed)


def _at(place: Place, name: str, scripts: Iterable[Script], seed: int) -> Compared:
    title = place.profile.title
    try:
        runs = [retime(script, place, seed=seed) for script in scripts]
    except UnknownSku as error:
        return Compared(name, title, 0, 0.0, str(error))
    return Compared(name, title, sum(run.bill.picodollars for run in runs), sum(run.time_s for run in runs))
