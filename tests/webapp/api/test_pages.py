"""The pages about the API, what Prometheus reads, and what is the same whatever is asked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import make_job, make_project, make_running_job, make_user, round_finished
from tests.ledger_contract import reservation, settlement
from tests.signed_in import sign_in
from tests.webapp.api_callers import ApiCaller
from tests.webapp.spoiled_database import failing_at
from webapp.alerts.services import raise_alert
from webapp.api.models import ApiToken
from webapp.api.tokens import make_token
from webapp.jobs.running.recorder import Recorder
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account

pytestmark = pytest.mark.django_db


def _signed_in() -> tuple[Client, Any]:
    client, user = Client(), make_user()
    sign_in(client, user)
    return client, user


def test_a_key_is_shown_once() -> None:
    client, user = _signed_in()
    project = make_project(user)
    given = {"name": "CI", "ability": "jobs", "project": project.slug, "days": "30"}
    page = client.post(reverse("api:tokens"), given)
    (key,) = re.findall(r"starling_pat_[\w-]{43}", page.content.decode())
    assert page.headers["Cache-Control"].startswith("max-age=0")
    token = ApiToken.objects.get()
    assert (token.name, token.scopes, token.project) == ("CI", ["read", "jobs"], project)
    assert (token.expires_at - token.created_at).days == 30
    again = client.get(reverse("api:tokens")).content.decode()
    assert key not in again
    assert f"…{key[-4:]}" in again
    assert "Token made" in again


@pytest.mark.parametrize(
    ("ability", "scopes"), [("budget", ["jobs", "budget"]), ("manage", ["jobs", "budget", "manage"])]
)
def test_a_token_for_what_the_window_does_freshly_wants_the_password(ability: str, scopes: list[str]) -> None:
    user = make_user(password="a long pass phrase")
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    given = {"name": "CI", "ability": ability, "days": "30"}
    response = client.post(reverse("api:tokens"), given)
    assert response.url.startswith("/accounts/reauthenticate/")  # type: ignore[attr-defined]
    assert not ApiToken.objects.exists()
    page = client.post(response.url, {"password": "a long pass phrase"}, follow=True)  # type: ignore[attr-defined]
    assert re.search(r"starling_pat_[\w-]{43}", page.content.decode())
    assert ApiToken.objects.get().scopes == ["read", *scopes]


def test_a_token_needs_a_name_and_one_of_my_projects() -> None:
    client, _ = _signed_in()
    other = make_project()
    refused = client.post(
        reverse("api:tokens"), {"name": "", "ability": "", "project": other.slug, "days": "9"}
    )
    assert refused.status_code == 422
    assert not ApiToken.objects.exists()


def test_only_its_person_revokes_a_token() -> None:
    client, user = _signed_in()
    token, _ = make_token(user=user, name="t", scopes=())
    address = reverse("api:token_revoke", args=[token.pk])
    assert Client().post(address).headers["Location"].startswith("/accounts/login/")
    stranger, _ = _signed_in()
    assert stranger.post(address).status_code == 404
    assert client.get(address).status_code == 405
    token.refresh_from_db()
    assert token.revoked_at is None
    assert client.post(address, follow=True).status_code == 200
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert "Expired and revoked" in client.get(reverse("api:tokens")).content.decode()


def test_there_are_so_many_tokens_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.api.tokens.TOKENS_EACH", 1)
    client, user = _signed_in()
    make_token(user=user, name="t", scopes=())
    refused = client.post(reverse("api:tokens"), {"name": "u", "ability": "", "days": "7"})
    assert refused.status_code == 422
    assert "Revoke one" in refused.content.decode()


def test_the_reference_names_every_address_and_every_model() -> None:
    client, _ = _signed_in()
    page = client.get(reverse("api:reference")).content.decode()
    schema = Client().get("/api/v1/openapi.json").json()
    assert schema["openapi"] == "3.1.0"
    assert all(path in page for path in schema["paths"])
    assert len(set(re.findall(r'id="model-([^"]+)"', page))) == len(schema["components"]["schemas"])
    linked = set(re.findall(r'href="#([^"]+)"', page)) - {"content"}
    assert linked
    assert all(f'id="{one}"' in page for one in linked)


def test_the_client_is_one_file_that_runs_by_itself() -> None:
    answer = Client().get(reverse("api:client"))
    source = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    compile(source, "starling.py", "exec")
    assert 'filename="starling.py"' in answer.headers["Content-Disposition"]
    assert not re.search(r"^(from|import) (webapp|cloud|training|django)", source, re.MULTILINE)


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/v2/projects", "/api/v1/jobs/"])
def test_an_address_that_is_not_there_is_a_problem(path: str) -> None:
    answer = Client().get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["fix"]


def test_a_fault_of_ours_is_a_problem_too() -> None:
    project = make_project(user := make_user())
    mine = ApiCaller(user)
    with failing_at('SELECT "jobs_job"', RuntimeError("secret detail")):
        answer = mine.get(f"/projects/{project.slug}/jobs")
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:starling:fault"
    assert "secret" not in answer.content.decode()


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff", b"[1]", b'"x"', b"null", b'{"name":"\\u0000"}', b'{"name":"\\ud800"}', b"9" * 5000],
)
def test_what_is_no_spec_is_refused_in_words(body: bytes) -> None:
    user = make_user()
    project = make_project(user)
    answer = ApiCaller(user).post(f"/projects/{project.slug}/jobs", body)
    assert answer.status_code in (400, 422)
    assert answer.json()["why"]
    assert not project.jobs.exists()


def test_too_large_a_body_is_refused_in_words() -> None:
    user = make_user()
    project = make_project(user)
    answer = ApiCaller(user).post(f"/projects/{project.slug}/jobs", b" " * 2_000_000)
    assert answer.status_code in (400, 413)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_errors_of_a_spec_are_the_forms_sentences() -> None:
    user = make_user()
    project = make_project(user)
    spec = {"budget_usd": "-1", "training": {"seed": "x", "nonsense": 1}}
    problem = ApiCaller(user).post(f"/projects/{project.slug}/jobs", spec).json()
    paths = {one["path"] for one in problem["errors"]}
    assert paths == {"budget_usd", "training.seed", "training.nonsense"}
    sentences = [one["sentence"] for one in problem["errors"]]
    assert any(one.startswith("Budget (budget_usd) must be") for one in sentences)


@pytest.mark.parametrize(
    "address", ["costs?first_day=2026-11-01&last_day=2026-11-02&form=csv", "jobs?stat=active"]
)
def test_a_word_that_an_address_does_not_take_is_refused(address: str) -> None:
    """Mistyped, it would be answered as if it was not there: all jobs, or another report."""
    user = make_user()
    project = make_project(user)
    answer = ApiCaller(user).get(f"/projects/{project.slug}/{address}")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] in ("query.form", "query.stat")
    assert error["sentence"].startswith(error["path"].removeprefix("query."))
    assert "slug" not in error["sentence"]


class TestMetrics:
    def families(self, **headers: str) -> dict[str, Any]:
        answer = Client(SERVER_NAME="127.0.0.1").get("/metrics", headers=headers)
        assert answer.status_code == 200
        return {one.name: one for one in text_string_to_metric_families(answer.content.decode())}

    def test_they_say_what_the_tables_say(self) -> None:
        user = make_user()
        project = make_project(user)
        job = make_job(project, user)
        Account.objects.filter(job=job).update(spent_picodollars=123_456_789, reserved_picodollars=10**9)
        create_budget(project=project, name='a "b" \\ c', limit_picodollars=5 * 10**12)
        found = self.families()
        (jobs,) = found["starling_jobs"].samples
        assert (jobs.labels, jobs.value) == ({"project": project.slug, "state": "queued"}, 1)
        (cost,) = found["starling_cost_dollars"].samples
        assert cost.labels == {"project": project.slug, "platform": "local", "money": "actual"}
        assert cost.value == 0.000123456789
        (limit,) = found["starling_budget_limit_dollars"].samples
        assert (limit.labels["name"], limit.value) == ('a "b" \\ c', 5)

    def test_what_is_spent_an_hour_and_what_no_one_has_looked_after(self) -> None:
        """A tenth of a cent in each round of a second, of two jobs: 7.20 an hour."""
        project = make_project(make_user())
        for _ in range(2):
            job, epoch = make_running_job(project=project)
            ledger, recorder = (
                DatabaseLedger(job.account.pk, epoch),
                Recorder(job.pk, epoch, keep_checkpoints=3),
            )
            for number in range(1, 7):
                ledger.reserve([reservation(f"r{number}", 10**9)])
                ledger.settle([settlement(f"r{number}", 10**9)])
                recorder.record(round_finished(number, spent=number * 10**9))
        found = self.families()
        (burn,) = found["starling_burn_rate_dollars_per_hour"].samples
        assert burn.labels == {"project": project.slug, "platform": "local", "money": "actual"}
        assert burn.value == pytest.approx(7.2)
        assert found["starling_alerts"].samples == []
        raise_alert(
            project_id=project.pk,
            kind="burn",
            subject=f"job:{job.pk}",
            sentence="Too fast.",
            severity="warning",
            dedupe_key=f"burn:{job.pk}",
        )
        (alert,) = self.families()["starling_alerts"].samples
        assert (alert.labels, alert.value) == ({"project": project.slug, "kind": "burn"}, 1)

    def test_they_are_for_this_machine_or_holders_of_the_token(self, settings: Any) -> None:
        here = {"SERVER_NAME": "127.0.0.1"}
        assert Client(**here).get("/metrics").status_code == 200
        assert Client(**here, REMOTE_ADDR="192.0.2.1").get("/metrics").status_code == 403
        for name in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"):
            assert Client(**here).get("/metrics", headers={name: "192.0.2.1"}).status_code == 403, name
        settings.STARLING_METRICS_TOKEN = "s3cret"
        assert Client().get("/metrics").status_code == 403
        assert Client().get("/metrics", headers={"Authorization": "Bearer s3cre"}).status_code == 403
        assert "starling_jobs" in self.families(Authorization="Bearer s3cret")

    def test_a_site_reached_from_elsewhere_wants_its_token_of_a_silent_proxy_too(self, settings: Any) -> None:
        """A proxy on this machine that adds no header is this machine, as far as an address tells."""
        settings.ALLOWED_HOSTS = ["starling.example.org", "127.0.0.1"]
        assert Client(SERVER_NAME="starling.example.org").get("/metrics").status_code == 403
        settings.STARLING_BASE_URL = "https://starling.example.org"
        for name in settings.ALLOWED_HOSTS:
            assert Client(SERVER_NAME=name).get("/metrics").status_code == 403, name
        settings.STARLING_METRICS_TOKEN = "s3cret"
        assert "starling_jobs" in self.families(Authorization="Bearer s3cret")
