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


_FIRST_NAMES = {
    "env_steps": "progress",
    "total_env_steps": "total_progress",
    "dropped_trajectories": "dropped_contributions",
    "episode_return_mean": "training_score",
    "evaluation_return_mean": "evaluated_score",
    "return_mean": "evaluated_score",
}
"""Of figures that every kind of training has: as they are stored, and what they are called now."""


def first_name_of(name: str, source: str = "") -> Any:
    """The field of a response that repeats `name`, which was called so before, for one release."""
    return Field(validation_alias=source or name, deprecated=True, description=f"The first name of `{name}`.")


def _name_both_ways(document: Any) -> Any:
    """Add to a report or event the names of today, beside those under which it is stored."""
    named = {new: document[old] for old, new in _FIRST_NAMES.items() if old in document}
    report = {"report": _name_both_ways(document["report"])} if "report" in document else {}
    return document | named | report


StoredReport = Annotated[dict[str, Any], BeforeValidator(_name_both_ways)]
"""A report or an event of a run, with its figures' names of today and, for one release, their first ones."""


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
