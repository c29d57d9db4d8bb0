"""What the members' page shows beside each person: the budget of their jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import template

from webapp.accounts.access import current_membership
from webapp.accounts.models import Membership
from webapp.budgets.display import PersonBudget, budgets_of_people

register = template.Library()


class MemberRow(NamedTuple):
    member: Membership
    budget: PersonBudget | None


@register.simple_tag(takes_context=True)
def with_budgets(context: dict[str, Any], members: Iterable[Membership]) -> list[MemberRow]:
    """Each member of the page's project with the budget of their jobs there, or None."""
    membership = current_membership(context["request"])
    found = budgets_of_people(membership.project) if membership is not None else {}
    return [MemberRow(member, found.get(member.user_id)) for member in members]
