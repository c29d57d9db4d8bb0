"""Policy documents of one connection, which the account's owner copies into the cloud's own tools."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from django.conf import settings

from cloud.accounts.provision import policies
from cloud.accounts.provision.policies import AwsScope, Document
from webapp.connections.models import Connection, ConnectionKind


class PolicyDocument(NamedTuple):
    """One policy document and the name of its file."""

    key: str
    title: str
    file_name: str
    text: str


def policy_documents(connection: Connection) -> dict[str, PolicyDocument]:
    """Policy documents by key. Empty for a role without a principal to trust: no one could assume it."""
    if connection.kind == ConnectionKind.AZURE_PRINCIPAL:
        return _azure(connection)
    if connection.kind == ConnectionKind.AWS_ROLE and not settings.STARLING_AWS_PRINCIPAL:
        return {}
    return _aws(connection)


def scope_of(connection: Connection) -> AwsScope:
    """The region and account that the connection's rights apply to, as far as known."""
    account = connection.account_id or "*"
    if connection.role_arn:
        account = connection.role_arn.split(":")[4]
    scope = AwsScope(connection.region, account, connection.prefix, connection.role_arn)
    if connection.kind == ConnectionKind.AWS_KEYS:
        return replace(scope, own_arn=scope.of_signed_in_user)
    return scope


def _aws(connection: Connection) -> dict[str, PolicyDocument]:
    scope = scope_of(connection)
    trust = None
    if connection.kind == ConnectionKind.AWS_ROLE:
        trust = policies.aws_trust(settings.STARLING_AWS_PRINCIPAL, connection.external_id)
    name = partial(_document, connection.prefix)
    documents = [
        name("stack", "CloudFormation template", policies.cloudformation(scope, trust)),
        name("policy", "Permissions policy", policies.aws_policy(scope)),
        name("actor_trust", "Trust policy of the actor role", policies.actor_trust()),
        name("actor_policy", "Policy of the actor role", policies.actor_policy(scope)),
    ]
    if trust is not None:
        documents.insert(1, name("trust", "Trust policy", trust))
    return {paper.key: paper for paper in documents}


def _azure(connection: Connection) -> dict[str, PolicyDocument]:
    name, subscription = partial(_document, connection.prefix), connection.subscription_id
    group = policies.azure_role(subscription, connection.resource_group, connection.prefix)
    reader = policies.azure_reader_role(subscription, connection.prefix)
    documents = [
        name("group_role", "Role in the resource group", group, "role"),
        name("limits_role", "Role in the subscription, for its limits", reader),
    ]
    return {paper.key: paper for paper in documents}


def _document(prefix: str, key: str, title: str, document: Document, file: str = "") -> PolicyDocument:
    file_name = f"{prefix}-{(file or key).replace('_', '-')}.json"
    return PolicyDocument(key, title, file_name, policies.as_text(document))
