"""Schemas of choices for jobs: presets, environments, prices."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, Field

from webapp.api.schemas.jobs import Usd
from webapp.jobs.spec import JobSpec


class PresetShape(BaseModel):
    name: str
    title: str
    description: str
    spec: JobSpec


class EnvironmentShape(BaseModel):
    id: str
    family: str
    title: str
    description: str
    reference_return: float | None
    reference: str


class PriceShape(BaseModel):
    sku: str
    region: str
    unit: str
    usd: Usd | None = Field(description="US dollars for one unit; null: not known, never zero.")
    from_quantity: int
    valid_from: date | None
    valid_to: date | None
    as_of: date
    kind: str
    source: str
