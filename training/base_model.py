"""The base of all models of a spec: frozen, no extra fields, no infinite numbers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A part of a spec. The form is made from its fields: title, description, unit and limits are in the field's
    definition.

    `json_schema_extra` may hold `unit` (shown beside the field) and `advanced` (collapsed at first).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
