"""Failures as text for people: the error, where it happened, and a short traceback."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from training.messages import FaultCode

OtherCode = NewType("OtherCode", str)
"""A code that an actor sent, or that says how its answer was refused: any text."""
_FRAMES_SHOWN = 4
_GPU_IS_FULL = "OutOfMemoryError"
"""As torch calls it. It is not imported here, where most calls do without."""


@dataclass(frozen=True)
class Failure:
    """A call without a result. `code` is for programs, `reason` for people (its first line says everything)."""

    code: FaultCode | OtherCode
    reason: str


CANCELLED = Failure("cancelled", "cancelled")


def from_exception(error: BaseException) -> Failure:
    """Return `ValueError: message at training/functions/update.py:31`, then the last few frames, one a line."""
    from training.algorithms.optimisation import BadLoss

    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {_place(frames[-1])}" if frames else ""
    lines = [f"{_words_of(error)}{where}"]
    lines += [f"  {_place(frame)} in {frame.name}: {frame.line}" for frame in frames[-_FRAMES_SHOWN:]]
    return Failure("numbers" if isinstance(error, BadLoss) else "error", "\n".join(lines))


def _words_of(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}"
    if type(error).__name__ != _GPU_IS_FULL:
        return said
    asked = re.search(r"Tried to allocate ([^.]*\.[^.]*)\.", said)
    return (
        "The GPU's memory is full"
        + (f" (torch asked for {asked[1]} more)" if asked else "")
        + ". Choose smaller minibatches, a smaller network or fewer learners that share it, or learn where a GPU has"
        " more or on a core."
    )


def _place(frame: traceback.FrameSummary) -> str:
    # The last parts name the file; what is before them is specific to this machine.
    return f"{'/'.join(PurePath(frame.filename).parts[-3:])}:{frame.lineno}"
