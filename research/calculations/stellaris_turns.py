"""What would turn Stellaris' times: its stored runs, timed again with other numbers of stack and machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from cloud.timing.place import TimingPlace
from research.calculation import Calculation, ResultTable, Statement
from research.experiment import Cell, find_experiment
from research.experiments.stellaris_gravitar import GRAVITAR
from research.pricing_targets import place_of
from research.reports.break_even import exactly, usual_round_s, with_update
from research.reports.outcomes import RunOutcome
from research.reports.run_cost import PricedRun
from research.runs.run_file import papers_folder, run_file
from research.stellaris import HOPPER, LEARNERS, PLACE, SEEDS
from webapp.comparing.papers.figures import RESULTS


class Runs(NamedTuple):
    """Stored runs of Stellaris and of synchronous PPO, with as many steps and with the baseline's."""

    experiment: str
    environment: str
    theirs: tuple[str, str]


_OURS = ("stellaris", "stellaris_flowing")
ON_HOPPER = Runs("stellaris_82k", HOPPER, ("synchronous_40", "synchronous_10"))
FROM_PICTURES = Runs("stellaris_gravitar", GRAVITAR, ("synchronous_16", "synchronous_4"))
_OUR_SOFTWARE = "stellaris_cluster_starling"
_SLOW_SAMPLE_US = 30.0
_PAPERS_TIME = 0.69
"""The paper's time over its baseline's: 31 % less."""
Ratios = tuple[float, float, float, float]


def _without_calls(place: TimingPlace) -> TimingPlace:
    return with_update(place, gradient_ms=exactly(place.stack.update.call_ms, 0.0))


def _reads_fast(place: TimingPlace) -> TimingPlace:
    return with_update(place, apply_us_per_megabyte=exactly(place.stack.update.us_per_megabyte, 1000.0))


def _learners_read_fast(place: TimingPlace) -> TimingPlace:
    return with_update(place, us_per_megabyte=exactly(place.stack.update.us_per_megabyte, 1000.0))


def _slow_samples(place: TimingPlace) -> TimingPlace:
    speed = place.stack.update.gpu_mlp
    slower = speed.model_copy(update={"per_sample_us": exactly(speed.per_sample_us, _SLOW_SAMPLE_US)})
    return with_update(place, gpu_mlp=slower)


def _a_gpu_each(place: TimingPlace) -> TimingPlace:
    return replace(place, options=place.options.model_copy(update={"learner_machines": LEARNERS}))


_ALSO_FROM_PICTURES = (
    "as assumed",
    "a gradient takes nothing beside reading and samples",
    "an aggregation reads a megabyte in 1 ms, not 5",
    "each learner has a GPU of its own",
    "our own software on the same machines",
)
CHANGES: dict[str, Callable[[TimingPlace], TimingPlace]] = {
    "as assumed": lambda place: place,
    "a gradient takes nothing beside reading and samples": _without_calls,
    "an aggregation reads a megabyte in 1 ms, not 5": _reads_fast,
    "both": lambda place: _without_calls(_reads_fast(place)),
    "each learner has a GPU of its own": _a_gpu_each,
    "our own software on the same machines": lambda _: place_of(_OUR_SOFTWARE, "no_startup"),
    f"a sample takes learners {_SLOW_SAMPLE_US:.0f} µs on both sides": _slow_samples,
    "the same, with a GPU of its own each": lambda place: _a_gpu_each(_slow_samples(place)),
}
CHANGES_FROM_PICTURES: dict[str, Callable[[TimingPlace], TimingPlace]] = {
    **{words: change for words, change in CHANGES.items() if words in _ALSO_FROM_PICTURES},
    "all that learners read takes 1 ms a megabyte, on both sides": _learners_read_fast,
    "the same, with a GPU of its own each and nothing beside reading and samples": lambda place: (
        _without_calls(_a_gpu_each(_learners_read_fast(place)))
    ),
}


@cache
def stored_run(runs: Runs, arm: str, seed: int) -> PricedRun:
    experiment = find_experiment(runs.experiment)
    cell = Cell(arm, runs.environment, seed)
    file = run_file(experiment, papers_folder(RESULTS, runs.experiment, quick=False), cell)
    return PricedRun(RunOutcome(cell, file.rows()), file.segments)


def ratios(runs: Runs, place: TimingPlace, seeds: Sequence[int]) -> Ratios:
    """A usual round's seconds where actors wait over those of as many gradients and of the paper's baseline, and the
    same where actors and learners go on: geometric means over seeds.
    """
    logs = {
        arm: float(np.mean([np.log(usual_round_s(stored_run(runs, arm, seed), place)) for seed in seeds]))
        for arm in (*_OURS, *runs.theirs)
    }
    first, second, third, fourth = (
        float(np.exp(logs[ours] - logs[theirs])) for ours in _OURS for theirs in runs.theirs
    )
    return first, second, third, fourth


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    seeds = SEEDS[:1] if quick else SEEDS
    place = place_of(PLACE, "no_startup")
    found = {words: ratios(ON_HOPPER, change(place), seeds) for words, change in CHANGES.items()}
    from_pictures = {
        words: ratios(FROM_PICTURES, change(place), seeds) for words, change in CHANGES_FROM_PICTURES.items()
    }
    return [
        ResultTable(
            "Seconds of a usual round of Stellaris over those of synchronous PPO",
            ("if", "wait / 40", "wait / 10", "go on / 40", "go on / 10"),
            tuple((words, *ratio) for words, ratio in found.items()),
            "Wait: actors wait for all passes over their data. Go on: neither actors nor learners wait. 40: PPO with"
            " 40 steps of 1,024 a round, as many as Stellaris' gradients. 10: with 10 of 4,096, the paper's baseline."
            " Without the start of machines and without evaluations; geometric means over five seeds.",
        ),
        ResultTable(
            "The same from pictures, on Gravitar",
            ("if", "wait / 16", "wait / 4", "go on / 16", "go on / 4"),
            tuple((words, *ratio) for words, ratio in from_pictures.items()),
            "16: PPO with 16 steps of 64 a round. 4: with 4 of 256. The papers' convolutions have two million"
            " parameters: eight megabytes of each gradient, and 25 of a learner's state.",
        ),
    ], [
        _statement("Quicker calls alone", found["both"]),
        _statement("A GPU for each learner alone", found["each learner has a GPU of its own"]),
        _statement(
            "Samples that take learners 30 µs, and a GPU for each,",
            found["the same, with a GPU of its own each"],
        ),
    ]


def _statement(what: str, measured: Ratios) -> Statement:
    waiting, flowing = measured[1], measured[3]
    return Statement(
        f"{what} would bring the paper's {_PAPERS_TIME} of its baseline's time.",
        "holds" if waiting <= _PAPERS_TIME else "does not hold",
        f"{waiting:.2f} where actors wait, {flowing:.2f} where actors and learners go on.",
        "assumed timing",
    )


CALCULATION = Calculation(
    title="Stellaris: what would turn its times",
    question="With which numbers of the stack and of the machines would Stellaris be as quick as synchronous PPO?",
    oracle=(
        "The first row is that of `stellaris_82k` without starts, whose report reads the times from what runs recorded"
        " where they were trained. Shorter calls make no run longer."
    ),
    can_claim=(
        "Timing of stored runs under other assumptions, judged where actors wait, without an interval: 30 µs is a"
        " number of ours, and less would turn the last verdict. A run's gradients stay what they were: with other times"
        " they would have met other versions, so weights are not what such a place would have made. Trained again with"
        " quicker or slower calls (`stellaris_ends`), runs whose actors wait take what is said here within 3 %. Where"
        " nobody waits they take up to a quarter less: there these are upper bounds."
    ),
    compute=compute,
    beside="Stellaris (slides): 31 % less cost than PPO, by one hourly rate on both sides, so 0.69 of its time.",
)
