"""Every right that Starling uses in an account. The policies and the checks are both generated from these rows.

A row is one action that the code calls. A test compares the rows with the calls in the sources: it fails at a call
without a row, and at a row without a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Target = Literal[
    "function",
    "account",
    "actor_role",
    "own_role",
    "logs",
    "bucket",
    "weights",
    "container_group",
    "region",
    "group",
]

SHARED_PREFIX = "starling"
"""The beginning of the names of connections that release 0.1 made. Two of them in one account share names."""


def prefix_of(connection_id: str) -> str:
    """Return the beginning of all names that we give in an account for this connection, and for no other.

    No hyphen comes before the key: policies end at `prefix-*`, and those of SHARED_PREFIX must not reach these names.
    """
    return f"{SHARED_PREFIX}{connection_id.removeprefix('con_')}"


@dataclass(frozen=True)
class Permission:
    """One action on one kind of resource, and what it is needed for. An `optional` one serves a single feature."""

    action: str
    on: Target
    needed_to: str
    optional: bool = False


AWS: tuple[Permission, ...] = (
    Permission("lambda:GetAccountSettings", "account", "see how many functions may run at once"),
    Permission("lambda:CreateFunction", "function", "create the actor function"),
    Permission("lambda:GetFunction", "function", "check that the function exists and is up to date"),
    Permission("lambda:GetFunctionConfiguration", "function", "wait until the function is ready"),
    Permission("lambda:UpdateFunctionCode", "function", "update the actor's code"),
    Permission("lambda:UpdateFunctionConfiguration", "function", "set memory and time limit"),
    Permission("lambda:TagResource", "function", "tag Starling's functions with owner and expiry"),
    Permission("lambda:ListTags", "function", "recognise its own functions"),
    Permission("lambda:InvokeFunction", "function", "run calls"),
    Permission("lambda:DeleteFunction", "function", "delete the actor function"),
    Permission("iam:PassRole", "actor_role", "let the function run under the actor role"),
    Permission("tag:GetResources", "account", "find unused functions by their tags"),
    Permission("logs:CreateLogGroup", "logs", "create the function's log with a retention time"),
    Permission("logs:PutRetentionPolicy", "logs", "have logs deleted after some days"),
    Permission("logs:DeleteLogGroup", "logs", "delete the function's log"),
    Permission("logs:FilterLogEvents", "logs", "find the cost of lost calls"),
    Permission("lambda:PublishVersion", "function", "publish a version that is kept warm", optional=True),
    Permission("lambda:PutProvisionedConcurrencyConfig", "function", "keep functions warm", optional=True),
    Permission("lambda:GetProvisionedConcurrencyConfig", "function", "see how many are warm", optional=True),
    Permission(
        "lambda:ListProvisionedConcurrencyConfigs",
        "function",
        "find functions that a killed process keeps warm, and stop paying for them",
        optional=True,
    ),
    Permission(
        "lambda:DeleteProvisionedConcurrencyConfig",
        "function",
        "stop keeping functions warm, and stop paying for them",
        optional=True,
    ),
    Permission(
        "s3:CreateBucket", "bucket", "create a bucket for networks that do not fit into a call", optional=True
    ),
    Permission("s3:PutBucketTagging", "bucket", "tag that bucket as Starling's", optional=True),
    Permission(
        "s3:PutLifecycleConfiguration",
        "bucket",
        "have the bucket's objects deleted after a day",
        optional=True,
    ),
    Permission("s3:ListBucket", "bucket", "check that bucket and list its objects", optional=True),
    Permission("s3:DeleteBucket", "bucket", "delete that bucket", optional=True),
    Permission("s3:PutObject", "weights", "send networks larger than 1 MB", optional=True),
    Permission("s3:GetObject", "weights", "send networks larger than 1 MB", optional=True),
    Permission("s3:DeleteObject", "weights", "delete networks that were sent", optional=True),
    Permission(
        "iam:SimulatePrincipalPolicy", "own_role", "check these permissions one by one", optional=True
    ),
)

OPERATIONS_NAMED_OTHERWISE = {
    "Invoke": "InvokeFunction",
    "HeadObject": "GetObject",
    "HeadBucket": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
}
"""The action of an AWS operation, where its name differs."""

AZURE: tuple[Permission, ...] = (
    Permission(
        "Microsoft.ContainerInstance/locations/usages/read", "region", "see how many cores may be used"
    ),
    Permission(
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "group",
        "check that the resource group exists",
    ),
    Permission("Microsoft.Authorization/permissions/read", "group", "check these permissions one by one"),
    Permission(
        "Microsoft.ContainerInstance/containerGroups/write", "container_group", "start container groups"
    ),
    Permission(
        "Microsoft.ContainerInstance/containerGroups/read", "container_group", "list container groups"
    ),
    Permission(
        "Microsoft.ContainerInstance/containerGroups/delete",
        "container_group",
        "delete container groups",
    ),
    Permission(
        "Microsoft.ContainerInstance/containerGroups/containers/logs/read",
        "container_group",
        "read why a container ended",
    ),
)

ACTOR: tuple[str, ...] = ("logs:CreateLogStream", "logs:PutLogEvents")
"""The rights of the function itself: to write its log. Presigned addresses of weights need no right."""

BEYOND: tuple[str, ...] = (
    "iam:CreateUser",
    "iam:AttachRolePolicy",
    "ec2:RunInstances",
    "s3:ListAllMyBuckets",
)
"""Rights that Starling never needs. Credentials that have them have more than the policy shown."""
