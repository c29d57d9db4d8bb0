"""The base of all models of a spec, frozen, without extra fields or infinite numbers, and the fields of its form."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

_Value = TypeVar("_Value")


class FrozenModel(BaseModel):
    """A part of a spec. The form is made from its fields, each a `setting`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def setting(
    default: _Value,
    title: str,
    description: str | None = None,
    *,
    unit: str | None = None,
    advanced: bool = False,
    follows: str | None = None,
    own: bool = False,
    **constraints: Any,
) -> _Value:
    """A field of a form, with pydantic's constraints. `unit` is shown beside it, `advanced` collapses it at first,
    `follows` names the field that decides it. `own`: another variant uses its name in another sense, so that its value
    is not kept when people switch variants.
    """
    hints = {"unit": unit, "advanced": advanced, "follows": follows, "own": own}
    extra: Any = {name: hint for name, hint in hints.items() if hint}
    field: _Value = Field(
        default, title=title, description=description, json_schema_extra=extra or None, **constraints
    )
    return field
