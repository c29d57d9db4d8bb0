"""Container groups of one resource group. Errors of the SDK become one of three: NotNow, NotSure or Refused.

A create or a delete may have been carried out although no answer came. We choose the names, so a caller that is not
sure looks for the name or repeats the request: nothing is created twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.error_text import DENIED, refusal

_LOG_LINES = 20
_DEFAULT_WAIT_S = 5.0
_REGISTRY_WAIT_S = 15.0
_AGAIN_CODES = frozenset({"ContainerGroupTransitioning", "TooManyRequests", "SubscriptionRequestsThrottled"})
# Azure could not look the image up, because its registry failed or limits requests. It says to retry later.
_REGISTRY_CODES = frozenset({"RegistryErrorResponse"})
_ABSENT = frozenset({"ResourceNotFound", "NotFound"})
# The account or region is full now; a later request may succeed.
_FULL = frozenset({"ContainerGroupQuotaReached", "ServiceUnavailable", "QuotaExceeded"})
Provisioning = Literal["pending", "succeeded", "failed"]


class NotNow(Exception):
    """Certainly nothing was done. The request may be repeated after `wait_s`."""

    def __init__(self, words: str, wait_s: float) -> None:
        super().__init__(words)
        self.wait_s = wait_s


class NotSure(Exception):
    """It may have been done or not. The text says what came instead of an answer."""


class Refused(Exception):
    """Certainly nothing was done, and a repetition does not help.

    `full`: later it might. `denied`: a right is missing.
    """

    def __init__(self, words: str, fix: str, *, full: bool = False, denied: bool = False) -> None:
        super().__init__(f"{words} {fix}".strip())
        self.full = full
        self.denied = denied


@dataclass(frozen=True)
class Container:
    """One container of a group. `secrets` are variables that Azure never shows again."""

    name: str
    image: str
    command: Sequence[str]
    vcpu: int
    memory_gb: float
    variables: Mapping[str, str]
    secrets: Mapping[str, str]


@dataclass(frozen=True)
class ListedGroup:
    """A group in a listing."""

    name: str
    provider_id: str
    provisioning: Provisioning
    tags: Mapping[str, str]
    containers: int = 0


@dataclass(frozen=True)
class GroupStatus:
    """The state of one group. `ended`: none of its containers runs or ever will; `words` say how."""

    provisioning: Provisioning
    ended: bool
    words: str = ""
    exit_codes: tuple[int | None, ...] = ()


class AzureGroups:
    """Each method is one request. May be used from several threads."""

    def __init__(self, clients: AzureClients) -> None:
        self._clients = clients
        self._where = clients.connection.resource_group
        self._region = clients.connection.region

    def create(
        self, name: str, containers: Sequence[Container], tags: Mapping[str, str], *, spot: bool = False
    ) -> str:
        """Request a group and return its id. An existing group of that name is left as it is."""
        document = {
            "location": self._region,
            "tags": dict(tags),
            "properties": {
                "osType": "Linux",
                # A container ends for a reason; a restart would be billed for nothing.
                "restartPolicy": "Never",
                "priority": "Spot" if spot else "Regular",
                "containers": [_document(container) for container in containers],
            },
        }
        with self._errors():
            operations = self._clients.container_groups
            made = operations.begin_create_or_update(self._where, name, document, polling=False).result()
            return str(made.id)

    def delete(self, name: str) -> None:
        """Request the group's deletion. It is no error if there is none."""
        with self._errors():
            self._clients.container_groups.begin_delete(self._where, name, polling=False).result()

    def all(self) -> dict[str, ListedGroup]:
        """Return every listed group by name."""
        with self._errors():
            listed = list(self._clients.container_groups.list_by_resource_group(self._where))
        return {group.name: _listed(group) for group in listed}

    def status(self, name: str) -> GroupStatus | None:
        """Return the group's state; None if there is none of that name."""
        try:
            with self._errors():
                group = self._clients.container_groups.get(self._where, name)
        except _Absent:
            return None
        return _status_of(group)

    def set_tags(self, name: str, tags: Mapping[str, str]) -> None:
        """Replace all tags of the group."""
        with self._errors():
            self._clients.container_groups.update(self._where, name, {"tags": dict(tags)})

    def log(self, name: str, container: str) -> str:
        """Return the container's last lines; empty if there are none now. Raises Refused if they may not be read."""
        try:
            with self._errors():
                logs = self._clients.containers.list_logs(self._where, name, container, tail=_LOG_LINES)
        except (NotNow, NotSure, _Absent):
            return ""
        except Refused as refused:
            if not refused.denied:
                return ""
            raise
        return str(logs.content or "").strip()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise NotNow, NotSure or Refused in place of the SDK's errors."""
        try:
            yield
        except Exception as error:
            translated = _translated(error)
            if isinstance(translated, NotNow) and _http_status(error) == 401:
                self._clients.forget_token()
            raise translated from None


class _Absent(Refused):
    """There is no group of that name."""


def _http_status(error: Exception) -> int:
    return int(getattr(error, "status_code", None) or 0)


def _translated(error: Exception) -> Exception:
    from azure.core.exceptions import ClientAuthenticationError

    why, status = refusal(error), _http_status(error)
    if status == 401 and why.code == "ExpiredAuthenticationToken":
        return NotNow(why.words, 0.0)
    if status == 429 or why.code in _AGAIN_CODES:
        return NotNow(why.words, _retry_after_s(error))
    if why.code in _REGISTRY_CODES:
        return NotNow(why.words, _retry_after_s(error, _REGISTRY_WAIT_S))
    if status == 404 and why.code in _ABSENT:
        return _Absent(why.words, why.fix)
    if 400 <= status < 500 or (status == 0 and isinstance(error, ClientAuthenticationError)):
        return Refused(why.words, why.fix, full=why.code in _FULL, denied=why.code in DENIED)
    return NotSure(why.words)


def _retry_after_s(error: Exception, usual_s: float = _DEFAULT_WAIT_S) -> float:
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return min(3600.0, float(headers.get("Retry-After", usual_s)))
    except ValueError:
        return usual_s


def _document(container: Container) -> dict[str, Any]:
    plain = [{"name": name, "value": value} for name, value in container.variables.items()]
    sealed = [{"name": name, "secureValue": value} for name, value in container.secrets.items()]
    requests = {"cpu": container.vcpu, "memoryInGB": container.memory_gb}
    return {
        "name": container.name,
        "properties": {
            "image": container.image,
            "command": list(container.command),
            "environmentVariables": [*plain, *sealed],
            "resources": {"requests": requests, "limits": requests},
        },
    }


def _provisioning(group: Any) -> Provisioning:
    state = str(group.provisioning_state or "")
    return {"Succeeded": "succeeded", "Failed": "failed", "Canceled": "failed"}.get(state, "pending")  # type: ignore[return-value]


def _listed(group: Any) -> ListedGroup:
    count = len(group.containers or ())
    return ListedGroup(group.name, group.id, _provisioning(group), dict(group.tags or {}), count)


def _status_of(group: Any) -> GroupStatus:
    provisioning = _provisioning(group)
    state = str(getattr(group.instance_view, "state", "") or "")
    views = [one.instance_view.current_state for one in group.containers if one.instance_view is not None]
    codes = tuple(view.exit_code for view in views if view is not None)
    ended = provisioning == "failed" or state in ("Stopped", "Succeeded", "Failed")
    failed = [f"container {at + 1} ended with exit code {code}" for at, code in enumerate(codes) if code]
    return GroupStatus(
        provisioning, ended, "; ".join(failed) or f"its state is {state or provisioning}", codes
    )
