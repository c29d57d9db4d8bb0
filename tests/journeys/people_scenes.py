"""People to look at: a confirmed address, and invitations that one gave and was given."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress

from webapp.accounts import services
from webapp.accounts.services import invite


def confirm(user: Any) -> None:
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)


def invitations_of(project: Any, user: Any) -> tuple[str, str]:
    """Two open ones into the project; and one that waits for the person, whose link comes back as well."""
    _, first = invite(project, "a.colleague.with.a.long.address@department.example.org", "editor", user)
    invite(project, "bob@example.com", "viewer", user)
    other = services.create_person("grace@example.com")
    _, join = invite(services.create_project("Walking robots", other), user.email, "editor", other)
    return first, join
