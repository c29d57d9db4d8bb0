"""The policies we ask people to copy: least rights, and exactly those that the code uses."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import xform_name

from cloud.accounts.provision import permissions, policies
from cloud.accounts.provision.permissions import AWS, AZURE, OPERATIONS_NAMED_OTHERWISE
from cloud.accounts.provision.policies import AwsScope

ROOT = Path(__file__).resolve().parents[2]
SCOPE = AwsScope("eu-central-1", "123456789012")
TRUST = policies.aws_trust("arn:aws:iam::999988887777:role/starling", "starling-abc")
MANAGED_POLICY_LIMIT, ROLE_POLICY_LIMIT, TRUST_LIMIT = 6144, 10240, 2048

# boto3's service -> what IAM calls it.
SERVICES = {
    "lambda": "lambda",
    "iam": "iam",
    "logs": "logs",
    "s3": "s3",
    "resourcegroupstaggingapi": "tag",
}
# Waiters and paginators stand for the operations they call.
STAND_INS = {
    "function_active_v2": "lambda:GetFunction",
    "function_updated_v2": "lambda:GetFunction",
    "function_active": "lambda:GetFunctionConfiguration",
    "function_updated": "lambda:GetFunctionConfiguration",
}


def _actions_by_method() -> dict[str, set[str]]:
    """The action of each method name of an SDK client: `get_function` -> lambda:GetFunction."""
    found: dict[str, set[str]] = {}
    session = boto3.session.Session(region_name="eu-central-1")
    for service, prefix in SERVICES.items():
        client = session.client(service, aws_access_key_id="x", aws_secret_access_key="x")
        for operation in client.meta.service_model.operation_names:
            action = OPERATIONS_NAMED_OTHERWISE.get(operation, operation)
            found.setdefault(xform_name(operation), set()).add(f"{prefix}:{action}")
    return found


def _called(tree: ast.AST) -> Iterator[str]:
    """Methods that are called or handed over, and the names given to waiters and paginators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        match node:
            case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str(name)), *_]):
                if method in ("get_waiter", "get_paginator", "generate_presigned_url"):
                    yield name


def _sources() -> Iterator[Path]:
    """Files that talk to AWS's SDK; the emulator is the other side."""
    for path in sorted((ROOT / "cloud").rglob("*.py")):
        if "emulator" not in path.parts and ("aws" in path.name or "provision" in path.parts):
            yield path


@pytest.fixture(scope="module")
def used() -> dict[str, set[str]]:
    """Each call in our sources, with the actions it may stand for: services have methods of the same name."""
    by_method = _actions_by_method() | {name: {action} for name, action in STAND_INS.items()}
    return {
        name: by_method[name]
        for path in _sources()
        for name in _called(ast.parse(path.read_text()))
        if name in by_method
    }


def test_every_call_to_the_sdk_has_its_permission(used: dict[str, set[str]]) -> None:
    granted = {permission.action for permission in AWS}
    assert len(used) > 5
    assert {name: actions for name, actions in used.items() if not actions & granted} == {}


def test_every_action_is_one_that_the_service_knows() -> None:
    known = {action for actions in _actions_by_method().values() for action in actions}
    no_operation = {"iam:PassRole"}
    assert {permission.action for permission in AWS} - no_operation <= known
    assert len({permission.action for permission in AWS}) == len(AWS)
    assert len({permission.action for permission in AZURE}) == len(AZURE)


def _statements(document: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["Statement"]
    return found


def test_the_policy_names_each_permission_once_and_nothing_else() -> None:
    actions = [action for one in _statements(policies.aws_policy(SCOPE)) for action in one["Action"]]
    assert sorted(actions) == sorted(permission.action for permission in AWS)
    assert not any("*" in action for action in actions)


def test_only_what_knows_no_resources_holds_everywhere() -> None:
    everywhere = {
        action
        for one in _statements(policies.aws_policy(SCOPE))
        if one["Resource"] == "*"
        for action in one["Action"]
    }
    assert everywhere == {"lambda:GetAccountSettings", "tag:GetResources"}


@pytest.mark.parametrize("prefix", ["starling", "other"])
def test_every_other_right_ends_at_the_prefix_the_account_and_the_region(prefix: str) -> None:
    scope = AwsScope("eu-west-1", "123456789012", prefix)
    for one in _statements(policies.aws_policy(scope)):
        resources = one["Resource"] if isinstance(one["Resource"], list) else [one["Resource"]]
        for resource in resources:
            if resource == "*":
                continue
            assert f"{prefix}-" in resource
            if resource.startswith(("arn:aws:lambda", "arn:aws:logs")):
                assert ":eu-west-1:123456789012:" in resource
            if resource.startswith("arn:aws:iam"):
                assert ":123456789012:role/" in resource


def test_the_actor_role_goes_to_lambda_only() -> None:
    (passing,) = [one for one in _statements(policies.aws_policy(SCOPE)) if one["Action"] == ["iam:PassRole"]]
    assert passing["Resource"] == "arn:aws:iam::123456789012:role/starling-actor"
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}


def test_nothing_can_give_itself_more() -> None:
    """No right to write policies, roles or users: with PassRole, that would be every right."""
    for action in (permission.action for permission in AWS):
        assert action in ("iam:PassRole", "iam:SimulatePrincipalPolicy") or not action.startswith("iam:")


def test_the_role_is_for_us_and_only_with_the_external_id() -> None:
    (statement,) = _statements(TRUST)
    assert statement["Principal"] == {"AWS": "arn:aws:iam::999988887777:role/starling"}
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": "starling-abc"}}


@pytest.mark.parametrize(
    ("region", "partition"),
    [("eu-central-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")],
)
def test_each_of_awss_clouds_has_its_own_addresses(region: str, partition: str) -> None:
    text = policies.as_text(policies.aws_policy(AwsScope(region)))
    assert f"arn:{partition}:lambda:{region}:" in text


def test_documents_fit_where_they_go() -> None:
    """AWS counts without white space."""

    def size(document: Any) -> int:
        return len(json.dumps(document, separators=(",", ":")))

    longest = AwsScope("ap-southeast-1", "123456789012", own_arn="arn:aws:iam::123456789012:role/" + "x" * 64)
    assert size(policies.aws_policy(longest)) < MANAGED_POLICY_LIMIT < ROLE_POLICY_LIMIT
    assert size(TRUST) < TRUST_LIMIT


def test_the_stack_makes_both_roles_and_tells_the_arn() -> None:
    stack = policies.cloudformation(SCOPE, TRUST)
    roles = {key: one["Properties"] for key, one in stack["Resources"].items()}
    assert roles["ActorRole"]["RoleName"] == "starling-actor"
    assert roles["DashboardRole"]["AssumeRolePolicyDocument"] == TRUST
    assert stack["Outputs"]["RoleArn"]["Value"] == {"Fn::GetAtt": ["DashboardRole", "Arn"]}
    (actor,) = roles["ActorRole"]["Policies"]
    actions = {action for one in actor["PolicyDocument"]["Statement"] for action in one["Action"]}
    assert actions == set(permissions.ACTOR) == {"logs:CreateLogStream", "logs:PutLogEvents"}


@pytest.mark.parametrize("trust", [TRUST, None])
def test_the_stack_holds_in_whichever_account_it_is_made(trust: Any) -> None:
    def strings(part: Any, filled: bool = False) -> Iterator[tuple[str, bool]]:
        match part:
            case dict():
                for key, value in part.items():
                    yield from strings(value, key == "Fn::Sub")
            case list():
                for value in part:
                    yield from strings(value)
            case str():
                yield part, filled

    placed = [
        (text, filled) for text, filled in strings(policies.cloudformation(SCOPE, trust)) if "${" in text
    ]
    assert placed
    assert all(filled for _, filled in placed)
    assert not any("123456789012" in text for text, _ in strings(policies.cloudformation(SCOPE, trust)))


def test_without_trust_the_stack_makes_a_user_and_no_key() -> None:
    resources = policies.cloudformation(SCOPE)["Resources"]
    assert sorted(one["Type"] for one in resources.values()) == [
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::IAM::User",
    ]


def test_azures_roles_end_where_they_should() -> None:
    group = policies.azure_role("sub-1", "starling")
    reader = policies.azure_reader_role("sub-1")
    assert group["AssignableScopes"] == ["/subscriptions/sub-1/resourceGroups/starling"]
    assert reader["AssignableScopes"] == ["/subscriptions/sub-1"]
    assert set(group["Actions"]) | set(reader["Actions"]) == {permission.action for permission in AZURE}
    assert all(action.endswith("/read") for action in reader["Actions"])
    assert not any("*" in action for action in group["Actions"])
