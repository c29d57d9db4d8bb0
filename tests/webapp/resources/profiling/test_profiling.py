"""Memory profiles from their page: who may, what they cost, what the worker does, and what goes into the form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from cloud.accounts.profiling_runs import ProfilingPlan
from cloud.money.billing.price_book import PriceBook
from cloud.platforms.aws.functions import function_name
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.cloud.emulated_bills import picodollars_of_calls
from tests.factories import FixedClock, make_project, make_user
from tests.hungry import NAME, hungry_package
from tests.members import add_member
from tests.webapp.held import connect_by_keys
from training.rl.environments.model import EnvironmentSpec
from webapp.connections import account_lease, account_setup
from webapp.connections import services as connections
from webapp.connections.models import CheckState, Connection, SetUp
from webapp.money.budgets import create_budget
from webapp.money.models import Budget
from webapp.resources.profiling import services, tasks
from webapp.resources.profiling.models import MemoryProfile, ProfileState
from webapp.resources.profiling.services import ProfileRefused, ask_for_profile
from webapp.resources.profiling.text import result_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("aws")]

PLAN = ProfilingPlan(environment=EnvironmentSpec(id="CartPole-v1"), memory_mb=(1024, 2048), steps=64, calls=2)


@pytest.fixture
def owner() -> Any:
    return make_user()


@pytest.fixture
def connection(owner: Any, aws: AwsEmulator, account: tuple[AwsEmulator, DemoAccount]) -> Connection:
    """The emulated account by its keys, tested."""
    made = connect_by_keys(account[1], make_project(owner), owner, name="Lab")
    report = {"ok": True, "checks": [], "quotas": [], "account": "111122223333"}
    Connection.objects.filter(pk=made.pk).update(test_state=CheckState.DONE, test_report=report)
    made.refresh_from_db()
    return made


def _ask(connection: Connection, **options: Any) -> MemoryProfile:
    who = connection.created_by
    return ask_for_profile(
        project=connection.project, user=who, connection=connection, **{"plan": PLAN, **options}
    )


def _profiled(connection: Connection, **options: Any) -> MemoryProfile:
    profile = _ask(connection, **options)
    tasks.profile_memory(profile.pk)
    profile.refresh_from_db()
    return profile


def _address(project: Any, where: str, what: str = "") -> str:
    return f"/p/{project.slug}/clouds/{where}/profile/{what}"


def _as(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _alive(aws: AwsEmulator) -> list[str]:
    return sorted(one.name for one in aws.functions.alive())


def test_functions_come_and_go_and_the_account_is_as_it_was(connection: Connection, aws: AwsEmulator) -> None:
    made = account_setup.request_set_up(connection=connection, memory_mb=[1024])
    account_setup.run(connection.pk, made.number)
    profile = _profiled(connection)
    assert (profile.state, profile.problem, profile.made_mb) == (ProfileState.DONE, "", [2048])
    assert [run["memory_mb"] for run in profile.runs] == [1024, 1024, 2048, 2048]
    assert {run["failure"] for run in profile.runs} == {""}
    assert _alive(aws) == [function_name(connection.prefix, 1024)]
    made.refresh_from_db()
    assert (made.requested_mb, made.ready_mb, made.aim, made.state) == ([1024], [1024], "set_up", "done")


def test_what_it_cost_is_what_the_account_was_billed(connection: Connection, aws: AwsEmulator) -> None:
    profile = _profiled(connection)
    assert profile.spent_picodollars == picodollars_of_calls(aws.meter, PriceBook.load(), "us-east-1")
    assert 0 < profile.spent_picodollars < profile.limit_picodollars <= services.LIMIT_PICODOLLARS
    made = SetUp.objects.get()
    assert (made.requested_mb, made.ready_mb, made.aim) == ([], [], "take_down")
    assert aws.logs.groups == {}


def test_an_environment_whose_package_functions_lack_is_refused_before_anything_is_made(
    connection: Connection, aws: AwsEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hungry_package(tmp_path, monkeypatch):
        plan = PLAN.model_copy(update={"environment": EnvironmentSpec(id="Growing-v0")})
        with pytest.raises(
            ProfileRefused, match=f"Growing-v0 needs the package {NAME}, which.*simulated cloud"
        ):
            _ask(connection, plan=plan)
        assert (MemoryProfile.objects.count(), aws.functions.alive()) == (0, [])
        simulated = ask_for_profile(
            project=connection.project, user=connection.created_by, connection=None, plan=plan
        )
    assert simulated.state == ProfileState.REQUESTED


def test_functions_that_are_to_stay_may_be_used_by_jobs(connection: Connection, aws: AwsEmulator) -> None:
    _profiled(connection, keep=True)
    assert SetUp.objects.get().ready_mb == [1024, 2048]
    assert len(_alive(aws)) == 2


def test_the_page_tells_the_choice_and_hands_it_to_the_form(owner: Any, connection: Connection) -> None:
    found = result_of(_profiled(connection)).choice
    assert found is not None
    page = _as(owner)
    shown = page.get(_address(connection.project, connection.pk)).content.decode()
    assert "Profiled" in shown
    assert "declares its speed" in shown
    assert "functions created for" in shown
    assert found.why in shown
    link = (
        f"/jobs/new/?memory_mb={found.memory_mb}&amp;environment=CartPole-v1&amp;connection={connection.pk}"
    )
    assert link in shown
    form = page.get(f"/p/{connection.project.slug}{link.replace('&amp;', '&')}").content.decode()
    assert f'name="training.rollout.memory_mb" value="{found.memory_mb:,}"' in form
    assert f'<option value="{connection.pk}" selected>' in form


def test_copies_of_the_environment_go_into_the_profile_and_the_jobs_form(owner: Any) -> None:
    project, page = make_project(owner), _as(owner)
    fields = {"environment": "Hopper-v5", "memory_mb": "3538", "steps": "64", "environments_per_actor": "4"}
    assert page.post(_address(project, "simulated"), fields).status_code == 302
    profile = MemoryProfile.objects.get()
    assert profile.parsed_plan.environments_per_actor == 4
    form = page.get(f"/p/{project.slug}/jobs/new/?environment=Hopper-v5&copies=4").content.decode()
    assert 'name="training.rollout.environments_per_actor" value="4"' in form


@pytest.mark.parametrize(
    "query", ["memory_mb=1", "copies=0", "memory_mb=much", "environment=No-Such-v9", "connection=x"]
)
def test_a_form_that_is_handed_nonsense_begins_as_usual(owner: Any, query: str) -> None:
    project = make_project(owner)
    page = _as(owner)

    def fields(address: str) -> list[str]:
        answer = page.get(f"/p/{project.slug}/jobs/new/{address}")
        assert answer.status_code == 200
        named = re.findall(r'<input[^>]* name="training[^>]*>', answer.content.decode())
        assert len(named) > 10
        return named

    assert fields(f"?{query}") == fields("")


def test_one_thing_at_a_time_in_an_account(connection: Connection) -> None:
    clock = FixedClock()
    _ask(connection, clock=clock)
    with pytest.raises(ProfileRefused, match="already in progress"):
        _ask(connection, clock=clock)
    with pytest.raises(connections.ConnectionRefused, match="already in progress"):
        account_setup.request_removal(connection=connection, clock=clock)
    clock.forward(31)
    account_setup.request_removal(connection=connection, clock=clock)


def test_one_that_was_overtaken_touches_nothing(connection: Connection, aws: AwsEmulator) -> None:
    clock = FixedClock()
    profile = _ask(connection, clock=clock)
    clock.forward(31)
    account_setup.request_removal(connection=connection, clock=clock)
    tasks.profile_memory(profile.pk)
    profile.refresh_from_db()
    assert "Nothing was started" in profile.problem
    assert _alive(aws) == []
    assert SetUp.objects.get().state == CheckState.REQUESTED


def test_functions_that_cannot_be_made_are_reported_and_nothing_is_left(
    connection: Connection,
    aws: AwsEmulator,
    account: tuple[AwsEmulator, DemoAccount],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(account_lease.aws.set_up.__kwdefaults__, "patience_s", 0.0)
    roles = dict(aws.account.roles)
    aws.account.roles.clear()
    try:
        profile = _profiled(connection)
    finally:
        aws.account.roles.update(roles)
    assert "not be made" in profile.problem
    assert profile.spent_picodollars == 0
    assert SetUp.objects.get().requested_mb == []


def test_too_dear_a_profile_and_an_untested_account_are_refused(connection: Connection) -> None:
    dear = PLAN.model_copy(update={"memory_mb": (10_240, 9_000, 8_000, 7_000), "calls": 10})
    with pytest.raises(ProfileRefused, match="cost up to"):
        _ask(connection, plan=dear)
    Connection.objects.filter(pk=connection.pk).update(region="mx-central-1")
    connection.refresh_from_db()
    with pytest.raises(ProfileRefused, match="Without a price"):
        _ask(connection)
    Connection.objects.filter(pk=connection.pk).update(region="us-east-1", test_report=None)
    connection.refresh_from_db()
    with pytest.raises(ProfileRefused, match="Test it first"):
        _ask(connection)
    assert not MemoryProfile.objects.exists()


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        ({"scope": "project"}, "of this project"),
        ({"scope": "user"}, "of this project"),
        ({"scope": "cloud", "of": {"cloud": "aws_lambda"}}, "of this project"),
        ({"scope": "everything", "project": None}, "of the installation"),
    ],
)
def test_budgets_must_have_room_for_all_that_a_profile_may_cost(
    connection: Connection, owner: Any, scope: dict[str, Any], says: str
) -> None:
    most = services.cost_of(connection, PLAN).most
    given = {"project": connection.project, "name": "A month", "period": "monthly", **scope}
    if given["scope"] == "user":
        given["of"] = {"user": owner}
    clock = FixedClock()
    budget = create_budget(limit_picodollars=most, clock=clock, **given)
    Budget.objects.filter(pk=budget.pk).update(spent_picodollars=1)
    with pytest.raises(ProfileRefused, match=f"“A month” {says} has"):
        _ask(connection, clock=clock)
    assert not MemoryProfile.objects.exists()
    clock.forward(31 * 86_400)
    assert _ask(connection, clock=clock), "in a new month nothing is spent yet"


def test_what_concerns_others_does_not_hold_a_profile_back(connection: Connection) -> None:
    create_budget(project=make_project(), name="Theirs", limit_picodollars=1)
    cloud = {"cloud": "azure_container"}
    create_budget(project=connection.project, name="Azure's", limit_picodollars=1, scope="cloud", of=cloud)
    create_budget(
        project=connection.project, name="Hers", limit_picodollars=1, scope="user", of={"user": make_user()}
    )
    assert _ask(connection)


def test_the_simulated_cloud_is_profiled_for_nothing(owner: Any) -> None:
    project = make_project(owner)
    page = _as(owner)
    sent = {"environment": "CartPole-v1", "memory_mb": "512 2,048", "steps": "64"}
    assert page.post(_address(project, "simulated"), sent).status_code == 302
    profile = MemoryProfile.objects.get()
    assert profile.parsed_plan.memory_mb == (512, 2048)
    assert "Waiting" not in profile.problem
    assert "It begins" in page.get(_address(project, "simulated", "result")).content.decode()
    tasks.profile_memory(profile.pk)
    profile.refresh_from_db()
    assert (profile.problem, profile.spent_picodollars) == ("", 0)
    shown = page.get(_address(project, "simulated")).content.decode()
    assert "unpaid" in shown
    assert " sim." in shown
    assert "your own account" in shown
    assert "profile=lambda" in shown


def test_what_it_would_cost_follows_the_form(owner: Any, connection: Connection) -> None:
    page = _as(owner)
    address = _address(connection.project, connection.pk, "cost")
    sent = {"environment": "CartPole-v1", "memory_mb": "1024", "steps": "64"}
    # 4 calls of (30 + 60) s at 1 GB are 360 GB-s.
    assert "never more than" in page.post(address, sent).content.decode()
    assert "$0.00600" in page.post(address, sent).content.decode()
    assert (
        "may cost $0.250"
        in page.post(address, {**sent, "memory_mb": "10240 10000 9000 8000 7000"}).content.decode()
    )
    assert page.post(address, {**sent, "steps": "many"}).content == b""


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("memory_mb", "64", "has from 128"),
        ("memory_mb", "all of it", "numbers of mb"),
        ("memory_mb", " ".join(str(n) for n in range(200, 210)), "at most 8 sizes"),
        ("environment", "No-Such-v9", "no-such-v9"),
        ("steps", "3", "or equal to 64"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(owner: Any, field: str, value: str, words: str) -> None:
    sent = {"environment": "CartPole-v1", "memory_mb": "512", "steps": "64", field: value}
    answer = _as(owner).post(_address(make_project(owner), "simulated"), sent)
    assert answer.status_code == 422
    assert words in answer.content.decode().lower()
    assert f'id="id_{field}-problem"' in answer.content.decode()


def test_who_may(owner: Any, connection: Connection) -> None:
    project = connection.project
    people = {role: make_user() for role in ("editor", "viewer")}
    for role, person in people.items():
        add_member(project, person.email, role)
    sent = {"environment": "CartPole-v1", "memory_mb": "512", "steps": "64"}
    assert _as(people["viewer"]).get(_address(project, "simulated")).status_code == 403
    editor = _as(people["editor"])
    assert "An owner of" in editor.get(_address(project, connection.pk)).content.decode()
    assert editor.post(_address(project, connection.pk), sent).status_code == 403
    assert editor.post(_address(project, "simulated"), sent).status_code == 302
    assert _as(make_user()).get(_address(project, connection.pk)).status_code == 404
    other = make_project(owner)
    assert _as(owner).get(_address(other, connection.pk)).status_code == 404
