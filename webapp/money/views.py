"""Reports about money."""

from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from webapp.accounts.access import project_page
from webapp.downloads import refused, unknown_words
from webapp.jobs.billing.cost_csv import by_call, by_round
from webapp.jobs.queries import job_in

_REPORTS = {"round": by_round, "call": by_call}


@project_page()
@require_safe
def cost_csv(request: HttpRequest, project: Any, job_id: str) -> HttpResponseBase:
    """The job's bill as a file, by round (or `?by=call`)."""
    job = job_in(project, job_id)
    by = request.GET.get("by", "round")
    if words := unknown_words(request, "by") or (
        "" if by in _REPORTS else f"by is {by}. It may be round or call."
    ):
        return refused(words)
    name = f"starling-{job.pk}-cost-by-{by}.csv"
    return StreamingHttpResponse(
        _REPORTS[by](job),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )
