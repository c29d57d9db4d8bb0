"""People to look at: a confirmed address, and invitations that one gave and was given."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress

from webapp.accounts import services
from webapp.accounts.services import invite
from webapp.money.budgets import create_budget
from webapp.overview.projects.services import archive_project


def confirm(user: Any) -> None:
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)


def archived_project(user: Any) -> Any:
    """A project that is read-only."""
    project = services.create_project("Thesis, first year", user)
    archive_project(project=project, user=user)
    return project


def budget_of_person(project: Any, user: Any) -> Any:
    """What jobs of this person may spend in a month."""
    return create_budget(
        project=project,
        name=f"{user.email}, a month",
        limit_picodollars=200 * 10**12,
        scope="user",
        of={"user": user},
        period="monthly",
    )


def invitations_of(project: Any, user: Any) -> tuple[str, str]:
    """Two open ones into the project; and one that waits for the person, whose link comes back as well."""
    _, first = invite(project, "a.colleague.with.a.long.address@department.example.org", "editor", user)
    invite(project, "bob@example.com", "viewer", user)
    other = services.create_person("grace@example.com")
    _, join = invite(services.create_project("Walking robots", other), user.email, "editor", other)
    return first, join
