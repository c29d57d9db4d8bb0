"""The least rights that Starling needs, as policy documents to copy into a cloud's own tools.

All are generated from `permissions`: the actions that the code calls and the test of a connection checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from cloud.accounts.provision.permissions import ACTOR, AWS, AZURE, SHARED_PREFIX, Permission, Target

Document = dict[str, Any]

_SIDS: dict[Target, str] = {
    "function": "Functions",
    "account": "Account",
    "actor_role": "PassActorRole",
    "own_role": "CheckThisRole",
    "logs": "Logs",
    "bucket": "Bucket",
    "weights": "Weights",
}
_VERSION = "2012-10-17"
_TAGS = [{"Key": "app", "Value": "starling"}]


@dataclass(frozen=True)
class AwsScope:
    """Where the rights hold: one account, one region, and names that begin with the prefix.

    An account that is not known yet is `*`: a policy belongs to one account and reaches no other.
    """

    region: str
    account: str = "*"
    prefix: str = SHARED_PREFIX
    own_arn: str = ""
    """The role or user of the policy; empty: the role that our template creates."""
    stack_partition: str = ""
    """The text for which CloudFormation fills in the partition; empty: the partition follows from the region."""

    @property
    def partition(self) -> str:
        """The one of AWS's separate clouds that has the region."""
        if self.stack_partition:
            return self.stack_partition
        if self.region.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if self.region.startswith("us-gov-") else "aws"

    @property
    def actor_role_name(self) -> str:
        return f"{self.prefix}-actor"

    @property
    def own_role_name(self) -> str:
        return f"{self.prefix}-dashboard"

    def arn(self, on: Target) -> str:
        """Return the resources that a permission is for."""
        aws, region, account = f"arn:{self.partition}", self.region, self.account
        match on:
            case "function":
                return f"{aws}:lambda:{region}:{account}:function:{self.prefix}-*"
            case "actor_role":
                return f"{aws}:iam::{account}:role/{self.actor_role_name}"
            case "own_role":
                return self.own_arn or f"{aws}:iam::{account}:role/{self.own_role_name}"
            case "logs":
                return f"{aws}:logs:{region}:{account}:log-group:/aws/lambda/{self.prefix}-*"
            case "bucket":
                return f"{aws}:s3:::{self.prefix}-*"
            case "weights":
                return f"{aws}:s3:::{self.prefix}-*/*"
            case _:
                return "*"

    def sample(self, on: Target) -> str:
        """Return one resource that such a permission covers; it need not exist."""
        return self.arn(on).replace("-*", "-check").replace("/*", "/check")

    @property
    def of_signed_in_user(self) -> str:
        """The ARN of the user that a policy is attached to; AWS fills in the name."""
        return f"arn:{self.partition}:iam::{self.account}:user/${{aws:username}}"


def aws_policy(scope: AwsScope, permissions: Iterable[Permission] = AWS) -> Document:
    """Return the policy of this installation's role or user."""
    by_target: dict[Target, list[str]] = {}
    for permission in permissions:
        by_target.setdefault(permission.on, []).append(permission.action)
    return {
        "Version": _VERSION,
        "Statement": [_statement(scope, on, actions) for on, actions in by_target.items()],
    }


def _statement(scope: AwsScope, on: Target, actions: list[str]) -> Document:
    statement: Document = {
        "Sid": _SIDS[on],
        "Effect": "Allow",
        "Action": sorted(actions),
        "Resource": _resources(scope, on),
    }
    if on == "actor_role":
        statement["Condition"] = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
    return statement


def _resources(scope: AwsScope, on: Target) -> str | list[str]:
    arn = scope.arn(on)
    # With and without a suffix: a version, a stream.
    return [arn, f"{arn}:*"] if on in ("function", "logs") else arn


def aws_trust(principal: str, external_id: str) -> Document:
    """Return a trust policy: only this installation may assume the role, and only with the connection's external id."""
    return {
        "Version": _VERSION,
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": principal},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
            }
        ],
    }


def actor_trust() -> Document:
    """Return the actor role's trust policy: functions may run under it."""
    return {
        "Version": _VERSION,
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "lambda.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }


def actor_policy(scope: AwsScope) -> Document:
    """Return the policy of the functions themselves."""
    return {
        "Version": _VERSION,
        "Statement": [
            {
                "Sid": "WriteItsLog",
                "Effect": "Allow",
                "Action": list(ACTOR),
                "Resource": f"{scope.arn('logs')}:*",
            }
        ],
    }


def cloudformation(scope: AwsScope, trust: Document | None = None) -> Document:
    """Return a stack with the actor role and the role that Starling assumes; without `trust`, a user to make keys for.

    Deleting the stack deletes all of it.
    """
    here = replace(scope, account="${AWS::AccountId}", own_arn="", stack_partition="${AWS::Partition}")
    resources = {"ActorRole": _role(here.actor_role_name, actor_trust(), actor_policy(here))}
    if trust is None:
        resources.update(_user(here))
        output = _output("UserName", "Make an access key for this user", {"Ref": "DashboardUser"})
    else:
        resources["DashboardRole"] = _role(here.own_role_name, trust, aws_policy(here))
        output = _output("RoleArn", "Paste this into Starling", {"Fn::GetAtt": ["DashboardRole", "Arn"]})
    stack: Document = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "What Starling needs in this account. Delete the stack to take it away.",
        "Resources": resources,
        "Outputs": output,
    }
    filled: Document = _with_substitutions(stack)
    return filled


def _output(name: str, words: str, value: Document) -> Document:
    return {name: {"Description": words, "Value": value}}


def _user(scope: AwsScope) -> Document:
    """Return a user without keys. Its policy is managed: a policy within a user has at most 2,048 letters."""
    name = scope.own_role_name
    arn = f"arn:{scope.partition}:iam::{scope.account}:user/{name}"
    policy = {"PolicyDocument": aws_policy(replace(scope, own_arn=arn)), "Users": [{"Ref": "DashboardUser"}]}
    return {
        "DashboardUser": {"Type": "AWS::IAM::User", "Properties": {"UserName": name, "Tags": _TAGS}},
        "DashboardPolicy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": policy},
    }


def _role(name: str, trust: Document, policy: Document) -> Document:
    properties = {
        "RoleName": name,
        "AssumeRolePolicyDocument": trust,
        "Policies": [{"PolicyName": name, "PolicyDocument": policy}],
        "Tags": _TAGS,
    }
    return {"Type": "AWS::IAM::Role", "Properties": properties}


def _with_substitutions(part: Any) -> Any:
    """Return the document with Fn::Sub around texts with ${AWS::…}: CloudFormation fills in only those."""
    match part:
        case dict():
            return {key: _with_substitutions(value) for key, value in part.items()}
        case list():
            return [_with_substitutions(value) for value in part]
        case str() if "${AWS::" in part:
            return {"Fn::Sub": part}
    return part


def azure_role(subscription_id: str, resource_group: str, prefix: str = SHARED_PREFIX) -> Document:
    """Return a custom role for the service principal, assignable in this one resource group only.

    A directory has one custom role of a name: the prefix keeps those of two connections apart.
    """
    return {
        "Name": f"{prefix.capitalize()} in {resource_group}",
        "IsCustom": True,
        "Description": "Starts, watches and deletes Starling's container groups, and reads the region's limits.",
        "Actions": [permission.action for permission in AZURE if permission.on != "region"],
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [f"/subscriptions/{subscription_id}/resourceGroups/{resource_group}"],
    }


def azure_reader_role(subscription_id: str, prefix: str = SHARED_PREFIX) -> Document:
    """Return the second custom role: it only reads a region's limits, which belong to the subscription."""
    return {
        "Name": f"{prefix.capitalize()}, limits of regions",
        "IsCustom": True,
        "Description": "Reads how many cores the subscription may use in a region.",
        "Actions": [permission.action for permission in AZURE if permission.on == "region"],
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [f"/subscriptions/{subscription_id}"],
    }


def as_text(document: Document) -> str:
    """Return the document as JSON, which CloudFormation accepts as well as YAML."""
    return json.dumps(document, indent=2)
