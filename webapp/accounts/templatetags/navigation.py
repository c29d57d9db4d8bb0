"""What stands around every page: the rail of places and the project switcher."""

from __future__ import annotations

from typing import Any, NamedTuple

from django import template
from django.urls import reverse

from webapp.accounts import queries
from webapp.accounts.access import SESSION_KEY
from webapp.accounts.models import Membership

register = template.Library()


class Place(NamedTuple):
    """One row of the rail. `key`: what goes there after a g. `of_project` places have the project's slug in their
    address; on narrow screens those that are not `in_bar` stand below More."""

    section: str
    word: str
    icon: str
    key: str
    url_name: str
    of_project: bool = True
    at_foot: bool = False
    in_bar: bool = False


# A new page of the rail is one row here.
PLACES = (
    Place("overview", "Overview", "speedometer2", "o", "overview:page", in_bar=True),
    Place("jobs", "Jobs", "play-btn", "j", "jobs:list", in_bar=True),
    Place("compare", "Compare", "intersect", "c", "comparing:page"),
    Place("budgets", "Budgets", "piggy-bank", "b", "budgets:list", in_bar=True),
    Place("reports", "Reports", "bar-chart", "r", "reports:page"),
    Place("clouds", "Clouds", "cloud", "l", "connections:list", in_bar=True),
    Place("schedulers", "Schedulers", "diagram-3", "s", "schedulers:list"),
    Place("papers", "Papers", "journal-text", "p", "papers:list", of_project=False),
    Place("members", "Members", "people", "m", "accounts:members"),
    Place("account", "Account", "gear", "a", "accounts:account", of_project=False, at_foot=True),
)


@register.inclusion_tag("frame/rail.html", takes_context=True)
def rail(context: dict[str, Any]) -> dict[str, Any]:
    membership = current_membership(context)
    rows = [
        {
            "word": place.word,
            "icon": place.icon,
            "key": place.key,
            "at_foot": place.at_foot,
            "in_bar": place.in_bar,
            "here": context.get("section") == place.section,
            "url": reverse(
                place.url_name, args=[membership.project.slug] if place.of_project and membership else []
            ),
        }
        for place in PLACES
        if membership or not place.of_project
    ]
    return {"rows": rows, "home_url": reverse("accounts:home")}


@register.inclusion_tag("frame/palette.html", takes_context=True)
def palette(context: dict[str, Any]) -> dict[str, Any]:
    """The way to find things, and the keys of all places; nothing for a person without a project."""
    membership = current_membership(context)
    return {"slug": membership.project.slug if membership else "", "places": PLACES}


@register.inclusion_tag("frame/rate.html", takes_context=True)
def spending_rate(context: dict[str, Any]) -> dict[str, Any]:
    """Room for the rate at which the project spends, which a script fetches: pages do not wait for it."""
    membership = current_membership(context)
    return {"slug": membership.project.slug if membership else ""}


@register.inclusion_tag("frame/project_switcher.html", takes_context=True)
def project_switcher(context: dict[str, Any]) -> dict[str, Any]:
    membership = current_membership(context)
    user = context["request"].user
    return {
        "current": membership.project if membership else None,
        "role": membership.get_role_display() if membership else "",
        "projects": queries.projects_of(user)[:50],
    }


def current_membership(context: dict[str, Any]) -> Membership | None:
    """The project this page belongs to; outside of projects, the one last looked at."""
    request = context["request"]
    if not hasattr(request, "membership"):
        memberships = Membership.objects.select_related("project").filter(user=request.user).order_by("pk")
        last = request.session.get(SESSION_KEY, "")
        request.membership = memberships.filter(project__slug=last).first() or memberships.first()
    membership: Membership | None = request.membership
    return membership


@register.simple_tag(takes_context=True)
def may(context: dict[str, Any], needs: str) -> bool:
    """Whether this person's role here allows what `needs` stands for; pages hide what would be refused."""
    membership = current_membership(context)
    return membership is not None and membership.allows(needs)
