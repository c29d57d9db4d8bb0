"""The lines about running resources, for the pages that show them and for fetching them again."""

from typing import Any

from django import template

from webapp.accounts.models import Membership
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.resources import queries, text

register = template.Library()


@register.inclusion_tag("resources/project.html", takes_context=True)
def project_resources(context: Any) -> dict[str, Any]:
    """The resources in the project's accounts. Viewers do not see why a scan failed."""
    membership = context["request"].membership
    resources = queries.in_project(membership.project)
    return {"slug": membership.project.slug, **_line(resources, membership)}


@register.inclusion_tag("resources/job.html", takes_context=True)
def job_resources(context: Any, job: Job) -> dict[str, Any]:
    """The job's resources, and what it costs if this server dies now. Empty for a job without an account."""
    membership = context["request"].membership
    resources = queries.of_job(job)
    if resources is None:
        return {}
    will = queries.find_unattended_cost(job, SYSTEM_CLOCK.now())
    assumed, amount = queries.assumed_in(job)
    return {
        "slug": membership.project.slug,
        "job": job,
        "will": text.unattended_cost_sentence(will) if will is not None else "",
        "assumed": text.assumed(assumed, amount) if assumed else "",
        **_line(resources, membership),
        "headline": text.headline(resources, of_job=True),
    }


def _line(resources: queries.RunningResources, membership: Membership) -> dict[str, Any]:
    return {
        "resources": resources,
        "headline": text.headline(resources),
        "things": [{"words": text.describe_resource(one), "job": one.job} for one in resources.things],
        "problems": resources.problems if membership.allows("editor") else (),
    }
