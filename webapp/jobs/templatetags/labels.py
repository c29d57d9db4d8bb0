"""A job's tags, groups and note on its page, with the actions of an editor."""

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
    """Return tags, groups and the note, with the forms that an editor may use."""
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
