"""Every address of the API × every scope × every role: drawn from its description, so that a new one is tried too."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from functools import cache
from typing import Any

import pytest

from cloud.accounts.profiling import ProfiledCall
from cloud.accounts.profiling_runs import ProfilingPlan
from tests.factories import (
    FixedClock,
    make_alert,
    make_connection,
    make_delivery,
    make_job,
    make_project,
    make_spec,
    make_user,
)
from tests.members import add_member
from tests.webapp.ab_test_rows import make_ab_test
from tests.webapp.api_callers import ApiCaller, Upload
from tests.webapp.data_tables import make_data_set
from tests.webapp.scheduler_rows import make_version
from tests.webapp.trackers.rows import make_tracker
from training.rl.environments.model import EnvironmentSpec
from webapp.accounts.models import Invitation, Membership
from webapp.accounts.services import invite
from webapp.alerts.models import Channel
from webapp.alerts.rules import add_rule
from webapp.api import reference
from webapp.api.models import Deed
from webapp.api.tokens import caller_of_key, make_token, revoke_token
from webapp.connections.models import Connection, SealedSecret
from webapp.datasets.models import DataSet
from webapp.jobs.form.drafts import save_draft
from webapp.jobs.list.run_table import save_view
from webapp.jobs.models import Draft, Film, Job
from webapp.jobs.reasons import Reason
from webapp.jobs.surfaces.models import Surface
from webapp.money.budgets import create_budget
from webapp.money.models import Account
from webapp.reports.models import CloudBill, ReportFile, Schedule
from webapp.reports.schedules import add_schedule
from webapp.resources.profiling.models import MemoryProfile
from webapp.schedulers.models import Scheduler, SchedulerTraining
from webapp.sharing.models import SharedLink
from webapp.sharing.services import make_link
from webapp.trackers.models import Tracker

pytestmark = pytest.mark.django_db


@cache
def operations() -> dict[str, reference.Operation]:
    """By name. To draw up the whole description takes seconds, and tests are collected without it."""
    return {one.id: one for many in reference.groups().values() for one in many}


SCOPE_OF = reference.scopes()
EDITORS = {
    "create_job",
    "stop_job",
    "pause_job",
    "resume_job",
    "start_job_over",
    "raise_job_budget",
    "delete_job",
    "set_job_labels",
    "make_join_command",
    "list_machine_tokens",
    "end_machine_token",
    "get_actor_package",
    "set_job_actors",
    "act_on_alert",
    "rerun_job",
    "fork_job",
    "create_budget",
    "change_budget",
    "close_budget",
    "add_seeds",
    "create_seeds",
    "create_sweep",
    "forecast_job",
    "list_connections",
    "get_connection",
    "test_connection",
    "list_connection_policies",
    "get_connection_set_up",
    "get_channel",
    "list_deliveries",
    "get_delivery",
    "start_ab_test",
    "stop_ab_test",
    "apply_prediction",
    "add_alert_rule",
    "remove_alert_rule",
    "add_schedule",
    "change_schedule",
    "stop_schedule",
    "list_links",
    "make_link",
    "revoke_link",
    "list_drafts",
    "get_draft",
    "save_draft",
    "change_draft",
    "delete_draft",
    "save_view",
    "remove_view",
    "request_surface",
    "request_film",
    "train_scheduler",
    "fine_tune_scheduler",
    "stop_scheduler_training",
    "list_profiles",
    "estimate_profile_cost",
    "request_profile",
    "get_profile",
    "get_profile_spec",
    "upload_data_set",
    "choose_data_set_columns",
    "delete_data_set",
}
"""What viewers may not do, with any token."""
OUTLASTING = {"make_link"}
"""What editors may do, and outlasts the token, has the scope of what only owners may do."""
OWNERS = {name for name, scope in SCOPE_OF.items() if scope == "manage"} - OUTLASTING
"""What only owners may do has a scope of its own."""
NOTHING_THERE = {
    *("make_join_command", "list_machine_tokens", "end_machine_token", "get_actor_package"),
    *("get_checkpoint", "get_policy", "fork_job"),
    *("request_surface", "request_film"),
    "start_ab_test",
}
"""These have nothing to show for a job that never ran, or ask about a job that is not there."""
WITHOUT_STREAMS = {"stream_events"}
"""Refused by servers that cannot stream, such as the one of these tests."""
NOT_YET = {
    "start_job_over",
    *("get_report_file", "raise_job_budget", "get_film_file", "delete_job"),
    *("get_prediction", "apply_prediction"),
}
"""Refused for what they are asked about here: a report that is not built, a budget no higher, a job not archived, a job
that does not run."""
SCOPES: dict[str, tuple[str, ...]] = {
    "read": (),
    "jobs": ("jobs",),
    "budget": ("jobs", "budget"),
    "manage": ("manage",),
}


class Scene:
    """A project with one of everything."""

    def __init__(self) -> None:
        owner = make_user()
        self.project = make_project(owner)
        self.job = make_job(self.project, owner)
        self.people = {"owner": owner, "viewer": make_user(), "editor": make_user()}
        for role in ("viewer", "editor"):
            add_member(self.project, self.people[role].email, role)
        self.connection = make_connection(self.project, owner)
        budget = create_budget(project=self.project, name="b", limit_picodollars=10**13)
        now = self.job.created_at
        report = ReportFile.objects.create(
            project=self.project,
            question={"first_day": "2026-11-01", "last_day": "2026-11-30"},
            format="csv",
            requested_by=owner,
            requested_at=now,
            since=now,
        )
        guest = add_member(self.project, make_user().email, "viewer")
        channel, delivery = make_delivery(self.project)
        kept = {"project": self.project, "user": self.people["editor"]}
        draft = save_draft(values={}, begun_with="preset=cartpole", **kept)
        view = save_view(name="Failed", address="?q=state:failed", **kept)
        fields = {"every": "month", "by": "day", "prices": "actual", "formats": ["csv"]}
        schedule = add_schedule(**fields, recipients=[owner], **kept)
        bill = CloudBill.objects.create(project=self.project, name="b", imported_by=owner, since=now)
        test = make_ab_test(self.job)
        self.named = {
            "{test_id}": str(test.pk),
            "{member_id}": str(guest.pk),
            "{invitation_id}": str(invite(self.project, "eve@example.org", "viewer", owner)[0].pk),
            "{channel_id}": channel.pk,
            "{delivery_id}": delivery.pk,
            "{link_id}": str(make_link(project=self.project, user=owner, of=[self.job.pk])[0].pk),
            "{draft_id}": str(draft.pk),
            "{view_id}": str(view.pk),
            "{schedule_id}": str(schedule.pk),
            "{bill_id}": str(bill.pk),
            "{data_set_id}": str(make_data_set(self.project).pk),
            "{slug}": self.project.slug,
            "{job_id}": self.job.pk,
            "{connection_id}": self.connection.pk,
            "{budget_id}": str(budget.pk),
            "{report_id}": str(report.pk),
            "{alert_id}": str(make_alert(self.project).pk),
            "{rule_id}": str(add_rule(project=self.project, user=owner, text="kl > 0.1").pk),
            "{name}": "cartpole",
            "{kind}": make_tracker(self.project).kind,
            **_learned_things(self.project, self.job),
        }

    def address(self, path: str, **instead: str) -> str:
        if "/profiles" in path:
            instead = {"connection_id": "simulated", **instead}
        for name, value in {**self.named, **{f"{{{key}}}": value for key, value in instead.items()}}.items():
            path = path.replace(name, value)
        if path.endswith("/comparison"):
            path += f"?of={self.job.pk}"
        if path.endswith(("/costs", "/difference")):
            path += "?first_day=2026-11-01&last_day=2026-11-30"
        return path


def _learned_things(project: Any, job: Job) -> dict[str, str]:
    """A scheduler, a surface and a film of the job, and a memory profile of the simulated cloud."""
    version = make_version(project)
    of_a_checkpoint = {"checkpoint": "c", "sha256": "0" * 64, "round_no": 1}
    requester = {"requested_by": job.created_by, "since": job.created_at}
    surface = Surface.objects.create(job=job, grid=9, span=1, episodes=1, **of_a_checkpoint, **requester)
    run = ProfiledCall(memory_mb=1024, env_steps=256, billed_s=1.0, picodollars=10**6)
    profile = MemoryProfile.objects.create(
        project=project,
        requested_at=job.created_at,
        plan=ProfilingPlan(environment=EnvironmentSpec(), memory_mb=(1024,)).model_dump(mode="json"),
        runs=[asdict(run)] * 4,
        state="done",
        limit_picodollars=0,
        **requester,
    )
    return {
        "{scheduler_id}": version.scheduler_id,
        "{number}": "1",
        "{training_id}": str(version.training_id),
        "{surface_id}": str(surface.pk),
        "{film_id}": str(Film.objects.create(job=job, **of_a_checkpoint, **requester).pk),
        "{profile_id}": str(profile.pk),
        "{experiment}": "nitro_overhead",
    }


def body_for(operation: reference.Operation) -> Any:
    bodies = {
        "JobSpec": make_spec().model_dump(mode="json"),
        "NewBudget": {"limit_usd": "1"},
        "ReportQuestion": {"first_day": "2026-11-01", "last_day": "2026-11-30"},
        "Labels": {"tags": ["kept"], "note": "seen"},
        "ActorBounds": {"least": 1, "most": 2},
        "ProjectBudget": {"name": "New", "limit_usd": "5"},
        "BudgetChange": {"limit_usd": "20"},
        "Again": {"new_seed": True},
        "Fork": {"spec": make_spec().model_dump(mode="json")},
        "AlertDeed": {"do": "acknowledge"},
        "NewSeeds": {"count": 1},
        "NewSeedGroup": {"spec": make_spec().model_dump(mode="json"), "count": 2},
        "NewSweep": {
            "base": make_spec().model_dump(mode="json"),
            "name": "Rates",
            "fields": {"training.algorithm.learning_rate": "0.001, 0.0003"},
            "limit_usd": "1",
        },
    }
    bodies |= {
        "NewLink": {"of": [], "range": "this-month", "money": True},
        "NewProject": {"name": "New"},
        "ProjectChange": {"name": "Renamed"},
        "NewInvitation": {"email": "somebody@example.org"},
        "NewRole": {"role": "editor"},
        "NewConnection": {"kind": "aws_keys", "name": "New", "region": "eu-central-1"},
        "Identity": {"access_key_id": "AKIAABCDEFGHIJKLMNOP", "secret_access_key": "x" * 40},
        "SetUpWish": {"memory_mb": 1024},
        "NewChannel": {"way": "email", "name": "Ops", "addresses": ["ops@example.org"]},
        "ChannelChange": {"on": False},
        "NewSchedule": {"every": "week"},
        "ScheduleChange": {"by": "job"},
        "NewDraft": {"spec": make_spec().model_dump(mode="json")},
        "DraftChange": {"values": {"name": "Another"}},
        "NewRule": {"text": "return > 2,000"},
        "Wish": {"actors": 2},
        "NewABTest": {"job": "job_aaaaaaaaaa", "change": "training.algorithm.kind=a2c", "budget_usd": "1"},
        "NewView": {"name": "Dear ones", "q": "cost>1"},
        "NewSurface": {"grid": 9},
        "NewFilm": {},
        "NewTraining": {"workload": "cartpole"},
        "FineTuning": {"workload": "cartpole"},
        "NewProfile": {"environment": {"id": "CartPole-v1"}, "memory_mb": [1024]},
        "Choice": {"target": "y"},
        "TrackerSetting": {"address": "https://8.8.8.8", "place": "Hopper"},
    }
    if operation.path.endswith(("/bills", "/datasets")):
        return Upload("table.csv", b"a,b\r\n")
    return bodies.get(operation.body)


def _rows() -> list[Any]:
    kinds = (
        Job,
        Account,
        ReportFile,
        Invitation,
        Membership,
        Connection,
        SealedSecret,
        Channel,
        Schedule,
        Draft,
    )
    kinds = (*kinds, Surface, Film, Scheduler, SchedulerTraining, MemoryProfile, DataSet, Tracker, SharedLink)
    return [list(kind.objects.order_by("pk").values()) for kind in kinds]


@pytest.fixture(scope="module")
def scene(module_rows: None) -> Scene:
    return Scene()


def test_the_doors_are_as_many_as_there_should_be() -> None:
    assert len(operations()) == 147
    assert {name: one.scope for name, one in operations().items()} == SCOPE_OF
    assert set(operations()) >= EDITORS | NOTHING_THERE | NOT_YET
    assert set(SCOPE_OF.values()) == set(SCOPES)
    # What is written wants more than reading; a forecast and a report change nothing of anybody's.
    harmless = {name for name, one in operations().items() if one.method != "GET" and one.scope == "read"}
    assert harmless == {"forecast_job", "create_report", "estimate_profile_cost"}


@pytest.mark.parametrize("name", sorted(SCOPE_OF))
def test_who_may_go_where(name: str, scene: Scene, settings: Any) -> None:
    operation = operations()[name]
    address, body = scene.address(operation.path), body_for(operation)
    elsewhere = ApiCaller(scene.people["owner"], project=make_project(scene.people["owner"]))
    before = _rows()

    stranger = ApiCaller(scene.people["owner"])
    stranger.key = "starling_pat_" + "x" * 43
    refused = stranger(operation.method, address, body)
    assert (refused.status_code, refused.headers["Content-Type"]) == (401, "application/problem+json")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")

    for scope in list(SCOPES)[: list(SCOPES).index(operation.scope)]:
        low = ApiCaller(scene.people["owner"], SCOPES[scope])(operation.method, address, body)
        assert low.status_code == 403, scope
        problem = low.json()
        assert problem["what"]
        assert operation.scope in problem["fix"]

    if "{slug}" in operation.path:
        stranger = ApiCaller(make_user())(operation.method, address, body)
        assert stranger.status_code == 404
        assert elsewhere(operation.method, address, body).status_code == 404
    viewer = ApiCaller(scene.people["viewer"], SCOPES[operation.scope])(operation.method, address, body)
    if name in OWNERS:
        editor = ApiCaller(scene.people["editor"], SCOPES[operation.scope])(operation.method, address, body)
        assert [viewer.status_code, editor.status_code] == [403, 403]
        assert "owner" in editor.json()["why"]
        assert _rows() == before, "a stranger changed something"
    elif name in EDITORS:
        assert viewer.status_code == 403
        assert "editor" in viewer.json()["why"]
        assert _rows() == before, "a stranger changed something"
    else:
        assert viewer.status_code != 403

    may = scene.people["owner" if name in OWNERS else "editor"]
    allowed = ApiCaller(may, SCOPES[operation.scope])(operation.method, address, body)
    refusal = 404 if name in NOTHING_THERE else 406 if name in WITHOUT_STREAMS else 0
    expected = {refusal} if refusal else {409} if name in NOT_YET else {200, 201, 202, 204}
    assert allowed.status_code in expected, getattr(allowed, "content", b"")


def test_another_projects_things_are_not_there(scene: Scene) -> None:
    other = Scene()
    mine = ApiCaller(scene.people["owner"])
    tried = [(one, part) for one in operations().values() for part in re.findall(r"{(\w+_id)}", one.path)]
    assert len({part for _, part in tried}) == 22
    for one, part in tried:
        crossed = scene.address(one.path, **{part: other.named[f"{{{part}}}"]})
        assert mine(one.method, crossed, body_for(one)).status_code == 404, (one.path, part)


def test_a_token_ends_when_it_expires_is_revoked_or_its_person_is_gone(scene: Scene) -> None:
    clock = FixedClock()
    user = scene.people["owner"]
    token, key = make_token(user=user, name="t", scopes=(), days=7, clock=clock)
    assert caller_of_key(key, clock=clock) == user
    token.refresh_from_db()
    assert token.last_used_at == clock.now()
    clock.forward(7 * 86_400 + 1)
    assert caller_of_key(key, clock=clock) is None
    again, key = make_token(user=user, name="t", scopes=(), clock=clock)
    assert caller_of_key(key, clock=clock) == user
    revoke_token(token=again, clock=clock)
    revoke_token(token=again, clock=clock)
    assert caller_of_key(key, clock=clock) is None
    assert list(again.deeds.values_list("what", flat=True)) == ["Token made", "Token revoked"]
    _, key = make_token(user=user, name="t", scopes=(), clock=clock)
    user.is_active = False
    user.save()
    assert caller_of_key(key, clock=clock) is None


def test_only_the_hash_is_kept(scene: Scene) -> None:
    token, key = make_token(user=scene.people["owner"], name="t", scopes=())
    token.refresh_from_db()
    assert key not in json.dumps(token.__dict__, default=str)
    assert len(token.sha256) == 64
    assert token.hint == key[-4:]


def test_a_change_leaves_a_line_and_says_by_which_token(scene: Scene) -> None:
    mine = ApiCaller(scene.people["editor"], ("jobs",))
    mine.get(f"/projects/{scene.project.slug}/jobs")
    assert mine.post(f"/projects/{scene.project.slug}/jobs/{scene.job.pk}/stop").status_code == 200
    lines = Deed.objects.filter(token=mine.token).order_by("pk").values_list("what", "outcome")
    assert list(lines) == [
        ("Token made", ""),
        (f"POST /api/v1/projects/{scene.project.slug}/jobs/{scene.job.pk}/stop", "200"),
    ]
    text = scene.job.events.filter(payload__text__startswith="Stop requested").get().payload["text"]
    requested_by = f"{scene.people['editor'].email} (token “test”)"
    assert text == Reason.STOP_REQUESTED.change(user=requested_by).sentence


def test_a_token_may_ask_so_often_and_no_more(scene: Scene, settings: Any) -> None:
    settings.STARLING_API_REQUESTS_A_MINUTE = 3
    mine, another = ApiCaller(scene.people["owner"]), ApiCaller(scene.people["owner"])
    answers = [mine.get("/environments") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert [one.headers["RateLimit-Remaining"] for one in answers] == ["2", "1", "0", "0"]
    assert 1 <= int(answers[3].headers["Retry-After"]) <= 21
    assert answers[3].json()["type"] == "urn:starling:pace"
    assert another.get("/environments").status_code == 200
