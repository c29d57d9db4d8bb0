"""A profile from an account's measurements: the measured numbers, and all others unchanged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cloud.timing.calibration.account import CallSample
from cloud.timing.calibration.figures import fit, of, quantity
from cloud.timing.numbers.profile import Functions, NetworkProfile, Profile
from cloud.timing.numbers.quantity import Quantity
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.draws import Draws
from cloud.timing.simulation.speed import Speeds

_NO_CHANCE = Draws(0.0, 0.0, 1.0, 1.0, 1.0)
_NS = 1e9


@dataclass(frozen=True)
class CalibratedAccount:
    """Facts about the account. `emulated`: it is an account of the local emulator, so it says nothing about AWS."""

    region: str
    concurrent: int
    emulated: bool


def account_profile(
    samples: Sequence[CallSample], account: CalibratedAccount, base: Profile, stack: Stack, today: date
) -> Profile:
    """Return `base` with the measured numbers; `stack` says how fast the same work is on its reference core."""
    assert isinstance(base.actors, Functions)
    kind = "an emulated account" if account.emulated else "an account"
    where = f"{len(samples)} calls in {kind} in {account.region}, {today.day} {today:%B %Y}"
    ratios = _core_ratios(samples, base, stack)
    core = quantity(ratios, f"the stack's time over theirs, at {_sizes(samples)} MB; {where}")
    starts = [max(1e-3, extra_s) for extra_s in _start_extras_s(samples)]
    fresh_s = (stack.import_s.value + stack.first_environment_s.value) / core.value
    actors = base.actors.model_copy(
        update={
            "cold_s": quantity(
                [max(0.0, start_s - fresh_s) for start_s in starts],
                f"what a first call takes beyond a warm one, less the stack's imports; {where}",
            ),
            "cold_sigma": _sigma(starts, f"of {len(starts)} cold starts; {where}"),
            "concurrent": of(
                account.concurrent,
                account.concurrent,
                account.concurrent,
                f"the account's quota; {where}",
                "measured",
            ),
        }
    )
    return base.model_copy(
        update={
            "title": f"AWS Lambda{', emulated' if account.emulated else ''}, measured on {today.isoformat()}",
            "words": _words(account),
            "region": account.region,
            "core_ratio": core,
            "actors": actors,
            "network": _network(samples, base.network, where),
            "chance": base.chance.model_copy(
                update={"straggler_sigma": _sigma(_evened(samples), f"of warm calls of equal work; {where}")}
            ),
        }
    )


def billed_beside_s(samples: Sequence[CallSample]) -> float:
    """Return the median of what a warm call is billed beyond its body's own time."""
    return statistics.median(sample.beside_billed_s for sample in samples if not sample.cold)


def _words(account: CalibratedAccount) -> str:
    if account.emulated:
        return (
            "Functions of the emulated account on this machine: their starts and transfers are this machine's,"
            " and their speed by memory is declared."
        )
    return (
        f"Functions of AWS Lambda as they were measured in your account in {account.region}: starts, speed and"
        " transfers; failures and what machines cost are assumed as elsewhere."
    )


def _sizes(samples: Sequence[CallSample]) -> str:
    return ", ".join(f"{size:,}" for size in sorted({sample.memory_mb for sample in samples}))


def _core_ratios(samples: Sequence[CallSample], base: Profile, stack: Stack) -> list[float]:
    """Return, for each long warm call, its time on the stack's reference core, with its share by memory, over the
    time billed for it by the provider's own clock.
    """
    like_the_stack = base.core_ratio.model_copy(update={"value": 1.0, "low": 1.0, "high": 1.0})
    speeds = Speeds(base.model_copy(update={"core_ratio": like_the_stack}), stack)
    most = max(sample.work.steps for sample in samples)
    return [
        speeds.run_ns(sample.work, _NO_CHANCE) / _NS / sample.usage.billed_s
        for sample in samples
        if not sample.cold and sample.work.steps == most and sample.usage.billed_s
    ]


def _start_extras_s(samples: Sequence[CallSample]) -> list[float]:
    """Return how much longer each first call took than the median warm one of the same size and work."""
    extras = []
    for one in samples:
        if one.cold:
            warm = [
                other.out_s
                for other in samples
                if not other.cold and (other.memory_mb, other.work.steps) == (one.memory_mb, one.work.steps)
            ]
            if warm:
                extras.append(one.out_s - statistics.median(warm))
    return extras


def _network(samples: Sequence[CallSample], base: NetworkProfile, where: str) -> NetworkProfile:
    """Return the time of each byte on the actor's line, and of a call without bytes; size by size."""
    fits = []
    for size in sorted({sample.memory_mb for sample in samples}):
        warm = [sample for sample in samples if sample.memory_mb == size and not sample.cold]
        rows = [(1.0, (sample.work.bytes_in + sample.work.bytes_out) * 8e-6) for sample in warm]
        fits.append(fit(rows, [max(1e-6, sample.usage.transfer_s) for sample in warm]))
    source = f"warm calls with short and long fragments, regression; {where}"
    return base.model_copy(
        update={
            "round_trip_s": quantity([fixed_s for fixed_s, _ in fits], source),
            "actor_mbit_per_s": quantity([1.0 / max(per_mbit_s, 1e-9) for _, per_mbit_s in fits], source),
        }
    )


def _evened(samples: Sequence[CallSample]) -> list[float]:
    """Return run times of warm calls over the median one of the same size and work."""
    groups: dict[tuple[int, int], list[float]] = {}
    for sample in samples:
        if not sample.cold:
            groups.setdefault((sample.memory_mb, sample.work.steps), []).append(sample.usage.run_s)
    return [time_s / statistics.median(times) for times in groups.values() for time_s in times]


def _sigma(values: Sequence[float], source: str) -> Quantity:
    """Return the log-normal spread from the middle half, so that disturbed calls do not count."""
    if len(values) < 4:
        sigma = 0.0
    else:
        lower, _, upper = statistics.quantiles(values, n=4)
        # Of a normal distribution the middle half is 1.349 deviations wide.
        sigma = math.log(upper / lower) / 1.349 if lower > 0 else 0.0
    return of(sigma, sigma / 2, sigma * 2, source, "measured")
