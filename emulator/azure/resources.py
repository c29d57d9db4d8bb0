"""The resource manager: the addresses of container groups, their limits and their rights."""

from __future__ import annotations

import json
import uuid
from typing import Any

from emulator.azure.errors import ArmError, not_found
from emulator.azure.group_request import group_of
from emulator.azure.groups import EmulatedGroup, Groups
from emulator.azure.subscription import App, Subscription
from emulator.faults import AzureFaults
from emulator.http import Hangup, HttpRequest, HttpResponse, json_response

_ACI = "Microsoft.ContainerInstance"
_GROUP = f"{_ACI}/containerGroups"


class ResourceApi:
    """Answers one request after the other. `base` is where clients poll operations."""

    def __init__(self, subscription: Subscription, groups: Groups, faults: AzureFaults, base: str) -> None:
        self._subscription = subscription
        self._groups = groups
        self._faults = faults
        self._base = base

    def handle(self, request: HttpRequest) -> HttpResponse:
        app = self._subscription.sender(request.headers)
        if "api-version" not in request.query:
            raise ArmError(400, "MissingApiVersionParameter", "The api-version query parameter is required.")
        if self._faults.strikes("throttle"):
            raise ArmError(429, "TooManyRequests", "Too many requests.", Retry_After="1")
        if self._faults.strikes("service_error"):
            raise ArmError(503, "ServiceUnavailable", "The service is unavailable.")
        if self._faults.strikes("lost_request"):
            raise Hangup
        answer = self._routed(app, request)
        if self._faults.strikes("error_after"):
            raise ArmError(500, "InternalServerError", "An internal error occurred.")
        if self._faults.strikes("lost_reply"):
            raise Hangup
        return answer

    def _routed(self, app: App, request: HttpRequest) -> HttpResponse:
        parts = [part.lower() for part in request.parts]
        if parts[:2] != ["subscriptions", self._subscription.id]:
            words = f"The subscription '{parts[1] if len(parts) > 1 else ''}' could not be found."
            raise ArmError(404, "SubscriptionNotFound", words)
        if not any(
            role.covers(f"/subscriptions/{self._subscription.id}") or role.scope for role in app.roles
        ):
            raise ArmError(404, "SubscriptionNotFound", "The subscription could not be found.")
        aci = _ACI.lower()
        match request.method, parts[2:]:
            case "GET", ["resourcegroups", name]:
                return self._resource_group(app, name)
            case "GET", ["resourcegroups", name, "providers", "microsoft.authorization", "permissions"]:
                return self._permissions(app, name)
            case "GET", ["providers", provider, "locations", region, "usages"] if provider == aci:
                return self._usages(app, region)
            case "GET", ["providers", provider, "locations", _, "operations", name] if provider == aci:
                return self._operation(app, name)
            case "GET", ["providers", provider, "containergroups"] if provider == aci:
                return self._list(app, "")
            case "GET", ["resourcegroups", name, "providers", provider, "containergroups"] if provider == aci:
                return self._list(app, self._known_group(name))
            case method, ["resourcegroups", name, "providers", provider, "containergroups", *rest] if (
                provider == aci and rest
            ):
                return self._group(app, method, self._known_group(name), rest, request)
            case _:
                raise ArmError(404, "NotFound", "There is nothing at this address here.")

    # Around groups

    def _scope(self, resource_group: str = "") -> str:
        whole = f"/subscriptions/{self._subscription.id}"
        return f"{whole}/resourceGroups/{resource_group}" if resource_group else whole

    def _known_group(self, name: str) -> str:
        if name not in self._subscription.resource_groups:
            raise ArmError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        return name

    def _resource_group(self, app: App, name: str) -> HttpResponse:
        self._subscription.require(
            app, "Microsoft.Resources/subscriptions/resourceGroups/read", self._scope(name)
        )
        location = self._subscription.resource_groups[self._known_group(name)]
        return json_response(200, {"id": self._scope(name), "name": name, "location": location})

    def _permissions(self, app: App, name: str) -> HttpResponse:
        scope = self._scope(self._known_group(name))
        self._subscription.require(app, "Microsoft.Authorization/permissions/read", scope)
        held = [role for role in app.roles if role.covers(scope)]
        value = [{"actions": list(role.actions), "notActions": list(role.not_actions)} for role in held]
        return json_response(200, {"value": value})

    def _usages(self, app: App, region: str) -> HttpResponse:
        self._subscription.require(app, f"{_ACI}/locations/usages/read", self._scope())
        self._subscription.require_registered()
        here = [group for group in self._groups.all() if group.location.lower() == region]
        rows = (
            ("ContainerGroups", len(here), self._subscription.groups_at_most),
            ("StandardCores", int(sum(group.cores for group in here)), self._subscription.cores_at_most),
        )
        value = [
            {"unit": "Count", "currentValue": used, "limit": most, "name": {"value": name}}
            for name, used, most in rows
        ]
        return json_response(200, {"value": value})

    def _operation(self, app: App, name: str) -> HttpResponse:
        self._subscription.require(app, f"{_ACI}/locations/operations/read", self._scope())
        operation = self._groups.operations.get(name)
        if operation is None:
            raise ArmError(404, "OperationNotFound", f"There is no operation '{name}'.")
        document: dict[str, Any] = {"id": name, "status": operation.status}
        if operation.code:
            document["error"] = {"code": operation.code, "message": operation.words}
        return json_response(200, document)

    def _list(self, app: App, resource_group: str) -> HttpResponse:
        scope = self._scope(resource_group)
        self._subscription.require(app, f"{_GROUP}/read", scope)
        shown = [group for group in self._groups.all() if self._groups.is_visible(group)]
        inside = [group for group in shown if group.path.lower().startswith(f"{scope.lower()}/")]
        return json_response(200, {"value": [group.document(whole=False) for group in inside]})

    # Groups themselves

    def _group(
        self, app: App, method: str, resource_group: str, rest: list[str], request: HttpRequest
    ) -> HttpResponse:
        name = rest[0]
        path = f"{self._scope(resource_group)}/providers/{_GROUP}/{name}"
        allowed = self._subscription.require
        match method, rest[1:]:
            case "PUT", []:
                allowed(app, f"{_GROUP}/write", path)
                return self._put(group_of(name, path, request.body))
            case "GET", []:
                allowed(app, f"{_GROUP}/read", path)
                return json_response(200, self._visible(path).document(whole=True))
            case "PATCH", []:
                allowed(app, f"{_GROUP}/write", path)
                return self._patch(self._visible(path), request.body)
            case "DELETE", []:
                allowed(app, f"{_GROUP}/delete", path)
                return self._delete(path)
            case "GET", ["containers", container, "logs"]:
                allowed(app, f"{_GROUP}/containers/logs/read", path)
                return self._log(self._visible(path), container, request.query.get("tail"))
            case _:
                raise ArmError(405, "MethodNotAllowed", "This is not emulated.")

    def _visible(self, path: str) -> EmulatedGroup:
        group = self._groups.visible(path)
        if group is None:
            raise not_found(path)
        return group

    def _put(self, group: EmulatedGroup) -> HttpResponse:
        """Create a group, or return the existing one of that name: nothing is created twice."""
        existing = self._groups.of(group.path)
        if existing is not None:
            if existing.deleting or existing.provisioning == "Pending":
                words = f"The container group '{group.name}' is still transitioning, please retry later."
                raise ArmError(409, "ContainerGroupTransitioning", words)
            return json_response(200, existing.document(whole=True))
        self._subscription.require_registered()
        for request in group.requests:
            if not self._subscription.has_image(request.image):
                words = f"The image '{request.image}' in container group '{group.name}' is not accessible."
                raise ArmError(400, "InaccessibleImage", words)
        if self._faults.strikes("registry_error"):
            words = "An error response is received from the docker registry 'index.docker.io'. Please retry later."
            raise ArmError(409, "RegistryErrorResponse", words, Retry_After="1")
        self._require_room(group)
        self._subscription.count_create()
        operation_id = uuid.uuid4().hex
        self._groups.create(group, operation_id)
        address = (
            f"{self._base}{self._scope()}/providers/{_ACI}/locations/{group.location}/operations/"
            f"{operation_id}?api-version=2018-06-01"
        )
        return json_response(201, group.document(whole=True), **{"Azure-AsyncOperation": address})

    def _patch(self, group: EmulatedGroup, body: bytes) -> HttpResponse:
        """Replace all tags; a PATCH changes nothing else of a group."""
        group.tags = {str(key): str(value) for key, value in json.loads(body)["tags"].items()}
        return json_response(200, group.document(whole=True))

    def _require_room(self, group: EmulatedGroup) -> None:
        here = [other for other in self._groups.all() if other.location == group.location]
        cores = sum(other.cores for other in here) + group.cores
        most_groups, most_cores = self._subscription.groups_at_most, self._subscription.cores_at_most
        if len(here) >= most_groups or cores > most_cores:
            kind = "ContainerGroups" if len(here) >= most_groups else "StandardCores"
            words = f"Resource type '{_GROUP}' container group quota '{kind}' exceeded."
            raise ArmError(409, "ContainerGroupQuotaReached", words)

    def _delete(self, path: str) -> HttpResponse:
        group = self._groups.of(path)
        if group is None:
            return HttpResponse(204)
        document = group.document(whole=True)
        self._groups.delete(group)
        return json_response(200, document)

    def _log(self, group: EmulatedGroup, container: str, tail: str | None) -> HttpResponse:
        found = next((each for each in group.containers if each.name == container), None)
        if found is None:
            raise ArmError(404, "ContainerNotFound", f"There is no container '{container}' that has started.")
        return json_response(200, {"content": found.log(int(tail) if tail else None)})
