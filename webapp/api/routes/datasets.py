"""Data sets: tables that are uploaded, what is in them, what is learned of them; and those shipped with Starling."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from django.urls import reverse
from ninja import File, Form, UploadedFile
from pydantic import AliasPath, BaseModel, Field

from training.data.readers.choice import Choice
from training.data.readers.survey import TableSurvey
from training.data.shipped import SHIPPED
from webapp.accounts.models import Project
from webapp.api.auth import Token
from webapp.api.paging import Cursor, Limit, Page, RowId, newest_first
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.schemas import Shape
from webapp.datasets import queries, services
from webapp.datasets.models import DataSet
from webapp.datasets.text import status_of

router = ApiRouter(tags=["data sets"])
_ALL = "/projects/{slug}/datasets"
_ONE = f"{_ALL}/{{data_set_id}}"
_File = Annotated[
    UploadedFile, File(description="A table as CSV, packed with gzip or not, or NPZ, of at most 200 MB.")
]
_Name = Annotated[
    str,
    Form(
        max_length=services.NAME_LETTERS,
        pattern=r"^[^\x00]*$",
        description="Its name; empty: that of the file.",
    ),
]


class ClassCount(BaseModel):
    """A class of the target, and in how many rows it is."""

    name: str
    rows: int
    held_out_rows: int


class DataSetShape(Shape):
    """An uploaded table, and the data set that was made of it."""

    id: int
    name: str
    file: str = Field(validation_alias="file_name")
    bytes_uploaded: int = Field(validation_alias="byte_count")
    state: Literal["queued", "reading", "choosing", "ready", "failed"]
    sentence: str = Field(description="What the state means now, or what is wrong.")
    data: str = Field(
        validation_alias="manifest",
        description="Its name in specs, as training.data; empty until it is ready.",
    )
    uploaded_by: str = Field(validation_alias=AliasPath("uploaded_by", "email"))
    uploaded_at: datetime
    rows: int | None = Field(description="Rows to learn from; null until it is ready.")
    held_out_rows: int | None
    features: int | None
    target: str
    classes: list[ClassCount]


class DataSetResult(DataSetShape):
    """With what is in the table, and what was chosen."""

    table: TableSurvey | None = Field(description="Null until it is read.")
    choice: Choice | None


class ShippedShape(Shape):
    """A data set that needs no upload. `key` is its name in specs, as training.data."""

    key: str
    title: str
    words: str


@router.get(_ALL, summary="Data sets of the project")
def list_data_sets(project: ViewersProject, cursor: Cursor = "", limit: Limit = 50) -> Page[DataSetShape]:
    """Newest first."""
    rows = queries.data_sets_of(project).defer("survey")
    return newest_first(rows, "uploaded_at", cursor, limit, _shape)


@router.post(_ALL, auth=Token("jobs"), response=202, summary="Upload a table")
def upload_data_set(
    project: EditorsProject, person: Person, response: HttpResponse, file: _File, name: _Name = ""
) -> DataSetShape:
    """As multipart/form-data, with the table as `file`. The worker reads it: poll Location until its state is choosing,
    then choose its target."""
    taken: dict[str, Any] = {"file_name": file.name or "table", "file": file.file, "size": file.size or 0}
    made = services.accept_file(project=project, user=person, name=name, **taken)
    response["Location"] = _address(project, made)
    return _shape(made)


@router.get(_ONE, response=(200, 304), summary="One data set, with its columns")
def get_data_set(project: ViewersProject, data_set_id: RowId) -> DataSetResult:
    data_set = queries.data_set_in(project, data_set_id)
    return DataSetResult.of(
        data_set,
        **_facts(data_set),
        table=None if data_set.survey is None else TableSurvey.model_validate(data_set.survey),
        choice=None if data_set.choice is None else Choice.model_validate(data_set.choice),
    )


@router.put(f"{_ONE}/choice", auth=Token("jobs"), response=202, summary="Choose what is learned of a table")
def choose_data_set_columns(
    project: EditorsProject, response: HttpResponse, data_set_id: RowId, choice: Choice
) -> DataSetShape:
    """Its target, what is left out, and how many rows are held out. The worker makes the data set: poll Location until
    its state is ready."""
    made = services.choose(data_set=queries.data_set_in(project, data_set_id), choice=choice)
    response["Location"] = _address(project, made)
    return _shape(made)


@router.delete(_ONE, auth=Token("jobs"), response=204, summary="Delete a data set")
def delete_data_set(project: EditorsProject, data_set_id: RowId) -> None:
    """Jobs that learned from it stay, and so does what they cost. Refused while a job that has not ended needs it."""
    services.delete(data_set=queries.data_set_to_delete(project, data_set_id))


@router.get("/datasets", summary="Data sets shipped with Starling")
def list_shipped_data_sets() -> list[ShippedShape]:
    return [ShippedShape.of(shipped) for shipped in SHIPPED.values()]


def _address(project: Project, data_set: DataSet) -> str:
    return reverse("api_v1:get_data_set", args=[project.slug, data_set.pk])


def _shape(data_set: DataSet) -> DataSetShape:
    return DataSetShape.of(data_set, **_facts(data_set))


def _facts(data_set: DataSet) -> dict[str, object]:
    """The fields that are known once its shards are stored."""
    facts = data_set.facts
    counts = zip(
        *(facts.get(name, ()) for name in ("classes", "class_counts", "held_out_class_counts")), strict=True
    )
    return {
        "sentence": status_of(data_set).sentence,
        "rows": facts.get("rows"),
        "held_out_rows": facts.get("held_out_rows"),
        "features": facts.get("width"),
        "target": facts.get("target", ""),
        "classes": [ClassCount(name=name, rows=rows, held_out_rows=out) for name, rows, out in counts],
    }
