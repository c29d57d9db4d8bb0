"""The reward surfaces of a job, for the tab of its checkpoints."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.jobs.models import Job
from webapp.surfaces.views import panel

register = template.Library()


@register.inclusion_tag("surfaces/section.html", takes_context=True)
def landscapes_of_job(context: Any, job: Job) -> dict[str, Any]:
    return {**panel(job), "request": context["request"], "csrf_token": context.get("csrf_token")}
