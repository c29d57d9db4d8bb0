"""The base of everything a person can ask for: frozen, nothing extra, nothing infinite."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A part of a spec. Its fields are the form's: title, description, unit and limits are written at the field.

    `json_schema_extra` may hold `unit` (shown beside the field) and `advanced` (folded away at first).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
