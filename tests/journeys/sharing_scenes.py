"""Links to look at: of a job with and without money, a comparison, a report, and some that do not work any more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from webapp.sharing.models import SharedLink
from webapp.sharing.services import make_link

SITES = ("https://wiki.example.org",)


def shared_pages(project: Any, user: Any, job: Any, sides: list[str]) -> dict[str, str]:
    """By name, the paths of pages that links show; and a link that has expired."""
    given = {"project": project, "user": user}
    expired, _ = make_link(of=[job.pk], days=7, **given)
    SharedLink.objects.filter(pk=expired.pk).update(expires_at=expired.created_at - timedelta(days=1))
    _, plain = make_link(of=[job.pk], sites=SITES, days=None, **given)
    _, money = make_link(of=[job.pk], money=True, **given)
    _, comparison = make_link(of=sides, money=True, days=90, **given)
    report = {"range": "last-30-days", "by": "job", "prices": "simulated"}
    _, costs = make_link(report=report, money=True, **given)
    return {
        "shared-job": plain,
        "shared-embedded": f"{plain}embed/",
        "shared-job-money": money,
        "shared-comparison": comparison,
        "shared-report": costs,
    }
