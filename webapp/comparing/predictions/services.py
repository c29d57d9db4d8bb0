"""Predictions are applied by the job's own ways of changing actors and limits, kept, and judged at the job's end."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

from django.db import transaction

from cloud.timing.forecasting.what_if import picodollars_of
from webapp.accounts.models import User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.comparing.predictions.models import Prediction, PredictionState
from webapp.comparing.predictions.predict import final_score, predict
from webapp.job_states import TERMINAL, Observed
from webapp.jobs.actor_bounds import change_bounds
from webapp.jobs.models import Job
from webapp.jobs.reasons import STOPPED_BY_BUDGET, stopped_by_budget
from webapp.jobs.services import lower_budget, raise_budget
from webapp.money.amounts import PICODOLLARS_PER_USD

log = logging.getLogger(__name__)


def own_actors(job: Job) -> int | None:
    """Return the number of actors that is set for every round of the job; None if its policy decides."""
    return job.actors_least if job.actors_least == job.actors_most else None


def apply(
    *,
    job: Job,
    user: User,
    actors: int | None,
    limit_picodollars: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Prediction:
    """Set the actors of later rounds and the limit (None: as they are), and keep what that is predicted to do.

    Raises NoPrediction, and what changing the bounds or the limit raises; nothing is changed then.
    """
    what_if = predict(job, actors=actors, limit_picodollars=limit_picodollars)
    with transaction.atomic():
        if limit_picodollars is not None and limit_picodollars != job.account.limit_picodollars:
            limit_usd = (Decimal(limit_picodollars) / PICODOLLARS_PER_USD).normalize()
            change = raise_budget if limit_picodollars > job.account.limit_picodollars else lower_budget
            job = change(job=job, user=user, limit_usd=limit_usd, clock=clock)
        if actors is not None:
            job = change_bounds(job=job, user=user, least=actors, most=actors, clock=clock)
        replaced = {
            "state": PredictionState.VOID,
            "reason": "A later prediction replaced it.",
            "judged_at": clock.now(),
        }
        Prediction.objects.filter(job=job, state=PredictionState.OPEN).update(**replaced)
        end, last = what_if.end, what_if.points[-1]
        costs = picodollars_of(end.usd)
        score = what_if.score
        return Prediction.objects.create(
            job=job,
            made_by=user,
            made_at=clock.now(),
            round_no=last.round_no,
            steps=last.steps,
            actors=actors if actors is not None else own_actors(job),
            limit_picodollars=what_if.limit_picodollars,
            ends_by=end.ends_by,
            steps_p50=end.steps.p50,
            time_p10_s=end.time_s.p10,
            time_p50_s=end.time_s.p50,
            time_p90_s=end.time_s.p90,
            cost_p10_picodollars=costs[0],
            cost_p50_picodollars=costs[1],
            cost_p90_picodollars=costs[2],
            score_p10=score.p10 if score else None,
            score_p50=score.p50 if score else None,
            score_p90=score.p90 if score else None,
        )


def judge_ended(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Judge the open predictions of jobs that are over, or that their budget has stopped as was predicted."""
    waiting = Prediction.objects.filter(state=PredictionState.OPEN).select_related("job__account")
    over = waiting.filter(job__observed__in=TERMINAL)
    stopped = waiting.filter(job__in=Job.objects.filter(STOPPED_BY_BUDGET))
    for row in [*over, *stopped]:
        try:
            judge(row, clock=clock)
        except Exception:
            log.exception("%s is judged again at the next turn", row)


def judge(row: Prediction, *, clock: Clock = SYSTEM_CLOCK) -> Prediction:
    """Compare a prediction with the end of its job, and store what came of it."""
    job = row.job
    facts: dict[str, Any] = {"judged_at": clock.now(), "state": PredictionState.VOID}
    if own_actors(job) != row.actors or job.account.limit_picodollars != row.limit_picodollars:
        facts["reason"] = "The actors or the limit were changed after it."
    elif job.observed != Observed.SUCCEEDED and not stopped_by_budget(job):
        facts["reason"] = f"The job ended otherwise: {job.reason or job.get_observed_display()}"
    else:
        spent = job.account.spent_picodollars + job.account.overrun_picodollars
        facts |= {
            "state": PredictionState.JUDGED,
            "time_s": job.platform_s,
            "cost_picodollars": spent,
            "score": final_score(job),
        }
    Prediction.objects.filter(pk=row.pk, state=PredictionState.OPEN).update(**facts)
    row.refresh_from_db()
    return row


def latest(job: Job) -> Prediction | None:
    """Return the job's last prediction."""
    return Prediction.objects.filter(job=job).first()
