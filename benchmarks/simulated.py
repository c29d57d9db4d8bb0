"""The simulated cloud against this machine: calibrated now, then five shapes of a job, really and in virtual time."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.rounds import shapes
from cloud.timing.calibration import run_parts
from cloud.timing.calibration.part import Parts
from cloud.timing.calibration.toml_writer import write_toml
from cloud.timing.numbers import stack as stacks
from rig.figures import Figure

_AT_MOST_PERCENT = 15.0
_PATIENCE_S = 180.0


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """How far median round times are from each other; `quick` measures little and is no figure."""
    effort = run_parts.QUICK if quick else run_parts.MachineEffort(repeats=7)
    found = run_parts.calibration(
        shapes.ENVIRONMENTS,
        effort,
        stacks.load("starling-stack"),
        datetime.now(UTC).date(),
        lambda line: None,
    )
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder:
        stack, profile = Path(folder) / "stack.toml", Path(folder) / "profile.toml"
        write_toml(stack, found.stack, "for this benchmark")
        write_toml(profile, found.profile, "for this benchmark")
        parts = Parts(lambda line: None, patience_s=0.0 if quick else _PATIENCE_S)
        for compared in shapes.compare(parts, stack, profile, rounds=3 if quick else None):
            yield Figure(
                f"{compared.shape.name}: round, simulated off measured",
                100.0 * abs(compared.ratio - 1.0),
                "%",
                at_most=_AT_MOST_PERCENT,
                data={
                    "ratio": compared.ratio,
                    "measured": compared.measured,
                    "simulated": compared.simulated,
                },
            )
    busy, background = max(parts.busy, found.busy), max(parts.background, found.background)
    yield Figure("cores that others kept busy meanwhile", 100.0 * busy, "%", data={"background": background})
