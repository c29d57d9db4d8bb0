"""Finished jobs are read once each: whether and when they had their environment's reference return."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from training.environments import catalogue
from training.statistics import Reached, time_to_threshold
from webapp.comparing.curves import RunCurve, curves_of
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.leaderboard.models import GoalResult
from webapp.money.amounts import PICODOLLARS_PER_USD

log = logging.getLogger(__name__)
AT_ONCE = 50
_ENDED = (Observed.SUCCEEDED, Observed.FAILED)


def references() -> dict[str, float]:
    """Return the reference return of each environment that has one."""
    entries = catalogue.ENTRIES.values()
    return {one.id: one.reference_return for one in entries if one.reference_return is not None}


def title_of(subject: str) -> str:
    return catalogue.ENTRIES[subject].title


def read_finished() -> int:
    """Read the next finished jobs, and return how many. A job that a user stopped does not count."""
    waiting = Job.objects.filter(
        observed__in=_ENDED, goal_result=None, round_no__gt=0, deleted_at=None, environment__in=references()
    )
    jobs = list(waiting.order_by("pk").defer("summary", "note")[:AT_ONCE])
    curves = curves_of(jobs) if jobs else {}
    GoalResult.objects.bulk_create([_result(job, curves) for job in jobs], ignore_conflicts=True)
    return len(jobs)


def _result(job: Job, curves: Mapping[str, RunCurve]) -> GoalResult:
    goal, curve = references()[job.environment], curves[job.pk]
    paid, passed = _reached(curve.usd.tolist(), curve, goal), _reached(curve.time.tolist(), curve, goal)
    spec: Mapping[str, Any] = job.spec
    return GoalResult(
        job=job,
        project_id=job.project_id,
        subject=job.environment,
        algorithm=job.algorithm,
        policy=spec["training"]["scaling"]["kind"],
        cloud=_cloud(spec["platform"]),
        money=job.unreal,
        goal=goal,
        reached=paid.observed,
        cost_picodollars=round(paid.at * PICODOLLARS_PER_USD) if paid.observed else None,
        time_s=passed.at if passed.observed else None,
    )


def _reached(at: Sequence[float], curve: RunCurve, goal: float) -> Reached:
    return time_to_threshold(at, curve.smoothed.tolist(), goal, held=1)


def _cloud(platform: Mapping[str, Any]) -> str:
    """Return the platform's kind, with the profile of a simulated one."""
    return f"{platform['kind']}:{platform['profile']}" if "profile" in platform else platform["kind"]
