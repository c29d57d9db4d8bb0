"""A job's evaluations that count: those which a resume repeats are gone."""

from __future__ import annotations

from webapp.api.schemas.jobs import EvaluationShape
from webapp.jobs.models import Event, EventKind, Job


def evaluations_of(job: Job) -> list[EvaluationShape]:
    """By round, as the job's events tell them."""
    kinds = (EventKind.EVALUATION, EventKind.RESUMED)
    rows = Event.objects.filter(job=job, kind__in=kinds, seq__lte=job.last_seq).order_by("seq")
    by_round: dict[int, EvaluationShape] = {}
    for kind, told in rows.values_list("kind", "payload").iterator(chunk_size=500):
        if kind == EventKind.EVALUATION:
            by_round[told["round_no"]] = EvaluationShape(
                round_no=told["round_no"],
                env_steps=told["total_env_steps"],
                return_mean=told["return_mean"],
                return_std=told["return_std"],
                episode_returns=told["episode_returns"],
            )
        else:
            by_round = {known: row for known, row in by_round.items() if known <= told["from_round"]}
    return [by_round[number] for number in sorted(by_round)]
