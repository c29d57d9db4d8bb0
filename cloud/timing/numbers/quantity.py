"""Numbers with a range and a source, and files of them whose faults are reported with file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from training.base_model import FrozenModel

Kind = Literal["measured", "paper", "documented", "assumed"]
Model = TypeVar("Model", bound=BaseModel)


class ProfileError(ValueError):
    """A file of numbers does not exist or has a fault; the message names file and line."""


class Quantity(FrozenModel):
    """A value, its range, and its source. Its unit is in the name of its field."""

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
        """Return the number at a quantile: the low end at 0, the value at ½, the high end at 1, linear between."""
        if quantile < 0.5:
            return self.low + (self.value - self.low) * 2.0 * quantile
        return self.value + (self.high - self.value) * (2.0 * quantile - 1.0)


def quantities(model: BaseModel, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Quantity]:
    """Return all quantities of a model by their paths."""
    by_path: dict[tuple[str, ...], Quantity] = {}
    for name, part in _parts_of(model):
        if isinstance(part, Quantity):
            by_path[*path, name] = part
        elif isinstance(part, BaseModel):
            by_path |= quantities(part, (*path, name))
        elif isinstance(part, dict):
            by_path |= {(*path, name, key): item for key, item in part.items() if isinstance(item, Quantity)}
    return by_path


def with_values(
    model: Model, value_of: Callable[[tuple[str, ...], Quantity], float], path: tuple[str, ...] = ()
) -> Model:
    """Return the same model with other values in its quantities, whose ranges and sources are kept."""
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
    """Return a model from a TOML file. Raises ProfileError, which begins with `file:line:`."""
    text = path.read_text(encoding="utf-8")
    try:
        return model.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+)", str(error))
        raise ProfileError(f"{path.name}:{match[1] if match else 1}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"]]
        message = first["msg"].removeprefix("Value error, ")
        raise ProfileError(f"{path.name}:{line_of(text, place)}: {'.'.join(place)}: {message}") from None


def line_of(text: str, place: list[str]) -> int:
    """Return the line where the deepest part of `place` in the file begins; the parser does not keep lines."""
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
        # A union's variant is in the path, but not in the file.
        depth = _depth(here, place)
        if depth > best_depth:
            best_line, best_depth = number, depth
    return best_line


def _depth(here: list[str], place: list[str]) -> int:
    """Return how many parts of `place` all of `here` matches, in order; 0 if some part of `here` is not on the path."""
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
