"""Shared by set-up and removal: the owner of functions, existing functions, and steps that AWS refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloud.accounts.connections import AwsClients
from cloud.accounts.provision.permissions import SHARED_PREFIX
from cloud.accounts.provision.steps import SetUpStep
from cloud.platforms.aws.error_text import ABSENT, code_of, refusal
from cloud.platforms.aws.functions import TAG

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


def account_of(clients: AwsClients) -> tuple[str, SetUpStep]:
    """Return the account's number, empty if the credentials are refused."""
    region = clients.connection.region
    try:
        account = str(clients.client("sts").get_caller_identity()["Account"])
    except Exception as error:
        return "", missing("Account", error)
    return account, SetUpStep(
        "Account", "done", f"AWS accepts the credentials for account {account} in {region}."
    )


def missing(name: str, error: Exception, instead: str = "") -> SetUpStep:
    """Return a step that AWS refused. `instead`: what else people may do."""
    why = refusal(error)
    return SetUpStep(name, "missing", why.words, f"{why.fix} {instead}".strip())


def described(functions: Any, name: str) -> dict[str, Any] | None:
    try:
        configuration: dict[str, Any] = functions.get_function_configuration(FunctionName=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            return None
        raise
    return configuration


def tags_of(functions: Any, described: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the function's tags; none if there is no function."""
    if described is None:
        return {}
    return dict(functions.list_tags(Resource=described["FunctionArn"])["Tags"])


def belongs_to(owner: Owner, prefix: str, tags: Mapping[str, str]) -> bool:
    """Return True if an existing function is this connection's: its tags say so.

    Without such a tag its name decides, if no other connection gives names with this prefix.
    """
    connection = tags.get("connection", "")
    return connection == owner.connection or (not connection and prefix != SHARED_PREFIX)


def others_words(tags: Mapping[str, str]) -> str:
    """Return whose function it is, if `belongs_to` denies that it is ours."""
    if "connection" in tags:
        return f"It belongs to another connection ({tags['connection']})"
    return "Its tags do not say which connection it belongs to"
