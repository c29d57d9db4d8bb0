"""The reasons for each round's number of actors, for the chart of actors."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.jobs.models import Job, Round
from webapp.jobs.queries import job_in

MOST_POINTS = 600


def decisions(job: Job) -> dict[str, Any]:
    """Reasons by round, each once where it begins to hold. Of a long run only every n-th round and the last are read,
    which are the rounds of the chart's points.
    """
    last = job.round_no
    every = 1
    while last / every > MOST_POINTS:
        every *= 2
    rounds = Round.objects.filter(job=job, round_no__lte=last).annotate(left=F("round_no") % every)
    rows = rounds.filter(Q(left=0) | Q(round_no=last)).order_by("round_no")
    said: list[tuple[int, str]] = []
    for round_no, why in rows.values_list("round_no", "report__plan_reason"):
        if not said or said[-1][1] != why:
            said.append((round_no, why))
    return {"every": every, "last": last, "said": said}


@project_page()
@require_safe
@never_cache
def job_decisions(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    return JsonResponse(decisions(job_in(project, job_id)))
