"""Every address × everybody: generated from the addresses there are, so a new one without an expectation fails."""

from typing import Any, NamedTuple

import pytest
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from tests.factories import make_connection, make_delivery, make_job, make_project, make_user
from tests.members import add_member
from tests.signed_in import PASSWORD, signed_in
from tests.webapp.ab_test_rows import make_ab_test
from tests.webapp.data_tables import make_data_set
from tests.webapp.scheduler_rows import make_rows
from tests.webapp.trackers.rows import make_tracker
from webapp.accounts.models import Invitation, Membership
from webapp.accounts.services import invite
from webapp.alerts.models import Alert, Channel, ChannelSecret, Delivery
from webapp.comparing.abtests.models import ABTest
from webapp.connections.models import Connection, SealedSecret
from webapp.datasets.models import DataSet
from webapp.jobs.events.consumers import websocket_urlpatterns
from webapp.jobs.models import Film, Job, JobGroup
from webapp.money.budgets import create_budget
from webapp.money.models import Account, Budget, Charge
from webapp.reports.models import ReportFile, Schedule
from webapp.schedulers.models import Scheduler, SchedulerTraining
from webapp.sharing.consumers import websocket_urlpatterns as shared_urlpatterns
from webapp.sharing.models import SharedLink
from webapp.sharing.services import make_link
from webapp.trackers.models import Tracker

pytestmark = pytest.mark.django_db


class Door(NamedTuple):
    """Who may go through: the least role, and by which method."""

    needs: str
    method: str = "get"


DOORS: dict[str, Door] = {
    "abtests:list": Door("viewer"),
    "abtests:new": Door("editor"),
    "abtests:detail": Door("viewer"),
    "abtests:progress": Door("viewer"),
    "abtests:stop": Door("editor", "post"),
    "accounts:members": Door("viewer"),
    "accounts:invite": Door("owner", "post"),
    "accounts:withdraw": Door("owner", "post"),
    "accounts:change_role": Door("owner", "post"),
    "accounts:remove_member": Door("owner", "post"),
    "alerts:list": Door("viewer"),
    "alerts:bell": Door("viewer"),
    "alerts:seen": Door("viewer", "post"),
    "alerts:acknowledge": Door("editor", "post"),
    "alerts:snooze": Door("editor", "post"),
    "alerts:settle": Door("editor", "post"),
    "alerts:rules": Door("viewer"),
    "alerts:rule_add": Door("editor", "post"),
    "alerts:rule_remove": Door("editor", "post"),
    "alerts:channels": Door("viewer"),
    "alerts:channel_new": Door("owner"),
    "alerts:channel": Door("editor"),
    "alerts:channel_change": Door("owner", "post"),
    "alerts:channel_test": Door("owner", "post"),
    "alerts:channel_key": Door("owner", "post"),
    "alerts:channel_remove": Door("owner", "post"),
    "alerts:replay": Door("owner", "post"),
    "api:job_tensorboard": Door("viewer"),
    "comparing:page": Door("viewer"),
    "comparing:add_seeds": Door("editor", "post"),
    "comparing:group": Door("viewer"),
    "comparing:groups": Door("viewer"),
    "comparing:sweep_new": Door("editor"),
    "connections:list": Door("viewer"),
    "connections:new": Door("owner"),
    "connections:detail": Door("editor"),
    "connections:identity": Door("owner", "post"),
    "connections:test": Door("editor", "post"),
    "connections:report": Door("editor"),
    "connections:set_up": Door("owner", "post"),
    "connections:take_down": Door("owner", "post"),
    "connections:steps": Door("editor"),
    "connections:paper": Door("editor"),
    "connections:remove": Door("owner", "post"),
    "trackers:list": Door("viewer"),
    "trackers:tracker": Door("owner"),
    "trackers:remove": Door("owner", "post"),
    "datasets:list": Door("viewer"),
    "datasets:upload": Door("editor", "post"),
    "datasets:detail": Door("viewer"),
    "datasets:progress": Door("viewer"),
    "datasets:choose": Door("editor", "post"),
    "datasets:delete": Door("editor", "post"),
    "jobs:machines": Door("viewer"),
    "jobs:machine_join": Door("editor", "post"),
    "jobs:machine_token_end": Door("editor", "post"),
    "jobs:actor_package": Door("editor"),
    "jobs:list": Door("viewer"),
    "jobs:act": Door("editor", "post"),
    "jobs:views": Door("editor", "post"),
    "jobs:labels": Door("editor", "post"),
    "jobs:new": Door("editor"),
    "jobs:forecast": Door("editor", "post"),
    "jobs:checks": Door("editor", "post"),
    "jobs:file": Door("editor", "post"),
    "jobs:draft_delete": Door("editor", "post"),
    "jobs:detail": Door("viewer"),
    "jobs:actors": Door("viewer"),
    "jobs:calls": Door("viewer"),
    "jobs:events": Door("viewer"),
    "jobs:logs": Door("viewer"),
    "jobs:log_lines": Door("viewer"),
    "jobs:log_file": Door("viewer"),
    "jobs:cost": Door("viewer"),
    "jobs:checkpoints": Door("viewer"),
    "jobs:spec": Door("viewer"),
    "jobs:series": Door("viewer"),
    "jobs:spec_file": Door("viewer"),
    "jobs:again": Door("editor", "post"),
    "jobs:bounds": Door("editor", "post"),
    "jobs:stop": Door("editor", "post"),
    "jobs:raise_budget": Door("editor", "post"),
    "jobs:stream": Door("viewer"),
    "jobs:policy": Door("viewer"),
    "jobs:policy_zip": Door("viewer"),
    "jobs:film_ask": Door("editor", "post"),
    "jobs:film": Door("viewer"),
    "jobs:films": Door("viewer"),
    "jobs:go_on": Door("editor", "post"),
    "jobs:start_over": Door("editor", "post"),
    "budgets:list": Door("viewer"),
    "budgets:new": Door("editor"),
    "budgets:detail": Door("editor"),
    "budgets:close": Door("editor", "post"),
    "jobs:cost_csv": Door("viewer"),
    "jobs:bill": Door("viewer"),
    "jobs:numbers": Door("viewer"),
    "comparing:goals": Door("viewer"),
    "overview:page": Door("viewer"),
    "overview:spending": Door("viewer"),
    "overview:find": Door("viewer"),
    "overview:guide": Door("editor", "post"),
    "predictions:what_if": Door("viewer"),
    "predictions:predicted": Door("viewer"),
    "predictions:apply": Door("editor", "post"),
    "profiling:page": Door("editor"),
    "profiling:result": Door("editor"),
    "profiling:cost": Door("editor", "post"),
    "projects:settings": Door("owner"),
    "projects:archive": Door("owner", "post"),
    "projects:unarchive": Door("owner", "post"),
    "reports:page": Door("viewer"),
    "reports:file": Door("viewer"),
    "reports:files": Door("viewer"),
    "reports:build": Door("viewer", "post"),
    "reports:built": Door("viewer"),
    "reports:schedule": Door("editor", "post"),
    "reports:unschedule": Door("editor", "post"),
    "reports:bills": Door("viewer"),
    "reports:hand_over_bill": Door("owner", "post"),
    "sharing:links": Door("editor"),
    "sharing:make": Door("editor", "post"),
    "sharing:revoke": Door("editor", "post"),
    "surfaces:surfaces": Door("viewer"),
    "surfaces:ask": Door("editor", "post"),
    "schedulers:decisions": Door("viewer"),
    "schedulers:list": Door("viewer"),
    "schedulers:new": Door("editor"),
    "schedulers:training": Door("viewer"),
    "schedulers:progress": Door("viewer"),
    "schedulers:stop": Door("editor", "post"),
    "schedulers:scheduler": Door("viewer"),
    "schedulers:export": Door("viewer"),
    "schedulers:remove": Door("owner", "post"),
    "resources:project": Door("viewer"),
    "resources:job": Door("viewer"),
}
SIGNED_IN: dict[str, dict[str, str]] = {
    **{
        name: {}
        for name in (
            *("accounts:home", "accounts:account", "account_email", "account_set_password"),
            *("api:tokens", "api:reference", "papers:list", "projects:list"),
        )
    },
    "papers:experiment": {"name": "nitro_rewards"},
}
"""For the signed-in user, about no one else; with what their addresses take."""
OPEN = {
    "accounts:one_time_sign_in",
    "alerts:mail_consent",
    "accounts:join",
    "account_confirm_email",
    "livez",
    "readyz",
    "api:client",
    "api:command",
    "api_nothing_here",
}
"""For everybody. The addresses of the accounts package are open as well: they are how one gets in."""
STAFF = {
    *(f"reports:installation_{name}" for name in ("page", "file", "files", "build", "built")),
    *("admin:index", "admin:app_list"),
    *(
        f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        for model in (Job, Charge, Connection)
        for page in ("changelist", "change")
    ),
}
"""For this installation's staff; others get a 404 (see test_reports.py and test_admin.py)."""
ELSEWHERE = {
    *("api:token_revoke", "metrics"),
    *(f"sharing:{name}" for name in ("shared", "embedded", "stream", "series", "films", "film")),
    *("accounts:accept", "accounts:decline", "accounts:sign_out_everywhere"),
}
"""Whose doors are tested in test_api_pages.py, test_invitations.py, test_signed_out.py and sharing/test_links.py.

Those of the API itself are in test_api_doors.py."""
ALSO_ABSENT = {
    *("reports:file", "reports:built"),
    *("jobs:policy_zip", "jobs:film_ask", "jobs:film", "jobs:log_file"),
    *("jobs:machines", "jobs:machine_join", "jobs:machine_token_end", "jobs:actor_package"),
}
"""These have nothing to show for a job that never ran here: 404 for those who may."""
ROLES = ("viewer", "editor", "owner")


def _names(patterns: Any, namespace: str = "") -> list[str]:
    found: list[str] = []
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if str(pattern.pattern) != "accounts/":
                found += _names(pattern.url_patterns, pattern.namespace or namespace)
        elif isinstance(pattern, URLPattern):
            found.append(f"{namespace}:{pattern.name}" if namespace else str(pattern.name))
    return found


def test_every_address_has_an_expectation() -> None:
    names = [one for one in _names(get_resolver().url_patterns) if not one.startswith("api_v1:")]
    assert len(names) == len(set(names)), "two addresses share a name"
    assert set(names) == set(DOORS) | set(SIGNED_IN) | STAFF | OPEN | ELSEWHERE


class Scene:
    """Two projects, each with a job, a film and a member in each role."""

    def __init__(self) -> None:
        self.mine, self.theirs = self._project(), self._project()
        people = (*self.mine["people"].values(), *self.theirs["people"].values())
        self._cookies = {person.pk: signed_in(person).cookies.output(header="") for person in people}

    def browser_of(self, person: Any) -> Client:
        """Return a new browser with the person's session, which is made once for all tests."""
        client = Client()
        client.cookies.load(self._cookies[person.pk])
        return client

    def _project(self) -> dict[str, Any]:
        owner = make_user(password=PASSWORD)
        project = make_project(owner)
        job = make_job(project, owner)
        people = {"owner": owner}
        for role in ("viewer", "editor"):
            people[role] = make_user(password=PASSWORD)
            add_member(project, people[role].email, role)
        film = Film.objects.create(
            job=job,
            checkpoint="x",
            sha256="0" * 64,
            round_no=1,
            since=timezone.now(),
            requested_by=owner,
            state="ready",
            file="gone.webp",
        )
        channel, delivery = make_delivery(project)
        now = timezone.now()
        days = {"first_day": "2026-11-01", "last_day": "2026-11-30"}
        requester = {"requested_by": owner, "requested_at": now, "since": now}
        report = ReportFile.objects.create(
            project=project, question=days, format="json", state="ready", file="gone.json", **requester
        )
        schedule = Schedule.objects.create(
            project=project, every="week", by="day", formats=["csv"], created_by=owner, created_at=now
        )
        guest = make_user()
        add_member(project, guest.email, "viewer")
        training = make_rows(project)
        return {
            "slug": project.slug,
            "job_id": job.pk,
            "film_id": film.pk,
            "kind": "aws_keys",
            "way": "webhook",
            "tracker": make_tracker(project).kind,
            "alert_id": delivery.alert_id,
            "channel_id": channel.pk,
            "delivery_id": delivery.pk,
            "connection_id": make_connection(project, owner).pk,
            "paper": "policy",
            "part": "film",
            "budget_id": create_budget(project=project, name="b", limit_picodollars=10**13).pk,
            "file_id": report.pk,
            "schedule_id": schedule.pk,
            "training_id": training.pk,
            "scheduler_id": training.version.scheduler_id,
            "number": 1,
            "data_set_id": make_data_set(project).pk,
            "test_id": make_ab_test(job).pk,
            "group_id": JobGroup.objects.create(project=project, name="g", created_at=now).pk,
            "profile": "lambda",
            "stack": "starling-stack",
            "invitation_id": invite(project, "eve@example.org", "viewer", owner)[0].pk,
            "link_id": make_link(project=project, user=owner, of=[job.pk])[0].pk,
            "membership_id": project.memberships.get(user=guest).pk,
            "people": people,
        }

    def address(self, name: str, project: dict[str, Any], **instead: Any) -> str:
        return reverse(name, kwargs={key: {**project, **instead}[key] for key in _parameters(name)})


def _parameters(name: str) -> list[str]:
    namespace, _, bare = name.rpartition(":")
    here: Any = get_resolver()
    if namespace:
        here = here.namespace_dict[namespace][1]
    (possibility, *_), *_ = here.reverse_dict.getlist(bare)
    return list(possibility[0][1])


def _rows() -> dict[str, list[Any]]:
    """Everything a request could change."""
    kinds = (
        Job,
        Account,
        Budget,
        Invitation,
        Membership,
        Film,
        Connection,
        SealedSecret,
        Alert,
        Channel,
        ChannelSecret,
        Delivery,
        Scheduler,
        SchedulerTraining,
        DataSet,
        ABTest,
        Tracker,
        SharedLink,
    )
    return {kind.__name__: list(kind.objects.order_by("pk").values()) for kind in kinds}


@pytest.fixture(scope="module")
def scene(module_rows: None) -> Scene:
    ContentType.objects.clear_cache()
    return Scene()


@pytest.mark.parametrize("name", sorted(DOORS))
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning")
def test_who_may_go_where(name: str, scene: Scene) -> None:
    door = DOORS[name]
    address = scene.address(name, scene.mine)
    before = _rows()

    for method in ("get", "post"):
        answer = getattr(Client(), method)(address)
        assert answer.status_code == 302, method
        assert answer.headers["Location"].startswith("/accounts/login/")
        for role in ROLES:
            foreign = scene.browser_of(scene.theirs["people"][role])
            assert getattr(foreign, method)(address).status_code == 404, (method, role)

    # Another project's things, asked for through one's own door.
    for parameter in (
        "job_id",
        "membership_id",
        "invitation_id",
        "film_id",
        "connection_id",
        "budget_id",
        "file_id",
        "schedule_id",
        "training_id",
        "scheduler_id",
        "alert_id",
        "channel_id",
        "delivery_id",
        "group_id",
        "data_set_id",
        "test_id",
        "link_id",
    ):
        if parameter in _parameters(name):
            crossed = scene.address(name, scene.mine, **{parameter: scene.theirs[parameter]})
            owner = scene.browser_of(scene.mine["people"]["owner"])
            assert getattr(owner, door.method)(crossed).status_code == 404, parameter

    for role in ROLES[: ROLES.index(door.needs)]:
        low = scene.browser_of(scene.mine["people"][role])
        for method in ("get", "post"):
            assert getattr(low, method)(address).status_code in (403, 405), (method, role)
        assert getattr(low, door.method)(address).status_code == 403, role
    assert _rows() == before, "a stranger changed something"

    if door.method == "post":
        assert scene.browser_of(scene.mine["people"]["owner"]).get(address).status_code == 405
    for role in ROLES[ROLES.index(door.needs) :]:
        browser = scene.browser_of(scene.mine["people"][role])
        status = getattr(browser, door.method)(address).status_code
        assert status in ({404} if name in ALSO_ABSENT else {200, 302, 422}), role


@pytest.mark.parametrize("name", sorted(SIGNED_IN))
def test_pages_about_oneself_want_a_person(name: str) -> None:
    address = reverse(name, kwargs=SIGNED_IN[name])
    assert Client().get(address).headers["Location"].startswith("/accounts/login/")
    assert signed_in(make_user()).get(address).status_code in (200, 302)


@pytest.mark.parametrize("name", sorted(name for name, door in DOORS.items() if door.method == "post"))
def test_writing_wants_the_forms_token(name: str, scene: Scene) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.mine["people"]["owner"])
    before = _rows()
    assert client.post(scene.address(name, scene.mine)).status_code == 403
    assert _rows() == before


def test_the_only_sockets_are_those_whose_doors_are_tested() -> None:
    """test_live_access.py tests who may follow a job, sharing/test_shared_live.py what a link lets through."""
    patterns = [*websocket_urlpatterns, *shared_urlpatterns]
    assert [str(pattern.pattern) for pattern in patterns] == [
        "ws/v1/jobs/<str:job_id>/",
        "ws/v1/shared/<str:secret>/",
    ]
