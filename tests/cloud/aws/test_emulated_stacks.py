"""Templates of connections, deployed in the emulated account as their owner deploys them with CloudFormation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.accounts import checks
from cloud.accounts.check_clients import aws_clients
from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole
from cloud.accounts.provision.aws import set_up
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.permissions import prefix_of
from cloud.accounts.provision.policies import AwsScope, aws_trust, cloudformation
from cloud.platforms.aws.checks import AwsQuestion, check_aws
from cloud.platforms.aws.functions import function_name
from emulator.aws.demo import DemoAccount
from emulator.aws.errors import AwsError
from emulator.aws.server import AwsEmulator
from emulator.aws.stacks import create_stack
from tests.cloud.aws.lambdas import thin

KEYS = ("con_aaaaaaaaaa", "con_aaaaaaaaab")


def _template(aws: AwsEmulator, connection_id: str, trust: Any = None) -> dict[str, Any]:
    return cloudformation(AwsScope(aws.region, prefix=prefix_of(connection_id)), trust)


def _by_keys(aws: AwsEmulator, connection_id: str) -> AwsConnection:
    made = create_stack(aws.account, _template(aws, connection_id))
    keys = AwsKeys(made["access_key_id"], made["secret_access_key"])
    return AwsConnection(keys, aws.region, prefix_of(connection_id), endpoint_url=aws.endpoint)


def _owner(connection_id: str) -> Owner:
    return Owner("https://starling.example.org", connection_id, "lab")


def _rows(connection: AwsConnection) -> dict[str, bool | None]:
    role = connection.access if isinstance(connection.access, AwsRole) else None
    question = AwsQuestion(
        connection.region,
        role.role_arn if role else "",
        role.external_id if role else "",
        connection.prefix,
    )
    report = checks.within(
        20.0, connection.region, lambda findings: check_aws(aws_clients(connection), question, findings)
    )
    return {check.name: check.ok for check in report.checks}


def test_the_stacks_of_two_connections_stand_in_one_account_side_by_side(aws: AwsEmulator) -> None:
    for connection_id in KEYS:
        connection = _by_keys(aws, connection_id)
        assert set(_rows(connection).values()) == {True}
        steps = list(set_up(connection.open(), _owner(connection_id), [512], thin, bucket=True))
        assert [step for step in steps if step.state == "missing"] == []
    names = {arn.rpartition("/")[2] for arn in (*aws.account.roles, *aws.account.users)}
    assert names == {f"{prefix_of(one)}-{what}" for one in KEYS for what in ("actor", "dashboard")}
    assert {one.name for one in aws.functions.alive()} == {function_name(prefix_of(one), 512) for one in KEYS}


def test_a_template_whose_names_are_taken_makes_nothing(aws: AwsEmulator) -> None:
    create_stack(aws.account, _template(aws, KEYS[0]))
    before = set(aws.account.roles) | set(aws.account.users)
    with pytest.raises(AwsError, match=f"{prefix_of(KEYS[0])}-actor already exists"):
        create_stack(aws.account, _template(aws, KEYS[0]))
    assert set(aws.account.roles) | set(aws.account.users) == before


@pytest.mark.parametrize("others", ["starling", prefix_of(KEYS[1])])
def test_a_policy_ends_at_the_names_of_its_connection(aws: AwsEmulator, others: str) -> None:
    """Neither that of an older connection nor that of another one reaches them."""
    create_stack(aws.account, cloudformation(AwsScope(aws.region, prefix=others)))
    policy = aws.account.users[f"arn:aws:iam::{aws.account.id}:user/{others}-dashboard"]
    client = _by_keys(aws, KEYS[0]).open().client("lambda")
    for prefix, allowed in ((prefix_of(KEYS[0]), False), (others, True)):
        arn = f"arn:aws:lambda:{aws.region}:{aws.account.id}:function:{function_name(prefix, 512)}"
        assert policy.allows("lambda:DeleteFunction", arn) == allowed
    with pytest.raises(ClientError, match="AccessDenied"):
        client.delete_function(FunctionName=function_name(others, 512))


def test_two_roles_each_demand_their_own_external_id(aws: AwsEmulator, demo: DemoAccount) -> None:
    server = demo.by_role.access
    assert isinstance(server, AwsRole)
    ours = next(arn for arn in aws.account.users if arn.endswith("/starling-server"))
    opened = []
    for connection_id in KEYS:
        trust = aws_trust(ours, f"id-of-{connection_id}")
        arn = create_stack(aws.account, _template(aws, connection_id, trust))["RoleArn"]
        role = AwsRole(arn, f"id-of-{connection_id}", server.ours)
        opened.append(replace(demo.by_role, access=role, prefix=prefix_of(connection_id), bucket=None))
    aws.account.set_external_id("of-the-demo-role")
    for connection in opened:
        assert set(_rows(connection).values()) == {True}
