"""Reads about people and projects, for pages."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.db.models import Case, Exists, IntegerField, OuterRef, QuerySet, Value, When

from webapp.accounts.models import Membership, Project, Role, User
from webapp.http.responses import or_404


def confirmed_addresses(user: User) -> list[str]:
    """The addresses that this person has confirmed, in lower case. allauth's rows are the source."""
    return sorted(EmailAddress.objects.filter(user_id=user.pk, verified=True).values_list("email", flat=True))


def is_confirmed(user: User) -> bool:
    """Whether the address that letters to this person go to is confirmed."""
    return user.email.lower() in confirmed_addresses(user)


def confirmed_people(people: QuerySet[User]) -> QuerySet[User]:
    """The people whose own address is confirmed. Mail is sent to no one else."""
    mine = EmailAddress.objects.filter(user_id=OuterRef("pk"), email=OuterRef("email"), verified=True)
    return people.filter(Exists(mine))


def projects_of(user: User) -> QuerySet[Project]:
    """The person's projects, by name."""
    return Project.objects.filter(memberships__user=user).order_by("name", "pk")


def members_of(project: Project) -> QuerySet[Membership]:
    """The members, owners first, then by address, with `address_is_confirmed`."""
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
    return or_404(project.memberships.select_related("user").filter(pk=membership_id).first(), "member")
