"""The lines about what stands, for pages that hold them and for fetching them again."""

from typing import Any

from django import template

from webapp.accounts.models import Role
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.resources import queries, text

register = template.Library()


@register.inclusion_tag("resources/project.html", takes_context=True)
def standing_of_project(context: Any) -> dict[str, Any]:
    """What stands in the project's accounts. Whoever only looks is told no reason why it is not known."""
    membership = context["request"].membership
    standing = queries.in_project(membership.project)
    return {"slug": membership.project.slug, **_line(standing, membership.role)}


@register.inclusion_tag("resources/job.html", takes_context=True)
def standing_of_job(context: Any, job: Job) -> dict[str, Any]:
    """What stands for the job, and what becomes of it if this server dies now. Empty for one that needs no account."""
    membership = context["request"].membership
    standing = queries.of_job(job)
    if standing is None:
        return {}
    will = queries.if_left_alone(job, SYSTEM_CLOCK.now())
    assumed, amount = queries.assumed_in(job)
    return {
        "slug": membership.project.slug,
        "job": job,
        "will": text.last_will(will) if will is not None else "",
        "assumed": text.assumed(assumed, amount) if assumed else "",
        **_line(standing, membership.role),
        "headline": text.headline(standing, of_job=True),
    }


def _line(standing: queries.Standing, role: str) -> dict[str, Any]:
    return {
        "standing": standing,
        "headline": text.headline(standing),
        "things": [{"words": text.thing(one), "job": one.job} for one in standing.things],
        "problems": standing.problems if Role(role).allows("editor") else (),
    }
