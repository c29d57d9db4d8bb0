"""What all schemas of the API share: the bases of requests and responses, and types of their fields."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from webapp.money.amounts import exact_usd

Usd = Annotated[str, BeforeValidator(lambda amount: exact_usd(amount) if isinstance(amount, int) else amount)]
"""Exact US dollars as a decimal text, such as 0.0312. Whole numbers are picodollars."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00]*$")]
Address = Annotated[str, StringConstraints(min_length=3, max_length=254)]
"""Of e-mail."""
CheckpointName = Annotated[
    str,
    StringConstraints(max_length=200, pattern=r"^[^\x00]*$"),
    Field(description="Its name; empty: the best, else the newest."),
]


class Request(BaseModel):
    """A request. Fields that it does not have are refused."""

    model_config = ConfigDict(extra="forbid")


class Shape(BaseModel):
    """A response."""

    @classmethod
    def of(cls, source: object, **given: Any) -> Self:
        """The response with the fields that are given, and all others from attributes of `source`."""
        return cls.model_validate(_Overlaid(source, given), from_attributes=True)


class _Overlaid:
    def __init__(self, source: object, given: dict[str, Any]) -> None:
        self.__dict__.update(given)
        self.__source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__source, name)


class IntervalShape(BaseModel):
    """An estimate and the two ends of its 95 % interval: null where runs are too few, or too alike, to have one."""

    value: float
    low: float | None
    high: float | None
