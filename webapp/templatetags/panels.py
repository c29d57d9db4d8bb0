"""What pages show of apps above their own: a job's menus, prediction, surfaces and resources; people's budgets."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from django import template

from webapp.accounts.access import current_membership
from webapp.accounts.models import Membership
from webapp.budgets.display import PersonBudget, budgets_of_people
from webapp.clock import SYSTEM_CLOCK
from webapp.comparing.predictions import services as predictions
from webapp.comparing.predictions import text as prediction_text
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs import lineage
from webapp.jobs.actor_bounds import words
from webapp.jobs.billing.bill_panel import limit_version
from webapp.jobs.events import job_summary
from webapp.jobs.models import Desired, Job
from webapp.jobs.reasons import stopped_by_budget
from webapp.jobs.surfaces.views import panel
from webapp.money.amounts import picodollars
from webapp.resources import queries, text

register = template.Library()


@register.inclusion_tag("jobs/actions.html", takes_context=True)
def actions_of(context: dict[str, Any], job: Job) -> dict[str, Any]:
    """Return what an editor can do with the job."""
    return {
        **_common(context, job),
        "paused": job.observed == Observed.PAUSED and not stopped_by_budget(job),
        "pausable": job.observed in ACTIVE and job.desired == Desired.RUN,
        "has_checkpoint": job.has_checkpoint,
        "most": picodollars(Decimal(job.spec["budget_usd"])),
        "most_of_four": 4 * job.account.limit_picodollars,
        "key": secrets.token_urlsafe(12),
    }


@register.inclusion_tag("jobs/about.html", takes_context=True)
def about_of(context: dict[str, Any], job: Job) -> dict[str, Any]:
    """Return the job's source and descendants, its tags, groups and note, and the forms that change them."""
    tags = [tag.name for tag in job.tags.all()]
    bounded = job.actors_least is not None or job.actors_most is not None
    return {
        **_common(context, job),
        "tags": tags,
        "tags_text": ", ".join(tags),
        "groups": list(job.groups.all()),
        "origin": lineage.origin_of(job),
        "descendants": lineage.list_descendants(job),
        "limit_version": limit_version(job),
        "bounds": words(job, job.actors_least, job.actors_most) if bounded else "",
        "reference_words": job_summary.reference_sentence(job),
        "numbers_words": job_summary.numbers_sentence(job),
    }


@register.inclusion_tag("jobs/surfaces/section.html", takes_context=True)
def landscapes_of_job(context: dict[str, Any], job: Job) -> dict[str, Any]:
    return {**panel(job), "request": context["request"], "csrf_token": context.get("csrf_token")}


@register.simple_tag
def predictions_of(job: Job) -> dict[str, Any]:
    """Return the job's last prediction as a sentence, and what the chart of its score draws of it."""
    row = predictions.latest(job)
    if row is None:
        return {"sentences": [], "mark": ""}
    mark = prediction_text.mark(row)
    return {
        "sentences": [prediction_text.kept(row, job.declaration)],
        "mark": "" if mark is None else json.dumps(mark),
    }


def _common(context: dict[str, Any], job: Job) -> dict[str, Any]:
    membership = current_membership(context["request"])
    return {
        "job": job,
        "slug": membership.project.slug if membership else "",
        "may_change": membership is not None and membership.allows("editor"),
        "over": job.observed in TERMINAL,
        "csrf_token": context.get("csrf_token"),
    }


class MemberRow(NamedTuple):
    member: Membership
    budget: PersonBudget | None


@register.simple_tag(takes_context=True)
def with_budgets(context: dict[str, Any], members: Iterable[Membership]) -> list[MemberRow]:
    """Each member of the page's project with the budget of their jobs there, or None."""
    membership = current_membership(context["request"])
    budgets = budgets_of_people(membership.project) if membership is not None else {}
    return [MemberRow(member, budgets.get(member.user_id)) for member in members]


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
        "things": [{"words": text.describe_resource(thing), "job": thing.job} for thing in resources.things],
        "problems": resources.problems if membership.allows("editor") else (),
    }
