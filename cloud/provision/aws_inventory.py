"""Shared by set-up and removal: the owner of functions, existing functions, and steps that AWS refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloud.aws.error_text import ABSENT, DENIED, code_of, refusal
from cloud.aws.functions import TAG
from cloud.connections import AwsClients
from cloud.provision.steps import Step

APP = "starling"


@dataclass(frozen=True)
class Owner:
    """The owner in tags: an installation, one of its connections, and its project."""

    deployment: str
    connection: str
    project: str

    @property
    def tags(self) -> dict[str, str]:
        return {
            TAG: APP,
            "deployment": self.deployment[:256],
            "connection": self.connection,
            "owner": self.project,
        }


def account_of(clients: AwsClients) -> tuple[str, Step]:
    """Return the account's number, empty if the credentials are refused."""
    region = clients.connection.region
    try:
        account = str(clients.client("sts").get_caller_identity()["Account"])
    except Exception as error:
        return "", missing("Account", error, "sts")
    return account, Step("Account", "done", f"AWS accepts the credentials for account {account} in {region}.")


def missing(name: str, error: Exception, service: str) -> Step:
    """Return a step that AWS refused, with the missing action."""
    why = refusal(error)
    action = _action(error, service)
    if why.code in DENIED and action:
        fix = f"Add {action} to the policy, or copy the whole policy again."
        return Step(name, "missing", f"AWS refuses {action} to these credentials.", fix)
    return Step(name, "missing", why.words, why.fix)


def _action(error: Exception, service: str) -> str:
    """Return the refused action as policies name it. Passing a role is an action without its own call."""
    if "iam:PassRole" in message_of(error):
        return "iam:PassRole"
    operation = getattr(error, "operation_name", "")
    return f"{service}:{operation}" if operation else ""


def message_of(error: Exception) -> str:
    response: Any = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Message", "")) if isinstance(response, dict) else ""


def described(functions: Any, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = functions.get_function_configuration(FunctionName=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            return None
        raise
    return found


def tags_of(functions: Any, described: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the function's tags; none if there is no function."""
    if described is None:
        return {}
    return dict(functions.list_tags(Resource=described["FunctionArn"])["Tags"])


def is_anothers(tags: Mapping[str, str], owner: Owner) -> bool:
    """Return True if the tags name another connection."""
    return tags.get("connection", owner.connection) != owner.connection
