"""Runs one part of a calibration in its own process, so that no earlier caches or threads change its times."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud.timing.calibration import machine

ROOT = Path(__file__).resolve().parents[3]
# Beyond this share of all cores used by others, figures are not reliable.
BUSY_LIMIT = 0.10
_LIMIT_S = 400.0
_TRIES = 2


class PartFailed(RuntimeError):
    """A part ended without figures; the message holds its last output."""


def run(name: str, arguments: dict[str, Any], *, gpu: bool = False) -> dict[str, Any]:
    """Return what `parts.NAME`, or a module named in full, measured with one thread, and without a GPU unless `gpu`."""
    variables = {**os.environ}
    variables |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    if not gpu:
        variables["CUDA_VISIBLE_DEVICES"] = ""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "cloud.timing.calibration.part", name, json.dumps(arguments)],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise PartFailed(f"measuring {name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


@dataclass(frozen=True)
class PartRun:
    """A part to run: its title, its name and its arguments."""

    what: str
    part: str
    arguments: dict[str, Any]


def concatenate(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Return two measurements of one part as one: lists are concatenated, all else is kept."""
    joined = dict(earlier)
    for name, value in later.items():
        if isinstance(value, dict):
            joined[name] = concatenate(earlier[name], value)
        elif isinstance(value, list):
            joined[name] = earlier[name] + value
    return joined


class Parts:
    """Runs parts one after the other, each while other processes are quiet, as far as time permits.

    A part that was disturbed is run again, and the quieter of its two runs counts. `busy` and `background` are the
    shares of the cores that others used during the worst part that counted.
    """

    def __init__(self, report: Callable[[str], None], patience_s: float) -> None:
        self.busy = 0.0
        self.background = 0.0
        self._report = report
        self._patience_until_s = time.monotonic() + patience_s

    def visit(self, plan: Mapping[str, PartRun], visits: int) -> dict[str, dict[str, Any]]:
        """Run all of `plan`, `visits` times: a machine that is slow for a minute then affects a little of everything.

        The measurements of several visits are concatenated.
        """
        results: dict[str, dict[str, Any]] = {}
        turns = [item for _ in range(visits) for item in plan.items()]
        for number, (key, part_run) in enumerate(turns, start=1):
            measured = self.run(
                f"{number} of {len(turns)}: {part_run.what}", part_run.part, part_run.arguments
            )
            results[key] = concatenate(results[key], measured) if key in results else measured
        return results

    def run(self, what: str, name: str, arguments: dict[str, Any], *, gpu: bool = False) -> dict[str, Any]:
        """Return what `parts.NAME` measured; it is announced as `what`."""
        self._report(what)
        tries: list[tuple[float, float, dict[str, Any]]] = []
        while not tries or (tries[-1][0] > BUSY_LIMIT and self._has_patience and len(tries) < _TRIES):
            self._wait_until_quiet()
            watch = machine.OtherLoad()
            measured = run(name, arguments, gpu=gpu)
            tries.append((*watch.shares(), measured))
        busy, background, measured = min(tries, key=lambda attempt: attempt[0])
        if len(tries) > 1:
            self._report(
                f"  {len(tries)} times, as others were busy; {100 * busy:.0f} % of the cores in the best"
            )
        if busy > self.busy:
            self.busy, self.background = busy, background
        return measured

    @property
    def _has_patience(self) -> bool:
        return time.monotonic() < self._patience_until_s

    def _wait_until_quiet(self) -> None:
        while self._has_patience:
            watch = machine.OtherLoad()
            time.sleep(1.0)
            if watch.shares()[0] <= BUSY_LIMIT:
                return


if __name__ == "__main__":
    module = sys.argv[1] if "." in sys.argv[1] else f"cloud.timing.calibration.parts.{sys.argv[1]}"
    part = importlib.import_module(module)
    print(json.dumps(part.measure(json.loads(sys.argv[2]))))
