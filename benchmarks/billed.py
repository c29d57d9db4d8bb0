"""Environment seconds that the simulated Lambda bills for a million steps: stepped by Gymnasium, and natively.

Both are measured again as a calibration measures an actor, in turns, and timed by the clouds' own arithmetic.
"""

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks import peers
from cloud.money.billing.work import CallRecord
from cloud.timing.calibration.figures import quantity
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.simulation.draws import Draws
from cloud.timing.simulation.speed import Speeds
from rig.figures import Figure

_GOALS = {"Hopper-v5": 0.25, "HalfCheetah-v5": 0.15}
_OTHERS = ("Walker2d-v5", "Humanoid-v5", "CartPole-v1", "Acrobot-v1", "Pendulum-v1")
_LENGTHS = (32, 256)
_MEMORY_MB = 1769
_CALM = Draws(start_normal=0.0, straggler_normal=0.0, failure=1.0, failure_at=1.0, late=1.0)


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """All environments of the stacks that are stepped natively; `quick` takes a turn each."""
    for environment in (*_GOALS, *_OTHERS):
        options = {"environment": environment, "lengths": _LENGTHS, "repeats": 3 if quick else 6}
        before_s: list[float] = []
        after_s: list[float] = []
        for _ in range(1 if quick else 5):
            for native, found in ((False, before_s), (True, after_s)):
                measured = peers.run("actor_steps", threads=1, native=native, **options)
                found.append(_billed_s(environment, measured))
        less = statistics.median(
            1.0 - after / before for before, after in zip(before_s, after_s, strict=True)
        )
        yield Figure(
            f"{environment}: environment seconds billed for 1 M steps, less by",
            less,
            "",
            at_least=_GOALS.get(environment),
            data={"before_s": statistics.median(before_s), "after_s": statistics.median(after_s)},
        )


def _billed_s(environment: str, measured: dict[str, Any]) -> float:
    """Return the environment's part of the billed time of a million steps on one core of the simulated Lambda."""
    step_us = quantity([_step_us(*turns) for turns in measured["turns"]], "this benchmark")
    stack = stacks.load("starling-stack").model_copy(
        update={
            "environment_step_us": {environment: step_us},
            "step_us": quantity([0.0], "counted as the environment's, as real actors count it"),
        }
    )
    work = CallRecord("r-a1", "r", "rollout", "actor", stepped=environment, steps=10**6, memory_mb=_MEMORY_MB)
    speeds = Speeds(profiles.load("lambda"), stack)
    return speeds.shares_of_run(work)[0] * speeds.run_ns(work, _CALM) / 1e9


def _step_us(short: dict[str, float], long: dict[str, float]) -> float:
    """Return what a step takes in an actor's loop beside the policy: calls of two lengths cancel a call's own time."""
    beside_us = [turn["body_us"] - turn["inference_us"] for turn in (short, long)]
    return (beside_us[1] - beside_us[0]) / (long["steps"] - short["steps"])
