"""Setting an account up from a connection's page: who may, what the worker does, and what stands against it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from cloud.accounts.check_clients import aws_clients
from cloud.accounts.checks import Findings
from cloud.accounts.connections import AwsKeys
from cloud.accounts.provision.aws_bucket import bucket_name
from cloud.platforms.aws.checks import AwsQuestion, check_aws
from cloud.platforms.aws.functions import function_name
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.factories import FixedClock, make_connection, make_project, make_spec
from tests.figures import figures_in
from tests.training.specs import descent
from tests.webapp.held import connect_by_keys
from training.scaling.agent_weights import as_text
from training.scheduling.siren.model import SirenSpec
from training.scheduling.trainer import initial_state
from webapp.connections import account_setup, decrypt, queries, services
from webapp.connections.models import Aim, CheckState, Connection, SetUp
from webapp.connections.sealing import Secret
from webapp.connections.text import NEVER_TESTED
from webapp.job_states import Observed
from webapp.jobs.form.spec_documents import SpecError
from webapp.jobs.launch.aws_functions import WITHOUT_FUNCTION
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.launch.requirements import NOT_TESTED
from webapp.jobs.models import Job
from webapp.jobs.running.headless import Headless
from webapp.jobs.services import SpecRefused, submit_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("aws")]


@pytest.fixture
def connection(owner: Any, aws: AwsEmulator, account: tuple[AwsEmulator, DemoAccount]) -> Connection:
    """The emulated account by its keys, not tested yet."""
    return connect_by_keys(account[1], make_project(owner), owner, name="Lab")


def _set_up(connection: Connection, memory_mb: int = 1024, **options: Any) -> SetUp:
    made = account_setup.request_set_up(connection=connection, memory_mb=[memory_mb], **options)
    account_setup.run(connection.pk, made.number)
    made.refresh_from_db()
    return made


def _remove(connection: Connection) -> SetUp:
    made = account_setup.request_removal(connection=connection)
    account_setup.run(connection.pk, made.number)
    made.refresh_from_db()
    return made


def _question(connection: Connection) -> AwsQuestion:
    return AwsQuestion(connection.region, prefix=connection.prefix)


def _tested(connection: Connection) -> None:
    """As the worker does it, but in this thread, which is the one that sees this test's rows."""
    findings = Findings(connection.region)
    check_aws(aws_clients(decrypt.aws_connection(connection)), _question(connection), findings)
    report = findings.report()
    assert report.ok, report
    changes = {"test_state": CheckState.DONE, "test_report": report.as_dict(), "account_id": report.account}
    Connection.objects.filter(pk=connection.pk).update(**changes)


def _names(connection: Connection) -> list[str]:
    return [function_name(connection.prefix, size) for size in (1024, 2048)]


def _alive(aws: AwsEmulator) -> list[str]:
    return sorted(one.name for one in aws.functions.alive())


def _address(connection: Connection, what: str) -> str:
    return f"/p/{connection.project.slug}/clouds/{connection.pk}/{what}"


def _as(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_button_has_the_worker_make_it_and_the_page_tells_each_step(
    owner: Any,
    connection: Connection,
    aws: AwsEmulator,
    messages_sent: list[Any],
    django_capture_on_commit_callbacks: Any,
) -> None:
    page = _as(owner)
    with django_capture_on_commit_callbacks(execute=True):
        answer = page.post(_address(connection, "set-up/"), {"memory_mb": "1024"})
    assert answer.status_code == 302
    (name, arguments) = messages_sent[0]
    assert name == "webapp.connections.tasks.set_up_connection"
    assert arguments == [connection.pk, 1]
    assert "Setting up" in page.get(_address(connection, "steps")).content.decode()
    account_setup.run(*arguments)
    shown = page.get(_address(connection, "")).content.decode()
    assert "1,024 MB is ready" in shown
    assert {step["state"] for step in SetUp.objects.get().steps} <= {"done", "made"}
    assert f"Log of {_names(connection)[0]}" in shown
    assert _alive(aws) == _names(connection)[:1]
    (function,) = aws.functions.alive()
    assert function.tags["connection"] == connection.pk
    assert function.tags["owner"] == connection.project.slug


def test_what_should_be_done_first_is_said_and_the_button_steps_back(
    owner: Any, connection: Connection
) -> None:
    page, address = _as(owner), _address(connection, "")
    shown = page.get(address).content.decode()
    assert NEVER_TESTED in unescape(shown)
    assert re.search(r'<button class="btn btn-quiet">[^<]* anyway</button>', shown)
    _tested(connection)
    shown = page.get(address).content.decode()
    assert NEVER_TESTED not in unescape(shown)
    assert re.search(r'<button class="btn btn-primary">Set up [^<]*</button>', shown)
    checks = [
        {"name": "lambda:CreateFunction", "ok": False, "optional": False, "words": "", "fix": ""},
        {"name": "s3:CreateBucket", "ok": False, "optional": True, "words": "", "fix": ""},
    ]
    report = {"ok": False, "checks": checks, "quotas": [], "region": "us-east-1"}
    Connection.objects.filter(pk=connection.pk).update(test_report=report, region="xx-mars-1")
    shown = page.get(address).content.decode()
    assert "missing: lambda:CreateFunction. " in shown
    assert "known for xx-mars-1" in shown
    assert re.search(r'<button class="btn btn-quiet">[^<]* anyway</button>', shown)


@pytest.mark.parametrize("memory_mb", ["", "much", "64", "20000", "512,", "512 1024", "1024, 20000"])
def test_a_memory_that_no_function_has_makes_nothing(
    owner: Any, connection: Connection, memory_mb: str
) -> None:
    answer = _as(owner).post(_address(connection, "set-up/"), {"memory_mb": memory_mb}, follow=True)
    assert "from 128 to 10,240" in answer.content.decode()
    assert not SetUp.objects.exists()


def test_a_second_size_comes_beside_the_first_and_both_go(connection: Connection, aws: AwsEmulator) -> None:
    _set_up(connection)
    assert _set_up(connection, 2048).ready_mb == [1024, 2048]
    assert _alive(aws) == _names(connection)
    gone = _remove(connection)
    assert (gone.requested_mb, gone.ready_mb, _alive(aws), aws.logs.groups) == ([], [], [], {})
    assert {step["state"] for step in gone.steps} == {"done", "gone"}


def test_a_bucket_comes_with_the_tick_serves_the_platform_and_goes_with_the_rest(
    owner: Any, connection: Connection, aws: AwsEmulator
) -> None:
    assert decrypt.aws_connection(connection).bucket is None
    _as(owner).post(_address(connection, "set-up/"), {"memory_mb": "1024", "bucket": "on"})
    account_setup.run(connection.pk, SetUp.objects.get().number)
    name = decrypt.aws_connection(connection).bucket
    assert name == bucket_name(connection.prefix, connection.pk)
    assert aws.storage.expiry_days[name] == 1
    # A later set-up without the tick leaves it where it is.
    assert _set_up(connection, 2048).ready_bucket
    gone = _remove(connection)
    assert (gone.requested_bucket, gone.ready_bucket) == (False, False)
    assert name not in aws.storage.buckets
    assert decrypt.aws_connection(connection).bucket is None


def test_what_failed_is_reported_and_the_next_one_completes_it(
    connection: Connection,
    aws: AwsEmulator,
    account: tuple[AwsEmulator, DemoAccount],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(account_setup.aws.set_up.__kwdefaults__, "patience_s", 0.0)
    roles = dict(aws.account.roles)
    aws.account.roles.clear()
    failed = _set_up(connection)
    assert failed.steps[-1]["state"] == "missing"
    assert failed.ready_mb == []
    assert failed.requested_mb == [1024]
    aws.account.roles.update(roles)
    assert _set_up(connection).ready_mb == [1024]


def test_only_one_thing_at_a_time_until_no_one_works_on_it(connection: Connection) -> None:
    clock = FixedClock()
    account_setup.request_set_up(connection=connection, memory_mb=[1024], clock=clock)
    with pytest.raises(services.ConnectionRefused, match="already in progress"):
        account_setup.request_removal(connection=connection, clock=clock)
    clock.forward(31)
    assert account_setup.request_removal(connection=connection, clock=clock).aim == Aim.TAKE_DOWN


def test_one_that_was_overtaken_does_nothing(connection: Connection, aws: AwsEmulator) -> None:
    clock = FixedClock()
    first = account_setup.request_set_up(connection=connection, memory_mb=[1024], clock=clock)
    clock.forward(31)
    account_setup.request_set_up(connection=connection, memory_mb=[2048], clock=clock)
    account_setup.run(connection.pk, first.number)
    assert _alive(aws) == []
    assert SetUp.objects.get().state == CheckState.REQUESTED


def test_other_credentials_have_it_set_up_again(
    owner: Any, connection: Connection, account: tuple[AwsEmulator, DemoAccount]
) -> None:
    _set_up(connection)
    keys = account[1].by_keys.access
    assert isinstance(keys, AwsKeys)
    services.set_identity(
        connection=connection,
        plain={"access_key_id": keys.access_key_id},
        secrets={"secret_access_key": Secret(keys.secret_access_key)},
    )
    assert "credentials were replaced" in _as(owner).get(_address(connection, "steps")).content.decode()
    _tested(connection)
    assert WITHOUT_FUNCTION.format(connection.name) in _refusal(owner, connection)
    assert _set_up(connection).ready_mb == [1024]


def test_a_connection_without_credentials_is_not_set_up(owner: Any) -> None:
    bare = make_connection(make_project(owner), owner, secret="")
    with pytest.raises(services.ConnectionRefused, match="earlier steps first"):
        account_setup.request_set_up(connection=bare, memory_mb=[1024])


def test_credentials_that_cannot_be_opened_are_a_step(connection: Connection, settings: Any) -> None:
    settings.STARLING_AWS_ENDPOINT = ""
    made = _set_up(connection)
    assert [step["state"] for step in made.steps] == ["missing"]
    assert "new connection" in made.steps[0]["words"]


# What jobs ask of it


def _spec(connection: Connection, **changes: Any) -> Any:
    platform = {"kind": "aws_lambda", "connection": connection.pk}
    memory = {} if "training" in changes else {"training__rollout__memory_mb": 1024}
    return make_spec(**{"platform": platform, **memory, **changes})


def _refusal(owner: Any, connection: Connection, **changes: Any) -> str:
    with pytest.raises(SpecRefused) as refused:
        submit_job(project=connection.project, user=owner, spec=_spec(connection, **changes))
    assert not Job.objects.exists()
    return str(refused.value)


def test_a_job_needs_a_tested_connection_with_its_function(owner: Any, connection: Connection) -> None:
    assert NOT_TESTED.format(connection.name) in _refusal(owner, connection)
    _tested(connection)
    assert WITHOUT_FUNCTION.format(connection.name) in _refusal(owner, connection)
    _set_up(connection)
    words = _refusal(owner, connection, training__rollout__memory_mb=2048)
    assert "training.rollout.memory_mb" in words
    assert figures_in(words) == ["2,048", "1,024"]
    job = submit_job(project=connection.project, user=owner, spec=_spec(connection))
    assert (job.emulated, job.simulated, job.unreal) == (True, False, "emulated")
    assert job.spec["platform"]["region"] == "us-east-1"


def test_a_policy_that_changes_memory_runs_on_the_sizes_set_up_in_one_go(
    owner: Any, connection: Connection
) -> None:
    agent = SirenSpec(actors_max=2, memory_min_mb=512, memory_max_mb=3008, target_loss=0.1)
    weights = as_text(initial_state(agent).actor_weights(agent.network))
    scaling = agent.policy(weights, explore=False).model_dump(mode="json")
    training = descent(scaling=scaling, calls={"memory_mb": 1024}, stop={"rounds": 20})
    changes = {"training": training.model_dump(mode="json")}
    _tested(connection)
    _set_up(connection)
    words = _refusal(owner, connection, **changes)
    assert "(training.scaling)" in words
    assert figures_in(words) == ["512", "3,008", "1,024"]
    _as(owner).post(_address(connection, "set-up/"), {"memory_mb": "2048, 512 ,512"})
    made = SetUp.objects.get()
    account_setup.run(connection.pk, made.number)
    made.refresh_from_db()
    assert made.ready_mb == [512, 1024, 2048]
    ready = {"kind": "aws_lambda", "connection": connection.pk, "provisioned": 1}
    assert "(platform.provisioned)" in _refusal(owner, connection, **changes, platform=ready)
    simulated = {"kind": "simulated", "provisioned": 1}
    assert "(platform.provisioned)" in _refusal(owner, connection, **changes, platform=simulated)
    job = submit_job(project=connection.project, user=owner, spec=_spec(connection, **changes))
    assert job.spec["platform"]["memory_ladder_mb"] == [512, 1024, 2048]
    plain = submit_job(project=connection.project, user=owner, spec=_spec(connection))
    assert "memory_ladder_mb" not in plain.spec["platform"]


def test_a_network_that_no_call_holds_is_refused_before_it_costs_anything(
    owner: Any, connection: Connection
) -> None:
    _tested(connection)
    _set_up(connection)

    def of(*hidden: int) -> dict[str, Any]:
        return {"training__network": {"kind": "mlp", "hidden": hidden}}

    words = _refusal(owner, connection, **of(1200, 1200))
    assert "(training.network)" in words
    assert figures_in(words) == ["5.5", "4.5"]
    assert re.search(rf"{connection.name} .* bucket", words)
    assert submit_job(project=connection.project, user=owner, spec=_spec(connection, **of(1000, 1000)))
    SetUp.objects.filter(connection=connection).update(ready_bucket=True)
    assert submit_job(project=connection.project, user=owner, spec=_spec(connection, **of(1200, 1200)))


def test_a_gradient_that_no_answer_holds_is_refused_though_a_bucket_holds_the_network(
    owner: Any, connection: Connection
) -> None:
    _tested(connection)
    _set_up(connection)
    SetUp.objects.filter(connection=connection).update(ready_bucket=True)
    wide = {
        "training__network": {"kind": "mlp", "hidden": (1024, 1024)},
        "training__loop": {"kind": "staleness_aware", "learners": 1, "trajectories_per_gradient": 1},
    }
    words = _refusal(owner, connection, **wide)
    assert "a gradient of 8.1 MiB" in words
    assert figures_in(words) == ["8.1", "4.5"]


def test_more_functions_than_the_account_allows_are_refused_in_words(
    owner: Any, connection: Connection, aws: AwsEmulator
) -> None:
    aws.account.concurrency = 10
    try:
        _tested(connection)
    finally:
        aws.account.concurrency = 1000
    _set_up(connection)
    words = _refusal(owner, connection, training__scaling={"kind": "fixed", "actors": 64})
    assert figures_in(words) == ["10", "64", "10"]
    assert "training.scaling.actors" in words
    learners = {"kind": "staleness_aware", "learners": 11, "actors_wait": False}
    words = _refusal(owner, connection, training__loop=learners, budget_usd="20")
    assert "(training.loop.learners)" in words
    assert figures_in(words) == ["11", "10", "10"]
    platform = {"kind": "aws_lambda", "connection": connection.pk, "at_once": 10}
    submit_job(
        project=connection.project,
        user=owner,
        spec=_spec(connection, platform=platform, training__scaling={"kind": "fixed", "actors": 64}),
    )


def test_a_region_without_a_price_is_refused(owner: Any, connection: Connection) -> None:
    _tested(connection)
    _set_up(connection)
    Connection.objects.filter(pk=connection.pk).update(region="mx-central-1")
    assert "without a price" in _refusal(owner, connection)


def test_anothers_connection_is_none(owner: Any, connection: Connection) -> None:
    elsewhere = make_project(owner)
    with pytest.raises(SpecRefused, match=r"\(platform.connection\): choose"):
        submit_job(project=elsewhere, user=owner, spec=_spec(connection))


def test_what_a_job_needs_is_not_removed(owner: Any, connection: Connection) -> None:
    _tested(connection)
    _set_up(connection)
    job = submit_job(project=connection.project, user=owner, spec=_spec(connection))
    with pytest.raises(services.ConnectionRefused, match=f"needed by {job.name}"):
        account_setup.request_removal(connection=connection)
    made = queries.set_up_of(connection)
    assert made is not None
    assert made.ready_mb == [1024]
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    assert _remove(connection).ready_mb == []


def test_without_a_project_nothing_runs_there(connection: Connection) -> None:
    with pytest.raises(SpecError, match=r"a project of"):
        Headless(_spec(connection))


def test_what_it_would_cost_is_forecast_at_lambdas_prices(connection: Connection) -> None:
    found = forecast_of(_spec(connection))
    assert found.parts["actors"].p50 > 0
    assert found.parts["learner"].p90 == 0  # it is here


# The form


def test_the_form_offers_the_projects_accounts(owner: Any, connection: Connection) -> None:
    shown = _as(owner).get(f"/p/{connection.project.slug}/jobs/new/").content.decode()
    assert f'<option value="{connection.pk}"' in shown
    assert "Lab (emulated)" in shown
    assert "platform.aws_lambda.region" not in shown


def test_without_an_account_the_form_says_where_to_connect_one(owner: Any) -> None:
    project = make_project(owner)
    shown = _as(owner).get(f"/p/{project.slug}/jobs/new/").content.decode()
    assert re.search(f'No AWS account [^<]*<a href="/p/{project.slug}/clouds/">', shown)
