"""Whole rounds of a small job, on this machine or on the simulated cloud with a calibration's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.money.pricing import Tariff
from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.calibration.parts.coordinator import NoCheckpoints
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from training.engine.ports import Control, Platform
from training.engine.reports import RoundReport
from training.engine.train import train
from training.spec import TrainingSpec

_PLENTY_PICODOLLARS = 10**18


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds of each round in the platform's time. `arguments`: the spec, and the files of a simulated
    machine if it is to be simulated.
    """
    spec = TrainingSpec.model_validate(arguments["training"])
    reports: list[RoundReport] = []
    platform = MeteredPlatform(
        _platform(arguments),
        MemoryLedger(_PLENTY_PICODOLLARS),
        Tariff(),
    )
    try:
        for event in train(spec, platform=platform, checkpoints=NoCheckpoints(), control=Control):
            if event.kind == "round":
                reports.append(event.report)
    finally:
        platform.close()
    return {
        name: [getattr(report, name) for report in reports] for name in ("total_s", "collect_s", "update_s")
    }


def _platform(arguments: dict[str, Any]) -> Platform:
    if "stack" not in arguments:
        return LocalPlatform(LocalOptions())
    return SimulatedPlatform(
        SimulatedOptions(),
        profile=profiles.read(Path(arguments["profile"])),
        stack=stacks.read(Path(arguments["stack"])),
    )
