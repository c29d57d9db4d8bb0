"""What stands on a job's page of its tags, groups and note, and what else can be done with it."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.accounts.access import current_membership
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.models import Desired, Job
from webapp.jobs.reasons import stopped_by_budget

register = template.Library()


@register.inclusion_tag("jobs/labels.html", takes_context=True)
def labels_of(context: dict[str, Any], job: Job) -> dict[str, Any]:
    """Tags, groups and the note, with the forms that change them for those who may."""
    membership = current_membership(context["request"])
    tags = [tag.name for tag in job.tags.all()]
    return {
        "job": job,
        "slug": membership.project.slug if membership else "",
        "may_change": membership is not None and membership.allows("editor"),
        "tags": tags,
        "tags_text": ", ".join(tags),
        "groups": list(job.groups.all()),
        "over": job.observed in TERMINAL,
        "paused": job.observed == Observed.PAUSED and not stopped_by_budget(job),
        "pausable": job.observed in ACTIVE and job.desired == Desired.RUN,
        "most_of_four": 4 * job.account.limit_picodollars,
        "csrf_token": context.get("csrf_token"),
    }
