"""One subscription: its apps and their roles, its resource groups, and its limits."""

from __future__ import annotations

import secrets
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from emulator.azure.errors import ArmError, denied, throttled

TOKEN_LASTS_S = 3599.0
_CREATE_WINDOWS = ((100, 300.0), (300, 3600.0))
"""At most so many creates in so many seconds, as Azure documents it."""


def new_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True)
class RoleAssignment:
    """The actions that a role allows, in a scope and in everything below it."""

    scope: str
    actions: tuple[str, ...]
    not_actions: tuple[str, ...] = ()

    @staticmethod
    def of(document: Mapping[str, Any]) -> RoleAssignment:
        """Return the assignment of a custom role in its one assignable scope."""
        (scope,) = document["AssignableScopes"]
        return RoleAssignment(scope, tuple(document["Actions"]), tuple(document["NotActions"]))

    def covers(self, scope: str) -> bool:
        return f"{scope.lower()}/".startswith(f"{self.scope.lower()}/")

    def allows(self, action: str) -> bool:
        return _matches(self.actions, action) and not _matches(self.not_actions, action)


def _matches(patterns: Sequence[str], action: str) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)


@dataclass
class App:
    """A service principal with one secret."""

    client_id: str
    secret: str
    roles: list[RoleAssignment] = field(default_factory=list)
    secret_expired: bool = False


@dataclass
class Subscription:
    """The account around container groups. May be changed from any thread between two requests."""

    id: str = field(default_factory=new_id)
    tenant_id: str = field(default_factory=new_id)
    region: str = "eastus"
    registered: bool = True
    groups_at_most: int = 100
    cores_at_most: int = 100
    images: tuple[str, ...] = ("*starling-actor*",)
    now_unix_s: Callable[[], float] = time.time
    apps: dict[str, App] = field(default_factory=dict)
    resource_groups: dict[str, str] = field(default_factory=dict)
    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    _creates: deque[float] = field(default_factory=deque)

    def add_app(
        self, roles: Sequence[RoleAssignment] = (), *, identity: tuple[str, str] | None = None
    ) -> App:
        """Add an app with this client ID and secret, or with new ones."""
        client_id, secret = identity or (new_id(), secrets.token_urlsafe(30))
        app = App(client_id, secret, list(roles))
        self.apps[app.client_id] = app
        return app

    def add_resource_group(self, name: str) -> None:
        self.resource_groups[name.lower()] = self.region

    def token_for(self, app: App) -> str:
        token = secrets.token_urlsafe(40)
        self._tokens[token] = (app.client_id, self.now_unix_s() + TOKEN_LASTS_S)
        return token

    def expire_tokens(self) -> None:
        """End every token."""
        self._tokens = {token: (client_id, 0.0) for token, (client_id, _) in self._tokens.items()}

    def sender(self, headers: Mapping[str, str]) -> App:
        """Return the app whose token this is. Raises ArmError 401."""
        token = headers.get("authorization", "").removeprefix("Bearer ")
        client_id, expires_unix_s = self._tokens.get(token, ("", 0.0))
        app = self.apps.get(client_id)
        if app is None:
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if expires_unix_s <= self.now_unix_s():
            raise ArmError(401, "ExpiredAuthenticationToken", "The access token expiry UTC time is earlier.")
        return app

    def require(self, app: App, action: str, scope: str) -> None:
        if not any(role.covers(scope) and role.allows(action) for role in app.roles):
            raise denied(app.client_id, action, scope)

    def require_registered(self) -> None:
        if not self.registered:
            words = "The subscription is not registered to use namespace 'Microsoft.ContainerInstance'."
            raise ArmError(409, "MissingSubscriptionRegistration", words)

    def has_image(self, name: str) -> bool:
        return any(fnmatchcase(name, image) for image in self.images)

    def count_create(self) -> None:
        """Count one more create. Raises ArmError 429 if there were too many."""
        now = self.now_unix_s()
        while self._creates and self._creates[0] <= now - _CREATE_WINDOWS[-1][1]:
            self._creates.popleft()
        for most, window_s in _CREATE_WINDOWS:
            recent = [at for at in self._creates if at > now - window_s]
            if len(recent) >= most:
                words = f"The number of container group creates exceeds {most} in {window_s:.0f} s."
                raise throttled(words, int(recent[0] + window_s - now) + 1)
        self._creates.append(now)
