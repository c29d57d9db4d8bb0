"""Prepares a resource group for container groups, and removes everything of ours from it.

Azure needs nothing created beforehand. The set-up checks everything that jobs need, and runs one container of the image
for a second, so that no job fails at that. Each step may be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from cloud.accounts.provision.steps import SetUpStep
from cloud.accounts.register import group_name, tags
from cloud.formatting import plural
from cloud.platforms.azure.billable_resources import clear_ended, groups_of
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.error_text import refusal
from cloud.platforms.azure.groups import AzureGroups, Container, GroupStatus, NotNow, NotSure, Refused

_GROUPS_API = "2021-04-01"
_TRIED_S = 300.0
_LOG_WITHIN_S = 15.0
_READY = "starling actor ready"
# What a job's containers import.
_CODE = f"import training.functions.rollout, cloud.actor.puller; print('{_READY}')"


def set_up(
    clients: AzureClients,
    deployment: str,
    owner: str,
    image: str,
    *,
    patience_s: float = _TRIED_S,
    poll_s: float = 2.0,
    now_unix_s: Callable[[], float] = time.time,
) -> Iterator[SetUpStep]:
    """Yield each step; it ends at a missing one. `patience_s`: how long the one container may take."""
    for look in (_signed_in, _registered, _resource_group):
        step = look(clients)
        yield step
        if step.state == "missing":
            return
    groups = AzureGroups(clients)
    cleared = _cleared(groups, deployment)
    yield cleared
    if cleared.state == "missing":
        return
    trial_tags = tags(deployment=deployment, run="", owner=owner, expires_unix_s=now_unix_s() + patience_s)
    yield from _Trial(groups, clients.connection.prefix, deployment, image, poll_s).steps(
        trial_tags, patience_s
    )


def remove(
    clients: AzureClients, deployment: str, *, patience_s: float = 120.0, poll_s: float = 2.0
) -> Iterator[SetUpStep]:
    """Delete every container group of this connection, of any job. Yield each step."""
    step = _signed_in(clients)
    yield step
    if step.state == "missing":
        return
    groups = AzureGroups(clients)
    try:
        ended = groups_of(groups, deployment)
        for name in ended:
            groups.delete(name)
    except (NotNow, NotSure, Refused) as error:
        yield SetUpStep("Container groups", "missing", str(error), "Remove again in a minute.")
        return
    for name in (name for name, over in ended.items() if not over):
        try:
            vanished = _vanished(groups, name, patience_s, poll_s)
        except Refused as error:
            yield SetUpStep(f"Container group {name}", "missing", str(error), "Remove again in a minute.")
            return
        if vanished:
            yield SetUpStep(f"Container group {name}", "gone", "Deleted.")
        else:
            words = "Azure accepted its deletion but still lists it."
            yield SetUpStep(f"Container group {name}", "missing", words, "Remove again in a minute.")
    if cleared := sum(ended.values()):
        yield SetUpStep("Ended groups", "gone", f"{plural(cleared, 'ended group')} deleted.")
    if not ended:
        yield SetUpStep("Container groups", "gone", "Nothing of this connection is in the resource group.")


def _signed_in(clients: AzureClients) -> SetUpStep:
    name = "Sign-in"
    try:
        clients.sign_in()
    except Exception as error:
        return _missing(name, error)
    subscription = clients.connection.subscription_id
    return SetUpStep(name, "done", f"Azure accepts the credentials for subscription {subscription}.")


def _registered(clients: AzureClients) -> SetUpStep:
    name = "Container instances"
    region = clients.connection.region
    try:
        list(clients.usages(region))
    except Exception as error:
        return _missing(name, error)
    return SetUpStep(name, "done", f"The subscription is registered for them in {region}.")


def _resource_group(clients: AzureClients) -> SetUpStep:
    connection = clients.connection
    name = f"Resource group {connection.resource_group}"
    try:
        group = clients.read(connection.group_path, _GROUPS_API)
    except Exception as error:
        return _missing(name, error)
    return SetUpStep(name, "done", f"It exists, in {group.get('location', 'an unnamed region')}.")


def _cleared(groups: AzureGroups, deployment: str) -> SetUpStep:
    name = "Earlier groups"
    try:
        cleared = clear_ended(groups, deployment)
    except (NotNow, NotSure, Refused) as error:
        return SetUpStep(name, "missing", str(error), "See the rows of the test.")
    if cleared:
        return SetUpStep(name, "gone", f"{plural(cleared, 'ended group')} deleted.")
    return SetUpStep(name, "done", "This connection has none.")


def _missing(name: str, error: Exception) -> SetUpStep:
    why = refusal(error)
    return SetUpStep(name, "missing", why.words, why.fix)


class _Trial:
    """One container with the image, for about a second."""

    def __init__(self, groups: AzureGroups, prefix: str, deployment: str, image: str, poll_s: float) -> None:
        self._groups = groups
        self._name = group_name(prefix, f"trial-{deployment}", 0, 1)
        self._image = image
        self._poll_s = poll_s

    def steps(self, tags: dict[str, str], patience_s: float) -> Iterator[SetUpStep]:
        title = "One container"
        try:
            status = self._run(tags, patience_s)
            log = self._log(status)
        except (NotNow, NotSure, Refused) as error:
            yield SetUpStep(title, "missing", str(error))
        else:
            yield self._result(title, status, log)
        yield self._delete()

    def _run(self, tags: dict[str, str], patience_s: float) -> GroupStatus | None:
        """Return how the container ended; None if it did not end in time. Raises Refused if someone deleted it."""
        command = ("python", "-c", _CODE)
        trial = Container("trial", self._image, command, 1, 1, {}, {})
        end_s = time.monotonic() + patience_s
        self._retry(lambda: self._groups.create(self._name, [trial], tags), end_s)
        seen = False
        while time.monotonic() < end_s:
            pause_s = self._poll_s
            try:
                status = self._groups.status(self._name)
            except NotNow as later:
                pause_s = max(pause_s, later.wait_s)
            except NotSure:
                pass
            else:
                if status is not None and status.ended:
                    return status
                if status is None and seen:
                    raise Refused("Someone deleted its group before it had ended.", "Set up again.")
                seen = status is not None
            time.sleep(min(pause_s, max(0.0, end_s - time.monotonic())))
        return None

    def _log(self, status: GroupStatus | None) -> str:
        """Return what it printed. A log may come a moment after its container's end."""
        end_s = time.monotonic() + _LOG_WITHIN_S
        while True:
            log = self._groups.log(self._name, "trial")
            if log or status is None or time.monotonic() >= end_s:
                return log
            time.sleep(self._poll_s)

    def _result(self, title: str, status: GroupStatus | None, log: str) -> SetUpStep:
        if status is None:
            return SetUpStep(
                title, "missing", "It had not ended in time.", "Set up again; Azure may be slow just now."
            )
        if status.exit_codes == (0,) and _READY in log:
            return SetUpStep(
                title, "made", f"It fetched {self._image}, ran for a moment and ended as it should."
            )
        last = log.splitlines()[-1][:200] if log else status.words
        fix = "Check the image's name, and that it was built from this version's build context."
        return SetUpStep(title, "missing", f"It did not run as it should: {last}", fix)

    def _delete(self) -> SetUpStep:
        title = "The container's group"
        end_s = time.monotonic() + 60.0
        try:
            self._retry(lambda: self._groups.delete(self._name), end_s)
            vanished = _vanished(self._groups, self._name, 60.0, self._poll_s)
        except (NotNow, NotSure, Refused) as error:
            return SetUpStep(
                title, "missing", f"It could not be deleted: {error}", "Set up again, or remove everything."
            )
        if not vanished:
            return SetUpStep(title, "missing", "Azure still lists it.", "Set up again in a minute.")
        return SetUpStep(title, "gone", "Deleted again. Idle, nothing costs money.")

    def _retry(self, request: Callable[[], Any], end_s: float) -> None:
        """Repeat the request until it is answered: a create or delete of the same name may be repeated."""
        while True:
            try:
                request()
                return
            except NotNow as later:
                if time.monotonic() + later.wait_s > end_s:
                    raise
                time.sleep(later.wait_s)
            except NotSure:
                if time.monotonic() > end_s:
                    raise
                time.sleep(self._poll_s)


def _vanished(groups: AzureGroups, name: str, patience_s: float, poll_s: float) -> bool:
    end_s = time.monotonic() + patience_s
    while True:
        try:
            if groups.status(name) is None:
                return True
        except (NotNow, NotSure):
            pass
        if time.monotonic() >= end_s:
            return False
        time.sleep(poll_s)
