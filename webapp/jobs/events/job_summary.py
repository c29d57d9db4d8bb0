"""What a job's page says in sentences, from figures of the database; sentences.py words them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from statistics import median
from threading import Lock
from typing import Any

from django.db.models import Q

from training.rl.environments import catalogue
from training.tasks.supervised import SupervisedLearning
from webapp.formatting import display_usd, format_duration, format_score
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.billing.bill_text import numbers_behind, summarize_bill
from webapp.jobs.charts.history import EvaluationPoint, History, histories
from webapp.jobs.charts.score_curves import arrival, evaluated_curve
from webapp.jobs.events.sentences import (
    judged_words,
    learner_sentence,
    learners_sentence,
    no_news_sentence,
    parts_sentence,
    plan_sentence,
    progress_sentence,
    queued_sentence,
    simulated_sentence,
    stalled_sentence,
    useful_learners,
)
from webapp.jobs.form.learner_places import learner_price_words
from webapp.jobs.models import Checkpoint, EventKind, Job, Round
from webapp.jobs.running import platform_notes
from webapp.jobs.running.job_slots import (
    core_places,
    core_sentence,
    needs_core,
    on_cores,
    places,
    waiting_for_core,
)
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.money.models import RENT, ChargeState
from webapp.money.queries import bill_sheet

_USUAL_OVER = 20


def live_sentences(job: Job) -> dict[str, str]:
    """Return the sentences that change with the job's events."""
    lock, history = histories.of(job.pk, job.started_at, job.last_seq)
    with lock:
        judged = list(history.evaluations)
        best = _best_of(job, judged)
        since_usd = (
            history.spent_usd_after(job.round_no) - history.spent_usd_after(best.round_no) if best else 0.0
        )
    reached = _reached(job, lock, history)
    report = _latest_report(job)
    sentences = {
        "judged": judged_words(judged[-1] if judged else None, job.training_facts.score),
        "progress": _progress(job, judged),
        "reached": reached,
        "no_news": _no_news(job, judged, since_usd),
        "plan": _plan(job, report),
        "learner": learner_sentence(report, simulated=job.simulated),
        **_bill_sentences(job),
    }
    return {name: job.declaration.say(sentence) for name, sentence in sentences.items()}


def spent_since_best(job: Job) -> int | None:
    """Return the picodollars spent since the first evaluation with the best score; None without an evaluation."""
    lock, history = histories.of(job.pk, job.started_at, job.last_seq)
    with lock:
        best = _best_of(job, list(history.evaluations))
        if best is None:
            return None
        usd = history.spent_usd_after(job.round_no) - history.spent_usd_after(best.round_no)
    return max(0, round(usd * PICODOLLARS_PER_USD))


def _best_of(job: Job, judged: list[EvaluationPoint]) -> EvaluationPoint | None:
    """Return the first evaluation with the best score."""
    if not judged:
        return None
    means = [evaluation.mean for evaluation in judged]
    return judged[means.index(job.training_facts.score.best(means))]


_MAJORITY = "always telling how often each class comes, whatever the row"


def reference_of(job: Job) -> tuple[float, str] | None:
    """Return the reference score of what the job learns, and its source."""
    if job.training_facts.kind == SupervisedLearning.kind:
        judged = job.events.filter(kind=EventKind.EVALUATION).order_by("-seq").first()
        return (judged.payload["majority_loss"], _MAJORITY) if judged is not None else None
    entry = catalogue.ENTRIES.get(job.training_facts.subject)
    if entry is None or entry.reference_score is None:
        return None
    return entry.reference_score, entry.reference


def _progress(job: Job, judged: list[EvaluationPoint]) -> str:
    reference = reference_of(job)
    return progress_sentence(
        job.training_score,
        judged[-1] if judged else None,
        reference[0] if reference else None,
        job.training_facts.score,
    )


def reference_sentence(job: Job) -> str:
    """Return what the job's score is compared with, and where that is from; empty if nothing is known."""
    reference = reference_of(job)
    if reference is None:
        return ""
    score = job.training_facts.score
    return f"Reference {score.name} {format_score(reference[0], score.decimals)}: {reference[1]}."


def _reached(job: Job, lock: Lock, history: History) -> str:
    """Return the time and the cost at the first evaluation that reached the environment's reference."""
    reference, score = reference_of(job), job.training_facts.score
    if reference is None:
        return ""
    with lock:
        reached = arrival(evaluated_curve(history), reference[0], score)
    if reached is None:
        return ""
    spent = display_usd(round(reached.usd * PICODOLLARS_PER_USD))
    wanted = format_score(reference[0], decimals=0 if score.higher_is_better else score.decimals)
    return f"Reached {wanted} in {{round}} {reached.round_no:,}, after {format_duration(reached.time_s)}, for {spent}."


def _no_news(job: Job, judged: list[EvaluationPoint], since_usd: float) -> str:
    if job.observed not in ACTIVE:
        return ""
    score = job.training_facts.score
    if not no_news_sentence(judged, job.round_no, 0, None, score):  # the usual case needs no query
        return ""
    kept = Checkpoint.objects.filter(job=job).values_list("round_no", flat=True).first()
    since = max(0, round(since_usd * PICODOLLARS_PER_USD))
    return no_news_sentence(judged, job.round_no, since, kept, score)


def _latest_report(job: Job) -> Mapping[str, Any]:
    rows = Round.objects.filter(job=job, round_no=job.round_no)
    return rows.values_list("payload__report", flat=True).first() or {}


def _plan(job: Job, report: Mapping[str, Any]) -> str:
    plan = plan_sentence(job.round_no, job.actors, _most_actors(job), report.get("plan_reason") or "")
    spec = job.readable_spec() if report.get("gradients") else None
    loop = spec.training.loop.gradients if spec is not None else None
    if spec is None or loop is None:
        return plan
    limits = learners_sentence(report, useful_learners(report, loop), learner_price_words(spec))
    return " ".join(filter(None, [plan, limits]))


def _most_actors(job: Job) -> int | None:
    """Return the most actors that the policy or its bounds allow; None if the number is fixed."""
    spec = job.readable_spec()
    if spec is None or spec.training.scaling.kind == "fixed":
        return None
    scaling = spec.training.scaling
    return max(job.actors_least or 1, min(scaling.largest, job.actors_most or scaling.largest))


def _bill_sentences(job: Job) -> dict[str, str]:
    """Return the bill by part and the cost elsewhere, from the latest stored bill."""
    sheet, spec = bill_sheet(job.pk), job.readable_spec()
    if sheet is None or spec is None or sheet.document.get("problem"):
        return {"parts": "", "elsewhere": ""}
    bill = summarize_bill(sheet, spec.platform)
    return {
        "parts": parts_sentence({row.part.key: row.picodollars for row in bill.rows}, bill.total),
        "elsewhere": bill.elsewhere[0] if bill.elsewhere else "",
    }


def numbers_sentence(job: Job) -> str:
    """Return the sentence about a simulated job's numbers; empty for other jobs."""
    spec = job.readable_spec()
    numbers = numbers_behind(spec.platform) if spec is not None else None
    return simulated_sentence(numbers.profile, numbers.words, numbers.count) if numbers else ""


def why_waiting(job: Job, now: datetime) -> str:
    """Return why the job waits; empty if it does not."""
    return job.declaration.say(_why_waiting(job, now))


def _why_waiting(job: Job, now: datetime) -> str:
    if words := _why_no_core(job, now):
        return words
    if job.observed == Observed.QUEUED:
        return _why_queued(job, now)
    if job.observed != Observed.RUNNING:
        return ""
    if words := platform_notes.throttling_sentences(job):
        return words
    moments = list(
        Round.objects.filter(job=job).order_by("-round_no").values_list("at", flat=True)[:_USUAL_OVER]
    )
    spans_s = [(later - earlier).total_seconds() for later, earlier in pairwise(moments)]
    usual_s = median(spans_s) if spans_s else None  # one of the spans may hold a pause
    begun = max(moments[0], job.since) if moments else job.since
    passed_s = (now - begun).total_seconds()
    out = job.account.charges.filter(state=ChargeState.OPEN).exclude(kind=RENT)
    opened = list(out.order_by("opened_at").values_list("opened_at", flat=True))
    oldest_s = (now - opened[0]).total_seconds() if opened else None
    return stalled_sentence(job.round_no + 1, passed_s, usual_s, len(opened), oldest_s)


def _why_no_core(job: Job, now: datetime) -> str:
    """Return that all cores are in use, if the job waits for one."""
    if job.observed not in (Observed.QUEUED, Observed.RECOVERING) or job.lease_owner or not needs_core(job):
        return ""
    in_use = on_cores().count()
    if in_use < core_places():
        return ""
    ahead = waiting_for_core(now).filter(Q(since__lt=job.since) | Q(since=job.since, pk__lt=job.pk)).count()
    return core_sentence(in_use, ahead)


def _why_queued(job: Job, now: datetime) -> str:
    others = Job.objects.filter(observed__in=ACTIVE)
    running = others.exclude(observed=Observed.QUEUED).count()
    ahead = others.filter(observed=Observed.QUEUED, since__lt=job.since).count()
    return queued_sentence((now - job.since).total_seconds(), ahead, running, places())
