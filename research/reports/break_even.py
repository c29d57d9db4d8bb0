"""What would turn a verdict about learners that compute gradients: quicker calls, slower samples, cheaper functions.

Stored runs of both sides are timed again at the place where ours were trained, with one number changed. As in draws of
the clouds' numbers, each version is made of the gradients that it was made of there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloud.money.billing.retiming import RetimedRun, retime
from cloud.timing.numbers.quantity import Quantity
from cloud.timing.place import TimingPlace
from cloud.timing.simulation.speed import Speeds
from cloud.timing.virtual_time import NS
from research.pricing_targets import place_of
from research.reports.run_cost import CLOUD_SEED, PricedRun

_SETTLING_ROUNDS = 12
_GRADIENT_SHARES = (0.0, 0.25, 0.5, 1.0)
_SAMPLE_US = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_COORDINATOR = "m4.large"
_OVERHEAD = "paper.vm_overhead"
_HOUR_S = 3600.0
_HOURS_A_MONTH = 720


def time_sentence(ours: PricedRun, theirs: PricedRun, target: str, goals: Sequence[float]) -> str:
    """Say how long a gradient, and learning from a sample, would take for each goal of the ratio of a round's seconds.
    Empty unless ours computed gradients on a machine with a GPU.
    """
    place = place_of(target, "no_startup")
    if not (_gradients(ours) and place.stack.update.gradient_ms and place.setting(CLOUD_SEED).learner_gpu):
        return ""
    return f"{_call_sentence(ours, theirs, place)} {_sample_sentence(ours, theirs, place, goals)}"


def price_sentence(ours: PricedRun, theirs: PricedRun, target: str) -> str:
    """Say below which price of an hour of computing learners as functions with a GPU would make ours cheaper, if a
    small machine coordinates. Empty unless ours computed gradients on a machine.
    """
    place = place_of(target, "no_startup")
    if not _gradients(ours) or place.options.learner != "server":
        return ""
    mine, other = (one.cost(target, one.rounds, "no_startup") for one in (ours, theirs))
    gradient_s = sum(
        call.run_s for one in _timed(ours, place) for call in one.done if call.kind == "gradient"
    )
    coordinator_usd = mine.seconds / _HOUR_S * _hourly_usd(place, _COORDINATOR)
    left_usd = other.usd - mine.usd * mine.rollouts_share - coordinator_usd
    how = f"If learners were functions that are paid while they compute, and a {_COORDINATOR} coordinated, it"
    if left_usd <= 0:
        return f"{how} would be cheaper at no price of them."
    return (
        f"{how} would be cheaper below ${left_usd / gradient_s * _HOUR_S:.2f} an hour of computing; the"
        f" {shared_machines(place)}."
    )


def shared_machines(place: TimingPlace) -> str:
    """Return what all machines cost an hour that the place's learners share."""
    count, sharers = place.options.learner_machines, place.options.learner_lanes
    price = f"${count * _hourly_usd(place, place.machine):.2f}"
    if count == 1:
        return f"{place.machine} that {sharers} share costs {price}"
    return f"{count} {place.machine} that {sharers} share cost {price}"


def _call_sentence(ours: PricedRun, theirs: PricedRun, place: TimingPlace) -> str:
    update = place.stack.update
    assert update.gradient_ms is not None
    usual_ms = update.gradient_ms.value
    places = [
        with_update(place, gradient_ms=exactly(update.gradient_ms, share * usual_ms))
        for share in _GRADIENT_SHARES
    ]
    ratios = [usual_round_s(ours, one) / usual_round_s(theirs, place) for one in places]
    alone_ms = [_alone_ms(ours, one) for one in places]
    now = f"{alone_ms[-1]:.0f} ms that it takes alone on its GPU"
    if ratios[0] < 1.0 < ratios[-1]:
        return f"A gradient of {np.interp(1.0, ratios, alone_ms):.0f} ms in place of the {now} would make it as quick."
    return (
        f"Calls for gradients that take nothing beside reading and samples, {alone_ms[0]:.0f} ms in place of the {now},"
        f" would make it {ratios[0]:.2f}."
    )


def _sample_sentence(ours: PricedRun, theirs: PricedRun, place: TimingPlace, goals: Sequence[float]) -> str:
    gpu = place.stack.update.gpu_mlp
    ratios = []
    for sample_us in _SAMPLE_US:
        slower = gpu.model_copy(update={"per_sample_us": exactly(gpu.per_sample_us, sample_us)})
        changed = with_update(place, gpu_mlp=slower)
        ratios.append(usual_round_s(ours, changed) / usual_round_s(theirs, changed))
    turns = [
        f"{goal:g} at {np.interp(-goal, [-ratio for ratio in ratios], _SAMPLE_US):.0f} µs"
        if goal >= min(ratios)
        else f"{goal:g} not even at {_SAMPLE_US[-1]:.0f} µs"
        for goal in goals
    ]
    core = place.stack.update.mlp
    macs = max(task.work(1).macs for schedule in ours.schedules(ours.rounds) for task in schedule.tasks)
    core_us, gpu_us = (
        one.per_sample_us.value + macs * 1e-6 * one.us_per_million_macs.value for one in (core, gpu)
    )
    return (
        f"It turns where samples take the learners longer, on both sides: {', '.join(turns)} a sample. Here it is"
        f" {gpu_us:.1f} on the GPU; a core takes {core_us:.0f}."
    )


def _gradients(run: PricedRun) -> bool:
    """Whether it computed gradients on the learner's machine."""
    return any(
        (task.kind, task.where) == ("gradient", "learner")
        for schedule in run.schedules(run.rounds)
        for task in schedule.tasks
    )


def exactly(quantity: Quantity, value: float) -> Quantity:
    """Return the number without a range."""
    return quantity.model_copy(update={"value": value, "low": value, "high": value})


def with_update(place: TimingPlace, **changes: object) -> TimingPlace:
    """Return the place with these numbers of its stack's updates."""
    update = place.stack.update.model_copy(update=changes)
    return replace(place, stack=place.stack.model_copy(update={"update": update}))


def _timed(run: PricedRun, place: TimingPlace) -> list[RetimedRun]:
    return [retime(schedule, place, seed=CLOUD_SEED) for schedule in run.schedules(run.rounds)]


def usual_round_s(run: PricedRun, place: TimingPlace) -> float:
    """The seconds of a usual round: one after those that learn from what was sampled while machines started."""
    rounds = [report.total_s for part in _timed(run, place) for report in part.rounds]
    return float(np.mean(rounds[_SETTLING_ROUNDS:] or rounds))


def _alone_ms(run: PricedRun, place: TimingPlace) -> float:
    """How long a gradient takes that shares its GPU with no other."""
    speeds = Speeds(place.profile, place.stack, gpu=place.setting(CLOUD_SEED).learner_gpu)
    works = [
        task.work(1) for one in run.schedules(run.rounds) for task in one.tasks if task.kind == "gradient"
    ]
    return float(np.mean([speeds.update_ns(work) for work in works])) / NS * 1000.0


def _hourly_usd(place: TimingPlace, sku: str) -> float:
    """The price of an hour of a machine with its address and disk, as the cluster's own machines are priced."""
    region = place.options.region or place.profile.region
    beside = place.book.row(_OVERHEAD, "paper").price / _HOURS_A_MONTH
    return float(place.book.row(sku, region).price + beside)
