"""The test of a connection to Azure. It only reads, and each check has its own result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from cloud.accounts.checks import AccountCheck, Findings, Quota, Unanswered
from cloud.accounts.provision.permissions import AZURE, Permission
from cloud.platforms.azure.error_text import DENIED, code_of, refusal

_GROUPS_API = "2021-04-01"
_PERMISSIONS_API = "2022-04-01"
_USAGES = "Microsoft.ContainerInstance/locations/usages/read"
_ASK = "Microsoft.Authorization/permissions/read"
_QUOTAS = {"ContainerGroups": ("Container groups", "groups"), "StandardCores": ("Cores", "cores")}
_FEW_CORES = 20

CONTAINERS_USABLE = "Container instances may be used in this region"
GROUP_EXISTS = "The resource group exists"


class AzureReader(Protocol):
    """What the test needs of Azure's SDK for one service principal."""

    def sign_in(self) -> None:
        """Get a token, or raise the SDK's error."""

    def usages(self, region: str) -> Iterable[Any]:
        """The region's limits, as the SDK's models."""

    def read(self, path: str, api_version: str) -> Mapping[str, Any]:
        """A GET of the resource manager, or the SDK's error."""


@dataclass(frozen=True)
class AzureQuestion:
    """The connection to test."""

    region: str
    subscription_id: str
    resource_group: str
    tenant_id: str
    client_id: str

    @property
    def group_path(self) -> str:
        return f"/subscriptions/{self.subscription_id}/resourcegroups/{self.resource_group}"


def check_azure(azure: AzureReader, question: AzureQuestion, findings: Findings) -> None:
    """Add every check that changes nothing in the subscription. Raises Unanswered if further checks are impossible."""
    _sign_in(azure, question, findings)
    tried = {_USAGES: _limits(azure, question, findings)}
    _group(azure, question, findings)
    granted, why = _granted(azure, question)
    findings.found(*(_row(permission, tried, granted, why) for permission in AZURE))


def _sign_in(azure: AzureReader, question: AzureQuestion, findings: Findings) -> None:
    name = "The credentials are valid"
    try:
        azure.sign_in()
    except Exception as error:
        why = refusal(error)
        findings.found(AccountCheck(name, False, why.words, why.fix))
        raise Unanswered from None
    findings.identity = f"app {question.client_id} in tenant {question.tenant_id}"
    findings.account = question.subscription_id
    findings.found(AccountCheck(name, True, "Azure signs the app in."))


def _limits(azure: AzureReader, question: AzureQuestion, findings: Findings) -> bool | None:
    """Add the quotas. Return whether reading them is allowed, None if that is not known."""
    name = CONTAINERS_USABLE
    try:
        usages = list(azure.usages(question.region))
    except Exception as error:
        if code_of(error) in DENIED:
            return False
        why = refusal(error)
        findings.found(AccountCheck(name, False, why.words, why.fix))
        return None
    findings.found(AccountCheck(name, True, f"The subscription is registered for them in {question.region}."))
    for usage in usages:
        if usage.name.value in _QUOTAS:
            title, unit = _QUOTAS[usage.name.value]
            limit = int(usage.limit)
            words = ""
            if unit == "cores" and limit < _FEW_CORES:
                words = "Some new subscriptions have a low limit. Ask for more with a support request; it is free."
            findings.quotas.append(Quota(title, limit, unit, int(usage.current_value), words))
    return True


def _group(azure: AzureReader, question: AzureQuestion, findings: Findings) -> None:
    name = GROUP_EXISTS
    try:
        group = azure.read(question.group_path, _GROUPS_API)
    except Exception as error:
        why = refusal(error)
        findings.found(AccountCheck(name, False, why.words, why.fix))
        return
    region = group.get("location", "an unnamed region")
    findings.found(AccountCheck(name, True, f"{question.resource_group} is in {region}."))


def _granted(azure: AzureReader, question: AzureQuestion) -> tuple[list[Mapping[str, Any]] | None, str]:
    """Return what the roles allow in the group, also inherited ones; None, and why, if Azure does not say."""
    path = f"{question.group_path}/providers/Microsoft.Authorization/permissions"
    try:
        return list(azure.read(path, _PERMISSIONS_API).get("value", [])), ""
    except Exception as error:
        return None, refusal(error).words


def _row(
    permission: Permission,
    tried: Mapping[str, bool | None],
    granted: list[Mapping[str, Any]] | None,
    why_unknown: str,
) -> AccountCheck:
    action = permission.action
    without = f"Needed to {permission.needed_to}."
    where = "subscription" if permission.on == "region" else "resource group"
    fix = f"Add {action} to the app's role in the {where}, or copy the roles shown here again."
    ok = tried.get(action)
    if ok is None and granted is not None:
        ok = any(_allows(role, action) for role in granted)
    if granted is None and action == _ASK:
        return AccountCheck(action, False, f"{without} {why_unknown}", fix, optional=True)
    if ok is None:
        return AccountCheck(
            action,
            None,
            f"{without} Only its first use will show whether it is allowed.",
            "",
            permission.optional,
        )
    if ok:
        return AccountCheck(action, True, without, "", permission.optional)
    return AccountCheck(action, False, f"{without} No role of the app allows it.", fix, permission.optional)


def _allows(role: Mapping[str, Any], action: str) -> bool:
    """Return True if a role's actions cover this one: a star matches anything, letter case does not matter."""
    wanted = action.lower()

    def covers(patterns: Iterable[str]) -> bool:
        return any(fnmatchcase(wanted, pattern.lower()) for pattern in patterns)

    return covers(role.get("actions", ())) and not covers(role.get("notActions", ()))
