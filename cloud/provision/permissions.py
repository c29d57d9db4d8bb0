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

DEFAULT_PREFIX = "starling"
"""The beginning of all names that we give in an account."""


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
    Permission("lambda:GetFunction", "function", "see whether the function is there and up to date"),
    Permission("lambda:GetFunctionConfiguration", "function", "wait until the function is ready"),
    Permission("lambda:UpdateFunctionCode", "function", "bring a newer actor"),
    Permission("lambda:UpdateFunctionConfiguration", "function", "set memory and time limit"),
    Permission("lambda:TagResource", "function", "mark what belongs to Starling, with owner and expiry"),
    Permission("lambda:ListTags", "function", "know its own functions again"),
    Permission("lambda:InvokeFunction", "function", "run rollouts"),
    Permission("lambda:DeleteFunction", "function", "take everything away again"),
    Permission("iam:PassRole", "actor_role", "let the function run under the actor role"),
    Permission("tag:GetResources", "account", "find what was left behind, by its tags"),
    Permission("logs:CreateLogGroup", "logs", "make the function's log with a retention time"),
    Permission("logs:PutRetentionPolicy", "logs", "have logs deleted after some days"),
    Permission("logs:DeleteLogGroup", "logs", "take the function's log away"),
    Permission("logs:FilterLogEvents", "logs", "find out what a lost call cost"),
    Permission("lambda:PublishVersion", "function", "name a version that is kept warm", optional=True),
    Permission("lambda:PutProvisionedConcurrencyConfig", "function", "keep functions warm", optional=True),
    Permission("lambda:GetProvisionedConcurrencyConfig", "function", "see how many are warm", optional=True),
    Permission(
        "lambda:ListProvisionedConcurrencyConfigs",
        "function",
        "find what a killed process keeps warm, and stop paying for it",
        optional=True,
    ),
    Permission(
        "lambda:DeleteProvisionedConcurrencyConfig",
        "function",
        "stop keeping them warm, and paying for it",
        optional=True,
    ),
    Permission("s3:CreateBucket", "bucket", "make a bucket for networks larger than 4 MB", optional=True),
    Permission("s3:PutBucketTagging", "bucket", "mark that bucket as Starling's", optional=True),
    Permission(
        "s3:PutLifecycleConfiguration",
        "bucket",
        "have what is in that bucket deleted after a day",
        optional=True,
    ),
    Permission(
        "s3:ListBucket", "bucket", "see whether that bucket is there and what is in it", optional=True
    ),
    Permission("s3:DeleteBucket", "bucket", "take that bucket away", optional=True),
    Permission("s3:PutObject", "weights", "hand over networks larger than 4 MB", optional=True),
    Permission("s3:GetObject", "weights", "hand over networks larger than 4 MB", optional=True),
    Permission("s3:DeleteObject", "weights", "clear networks away that were handed over", optional=True),
    Permission(
        "iam:SimulatePrincipalPolicy", "own_role", "check these permissions one by one", optional=True
    ),
)

AZURE: tuple[Permission, ...] = (
    Permission(
        "Microsoft.ContainerInstance/locations/usages/read", "region", "see how many cores may be used"
    ),
    Permission(
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "group",
        "see that the resource group is there",
    ),
    Permission("Microsoft.Authorization/permissions/read", "group", "check these permissions one by one"),
    Permission(
        "Microsoft.ContainerInstance/containerGroups/write", "container_group", "start container groups"
    ),
    Permission("Microsoft.ContainerInstance/containerGroups/read", "container_group", "see what runs"),
    Permission(
        "Microsoft.ContainerInstance/containerGroups/delete",
        "container_group",
        "take container groups away again",
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
