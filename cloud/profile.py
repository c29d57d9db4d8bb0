"""What a cloud takes for things: start-up, work, ways and failures, each number with its range and source.

A profile is one TOML file in `cloud/profiles`. Every number there is a table
`{ value, low, high, source, kind }`; its unit stands in its name.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from training.frozen import Frozen

PROFILES = Path(__file__).resolve().parent / "profiles"


class ProfileError(ValueError):
    """A profile that does not exist or says something impossible; the message names file and line."""


class Quantity(Frozen):
    """A number somebody can check: what we use, how far it may be off, where it is from."""

    value: float = Field(ge=0)
    low: float = Field(ge=0)
    high: float = Field(ge=0)
    source: str = Field(min_length=3)
    kind: Literal["measured", "paper", "documented", "assumed"]

    @model_validator(mode="after")
    def in_its_own_range(self) -> Quantity:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"value {self.value:g} is outside its range {self.low:g} to {self.high:g}")
        return self


class Start(Frozen):
    """Starting a function: cold is log-normal around its median and never above the cap, warm is a constant."""

    cold_s: Quantity
    cold_sigma: Quantity
    cold_cap_s: Quantity
    warm_s: Quantity
    keep_warm_s: Quantity


class Work(Frozen):
    """Time by work done, on one whole core of the machine where it was measured."""

    environment_step_us: dict[str, Quantity]
    environment_step_fallback_us: Quantity
    inference_us: dict[str, Quantity]
    inference_fallback_us: Quantity
    core_ratio: Quantity
    whole_core_mb: Quantity
    straggler_sigma: Quantity


class Network(Frozen):
    round_trip_s: Quantity
    function_mbit_per_s: Quantity
    learner_mbit_per_s: Quantity


class Faults(Frozen):
    failure_share: Quantity
    late_share: Quantity
    late_s: Quantity


class Learner(Frozen):
    server_start_s: Quantity
    minibatch_ms: Quantity


class Account(Frozen):
    concurrent_functions: Quantity


class Profile(Frozen):
    """Everything a simulated cloud needs to know about time. Prices are elsewhere."""

    title: str
    start: Start
    work: Work
    network: Network
    faults: Faults
    learner: Learner
    account: Account


def names() -> list[str]:
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


@cache
def load(name: str) -> Profile:
    """A profile that comes with Starling, by name."""
    if name not in names():
        raise ProfileError(f"there is no profile named {name!r}; there are {', '.join(names())}")
    return read(PROFILES / f"{name}.toml")


def read(path: Path) -> Profile:
    """A profile from any file. ProfileError begins with `file:line:`."""
    text = path.read_text(encoding="utf-8")
    try:
        return Profile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise ProfileError(f"{path.name}:{found[1] if found else 1}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"]]
        message = first["msg"].removeprefix("Value error, ")
        raise ProfileError(f"{path.name}:{_line_of(text, place)}: {'.'.join(place)}: {message}") from None


def _line_of(text: str, place: list[str]) -> int:
    """The line where the deepest part of `place` that is written down begins; the parser does not keep lines."""
    best_line, best_depth = 1, 0
    section: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        key = re.match(r"\s*([\w.\"-]+)\s*=", line)
        if header:
            section = here = _parts(header[1])
        elif key:
            here = [*section, *_parts(key[1])]
        else:
            continue
        if here == place[: len(here)] and len(here) > best_depth:
            best_line, best_depth = number, len(here)
    return best_line


def _parts(dotted: str) -> list[str]:
    return [quoted or bare for quoted, bare in re.findall(r'"([^"]+)"|([\w-]+)', dotted)]
