"""A job's evaluations, without those that a resume repeated."""

from __future__ import annotations

from webapp.api.schemas.jobs import EvaluationShape
from webapp.jobs.models import Event, EventKind, Job


def evaluations_of(job: Job) -> list[EvaluationShape]:
    """The job's evaluations by round, from its events."""
    kinds = (EventKind.EVALUATION, EventKind.RESUMED)
    rows = Event.objects.filter(job=job, kind__in=kinds, seq__lte=job.last_seq).order_by("seq")
    by_round: dict[int, EvaluationShape] = {}
    for kind, payload in rows.values_list("kind", "payload").iterator(chunk_size=500):
        if kind == EventKind.EVALUATION:
            by_round[payload["round_no"]] = EvaluationShape(
                round_no=payload["round_no"],
                env_steps=payload["total_env_steps"],
                return_mean=payload["return_mean"],
                return_std=payload["return_std"],
                episode_returns=payload["episode_returns"],
            )
        else:
            by_round = {known: row for known, row in by_round.items() if known <= payload["from_round"]}
    return [by_round[number] for number in sorted(by_round)]
