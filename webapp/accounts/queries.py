"""Reads about people and projects, for pages."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.db.models import Case, Exists, IntegerField, OuterRef, QuerySet, Value, When
from django.http import Http404

from webapp.accounts.models import Membership, Project, Role, User


def confirmed_addresses(user: User) -> list[str]:
    """The addresses that this person has shown to be theirs, in lower case; allauth's rows are the truth."""
    return sorted(EmailAddress.objects.filter(user_id=user.pk, verified=True).values_list("email", flat=True))


def is_confirmed(user: User) -> bool:
    """Whether the address that letters to this person go to is confirmed."""
    return user.email.lower() in confirmed_addresses(user)


def confirmed_people(people: QuerySet[User]) -> QuerySet[User]:
    """Those of them whose own address is confirmed: the only ones that letters may be sent to."""
    mine = EmailAddress.objects.filter(user_id=OuterRef("pk"), email=OuterRef("email"), verified=True)
    return people.filter(Exists(mine))


def projects_of(user: User) -> QuerySet[Project]:
    """What the project switcher offers, by name."""
    return Project.objects.filter(memberships__user=user).order_by("name", "pk")


def members_of(project: Project) -> QuerySet[Membership]:
    """Owners first, then by address; each with whether the address is confirmed."""
    confirmed = EmailAddress.objects.filter(
        user_id=OuterRef("user_id"), email=OuterRef("user__email"), verified=True
    )
    weight = Case(
        *(When(role=role, then=Value(-role.rank)) for role in Role),
        default=Value(0),
        output_field=IntegerField(),
    )
    rows = project.memberships.select_related("user").annotate(address_is_confirmed=Exists(confirmed))
    return rows.order_by(weight, "user__email")


def member_in(project: Project, membership_id: int) -> Membership:
    """The project's member of that number; Http404 for any other."""
    found = project.memberships.select_related("user").filter(pk=membership_id).first()
    if found is None:
        raise Http404("There is no such member in this project.")
    return found
