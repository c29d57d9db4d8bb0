"""The frame of every page: the navigation rail, the project switcher, and the bell."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse

from webapp.accounts import queries
from webapp.accounts.access import current_membership
from webapp.alerts.views import bell_context
from webapp.overview.search import PLACES

register = template.Library()


@register.inclusion_tag("frame/rail.html", takes_context=True)
def rail(context: dict[str, Any]) -> dict[str, Any]:
    membership = current_membership(context["request"])
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
    """The command palette, with the keys of all places. It is empty for a person without a project."""
    membership = current_membership(context["request"])
    return {"slug": membership.project.slug if membership else "", "places": PLACES}


@register.inclusion_tag("frame/rate.html", takes_context=True)
def spending_rate(context: dict[str, Any]) -> dict[str, Any]:
    """A placeholder for the project's spending rate. A script fetches the rate, so that pages need not wait."""
    membership = current_membership(context["request"])
    return {"slug": membership.project.slug if membership else ""}


@register.inclusion_tag("frame/project_switcher.html", takes_context=True)
def project_switcher(context: dict[str, Any]) -> dict[str, Any]:
    membership = current_membership(context["request"])
    user = context["request"].user
    return {
        "current": membership.project if membership else None,
        "role": membership.get_role_display() if membership else "",
        "projects": queries.projects_of(user).filter(archived_at=None)[:50],
    }


@register.simple_tag(takes_context=True)
def may(context: dict[str, Any], needs: str) -> bool:
    """Whether this person has at least the role `needs` here. Pages hide what would be refused."""
    membership = current_membership(context["request"])
    return membership is not None and membership.allows(needs)


@register.inclusion_tag("alerts/bell.html", takes_context=True)
def bell(context: dict[str, Any]) -> dict[str, Any]:
    """The bell of the page's project. It is empty for a person without a project."""
    membership = current_membership(context["request"])
    if membership is None:
        return {}
    return bell_context(context["request"].user, membership.project)
