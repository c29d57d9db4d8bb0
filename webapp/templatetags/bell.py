"""The bell in the top bar of every page."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.accounts.access import current_membership
from webapp.alerts.views import bell_context

register = template.Library()


@register.inclusion_tag("alerts/bell.html", takes_context=True)
def bell(context: dict[str, Any]) -> dict[str, Any]:
    """The bell of the page's project. It is empty for a person without a project."""
    membership = current_membership(context["request"])
    if membership is None:
        return {}
    return bell_context(context["request"].user, membership.project)
