"""Failures as text for people: the error, where it happened, and a short traceback."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, NewType

from training.engine import memory_limit
from training.rl.algorithms.optimisation import BadLoss

if TYPE_CHECKING:
    from training.engine.messages import FaultCode

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
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {_place(frames[-1])}" if frames else ""
    out_of_memory = memory_limit.is_out_of_memory(error)
    lines = [out_of_memory_words() if out_of_memory else f"{_words_of(error)}{where}"]
    lines += [f"  {_place(frame)} in {frame.name}: {frame.line}" for frame in frames[-_FRAMES_SHOWN:]]
    if out_of_memory:
        return Failure("memory", "\n".join(lines))
    return Failure("numbers" if isinstance(error, BadLoss) else "error", "\n".join(lines))


def out_of_memory_words() -> str:
    """Return what a process that was refused memory says, and what to do."""
    allowed = memory_limit.allowed_bytes()
    may = f"the {allowed // memory_limit.MEGABYTE:,} MB that" if allowed else "what"
    return (
        f"It needs more memory than {may} its process may have. Ask for fewer steps or rows, a smaller minibatch or a"
        " smaller network, or have the operator allow more (STARLING_MAX_JOB_MEMORY_MB)."
    )


def _words_of(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}"
    if type(error).__name__ != _GPU_IS_FULL:
        return said
    wanted = re.search(r"Tried to allocate ([^.]*\.[^.]*)\.", said)
    return (
        "The GPU's memory is full"
        + (f" (torch asked for {wanted[1]} more)" if wanted else "")
        + ". Choose smaller minibatches, a smaller network or fewer learners that share it, or learn where a GPU has"
        " more or on a core."
    )


def _place(frame: traceback.FrameSummary) -> str:
    # The last parts name the file; what is before them is specific to this machine.
    return f"{'/'.join(PurePath(frame.filename).parts[-3:])}:{frame.lineno}"
