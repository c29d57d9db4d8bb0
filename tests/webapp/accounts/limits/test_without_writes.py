"""A disk on which nothing can be written: programs and links still read, and readiness says what fails."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests.factories import make_project, make_user
from tests.signed_in import signed_in
from tests.webapp.api_callers import ApiCaller
from tests.webapp.test_doors import DOORS, SIGNED_IN, Scene

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def read_only_database() -> Iterator[None]:
    """This process's connection refuses every write, as a full or read-only disk does."""
    off, on = (
        ("PRAGMA query_only = OFF", "PRAGMA query_only = ON")
        if connection.vendor == "sqlite"
        else (f"SET default_transaction_read_only = {word}" for word in ("off", "on"))
    )
    with connection.cursor() as cursor:
        cursor.execute(on)
        yield
        cursor.execute(off)


def _readiness() -> tuple[int, dict[str, Any]]:
    answer = Client().get("/readyz")
    return answer.status_code, json.loads(answer.content)


def test_readiness_tries_a_write(request: pytest.FixtureRequest) -> None:
    assert _readiness()[0] == 200
    request.getfixturevalue("read_only_database")
    status, parts = _readiness()
    assert (status, parts["ready"], parts["database"]) == (503, False, "cannot be written")


def test_readiness_names_a_data_folder_that_cannot_be_written(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path / "away"
    status, parts = _readiness()
    assert (status, parts["folder"]) == (503, f"cannot be written: {os.strerror(errno.ENOENT).lower()}")


def test_a_program_reads_while_nothing_can_be_written(request: pytest.FixtureRequest) -> None:
    owner = make_user()
    project = make_project(owner)
    program = ApiCaller(owner, project=project)
    request.getfixturevalue("read_only_database")
    assert program("get", f"/projects/{project.slug}/jobs").status_code == 200


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning")
def test_people_read_every_page_while_nothing_can_be_written(request: pytest.FixtureRequest) -> None:
    scene = Scene()
    owner = scene.mine["people"]["owner"]
    pages = [scene.address(name, scene.mine) for name, door in DOORS.items() if door.method == "get"]
    own = [reverse(name, kwargs=parameters) for name, parameters in SIGNED_IN.items()]
    readers = {page: signed_in(owner) for page in [*pages, *own]}
    request.getfixturevalue("read_only_database")
    for client in readers.values():
        client.raise_request_exception = False
    found = {page: client.get(page).status_code for page, client in readers.items()}
    assert {page: status for page, status in found.items() if status not in (200, 302, 404)} == {}
