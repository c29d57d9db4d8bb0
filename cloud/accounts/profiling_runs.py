"""The calls that profile memory: one after the other, on any platform behind a ledger."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, field_validator

from cloud.accounts.profiling import ProfiledCall
from cloud.money.pricing import Tariff
from cloud.timing.calibration.samples import initial, network_for, recipe
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.speed import speed_up
from cloud.workers.processes import bound_to_this_process
from training.base_model import FrozenModel
from training.calls.rollout import RolloutRequest
from training.engine.messages import Call, Outcome
from training.engine.ports import Platform
from training.engine.reports import Usage
from training.rl.environments.making import spaces_of
from training.rl.environments.model import EnvironmentSpec

DEADLINE_S = 60.0
LEAST_MB, MOST_MB = 128, 10_240
_WEIGHTS_WITHIN_S = 120.0
_WAIT_S = 5.0
_WHOLE_CORE_MB = 1769
_ROOT = Path(__file__).resolve().parents[2]


class ProfilingPlan(FrozenModel):
    """What is run: at each size the first call mostly starts a function, and the later ones are counted."""

    environment: EnvironmentSpec
    memory_mb: tuple[int, ...] = Field(min_length=1, max_length=8)
    environments_per_actor: int = Field(1, ge=1, le=256)
    steps: int = Field(1024, ge=64, le=16_384)
    calls: int = Field(4, ge=2, le=10)

    @field_validator("memory_mb")
    @classmethod
    def sizes_exist(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        wrong = [size for size in value if not LEAST_MB <= size <= MOST_MB]
        if wrong:
            raise ValueError(f"{wrong[0]:,} MB: a function has from {LEAST_MB} to {MOST_MB:,} MB")
        return tuple(sorted(set(value)))

    def call(self, memory_mb: int, number: int, *, name: str = "profile") -> Call:
        request = RolloutRequest(
            environment=self.environment,
            environments=self.environments_per_actor,
            steps=self.steps,
            slot=0,
            discount=0.99,
        )
        return Call(
            id=f"{name}-{memory_mb}-{number}",
            request=request,
            where="actor",
            round_no=number,
            seed=number,
            deadline_s=DEADLINE_S,
            memory_mb=memory_mb,
        )


def most_picodollars(plan: ProfilingPlan, tariff: Tariff) -> int:
    """Return what all calls together cannot exceed, if each is as slow as it may be."""
    return sum(tariff.worst_case(plan.call(size, 0)) for size in plan.memory_mb) * plan.calls


def likely_picodollars(plan: ProfilingPlan, tariff: Tariff, stack: Stack) -> int:
    """Return about what they will cost, from the software's measured speed on a whole core."""
    environment, copies = plan.environment.id, plan.environments_per_actor
    step_us = stack.environment_step_us.get(environment, stack.environment_step_fallback_us).value
    beside_us = stack.step_us.value + stack.inference.mlp.fixed_us.value
    further = 0.0 if stack.further_core_share is None else stack.further_core_share.value
    start_s = stack.import_s.value + stack.first_environment_s.value
    total = 0
    for size in plan.memory_mb:
        cores = size / _WHOLE_CORE_MB
        share = min(1.0, cores)
        quicker = speed_up(environment, copies, cores, step_us / 1e6, further)
        run_s = stack.call_ms.value / 1000 + plan.steps * copies * (step_us / quicker + beside_us) / 1e6
        for number in range(plan.calls):
            billed_s = (run_s + (start_s if number == 0 else 0.0)) / share
            call = plan.call(size, number)
            outcome = Outcome(
                call_id=call.id,
                status="done",
                started_s=0.0,
                finished_s=billed_s,
                usage=Usage(billed_s=billed_s, memory_mb=size),
            )
            total += sum(line.picodollars for line in tariff.lines(call, outcome) or ())
    return total


def measure_runs(
    plan: ProfilingPlan, platform: Platform, weights: bytes, *, name: str = "profile"
) -> Iterator[ProfiledCall]:
    """Yield the calls' results as they come back. A size whose call failed is not tried again.

    `name` goes before the ids of all calls.
    """
    ref = platform.publish(0, weights)
    for size in plan.memory_mb:
        slot_state: bytes | None = None
        for number in range(plan.calls):
            changes = {"weights": ref, "slot_state": slot_state}
            call = plan.call(size, number, name=name).model_copy(update=changes)
            outcome = _run(platform, call)
            slot_state = outcome.slot_state
            run = _read(size, outcome)
            yield run
            if run.failure:
                break


def _run(platform: Platform, call: Call) -> Outcome:
    """Return its outcome. It always comes: every platform gives up on a call at some time."""
    platform.submit(call)
    while True:
        outcome = platform.next(_WAIT_S)
        if outcome is not None:
            return outcome


def _read(memory_mb: int, outcome: Outcome) -> ProfiledCall:
    usage, cost = outcome.usage, outcome.cost_picodollars or 0
    if outcome.status != "done":
        return ProfiledCall(memory_mb, picodollars=cost, failure=outcome.reason or "it did not run")
    if usage.billed_s is None:
        return ProfiledCall(memory_mb, picodollars=cost, failure="the cloud did not say what it bills for it")
    return ProfiledCall(memory_mb, usage.steps, usage.billed_s, usage.startup_s, usage.cold_start, cost)


class NoWeights(RuntimeError):
    """The first weights could not be made; the text says why."""


def first_weights(environment: EnvironmentSpec) -> bytes:
    """Return what an actor needs to play it: the usual network of its kind, untrained.

    It is made by a separate process: drawing weights loads the learner's libraries, which the caller may not want to
    load.
    """
    program = [sys.executable, "-m", "cloud.accounts.profiling_runs", environment.model_dump_json()]
    try:
        done = subprocess.run(
            bound_to_this_process(program),
            cwd=_ROOT,
            capture_output=True,
            timeout=_WEIGHTS_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoWeights(f"the process that makes the first weights failed: {type(error).__name__}") from None
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it printed nothing"]
        raise NoWeights(complaint[0][:300])
    return done.stdout


def _make_weights(document: str) -> bytes:

    environment = EnvironmentSpec.model_validate_json(document)
    spaces = spaces_of(environment)
    network = network_for(spaces)
    return initial(recipe(spaces), network, spaces).actor_weights(network)


if __name__ == "__main__":
    sys.stdout.buffer.write(_make_weights(sys.argv[1]))
