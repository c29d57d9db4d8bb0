"""Schemas of drafts of jobs and of saved views of the list of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from webapp.api.problems import FieldError
from webapp.jobs.spec import JobSpec

_Control = Annotated[str, StringConstraints(max_length=200)]
_Typed = Annotated[str, StringConstraints(max_length=20_000)] | bool | list[str]
_Values = Annotated[
    dict[_Control, _Typed],
    Field(
        max_length=1_000,
        description="By control of the form, as in a draft, valid or not. They override the spec's."
        " `seeds` and `checkpoint` are what the form has beside it.",
    ),
]


class NewDraft(BaseModel):
    model_config = {"extra": "forbid"}

    spec: JobSpec | None = Field(None, description="Its fields; null: those of its starting point.")
    values: _Values = {}
    begun_with: Annotated[str, StringConstraints(max_length=300, pattern=r"^[^\x00]*$")] = Field(
        "",
        description="What its fields are compared with, as the form's address has it: preset=cartpole,"
        " clone=job_…, fork=job_…",
    )


class DraftChange(BaseModel):
    """A spec replaces all fields, values replace some."""

    model_config = {"extra": "forbid"}

    spec: JobSpec | None = None
    values: _Values = {}


class DraftShape(BaseModel):
    """A job's form as its person left it."""

    id: int
    title: str
    begun_with: str
    created_at: datetime
    saved_at: datetime
    url: str = Field(description="The form with it.")


class DraftDetail(DraftShape):
    values: dict[str, Any] = Field(description="The value of each control.")
    spec: dict[str, Any] | None = Field(
        description="The spec of its values; null if they are no valid spec yet."
    )
    problems: list[FieldError] = Field(description="What prevents a launch, by control.")


class NewView(BaseModel):
    """One of the same name is replaced."""

    model_config = {"extra": "forbid"}

    name: Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00]*$")]
    q: Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")] = Field(
        "", description="A search as above the list, such as state:failed cost>1."
    )
    sort: Annotated[str, StringConstraints(max_length=40, pattern=r"^-?[a-z_]*$")] = Field(
        "", description="A column's key; with a minus, the most first."
    )
    columns: list[Annotated[str, StringConstraints(max_length=40, pattern=r"^[a-z_]+$")]] = Field(
        [], max_length=50, description="Their keys; none: the usual ones."
    )


class ViewShape(BaseModel):
    """A saved view of the list of jobs."""

    id: int
    name: str
    q: str
    sort: str
    columns: list[str]
    url: str = Field(description="The list in this view.")
    created_at: datetime
