"""How accurate launch forecasts were: the results of jobs that ran to their own end, against the forecast
ranges."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from webapp.job_states import Observed
from webapp.money.models import LaunchForecast

FORECASTS_LOOKED_AT = 40
FORECASTS_AT_LEAST = 5


@dataclass(frozen=True)
class Calibration:
    """How many of `forecasts` costs and times were `inside` p10 to p90; errors are median shares of the p50."""

    forecasts: int
    inside: float
    time_inside: float
    cost_error: float
    time_error: float


def calibration(project: Any = None, last: int = FORECASTS_LOOKED_AT) -> Calibration | None:
    """Return the calibration of the last jobs (of a project) that ended by themselves; None if there are too
    few."""
    rows = LaunchForecast.objects.filter(job__observed=Observed.SUCCEEDED, cost_p50_picodollars__gt=0)
    if project is not None:
        rows = rows.filter(job__project=project)
    rows = rows.select_related("job__account").order_by("-job__finished_at")[:last]
    found = [row for row in rows if row.job.platform_s > 0]
    if len(found) < FORECASTS_AT_LEAST:
        return None
    cost = [row.job.account.spent_picodollars + row.job.account.overrun_picodollars for row in found]
    pairs = list(zip(found, cost, strict=True))
    return Calibration(
        forecasts=len(found),
        inside=sum(row.cost_p10_picodollars <= paid <= row.cost_p90_picodollars for row, paid in pairs)
        / len(found),
        time_inside=sum(row.time_p10_s <= row.job.platform_s <= row.time_p90_s for row in found) / len(found),
        cost_error=median(abs(paid / row.cost_p50_picodollars - 1) for row, paid in pairs),
        time_error=median(abs(row.job.platform_s / row.time_p50_s - 1) for row in found),
    )


def calibration_sentence(project: Any = None) -> str:
    """Return the calibration as a sentence; empty if there are too few jobs."""
    found = calibration(project)
    if found is None:
        return ""
    return (
        f"Of the last {found.forecasts} forecasts of costs {100 * found.inside:.0f} % were inside their range"
        f" (80 % are meant to be), off by {100 * found.cost_error:.0f} % in the middle."
    )
