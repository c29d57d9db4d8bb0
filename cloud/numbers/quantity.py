"""Numbers that somebody can check, and files of them whose faults are told with file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from training.base_model import Frozen

Kind = Literal["measured", "paper", "documented", "assumed"]
Model = TypeVar("Model", bound=BaseModel)


class ProfileError(ValueError):
    """A file of numbers that does not exist or says something impossible; the message names file and line."""


class Quantity(Frozen):
    """What we use, how far it may be off, and where it is from. Its unit stands in the name of its field."""

    value: float = Field(ge=0, allow_inf_nan=False)
    low: float = Field(ge=0, allow_inf_nan=False)
    high: float = Field(ge=0, allow_inf_nan=False)
    source: str = Field(min_length=3)
    kind: Kind

    @model_validator(mode="after")
    def in_its_own_range(self) -> Quantity:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"value {self.value:g} is outside its range {self.low:g} to {self.high:g}")
        return self

    def at(self, quantile: float) -> float:
        """A number of the range: its low end at 0, the value at ½, its high end at 1, straight lines between."""
        if quantile < 0.5:
            return self.low + (self.value - self.low) * 2.0 * quantile
        return self.value + (self.high - self.value) * (2.0 * quantile - 1.0)


def quantities(model: BaseModel, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Quantity]:
    """All quantities in a model by where they stand."""
    found: dict[tuple[str, ...], Quantity] = {}
    for name, part in _parts_of(model):
        if isinstance(part, Quantity):
            found[*path, name] = part
        elif isinstance(part, BaseModel):
            found |= quantities(part, (*path, name))
        elif isinstance(part, dict):
            found |= {(*path, name, key): item for key, item in part.items() if isinstance(item, Quantity)}
    return found


def with_values(
    model: Model, value_of: Callable[[tuple[str, ...], Quantity], float], path: tuple[str, ...] = ()
) -> Model:
    """The same model with other values in its quantities, whose ranges and sources stay."""
    changes: dict[str, Any] = {}
    for name, part in _parts_of(model):
        if isinstance(part, Quantity):
            changes[name] = part.model_copy(update={"value": value_of((*path, name), part)})
        elif isinstance(part, BaseModel):
            changes[name] = with_values(part, value_of, (*path, name))
        elif isinstance(part, dict):
            changes[name] = {
                key: item.model_copy(update={"value": value_of((*path, name, key), item)})
                if isinstance(item, Quantity)
                else item
                for key, item in part.items()
            }
    return model.model_copy(update=changes)


def _parts_of(model: BaseModel) -> list[tuple[str, Any]]:
    return [(name, getattr(model, name)) for name in type(model).model_fields]


def read_toml(path: Path, model: type[Model]) -> Model:
    """A model from a TOML file. ProfileError begins with `file:line:`."""
    text = path.read_text(encoding="utf-8")
    try:
        return model.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise ProfileError(f"{path.name}:{found[1] if found else 1}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"]]
        message = first["msg"].removeprefix("Value error, ")
        raise ProfileError(f"{path.name}:{line_of(text, place)}: {'.'.join(place)}: {message}") from None


def line_of(text: str, place: list[str]) -> int:
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
        # A union's variant stands in the place where the file has nothing.
        depth = _depth(here, place)
        if depth > best_depth:
            best_line, best_depth = number, depth
    return best_line


def _depth(here: list[str], place: list[str]) -> int:
    """How many parts of `place` are met by all of `here`, in order; 0 when something of `here` is not on the way."""
    at = 0
    for part in here:
        while at < len(place) and place[at] != part:
            at += 1
        if at == len(place):
            return 0
        at += 1
    return at


def _parts(dotted: str) -> list[str]:
    return [quoted or bare for quoted, bare in re.findall(r'"([^"]+)"|([\w-]+)', dotted)]
