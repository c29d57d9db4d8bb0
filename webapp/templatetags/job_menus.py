"""The menus at the head of a job's page, its kept prediction, and the reward surfaces of its checkpoints."""

from __future__ import annotations

import json
import secrets
from decimal import Decimal
from typing import Any

from django import template

from webapp.accounts.access import current_membership
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs import lineage
from webapp.jobs.actor_bounds import words
from webapp.jobs.events import job_summary
from webapp.jobs.models import Desired, Job
from webapp.jobs.reasons import stopped_by_budget
from webapp.money.amounts import picodollars
from webapp.predictions import services as predictions
from webapp.predictions import text as prediction_text
from webapp.surfaces.views import panel

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
        "bounds": words(job.actors_least, job.actors_most) if bounded else "",
        "reference_words": job_summary.reference_sentence(job),
        "numbers_words": job_summary.numbers_sentence(job),
    }


@register.inclusion_tag("surfaces/section.html", takes_context=True)
def landscapes_of_job(context: dict[str, Any], job: Job) -> dict[str, Any]:
    return {**panel(job), "request": context["request"], "csrf_token": context.get("csrf_token")}


@register.simple_tag
def predictions_of(job: Job) -> dict[str, Any]:
    """Return the job's last prediction as a sentence, and what the chart of its score draws of it."""
    row = predictions.latest(job)
    if row is None:
        return {"sentences": [], "mark": ""}
    score = job.declaration.score
    mark = prediction_text.mark(row)
    return {
        "sentences": [prediction_text.kept(row, score.name, score.decimals)],
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
