"""Reads about people and projects, for pages."""

from __future__ import annotations

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import Http404

from webapp.accounts.models import Membership, Project, Role, User


def projects_of(user: User) -> QuerySet[Project]:
    """What the project switcher offers, by name."""
    return Project.objects.filter(memberships__user=user).order_by("name", "pk")


def members_of(project: Project) -> QuerySet[Membership]:
    """Owners first, then by address."""
    weight = Case(
        *(When(role=role, then=Value(-role.rank)) for role in Role),
        default=Value(0),
        output_field=IntegerField(),
    )
    return project.memberships.select_related("user").order_by(weight, "user__email")


def member_in(project: Project, membership_id: int) -> Membership:
    """The project's member of that number; Http404 for any other."""
    found = project.memberships.select_related("user").filter(pk=membership_id).first()
    if found is None:
        raise Http404("There is no such member in this project.")
    return found
