"""A program gets what a machine runs to join a job: the command with its token, and the package."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from webapp.connections.gateway.models import BoxToken
from webapp.connections.gateway.services import digest, new_token
from webapp.connections.gateway.store import DatabaseStore
from webapp.jobs.services import stop_job

pytestmark = pytest.mark.django_db


def test_the_command_holds_a_token_of_the_job_and_ends_with_it() -> None:
    user = make_user()
    project = make_project(user)
    job = make_job(project, user, make_spec(platform={"kind": "hosts", "machines": 2, "processes": 4}))
    mine = ApiCaller(user, ("jobs",))
    place = f"/projects/{project.slug}/jobs/{job.pk}/machines"
    made = mine.post(place)
    assert made.status_code == 201
    found = re.fullmatch(
        r"STARLING_RUN_TOKEN=(\d+)\.(\S+) \\\n  python -m cloud\.actor\.puller --gateway \S+ --processes 4",
        made.json()["command"],
    )
    assert found is not None
    token = BoxToken.objects.get(pk=found[1])
    assert (token.box_id, token.sha256, token.made_by) == (job.pk, digest(found[2]), user)
    package = mine.get(made.json()["package"])
    names = zipfile.ZipFile(io.BytesIO(package.content)).namelist()
    assert any(name.endswith("requirements.txt") for name in names)
    assert any(name.endswith("cloud/actor/puller.py") for name in names)

    stop_job(job=job, user=user)
    assert mine.post(place).status_code == 409
    assert BoxToken.objects.filter(box_id=job.pk).count() <= 1


def test_editors_list_and_end_the_tokens_of_a_job() -> None:
    user = make_user()
    project = make_project(user)
    job = make_job(project, user, make_spec(platform={"kind": "hosts", "machines": 2}))
    token = new_token(job_id=job.pk, user=user)
    new_token(job_id=job.pk)
    mine = ApiCaller(user, ("jobs",))
    place = f"/projects/{project.slug}/jobs/{job.pk}/machines/tokens"
    (listed,) = mine.get(place).json()["results"]
    assert (listed["id"], listed["made_by"]) == (int(token.partition(".")[0]), user.email)
    assert token.partition(".")[2] not in mine.get(place).content.decode()
    assert ApiCaller(user, ("read",))("DELETE", f"{place}/{listed['id']}").status_code == 403
    assert mine("DELETE", f"{place}/{listed['id']}").status_code == 204
    assert DatabaseStore().admitted(token) is None
    assert mine.get(place).json()["results"] == []
    assert mine("DELETE", f"{place}/{listed['id']}").status_code == 404


def test_a_job_that_runs_elsewhere_has_no_such_command() -> None:
    user = make_user()
    project = make_project(user)
    job = make_job(project, user)
    mine = ApiCaller(user)
    for method, path in (("POST", "machines"), ("GET", "machines/package")):
        refused = mine(method, f"/projects/{project.slug}/jobs/{job.pk}/{path}")
        assert refused.status_code == 404
        assert "your own machines" in refused.json()["why"]
