"""The results of a calibration, as text."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from cloud.timing.calibration.part import BUSY_LIMIT
from cloud.timing.calibration.run_parts import MachineCalibration
from cloud.timing.numbers.quantity import quantities


def table(found: MachineCalibration) -> Iterator[str]:
    """Yield a line for each number: its path, its value and its range."""
    for title, model in (("stack", found.stack), ("profile", found.profile)):
        yield from numbers(title, model)
    busy = f"{100 * found.busy:.1f} % of the cores (at most {100 * BUSY_LIMIT:.0f} %)"
    yield f"others busy {busy}, at lowest priority {100 * found.background:.1f} %"


def numbers(title: str, model: BaseModel) -> Iterator[str]:
    """Yield a heading, then a line for each number of one model; a number that was not measured has its kind beside
    it.
    """
    yield f"{title:<58} {'value':>10} {'low':>10} {'high':>10}"
    for place, quantity in quantities(model).items():
        kept = "" if quantity.kind == "measured" else f"  {quantity.kind}"
        yield f"  {'.'.join(place):<56} {quantity.value:>10.4g} {quantity.low:>10.4g} {quantity.high:>10.4g}{kept}"


def heading(found: MachineCalibration, *, quick: bool) -> str:
    """Return the first lines of a file."""
    lines = ["Measured by `manage.py calibrate`. Times hold on one whole core of that machine."]
    if quick:
        lines.append("A QUICK LOOK: everything was measured once or twice. These numbers are not reliable.")
    elif not found.good:
        lines.append(f"NO GOOD: other processes kept {100 * found.busy:.0f} % of the cores busy meanwhile.")
    return "\n".join(lines)
