"""An AWS account made ready for actors, and everything taken away again, one small step after the other.

Each step may be repeated: what is right stays, what is missing or old is made anew. Names follow from the prefix and
the memory size, so what a broken-off set-up left is found by the next one, and by the removal. The roles are the
owner's: they come from the template that is shown for the connection, and stay until its stack is deleted.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloud import aws_functions
from cloud.actor.bundle import ZIPPED_LIMIT_BYTES, Bundle, BundleError
from cloud.aws_functions import LOG_DAYS, TAG, function_name
from cloud.aws_words import ABSENT, DENIED, code_of, refusal
from cloud.connections import AwsClients
from cloud.provision.policies import AwsScope
from cloud.provision.steps import Step

TIMEOUT_S = 900
_APP = "starling"
_ASK_AGAIN_S = 1.0


@dataclass(frozen=True)
class Owner:
    """Whose things they are, as their tags say: an installation, one connection of it, and its project."""

    deployment: str
    connection: str
    project: str

    @property
    def tags(self) -> dict[str, str]:
        return {
            TAG: _APP,
            "deployment": self.deployment[:256],
            "connection": self.connection,
            "owner": self.project,
        }


class _CannotGoOn(Exception):
    """A step without which the next ones make no sense; it is told already."""


def set_up(
    clients: AwsClients,
    owner: Owner,
    memory_mb: Sequence[int],
    packed: Callable[[], Bundle],
    *,
    patience_s: float = 15.0,
) -> Iterator[Step]:
    """One function for each memory size, with its tags and its log. Told step by step; the last may be a missing one.

    `patience_s`: how long AWS may need until it lets a function run under a role that was just made.
    """
    account, step = _account(clients)
    yield step
    bundle, step = _package(packed)
    yield step
    if not account or bundle is None:
        return
    work = _SetUp(clients, owner, _role(clients, account), bundle, patience_s)
    try:
        for size in sorted(memory_mb):
            yield from work.function(size)
    except _CannotGoOn:
        return


def remove(
    clients: AwsClients, owner: Owner, memory_mb: Sequence[int], *, patience_s: float = 15.0
) -> Iterator[Step]:
    """Take away what `set_up` made for this owner, also for other sizes. What is gone already is gone.

    `patience_s`: how long AWS may go on showing what was deleted.
    """
    account, step = _account(clients)
    yield step
    if not account:
        return
    prefix = clients.connection.prefix
    names = {function_name(prefix, size) for size in memory_mb}
    try:
        names |= _tagged(clients, owner)
    except Exception as error:
        yield _missing("Looking for what is ours", error, "tag")
    removed = [_removed(clients, owner, name, patience_s) for name in sorted(names)]
    yield from removed
    if not removed:
        yield Step("Functions", "gone", "Nothing of this connection is in the account.")


# Steps of both


def _account(clients: AwsClients) -> tuple[str, Step]:
    """The account's number, empty if nobody lets us in."""
    region = clients.connection.region
    try:
        account = str(clients.client("sts").get_caller_identity()["Account"])
    except Exception as error:
        return "", _missing("Account", error, "sts")
    return account, Step("Account", "done", f"AWS lets us into account {account}; the region is {region}.")


def _missing(name: str, error: Exception, service: str) -> Step:
    """A step that AWS refused, with the action that is wanting."""
    why = refusal(error)
    action = _action(error, service)
    if why.code in DENIED and action:
        fix = f"Add {action} to the policy, or copy the whole policy again."
        return Step(name, "missing", f"AWS refuses {action} to these credentials.", fix)
    return Step(name, "missing", why.words, why.fix)


def _action(error: Exception, service: str) -> str:
    """What was asked for, as policies name it. Handing a role over is asked for by no call of its own."""
    if "iam:PassRole" in _message(error):
        return "iam:PassRole"
    operation = getattr(error, "operation_name", "")
    return f"{service}:{operation}" if operation else ""


def _message(error: Exception) -> str:
    response: Any = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Message", "")) if isinstance(response, dict) else ""


# Setting up


def _role(clients: AwsClients, account: str) -> str:
    """The ARN of the role that functions run under; our template gives it this name."""
    connection = clients.connection
    return AwsScope(connection.region, account, connection.prefix).arn("actor_role")


def _package(packed: Callable[[], Bundle]) -> tuple[Bundle | None, Step]:
    name = "Package"
    try:
        bundle = packed()
    except BundleError as error:
        words = f"It could not be packed: {error}."
        return None, Step(name, "missing", words, "See that this server may reach the package registry.")
    size_mb = len(bundle.data) / 2**20
    if len(bundle.data) > ZIPPED_LIMIT_BYTES:
        words = f"It has {size_mb:.0f} MiB, and AWS takes {ZIPPED_LIMIT_BYTES // 2**20} MiB."
        return None, Step(name, "missing", words, "This is a fault of this version of Starling.")
    words = f"The actor's code for {bundle.runtime}, {size_mb:.1f} MiB packed."
    return bundle, Step(name, "done", words)


class _SetUp:
    """One run through the steps of every function."""

    def __init__(
        self, clients: AwsClients, owner: Owner, role_arn: str, bundle: Bundle, patience_s: float
    ) -> None:
        self._functions = clients.client("lambda")
        self._logs = clients.client("logs")
        self._prefix = clients.connection.prefix
        self._owner = owner
        self._role_arn = role_arn
        self._bundle = bundle
        self._patience_s = patience_s
        self._role_told = False

    def function(self, memory_mb: int) -> Iterator[Step]:
        name = function_name(self._prefix, memory_mb)
        title = f"Function {name}"
        try:
            before = _described(self._functions, name)
            worn = _tags(self._functions, before)
            self._deploy(name, memory_mb, worn)
        except _RoleRefused:
            yield self._role_missing()
            raise _CannotGoOn from None
        except Exception as error:
            yield _missing(title, error, "lambda")
            raise _CannotGoOn from None
        if not self._role_told:
            self._role_told = True
            yield Step("Role of the functions", "done", f"AWS lets functions run under {self._role_arn}.")
        yield self._made_or_there(title, before, memory_mb)
        yield self._marked(title, before, worn)
        yield self._kept_logs(name)

    def _deploy(self, name: str, memory_mb: int, worn: Mapping[str, str]) -> None:
        """Bring it up to date. A role that was just made is not known everywhere at once."""
        end_s = time.monotonic() + self._patience_s
        while True:
            try:
                aws_functions.deploy(
                    self._functions,
                    name,
                    self._bundle,
                    self._role_arn,
                    memory_mb,
                    timeout_s=TIMEOUT_S,
                    tags=self._tags_for(worn),
                )
                return
            except Exception as error:
                if not _is_about_the_role(error):
                    raise
                if time.monotonic() > end_s:
                    raise _RoleRefused from None
            time.sleep(_ASK_AGAIN_S)

    def _tags_for(self, worn: Mapping[str, str]) -> dict[str, str]:
        """Ours, unless another connection made it: then it stays that one's to take away."""
        tags = self._owner.tags
        return (
            {key: worn.get(key, value) for key, value in tags.items()} if _others(worn, self._owner) else tags
        )

    def _role_missing(self) -> Step:
        words = f"AWS does not let functions run under {self._role_arn}, or there is no such role."
        fix = (
            "Create the stack from the template in step 1, or by hand a role of that name with the trust policy"
            " and the policy of the actor role. Then set up again."
        )
        return Step("Role of the functions", "missing", words, fix)

    def _made_or_there(self, title: str, before: Mapping[str, Any] | None, memory_mb: int) -> Step:
        settings = f"{memory_mb:,} MB, at most {TIMEOUT_S // 60} minutes a call"
        if before is None:
            return Step(title, "made", f"Made, with {settings}. Idle, it costs nothing.")
        changed = []
        if before["CodeSha256"] != _sha256(self._bundle):
            changed.append("this version's code was put in")
        if (before["MemorySize"], before["Timeout"]) != (memory_mb, TIMEOUT_S):
            changed.append(f"memory and time limit were set: {settings}")
        if before.get("Role") != self._role_arn:
            changed.append("the role was set")
        if changed:
            return Step(title, "made", f"It was there; {', and '.join(changed)}.")
        return Step(title, "done", f"It is there and up to date, with {settings}.")

    def _marked(self, title: str, before: Mapping[str, Any] | None, worn: Mapping[str, str]) -> Step:
        name = title.replace("Function", "Tags of", 1)
        if _others(worn, self._owner):
            words = f"It was made for another connection ({worn['connection']}), and is that one's to remove."
            return Step(name, "done", words)
        fresh = before is None or {key: worn.get(key) for key in self._owner.tags} != self._owner.tags
        words = f"Marked as made by {self._owner.deployment} for project {self._owner.project}."
        return Step(name, "made" if fresh else "done", words)

    def _kept_logs(self, name: str) -> Step:
        title = f"Log of {name}"
        try:
            fresh = aws_functions.keep_logs(self._logs, name)
        except Exception as error:
            return _missing(title, error, "logs")
        return Step(title, "made" if fresh else "done", f"AWS deletes its lines after {LOG_DAYS} days.")


class _RoleRefused(Exception):
    """The functions' role is not one that AWS takes."""


def _is_about_the_role(error: Exception) -> bool:
    return code_of(error) == "InvalidParameterValueException" and "role" in _message(error).lower()


def _sha256(bundle: Bundle) -> str:
    return base64.b64encode(hashlib.sha256(bundle.data).digest()).decode()


def _described(functions: Any, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = functions.get_function_configuration(FunctionName=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            return None
        raise
    return found


def _tags(functions: Any, described: Mapping[str, Any] | None) -> dict[str, str]:
    """What the function wears; nothing if there is none."""
    if described is None:
        return {}
    return dict(functions.list_tags(Resource=described["FunctionArn"])["Tags"])


def _others(worn: Mapping[str, str], owner: Owner) -> bool:
    return worn.get("connection", owner.connection) != owner.connection


# Removing


def _tagged(clients: AwsClients, owner: Owner) -> set[str]:
    """Names of the functions that say they are this connection's."""
    wanted = [{"Key": TAG, "Values": [_APP]}, {"Key": "connection", "Values": [owner.connection]}]
    pages = clients.client("resourcegroupstaggingapi").get_paginator("get_resources")
    arns = [
        str(one["ResourceARN"])
        for page in pages.paginate(TagFilters=wanted)
        for one in page["ResourceTagMappingList"]
    ]
    return {arn.split(":function:")[1] for arn in arns if ":function:" in arn}


def _removed(clients: AwsClients, owner: Owner, name: str, patience_s: float) -> Step:
    title = f"Function {name}"
    functions, logs = clients.client("lambda"), clients.client("logs")
    try:
        before = _described(functions, name)
        worn = _tags(functions, before)
        if _others(worn, owner):
            words = f"It belongs to another connection ({worn['connection']}) and stays."
            return Step(title, "done", words)
        aws_functions.remove(functions, name)
        still_there = before is not None and not _vanished(functions, name, patience_s)
    except Exception as error:
        return _missing(title, error, "lambda")
    if still_there:
        words = "AWS took the order to delete it and shows it still."
        return Step(title, "missing", words, "Remove again in a minute.")
    try:
        aws_functions.remove_logs(logs, name)
    except Exception as error:
        return _missing(f"Log of {name}", error, "logs")
    return Step(title, "gone", "Deleted, with its log." if before else "It was gone already; so is its log.")


def _vanished(functions: Any, name: str, patience_s: float) -> bool:
    end_s = time.monotonic() + patience_s
    while _described(functions, name) is not None:
        if time.monotonic() >= end_s:
            return False
        time.sleep(min(_ASK_AGAIN_S, patience_s))
    return True
