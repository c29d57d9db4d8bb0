"""Measures an AWS account by calls: simultaneous cold starts, short calls, and calls with large answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cloud.accounts.profiling_runs import ProfilingPlan
from cloud.money.billing.work import CallRecord, work_of
from training.engine.messages import Call
from training.engine.ports import Platform
from training.engine.reports import Usage
from training.rl.environments.model import EnvironmentSpec

ENVIRONMENT = EnvironmentSpec(id="Humanoid-v5")
"""Its fragments are large enough to time the transfer, and its steps long enough to time a core."""
SIZES = (1024, 1769, 3008)
_WAIT_S = 5.0


class CalibrationFailed(RuntimeError):
    """A call failed without which the measurement is worthless; the text says why."""


@dataclass(frozen=True)
class AccountEffort:
    """How many calls at each size, and of how many steps."""

    cold: int = 4
    short: int = 6
    long: int = 4
    short_steps: int = 64
    long_steps: int = 1536

    def plan(self, sizes: tuple[int, ...]) -> ProfilingPlan:
        """Return a plan that costs at least as much, to show an upper bound beforehand."""
        return ProfilingPlan(
            environment=ENVIRONMENT,
            memory_mb=sizes,
            steps=self.long_steps,
            calls=min(10, self.cold + self.short + self.long),
        )


QUICK = AccountEffort(cold=2, short=3, long=2, long_steps=512)


@dataclass(frozen=True)
class CallSample:
    """One call: its work, its times, and whether it started its function."""

    work: CallRecord
    usage: Usage

    @property
    def memory_mb(self) -> int:
        return self.work.memory_mb

    @property
    def cold(self) -> bool:
        return self.usage.cold_start

    @property
    def out_s(self) -> float:
        """Seconds from sending it until its answer arrived."""
        return self.usage.startup_s + self.usage.run_s + self.usage.transfer_s

    @property
    def beside_billed_s(self) -> float:
        """Seconds billed beyond the body's own time and the start."""
        return (self.usage.billed_s or 0.0) - self.usage.run_s - (self.usage.startup_s if self.cold else 0.0)


def measure(
    platform: Platform,
    weights: bytes,
    effort: AccountEffort,
    sizes: tuple[int, ...] = SIZES,
    *,
    name: str = "calibrate",
    report: Callable[[str], None] = lambda line: None,
) -> list[CallSample]:
    """Return every call's sample. Raises NotMeasured once one fails: an unnoticed warm start would falsify all
    others.
    """
    ref = platform.publish(0, weights)
    samples: list[CallSample] = []
    for size in sizes:
        wanted = _calls(effort, size, name)
        for batch in wanted:
            for call in batch:
                platform.submit(call.model_copy(update={"weights": ref}))
            calls = {call.id: call for call in batch}
            while calls:
                samples.append(_landed(platform, calls))
        report(f"{size:,} MB: {sum(len(batch) for batch in wanted)} calls")
    return samples


def _calls(effort: AccountEffort, size: int, name: str) -> list[list[Call]]:
    """Return batches of calls: those that must start functions go out together, all others alone."""
    short = ProfilingPlan(environment=ENVIRONMENT, memory_mb=(size,), steps=effort.short_steps)
    long = ProfilingPlan(environment=ENVIRONMENT, memory_mb=(size,), steps=effort.long_steps)
    numbered = iter(range(1000))

    def one(plan: ProfilingPlan) -> Call:
        return plan.call(size, next(numbered), name=name)

    together = [one(short) for _ in range(effort.cold)]
    alone: Iterator[ProfilingPlan] = iter([short] * effort.short + [long] * effort.long)
    return [together, *([one(plan)] for plan in alone)]


def _landed(platform: Platform, calls: dict[str, Call]) -> CallSample:
    while True:
        outcome = platform.next(_WAIT_S)
        if outcome is not None:
            break
    call = calls.pop(outcome.call_id)
    if outcome.status != "done":
        raise CalibrationFailed(f"{call.memory_mb:,} MB: {outcome.reason or 'a call did not run'}")
    if outcome.usage.billed_s is None:
        raise CalibrationFailed(f"{call.memory_mb:,} MB: the cloud did not say what it bills for a call")
    return CallSample(work_of(call, outcome.usage), outcome.usage)
