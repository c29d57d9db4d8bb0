"""The CloudFormation templates: judged by cfn-lint, and deployed by moto, another maker's copy of AWS.

moto cannot delete the stack of a user: it deletes the user before the policy that is attached to it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from cfnlint.api import lint_all
from moto import mock_aws

from cloud.accounts.provision import policies
from cloud.accounts.provision.permissions import ACTOR, AWS
from cloud.accounts.provision.policies import AwsScope, Document

PARTITIONS = {"eu-central-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"}
ACCOUNT = "123456789012"
ADVICE_FOR_ASSISTANTS = "I4010"
"""It wants descriptions for programs that write templates, in every one."""

in_each_cloud = pytest.mark.parametrize(
    "region",
    [
        region if partition == "aws" else pytest.param(region, marks=pytest.mark.slow)
        for region, partition in PARTITIONS.items()
    ],
)
in_clouds_of_moto = pytest.mark.parametrize("region", ["eu-central-1", "cn-north-1"])
"""moto takes GovCloud's address of IAM for that of the first cloud."""
of_each_kind = pytest.mark.parametrize("kind", ["role", "keys"])


def _template(kind: str, region: str) -> Document:
    principal = f"arn:{PARTITIONS[region]}:iam::999988887777:user/starling"
    trust = policies.aws_trust(principal, "starling-abc") if kind == "role" else None
    return policies.cloudformation(AwsScope(region), trust)


@of_each_kind
@in_each_cloud
def test_a_linter_of_templates_finds_nothing(kind: str, region: str) -> None:
    found = lint_all(policies.as_text(_template(kind, region)))
    assert [one.message for one in found if one.rule.id != ADVICE_FOR_ASSISTANTS] == []


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield


def _deployed(kind: str, region: str) -> dict[str, str]:
    """The outputs of a complete stack."""
    stacks = boto3.client("cloudformation", region_name=region)
    text = policies.as_text(_template(kind, region))
    stacks.create_stack(StackName="starling", TemplateBody=text, Capabilities=["CAPABILITY_NAMED_IAM"])
    (stack,) = stacks.describe_stacks(StackName="starling")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}


def _arns_in(document: Any) -> set[str]:
    return {
        one
        for statement in document["Statement"]
        for one in (
            statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        )
        if one != "*"
    }


def _actions_in(document: Any) -> set[str]:
    return {action for statement in document["Statement"] for action in statement["Action"]}


def _policy_of(iam: Any, role: str) -> Any:
    """moto keeps a stack's policies within roles as Python writes them, not as JSON."""
    return ast.literal_eval(iam.get_role_policy(RoleName=role, PolicyName=role)["PolicyDocument"])


def _check_arns(document: Any) -> None:
    """moto fills in one partition wherever the stack is made, so a guess from the region would show."""
    arns = _arns_in(document)
    assert arns
    assert {arn.split(":")[1] for arn in arns} == {"aws"}
    assert {arn.split(":")[4] for arn in arns} <= {ACCOUNT, ""}


@in_clouds_of_moto
def test_the_stack_makes_both_roles(moto: None, region: str) -> None:
    outputs = _deployed("role", region)
    iam, partition = boto3.client("iam", region_name=region), PARTITIONS[region]
    assert outputs == {"RoleArn": f"arn:{partition}:iam::{ACCOUNT}:role/starling-dashboard"}
    for role, actions in (
        ("starling-dashboard", {one.action for one in AWS}),
        ("starling-actor", set(ACTOR)),
    ):
        policy = _policy_of(iam, role)
        assert _actions_in(policy) == actions
        _check_arns(policy)
    trust = iam.get_role(RoleName="starling-dashboard")["Role"]["AssumeRolePolicyDocument"]
    assert trust["Statement"][0]["Condition"] == {"StringEquals": {"sts:ExternalId": "starling-abc"}}
    actor = iam.get_role(RoleName="starling-actor")["Role"]["AssumeRolePolicyDocument"]
    assert actor["Statement"][0]["Principal"] == {"Service": "lambda.amazonaws.com"}


@in_clouds_of_moto
def test_the_stack_makes_the_user_and_the_actors_role(moto: None, region: str) -> None:
    assert _deployed("keys", region) == {"UserName": "starling-dashboard"}
    iam, partition = boto3.client("iam", region_name=region), PARTITIONS[region]
    arn = iam.get_user(UserName="starling-dashboard")["User"]["Arn"]
    assert arn == f"arn:{partition}:iam::{ACCOUNT}:user/starling-dashboard"
    (attached,) = iam.list_attached_user_policies(UserName="starling-dashboard")["AttachedPolicies"]
    version = iam.get_policy_version(PolicyArn=attached["PolicyArn"], VersionId="v1")
    policy = version["PolicyVersion"]["Document"]
    policy = json.loads(policy) if isinstance(policy, str) else policy
    assert _actions_in(policy) == {one.action for one in AWS}
    _check_arns(policy)
    assert f"arn:aws:iam::{ACCOUNT}:user/starling-dashboard" in _arns_in(policy)
    assert iam.list_access_keys(UserName="starling-dashboard")["AccessKeyMetadata"] == []


@of_each_kind
@in_each_cloud
def test_the_account_says_which_of_awss_clouds_it_is_in(kind: str, region: str) -> None:
    """The region's name says it only by habit."""

    def strings(part: Any) -> Iterator[str]:
        match part:
            case dict():
                for key, value in part.items():
                    yield from () if key == "Principal" else strings(value)
            case list():
                for value in part:
                    yield from strings(value)
            case str():
                yield part

    arns = [text for text in strings(_template(kind, region)) if text.startswith("arn:")]
    assert arns
    assert all(arn.startswith("arn:${AWS::Partition}:") for arn in arns)


def test_deleting_the_stack_leaves_nothing(moto: None) -> None:
    _deployed("role", "eu-central-1")
    boto3.client("cloudformation", region_name="eu-central-1").delete_stack(StackName="starling")
    iam = boto3.client("iam", region_name="eu-central-1")
    assert iam.list_roles()["Roles"] == iam.list_users()["Users"] == []
