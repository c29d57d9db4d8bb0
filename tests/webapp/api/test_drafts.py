"""By the API: drafts of jobs, the same that the form has, and saved views of the list."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_project, make_spec, make_user
from tests.members import add_member
from tests.webapp.api_callers import ApiCaller
from webapp.jobs.form import drafts
from webapp.jobs.models import Draft, SavedView

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Any:
    return make_project(make_user())


@pytest.fixture
def call(project: Any) -> ApiCaller:
    return ApiCaller(project.people.get())


def test_a_draft_is_kept_mended_and_launched(call: ApiCaller, project: Any) -> None:
    base = f"/projects/{project.slug}/drafts"
    spec = make_spec(name="Later", training__seed=7).model_dump(mode="json")
    made = [call.post(base, {"spec": spec, "values": {"seeds": "5"}}, Idempotency_Key="k") for _ in range(2)]
    assert [one.status_code for one in made] == [201, 201], made[0].content
    address, body = made[0].headers["Location"], made[0].json()
    assert Draft.objects.count() == 1
    assert (body["title"], body["spec"], body["problems"], body["values"]["seeds"]) == (
        "Later",
        spec,
        [],
        "5",
    )
    wrong = call("PUT", address, {"values": {"training.seed": "many", "name": "Now"}}).json()
    assert (wrong["title"], wrong["spec"]) == ("Now", None)
    assert [one["path"] for one in wrong["problems"]] == ["training.seed"]
    assert [one["title"] for one in call.get(base).json()] == ["Now"]
    mended = call("PUT", address, {"values": {"training.seed": "8"}}).json()
    assert mended["values"]["seeds"] == "5", "what is not named stays"
    launched = call.post(f"/projects/{project.slug}/jobs", mended["spec"])
    assert (launched.status_code, launched.json()["seed"]) == (201, 8)
    assert call("DELETE", address).status_code == 204
    assert call("DELETE", address).status_code == 404


def test_another_variant_requested_by_a_program_keeps_what_both_have(call: ApiCaller, project: Any) -> None:
    begun = {"begun_with": "preset=cartpole", "values": {"training.algorithm.ppo.learning_rate": "0.02"}}
    address = call.post(f"/projects/{project.slug}/drafts", begun).headers["Location"]
    values = {"training.algorithm.kind": "a2c", "training.algorithm.a2c.trace_decay": "0.7"}
    algorithm = call("PUT", address, {"values": values}).json()["spec"]["training"]["algorithm"]
    assert [algorithm[name] for name in ("kind", "learning_rate", "discount", "trace_decay")] == [
        *("a2c", 0.02, 0.98, 0.7)
    ]


def test_the_form_and_programs_have_the_same_drafts(call: ApiCaller, project: Any) -> None:
    made = call.post(
        f"/projects/{project.slug}/drafts", {"begun_with": "preset=cartpole", "values": {"name": "Mine"}}
    )
    assert made.json()["begun_with"] == "preset=cartpole"
    window = Client()
    window.force_login(project.people.get())
    page = window.get(made.json()["url"].removeprefix("http://testserver"))
    assert page.status_code == 200
    assert 'value="Mine"' in page.content.decode()
    kept = drafts.save_draft(
        project=project, user=project.people.get(), values={"name": "Typed"}, begun_with=""
    )
    body = call.get(f"/projects/{project.slug}/drafts/{kept.pk}").json()
    assert (body["title"], body["spec"]["name"]) == ("Typed", "Typed")


def test_drafts_are_their_persons_own(call: ApiCaller, project: Any) -> None:
    base = f"/projects/{project.slug}/drafts"
    address = call.post(base, {}).headers["Location"]
    other = make_user()
    add_member(project, other.email, "owner")
    theirs = ApiCaller(other)
    assert theirs.get(base).json() == []
    for method in ("GET", "DELETE"):
        assert theirs(method, address).status_code == 404
    assert theirs("PUT", address, {}).status_code == 404


def test_what_no_draft_can_hold_is_refused_in_words(
    call: ApiCaller, project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = f"/projects/{project.slug}/drafts"
    strange = call.post(base, {"values": {"training.sead": "7"}})
    assert strange.status_code == 422
    assert [one["path"] for one in strange.json()["errors"]] == ["values.training.sead"]
    assert call.post(base, {"begun_with": "clone=job_aaaaaaaaaa"}).status_code == 404
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 1)
    assert call.post(base, {}).status_code == 201
    assert "is the limit" in call.post(base, {}).json()["why"]


def test_a_view_is_saved_replaced_and_forgotten(call: ApiCaller, project: Any) -> None:
    base = f"/projects/{project.slug}/views"
    dear = {"name": "Dear", "q": 'cost>1 "cart pole"', "sort": "-spent", "columns": ["spent", "return"]}
    for wish in ({"name": "Dear", "q": "cost>9"}, dear):
        assert call.post(base, wish).status_code == 201
    (body,) = call.get(base).json()
    assert {name: body[name] for name in dear} == dear
    window = Client()
    window.force_login(project.people.get())
    page = window.get(body["url"].removeprefix("http://testserver"))
    assert "not understood" not in page.content.decode()
    assert page.status_code == 200
    assert call("DELETE", f"{base}/{body['id']}").status_code == 204
    assert call("DELETE", f"{base}/{body['id']}").status_code == 404
    assert not SavedView.objects.exists()
