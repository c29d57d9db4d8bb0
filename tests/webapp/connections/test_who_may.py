"""Who may do what with connections, and what jobs and other projects mean for them."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_connection, make_job, make_project
from tests.webapp.connections.connected import KEYS, SECRET, member, url, using
from webapp.connections import decrypt, queries, services, text
from webapp.connections.models import Connection, SealedSecret
from webapp.job_states import Observed
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db


def test_viewers_see_names_only(project: Any) -> None:
    connection = make_connection(project, name="The lab's account", secret=SECRET)
    Connection.objects.filter(pk=connection.pk).update(account_id="123456789012")
    viewer = member(project, "viewer")
    page = viewer.get(url(project)).content.decode()
    assert "The lab&#x27;s account" in page
    for hidden in ("123456789012", "eu-central-1", connection.pk, KEYS["access_key_id"]):
        assert hidden not in page
    assert viewer.get(url(project, connection.pk)).status_code == 403


def test_editors_test_and_cannot_change(project: Any, messages_sent: list[Any]) -> None:
    connection = make_connection(project)
    editor = member(project, "editor")
    page = editor.get(url(project, connection.pk)).content.decode()
    assert 'name="secret_access_key"' not in page
    assert "Remove this connection" not in page
    assert editor.post(url(project, connection.pk, "test")).status_code == 302
    for act in ("identity", "remove"):
        assert editor.post(url(project, connection.pk, act), KEYS).status_code == 403


def test_an_empty_list_says_what_there_is_and_that_nothing_is_needed(as_owner: Client, project: Any) -> None:
    page = as_owner.get(url(project)).content.decode()
    assert "cloud needs none" in page
    for way in text.WAYS:
        assert way.title in page
    viewer = member(project, "viewer").get(url(project)).content.decode()
    assert "An owner of" in viewer


def test_names_of_people_and_clouds_are_text(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, name="<script>alert(1)</script>")
    for page in (as_owner.get(url(project)), as_owner.get(url(project, connection.pk))):
        assert "<script>alert" not in page.content.decode()


def test_a_connection_that_a_job_needs_stays(as_owner: Client, project: Any) -> None:
    connection = make_connection(project)
    job = using(connection)
    answer = as_owner.post(url(project, connection.pk, "remove"), follow=True)
    assert "needed by Hopper" in answer.content.decode()
    assert Connection.objects.filter(pk=connection.pk).exists()
    assert SealedSecret.objects.exists()
    assert "1 job needs it" in as_owner.get(url(project)).content.decode()
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    page = as_owner.get(url(project, connection.pk)).content.decode()
    assert "Hopper" in page
    assert "succeeded" in page
    as_owner.post(url(project, connection.pk, "remove"))
    assert not Connection.objects.filter(pk=connection.pk).exists()
    assert not SealedSecret.objects.exists()


def test_other_projects_jobs_do_not_count(project: Any) -> None:
    connection = make_connection(project)
    theirs = make_job(make_project())
    Job.objects.filter(pk=theirs.pk).update(spec={"platform": {"connection": connection.pk}})
    assert not queries.jobs_on(connection).exists()
    services.remove_connection(connection=connection)


def test_a_job_gets_the_connection_of_its_own_project_only(project: Any) -> None:
    connection = make_connection(project, secret=SECRET)
    found = decrypt.open_connection(project.pk, connection.pk)
    assert found.access.secret_access_key == SECRET  # type: ignore[union-attr]
    assert SECRET not in repr(found)
    with pytest.raises(decrypt.CannotOpen, match="was removed"):
        decrypt.open_connection(make_project().pk, connection.pk)
    with pytest.raises(decrypt.CannotOpen, match="Set it up"):
        decrypt.open_connection(project.pk, make_connection(project, secret="").pk)


def test_what_was_made_for_an_emulator_never_meets_the_cloud(
    project: Any, settings: Any, as_owner: Client
) -> None:
    real = make_connection(project)
    settings.STARLING_AWS_ENDPOINT = "http://127.0.0.1:1"
    made_here = make_connection(project)
    assert made_here.emulated
    assert "emulated" in as_owner.get(url(project, made_here.pk)).content.decode()
    assert decrypt.open_connection(project.pk, made_here.pk).endpoint_url == "http://127.0.0.1:1"
    with pytest.raises(decrypt.CannotOpen, match="real account"):
        decrypt.open_connection(project.pk, real.pk)
    settings.STARLING_AWS_ENDPOINT = ""
    assert decrypt.open_connection(project.pk, real.pk).endpoint_url is None
    with pytest.raises(decrypt.CannotOpen, match="emulator"):
        decrypt.open_connection(project.pk, made_here.pk)
