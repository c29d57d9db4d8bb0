"""The transfer to a worker process and back: hand-over, fixed time, and bytes by one worker alone and by all at once.

Then real fragments on one worker alone and on all: cores that share caches and memory slow each other a little.
"""

from __future__ import annotations

import queue
import sys
import time
from typing import Any

from cloud.failures import Failure
from cloud.timing.calibration.samples import DEADLINE_S, Slot
from cloud.workers.execution import Execution
from cloud.workers.pool import WorkerPool
from training.calls.rollout import RolloutRequest
from training.engine.messages import Call
from training.functions.body import Result
from training.rl.environments.model import EnvironmentSpec

_ECHO = (sys.executable, "-m", "cloud.timing.calibration.echo")
_SIZES_BYTES = (1_000, 100_000, 1_000_000, 4_000_000)
_EACH_WORKER = 6
_FRAGMENT_STEPS = 256


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return transfer times, and seconds of fragments. `arguments`: workers, repeats, fragments, and their
    environment.
    """
    ways, crowds = [], []
    with_echo = _Pool(arguments["workers"], _ECHO)
    try:
        with_echo.run([_echo(n, 10) for n in range(2 * arguments["workers"])])
        for _ in range(arguments["repeats"]):
            ways += [_one(with_echo, size, there) for size in _SIZES_BYTES for there in (False, True)]
            crowds.append(_crowd_mbit_per_s(with_echo, arguments["workers"]))
    finally:
        with_echo.pool.close()
    return {"ways": ways, "crowd_mbit_per_s": crowds, **_fragments(arguments)}


class _Pool:
    """A pool whose executions can be waited for."""

    def __init__(self, workers: int, command: tuple[str, ...] | None = None) -> None:
        self._ended: queue.SimpleQueue[Execution] = queue.SimpleQueue()
        options = {} if command is None else {"command": command}
        self.pool = WorkerPool(workers, self._ended.put, **options)

    def run(self, calls: list[tuple[Call, bytes | None]]) -> list[Execution]:
        """Run all of `calls` at once until the last has ended; return them in the order of their ends."""
        for call, weights in calls:
            self.pool.submit(call, weights, DEADLINE_S)
        ended = [self._ended.get(timeout=DEADLINE_S) for _ in calls]
        for execution in ended:
            if isinstance(execution.result, Failure):
                raise RuntimeError(execution.result.reason)
        return ended


def _echo(number: int, bytes_back: int, bytes_there: int = 0) -> tuple[Call, None]:
    request = RolloutRequest(
        environment=EnvironmentSpec(id="CartPole-v1"), environments=1, steps=bytes_back, slot=0, discount=1.0
    )
    return (
        Call(
            id=f"echo-{number}",
            request=request,
            where="actor",
            round_no=1,
            seed=0,
            deadline_s=DEADLINE_S,
            memory_mb=128,
            inputs=(bytes(bytes_there),) if bytes_there else (),
        ),
        None,
    )


def _one(pool: _Pool, size: int, there: bool) -> dict[str, float]:
    execution = pool.run([_echo(0, 1, size) if there else _echo(0, size)])[0]
    return {"bytes": size, "waited_s": execution.waited_s, "transfer_s": execution.transfer_s}


def _crowd_mbit_per_s(pool: _Pool, workers: int) -> float:
    """Return the rate of large answers from all workers at once, which is the coordinator's limit."""
    size, calls = _SIZES_BYTES[-1], _EACH_WORKER * workers
    began_s = time.perf_counter()
    pool.run([_echo(n, size) for n in range(calls)])
    return size * calls * 8e-6 / (time.perf_counter() - began_s)


def _fragments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds of equal fragments, alone and with all workers busy, alternating."""
    workers = arguments["workers"]
    slots = [Slot(EnvironmentSpec(id=arguments["environment"])) for _ in range(workers)]
    pool = _Pool(workers)
    alone_s: list[float] = []
    together_s: list[float] = []
    try:
        # The first fragments make environments and reset them.
        _ran_s(pool, slots)
        for _ in range(arguments["fragments"]):
            alone_s += _ran_s(pool, slots[:1])
            together_s += _ran_s(pool, slots)
    finally:
        pool.pool.close()
    return {"alone_s": alone_s, "together_s": together_s}


def _ran_s(pool: _Pool, slots: list[Slot]) -> list[float]:
    """Return how long the next fragments of these slots ran, all begun at once."""
    calls: list[tuple[Call, bytes | None]] = []
    for number, slot in enumerate(slots):
        call, weights = slot.call(_FRAGMENT_STEPS)
        request = call.request.model_copy(update={"slot": number})
        calls.append((call.model_copy(update={"id": f"{number}-{slot.serial}", "request": request}), weights))
    ended = pool.run(calls)
    for execution in ended:
        if isinstance(execution.result, Result):
            slots[int(execution.call_id.split("-")[0])].slot_state = execution.result.slot_state
    return [execution.run_s for execution in ended]
