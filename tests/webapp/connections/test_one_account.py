"""Several connections in one AWS account: no set-up, profile or removal of one touches what another one has.

The account itself is the witness: what lies in it is compared before and after, whatever the rows say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import pytest

from cloud.accounts.checks import Findings
from cloud.accounts.connections import AwsConnection
from cloud.accounts.provision.permissions import SHARED_PREFIX
from cloud.platforms.aws.functions import function_name, log_group
from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform
from emulator.aws.account import EVERYTHING
from emulator.aws.server import AwsEmulator
from emulator.aws.stacks import create_stack
from emulator.aws.stub_functions import StubFunction
from tests.cloud import calls
from tests.factories import make_connection, make_project, make_user
from tests.webapp.connections.connected import using
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from webapp.connections import account_setup, connection_check, decrypt, iam_documents, services
from webapp.connections.account_lease import claim_account, leased_account
from webapp.connections.models import Connection, ConnectionKind, SetUp
from webapp.connections.sealing import Secret
from webapp.job_states import Observed

pytestmark = pytest.mark.django_db

REGIONS = ("us-east-1", "eu-west-1")
INSTALLATIONS = ("https://lab.example.org", "https://course.example.org")
MB, MORE_MB = 512, 1024
LARGE = calls.weights() + bytes(2**20)
"""Too large for a call: they go through the bucket."""

Held = set[tuple[str, ...]]


@pytest.fixture
def aws(settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEmulator]:
    """The account, reached by this process as by both installations: each has its own address and projects."""
    settings.STARLING_DATA, settings.STARLING_MASTER_KEYS = tmp_path, []
    with AwsEmulator(region=REGIONS[0], other_regions=REGIONS[1:]) as emulator:
        ours = emulator.account.add_user("starling", EVERYTHING, account_id="999988887777")
        settings.STARLING_BASE_URL = INSTALLATIONS[0]
        settings.STARLING_AWS_ENDPOINT = emulator.endpoint
        settings.STARLING_AWS_PRINCIPAL = ours.principal.arn
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ours.access_key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ours.secret)
        yield emulator


@cache
def _result() -> Result:
    """What such a call really gives."""
    found = execute(calls.rollout("any", None), calls.weights(), WarmCache())
    assert isinstance(found, Result)
    return found


@dataclass
class Tenant:
    """A connection of an installation, with the stack of its template, set up, with a run that goes on."""

    aws: AwsEmulator
    installation: str
    connection: Connection
    platform: LambdaPlatform
    count: int = 0

    @property
    def opened(self) -> AwsConnection:
        opened = decrypt.open_connection(self.connection.project_id, self.connection.pk)
        assert isinstance(opened, AwsConnection)
        return opened

    def begin_call(self) -> None:
        self.count += 1
        ref = self.platform.publish(0, LARGE)
        name = f"{self.connection.pk}-{self.count}"
        self.platform.submit(calls.rollout(name, ref, memory_mb=MB))

    def answers(self) -> bool:
        """Whether the call that was begun is done."""
        outcome = self.platform.next(30.0)
        assert outcome is not None
        assert outcome.status == "done", outcome.reason
        return True

    def holds(self) -> Held:
        """What the account must have of it."""
        prefix, region = self.connection.prefix, self.connection.region
        name, bucket = function_name(prefix, MB), self.opened.bucket
        assert bucket is not None
        arn = f"arn:aws:iam::{self.aws.account.id}:role/{prefix}-actor"
        return {
            ("function", region, name, arn, self.installation, self.connection.pk),
            ("log", region, log_group(name)),
            ("bucket", region, bucket, self.connection.pk),
        }


def _account(aws: AwsEmulator) -> Held:
    """What the account has, but for identities."""
    held: Held = set()
    for name, region in aws.regions.items():
        held |= {
            ("function", name, one.name, one.role, one.tags["deployment"], one.tags["connection"])
            for one in region.functions.alive()
        }
        held |= {("log", name, group) for group in region.logs.groups}
    storage = aws.storage
    return held | {
        ("bucket", storage.regions[one], one, storage.tags[one]["connection"]) for one in storage.buckets
    }


def _connect(aws: AwsEmulator, project: Any, kind: str, region: str) -> Connection:
    """As the account's owner does it with the template that the page shows."""
    connection = make_connection(project, kind=kind, region=region, secret="")
    template = json.loads(iam_documents.policy_documents(connection)["stack"].text)
    made = create_stack(aws.account, template)
    if kind == ConnectionKind.AWS_ROLE:
        return services.set_identity(connection=connection, plain={"role_arn": made["RoleArn"]}, secrets={})
    secret = {"secret_access_key": Secret(made["secret_access_key"])}
    plain = {"access_key_id": made["access_key_id"]}
    return services.set_identity(connection=connection, plain=plain, secrets=secret)


def _test(connection: Connection) -> dict[str, Any]:
    """The test as the worker runs it, in this thread, which is the one that sees this test's rows."""
    findings = Findings(connection.region)
    connection_check._run_checks(connection, findings)
    report = findings.report().as_dict()
    Connection.objects.filter(pk=connection.pk).update(
        test_report=report, account_id=report["account"], test_state="done"
    )
    connection.refresh_from_db()
    return report


def _run(made: SetUp) -> None:
    account_setup.run(made.connection_id, made.number)
    made.refresh_from_db()
    assert [step for step in made.steps if step["state"] == "missing"] == []


def _set_up(connection: Connection) -> None:
    _run(account_setup.request_set_up(connection=connection, memory_mb=[MB], bucket=True))


def _tenant(aws: AwsEmulator, installation: str, connection: Connection) -> Tenant:
    assert _test(connection)["ok"]
    _set_up(connection)
    stub = StubFunction(0.2, _result())
    region = connection.region
    aws.regions[region].invocations.stubs[function_name(connection.prefix, MB)] = stub
    opened = decrypt.aws_connection(connection)
    return Tenant(aws, installation, connection, LambdaOptions(region=region).open(opened))


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.slow)], ids="{} projects each".format)
def tenants(request: pytest.FixtureRequest, aws: AwsEmulator, settings: Any) -> Iterator[list[Tenant]]:
    """Two installations with so many projects, and each project in both regions; by role and by keys."""
    found = []
    for number, installation in enumerate(INSTALLATIONS):
        settings.STARLING_BASE_URL = installation
        projects = [make_project(make_user()) for _ in range(request.param)]
        for at, (project, region) in enumerate(product(projects, REGIONS)):
            kind = ConnectionKind.AWS_KEYS if (number + at) % 2 else ConnectionKind.AWS_ROLE
            found.append(_tenant(aws, installation, _connect(aws, project, kind, region)))
    yield found
    for tenant in found:
        tenant.platform.close()


def test_no_removal_touches_what_another_connection_has(
    aws: AwsEmulator, tenants: list[Tenant], settings: Any
) -> None:
    identities = set(aws.account.roles) | set(aws.account.users)
    assert _account(aws) == {thing for one in tenants for thing in one.holds()}
    while tenants:
        leaving, *staying = tenants
        settings.STARLING_BASE_URL = leaving.installation
        with leased_account(claim_account(leaving.connection, [MORE_MB])):
            assert len(_account(aws)) == 3 * len(tenants) + 2  # its function and the function's log
        everything = _account(aws)
        gone = leaving.holds()
        for tenant in staying:
            tenant.begin_call()
        leaving.platform.close()
        _run(account_setup.request_removal(connection=leaving.connection))
        services.remove_connection(connection=leaving.connection)
        assert everything - _account(aws) == gone
        assert all(tenant.answers() for tenant in staying)
        assert _account(aws) == everything - gone
        for tenant in staying:
            assert aws.storage.buckets[tenant.opened.bucket or ""], "its network is still in its bucket"
            assert tenant.holds() <= _account(aws)
        tenants.remove(leaving)
    assert _account(aws) == set()
    assert set(aws.account.roles) | set(aws.account.users) == identities


def test_a_connection_is_removed_while_jobs_run_on_another_one_of_its_account(aws: AwsEmulator) -> None:
    project = make_project(make_user())
    idle, busy = (
        _tenant(aws, INSTALLATIONS[0], _connect(aws, project, ConnectionKind.AWS_KEYS, REGIONS[0]))
        for _ in range(2)
    )
    using(busy.connection, Observed.RUNNING, "Hopper")
    busy.begin_call()
    _run(account_setup.request_removal(connection=idle.connection))
    services.remove_connection(connection=idle.connection)
    for act in (account_setup.request_removal, services.remove_connection):
        with pytest.raises(services.ConnectionRefused, match="needed by Hopper"):
            act(connection=busy.connection)
    assert busy.answers()
    assert _account(aws) == busy.holds()
    for tenant in (idle, busy):
        tenant.platform.close()


def test_functions_with_names_of_release_0_1_stay_while_jobs_of_another_connection_need_them(
    aws: AwsEmulator,
) -> None:
    first, second = (make_connection(make_project(make_user()), region=REGIONS[0]) for _ in range(2))
    both = Connection.objects.filter(pk__in=(first.pk, second.pk))
    both.update(prefix=SHARED_PREFIX, account_id=aws.account.id)
    first.refresh_from_db()
    job = using(second, Observed.RUNNING, "Hopper")
    with pytest.raises(services.ConnectionRefused, match="are from release 0"):
        account_setup.request_removal(connection=first)
    job.observed = Observed.SUCCEEDED
    job.save(update_fields=["observed"])
    assert account_setup.request_removal(connection=first).ready_mb == []


def test_a_test_says_which_function_is_gone_and_a_set_up_brings_it_back(
    aws: AwsEmulator, messages_sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    connection = _connect(aws, make_project(make_user()), ConnectionKind.AWS_KEYS, REGIONS[1])
    tenant = _tenant(aws, INSTALLATIONS[0], connection)
    tenant.platform.close()
    name, bucket = function_name(connection.prefix, MB), tenant.opened.bucket
    report = _test(connection)
    assert report["ok"]
    shown = {check["name"]: check for check in report["checks"]}
    assert shown[f"Function {name}"]["ok"]
    assert shown[f"Bucket {bucket}"]["ok"]
    tenant.opened.open().client("lambda").delete_function(FunctionName=name)
    tenant.opened.open().client("s3").delete_bucket(Bucket=bucket)
    report = _test(connection)
    assert not report["ok"]
    gone = {check["name"]: check for check in report["checks"] if check["ok"] is False}
    assert set(gone) == {f"Function {name}", f"Bucket {bucket}"}
    assert "with 512 MB would" in gone[f"Function {name}"]["words"]
    assert gone[f"Function {name}"]["fix"].startswith("Set ")
    with django_capture_on_commit_callbacks(execute=True):
        _set_up(connection)
    assert [task for task, _ in messages_sent if "test" in task] == [
        "webapp.connections.tasks.test_connection"
    ]
    assert _test(connection)["ok"]
    assert _account(aws) == tenant.holds()
