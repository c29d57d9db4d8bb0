"""The least rights that Starling works with, as documents to copy into a cloud's own tools.

All are generated from `permissions`: what a policy names, the code calls, and the test of a connection asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from cloud.provision.permissions import ACTOR, AWS, AZURE, DEFAULT_PREFIX, Permission, Target

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

    An account that is not known yet is `*`: the policy lies in one account and reaches no other.
    """

    region: str
    account: str = "*"
    prefix: str = DEFAULT_PREFIX
    own_arn: str = ""
    """The role or user that the policy is for; left out, the role under the name that our template gives it."""

    @property
    def partition(self) -> str:
        """Which of AWS's separate clouds the region lies in."""
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
        """What a permission is asked for."""
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
        """One thing that such a permission would be used on; it need not exist."""
        return self.arn(on).replace("-*", "-check").replace("/*", "/check")

    @property
    def of_signed_in_user(self) -> str:
        """The address of whichever user a policy is attached to; AWS fills the name in."""
        return f"arn:{self.partition}:iam::{self.account}:user/${{aws:username}}"


def aws_policy(scope: AwsScope, permissions: Iterable[Permission] = AWS) -> Document:
    """What the role or user of this installation may do."""
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
    # With and without what may follow: a version, a stream.
    return [arn, f"{arn}:*"] if on in ("function", "logs") else arn


def aws_trust(principal: str, external_id: str) -> Document:
    """Who may take on the role: this installation, and only with the id that belongs to this connection."""
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
    """Who runs under the actor role: the function."""
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
    """What a function may do itself."""
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
    """A stack with the actor role and the role that Starling takes on; without `trust`, a user to make keys for.

    Deleting the stack takes all of it away.
    """
    here = replace(scope, account="${AWS::AccountId}", own_arn="")
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
    filled: Document = _with_account_filled_in(stack)
    return filled


def _output(name: str, words: str, value: Document) -> Document:
    return {name: {"Description": words, "Value": value}}


def _user(scope: AwsScope) -> Document:
    """A user without keys. Its policy stands apart: within a user there is room for 2,048 letters only."""
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


def _with_account_filled_in(part: Any) -> Any:
    """CloudFormation fills in what stands in ${...} only where it is told to."""
    match part:
        case dict():
            return {key: _with_account_filled_in(value) for key, value in part.items()}
        case list():
            return [_with_account_filled_in(value) for value in part]
        case str() if "${AWS::" in part:
            return {"Fn::Sub": part}
    return part


def azure_role(
    subscription_id: str, resource_group: str, permissions: Iterable[Permission] = AZURE
) -> Document:
    """A custom role for the service principal, which can be given in this one resource group only."""
    return {
        "Name": f"Starling in {resource_group}",
        "IsCustom": True,
        "Description": "Starts, watches and deletes Starling's container groups, and reads the region's limits.",
        "Actions": [permission.action for permission in permissions if permission.on != "region"],
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [f"/subscriptions/{subscription_id}/resourceGroups/{resource_group}"],
    }


def azure_reader_role(subscription_id: str, permissions: Iterable[Permission] = AZURE) -> Document:
    """The second custom role: limits of a region belong to the subscription, and are only read."""
    return {
        "Name": "Starling, limits of regions",
        "IsCustom": True,
        "Description": "Reads how many cores the subscription may use in a region.",
        "Actions": [permission.action for permission in permissions if permission.on == "region"],
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [f"/subscriptions/{subscription_id}"],
    }


def as_text(document: Document) -> str:
    """The document as it is copied. CloudFormation takes JSON as well as YAML."""
    return json.dumps(document, indent=2)
