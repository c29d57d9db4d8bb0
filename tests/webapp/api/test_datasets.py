"""Data sets by the API: uploaded, looked at, chosen from and deleted, with the sentences of the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_project, make_user
from tests.members import add_member
from tests.webapp.api_callers import ApiCaller, Upload
from tests.webapp.data_tables import FLOWERS, ready, worker_reads
from webapp.datasets.models import DataSet

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_folder(settings: Any, tmp_path: Path) -> Path:
    settings.STARLING_DATA = tmp_path
    return tmp_path


def test_a_table_is_uploaded_chosen_from_and_named_in_specs() -> None:
    editor, project = make_user(), make_project()
    add_member(project, editor.email, "editor")
    mine = ApiCaller(editor, ("jobs",))
    sent = mine.post(f"/projects/{project.slug}/datasets", Upload("flowers.csv", FLOWERS.encode()))
    assert (sent.status_code, sent.json()["state"], sent.json()["name"]) == (202, "queued", "flowers")
    address = sent.headers["Location"]
    worker_reads(DataSet.objects.get())

    found = mine.get(address)
    assert found.json()["state"] == "choosing"
    assert found.json()["data"] == ""
    assert [(one["name"], one["type"]) for one in found.json()["table"]["columns"]] == [
        *(("length", "number"), ("width", "number"), ("colour", "text"), ("kind", "number")),
    ]
    assert mine.get(address, If_None_Match=found.headers["ETag"]).status_code == 304

    refused = mine("PUT", f"{address}/choice", {"target": "length", "leave_out": ["petals"]})
    assert refused.status_code == 422
    left_out, target = refused.json()["errors"]
    assert (left_out["path"], target["path"]) == ("leave_out", "target")
    assert "“petals”" in left_out["sentence"]
    assert "“length” holds fractions" in target["sentence"]
    assert mine("PUT", f"{address}/choice", {"target": "kind", "held_out_share": 2}).status_code == 422
    chosen = mine(
        "PUT", f"{address}/choice", {"target": "kind", "leave_out": ["colour"], "held_out_share": 0.1}
    )
    assert (chosen.status_code, chosen.json()["state"]) == (202, "queued")
    assert mine("PUT", f"{address}/choice", {"target": "kind"}).status_code == 409

    made = worker_reads(DataSet.objects.get())
    body = mine.get(address).json()
    assert (body["state"], body["data"], body["rows"], body["held_out_rows"]) == (
        "ready",
        made.manifest,
        108,
        12,
    )
    assert body["classes"] == [{"name": name, "rows": 54, "held_out_rows": 6} for name in "01"]
    assert body["choice"]["leave_out"] == ["colour"]
    (listed,) = mine.get(f"/projects/{project.slug}/datasets").json()["results"]
    assert (listed["id"], listed["features"], listed["target"]) == (made.pk, 2, "kind")

    assert mine("DELETE", address).status_code == 204
    assert mine.get(address).status_code == 404
    worker_reads(made)
    assert not DataSet.objects.exists()


def test_an_empty_file_and_a_name_that_is_too_long_are_refused() -> None:
    project = make_project()
    mine = ApiCaller(project.people.get())
    refused = mine.post(f"/projects/{project.slug}/datasets", Upload("t.csv", b""))
    assert refused.status_code in (409, 422)
    assert "empty" in refused.json()["detail"]
    assert not DataSet.objects.exists()


def test_lists_go_on_over_pages_and_hold_only_the_projects_own() -> None:
    project, other = make_project(), make_project()
    made = [ready(project, name=f"{name}.csv") for name in "abc"]
    ready(other)
    mine = ApiCaller(project.people.get(), ())
    first = mine.get(f"/projects/{project.slug}/datasets?limit=2").json()
    rest = mine.get(f"/projects/{project.slug}/datasets?limit=2&cursor={first['next']}").json()
    assert [one["name"] for one in first["results"] + rest["results"]] == ["c", "b", "a"]
    assert rest["next"] is None
    assert [one["data"] for one in first["results"] + rest["results"]] == [
        one.manifest for one in reversed(made)
    ]


def test_shipped_data_sets_are_named_by_their_keys() -> None:
    mine = ApiCaller(make_user(), ())
    shipped = {one["key"]: one["title"] for one in mine.get("/datasets").json()}
    assert shipped["digits"] == "Digits, 8 × 8"
