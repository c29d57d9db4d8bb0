"""Settings of trackers: who may set them, what is refused, and that a token goes in and never comes out."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
from django.core import serializers
from django.test import Client

from tests.factories import make_job, make_project, make_spec, make_user
from tests.members import add_member
from tests.signed_in import sign_in, signed_in
from tests.webapp.api_callers import ApiCaller
from tests.webapp.trackers.rows import make_tracker
from webapp.connections.sealing import Secret
from webapp.jobs.launch.checklist import checklist
from webapp.trackers import queries, services
from webapp.trackers.models import TrackedRun, Tracker, TrackerSecret

pytestmark = pytest.mark.django_db

CANARY = "s3cret-canary-of-a-tracker"


@pytest.fixture
def project() -> Any:
    return make_project(make_user("ada@example.org"))


@pytest.fixture
def with_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch)


def _install(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("wandb")
    package.__spec__ = ModuleSpec("wandb", None)
    monkeypatch.setitem(sys.modules, "wandb", package)


def _remove(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"address": "https://10.1.2.3"}, "address", "private network"),
        ({"address": "http://8.8.8.8"}, "address", "https only"),
        ({"address": "https://ada:pw@8.8.8.8"}, "address", "name or password"),
        ({"address": "https://8.8.8.8/?x=1"}, "address", "page of MLflow"),
        ({"address": "mlflow"}, "address", "no web address"),
        ({"place": "it's"}, "place", "without quotation marks"),
        ({"kind": "wandb", "address": ""}, "", "pip install wandb"),
    ],
)
def test_what_cannot_work_is_refused_in_words(
    project: Any, given: dict[str, Any], field: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _remove(monkeypatch)
    with pytest.raises(services.TrackerRefused, match=words) as refused:
        make_tracker(project, **given)
    assert refused.value.field == field
    assert not Tracker.objects.exists()


@pytest.mark.usefixtures("with_wandb")
@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"address": "https://8.8.8.8"}, "address", "STARLING_ALERT_HOSTS"),
        ({"place": "a/b/c"}, "place", "entity/project"),
        ({"token": ""}, "token", "API key"),
    ],
)
def test_wandb_takes_no_server_that_the_operator_did_not_name(
    project: Any, given: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(services.TrackerRefused, match=words) as refused:
        make_tracker(project, **{"kind": "wandb", "address": "", "place": "lab/hopper", **given})
    assert refused.value.field == field


@pytest.mark.usefixtures("with_wandb")
def test_a_server_that_the_operator_named_is_taken(project: Any, settings: Any) -> None:
    settings.STARLING_ALERT_HOSTS = ["127.0.0.1:9"]
    made = make_tracker(project, kind="wandb", address="http://127.0.0.1:9/", place="hopper")
    assert made.address == "http://127.0.0.1:9"


def test_a_token_is_kept_until_the_address_changes(project: Any) -> None:
    tracker = make_tracker(project, token=CANARY)
    assert services._open_token(tracker) == Secret(CANARY)
    make_tracker(project, token="", place="Walker")
    assert services._open_token(tracker) == Secret(CANARY)
    make_tracker(project, address="https://1.1.1.1", token="")
    assert services._open_token(tracker) is None
    assert Tracker.objects.get().address == "https://1.1.1.1"


def test_an_owner_sets_and_removes_a_tracker_and_no_one_sees_its_token(client: Client, project: Any) -> None:
    sign_in(client, project.people.get())
    page = f"/p/{project.slug}/trackers/mlflow/"
    assert "Experiment" in client.get(page).content.decode()
    typed = {"address": "https://8.8.8.8", "place": "Hopper", "token": CANARY, "on": "on"}
    refused = client.post(page, {**typed, "address": "https://127.0.0.1"})
    assert refused.status_code == 422
    assert "private network" in refused.content.decode()
    assert client.post(page, typed).status_code == 302
    shown = client.get(page).content.decode() + client.get(f"/p/{project.slug}/trackers/").content.decode()
    stored = serializers.serialize("json", [*Tracker.objects.all(), *TrackerSecret.objects.all()])
    api = ApiCaller(project.people.get()).get(f"/projects/{project.slug}/trackers").content.decode()
    for place in (refused.content.decode(), shown, stored, api):
        assert CANARY not in place
    assert "rounds go to 8.8.8.8" in shown
    assert client.post(f"{page}remove/").status_code == 302
    assert not Tracker.objects.exists()
    assert not TrackerSecret.objects.exists()


def test_members_see_where_runs_go_and_cannot_change_it(project: Any) -> None:
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    make_tracker(project)
    page = signed_in(viewer).get(f"/p/{project.slug}/trackers/").content.decode()
    assert "8.8.8.8" in page
    assert "/trackers/mlflow/" not in page


def test_programs_set_list_and_remove_trackers(project: Any) -> None:
    call, base = ApiCaller(project.people.get()), f"/projects/{project.slug}/trackers"
    setting = {"address": "https://8.8.8.8", "place": "Hopper", "token": CANARY}
    made = call("PUT", f"{base}/mlflow", setting)
    assert made.status_code == 200
    assert made.json()["has_token"]
    assert [one["state"] for one in call.get(base).json()] == ["On"]
    refused = call("PUT", f"{base}/mlflow", {**setting, "address": "https://169.254.169.254"})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "address")
    for answer in (made, refused):
        assert CANARY not in answer.content.decode()
    assert call("PUT", f"{base}/mlflow", {**setting, "on": False}).json()["state"] == "Off"
    assert call("DELETE", f"{base}/mlflow").status_code == 204
    assert call("DELETE", f"{base}/mlflow").status_code == 404


def test_a_launch_says_where_rounds_go_and_what_is_missing(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row() -> Any:
        return next(
            (c for c in checklist(project, project.people.get(), make_spec()) if c.title == "Trackers"), None
        )

    assert row() is None
    tracker = make_tracker(project)
    assert row().tone == "ok"
    assert row().words.endswith("goes to MLflow (8.8.8.8).")
    _install(monkeypatch)
    make_tracker(project, kind="wandb", address="", place="hopper")
    _remove(monkeypatch)
    assert row().tone == "warning"
    assert "pip install wandb." in row().words
    assert queries.tracker_status(queries.tracker_in(project, "wandb")).word == "Missing"
    Tracker.objects.exclude(pk=tracker.pk).delete()
    make_tracker(project, on=False)
    assert row() is None


def test_a_jobs_page_leads_to_its_run_and_says_once_what_is_missing(client: Client, project: Any) -> None:
    sign_in(client, project.people.get())
    job = make_job(project)
    page = f"/p/{project.slug}/jobs/{job.pk}/"
    assert "Send runs to MLflow or W&amp;B" in client.get(page).content.decode()
    url = "https://8.8.8.8/#/experiments/1/runs/run1"
    services.note_run(job_id=job.pk, kind="mlflow", url=url, problem="")
    services.note_run(
        job_id=job.pk, kind="mlflow", url="javascript:alert(1)", problem="It <b>answers</b> 500."
    )
    shown = client.get(page).content.decode()
    assert f'href="{url}"' in shown
    assert "javascript:alert" not in shown
    assert shown.count("It &lt;b&gt;answers&lt;/b&gt; 500.") == 1
    (tracker,) = (
        ApiCaller(project.people.get()).get(f"/projects/{project.slug}/jobs/{job.pk}/trackers").json()
    )
    assert (tracker["kind"], tracker["url"]) == ("mlflow", url)
    assert TrackedRun.objects.count() == 1
