"""The sentences of a job's page with their figures: queried here, worded in `sentences`."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from cloud.platforms import PlatformOptions
from training.environments import catalogue
from webapp.formatting import display_usd, format_score
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.billing.bill_text import numbers_behind, summarize_bill
from webapp.jobs.charts.history import Evaluation, History, histories
from webapp.jobs.events.sentences import (
    PolicyScore,
    no_news_sentence,
    parts_sentence,
    plan_sentence,
    progress_sentence,
    queued_sentence,
    simulated_sentence,
    stalled_sentence,
)
from webapp.jobs.models import Checkpoint, Job, Round
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
        reached = _reached(job, history)
    return {
        "progress": _progress(job, judged),
        "reached": reached,
        "no_news": _no_news(job, judged, since_usd),
        "plan": _plan(job),
        **_bill_sentences(job),
    }


def _best_of(job: Job, judged: list[Evaluation]) -> Evaluation | None:
    """Return the first evaluation with the best score."""
    if not judged:
        return None
    means = [one.mean for one in judged]
    return judged[means.index(job.training_facts.score.best(means))]


def _progress(job: Job, judged: list[Evaluation]) -> str:
    entry = catalogue.ENTRIES.get(job.training_facts.subject)
    reference = None
    if entry is not None and entry.reference_return is not None:
        reference = entry.reference_return, entry.reference
    judged_last = _score_of(judged[-1]) if judged else None
    return progress_sentence(job.episode_return_mean, judged_last, reference, job.training_facts.score)


def _reached(job: Job, history: History) -> str:
    """Return the cost at the first evaluation that reached the environment's reference."""
    entry = catalogue.ENTRIES.get(job.training_facts.subject)
    if entry is None or entry.reference_return is None:
        return ""
    for one in history.evaluations:
        if one.mean >= entry.reference_return:
            spent = display_usd(round(history.spent_usd_after(one.round_no) * PICODOLLARS_PER_USD))
            return f"Reached {format_score(entry.reference_return, decimals=0)} in round {one.round_no:,} for {spent}."
    return ""


def _no_news(job: Job, judged: list[Evaluation], since_usd: float) -> str:
    if job.observed not in ACTIVE:
        return ""
    all_judged = [_score_of(one) for one in judged]
    score = job.training_facts.score
    if not no_news_sentence(all_judged, job.round_no, 0, None, score):  # the usual case needs no query
        return ""
    kept = Checkpoint.objects.filter(job=job).values_list("round_no", flat=True).first()
    since = max(0, round(since_usd * PICODOLLARS_PER_USD))
    return no_news_sentence(all_judged, job.round_no, since, kept, score)


def _score_of(one: Evaluation) -> PolicyScore:
    return PolicyScore(one.round_no, one.mean, one.std, one.episodes)


def _plan(job: Job) -> str:
    rows = Round.objects.filter(job=job, round_no=job.round_no)
    why = rows.values_list("report__plan_reason", flat=True).first()
    return plan_sentence(job.round_no, job.actors, _most_actors(job), why or "")


def _most_actors(job: Job) -> int | None:
    """Return the most actors that the policy or its bounds allow; None if the number is fixed."""
    try:
        scaling = job.parsed_spec().training.scaling
    except ValueError:  # made by a version of this program that knew other policies
        return None
    if scaling.kind == "fixed":
        return None
    return max(job.actors_least or 1, min(scaling.largest, job.actors_most or scaling.largest))


def _bill_sentences(job: Job) -> dict[str, str]:
    """Return the bill by part and the cost elsewhere, from the latest stored bill."""
    sheet, options = bill_sheet(job.pk), _platform(job)
    if sheet is None or options is None or sheet.document.get("problem"):
        return {"parts": "", "elsewhere": ""}
    bill = summarize_bill(sheet, options)
    return {
        "parts": parts_sentence({row.part.key: row.picodollars for row in bill.rows}, bill.total),
        "elsewhere": bill.elsewhere[0] if bill.elsewhere else "",
    }


def numbers_sentence(job: Job) -> str:
    """Return the sentence about a simulated job's numbers; empty for other jobs."""
    options = _platform(job)
    numbers = numbers_behind(options) if options is not None else None
    return simulated_sentence(numbers.profile, numbers.words, numbers.count) if numbers else ""


def _platform(job: Job) -> PlatformOptions | None:
    """Return the job's platform; None if this version cannot read its spec."""
    try:
        return job.parsed_spec().platform
    except ValueError:
        return None


def why_waiting(job: Job, now: datetime) -> str:
    """Return why the job waits; empty if it does not."""
    if words := _why_no_core(job, now):
        return words
    if job.observed == Observed.QUEUED:
        return _why_queued(job, now)
    if job.observed != Observed.RUNNING:
        return ""
    if words := platform_notes.held_back(job):
        return words
    moments = list(
        Round.objects.filter(job=job).order_by("-round_no").values_list("at", flat=True)[:_USUAL_OVER]
    )
    usual_s = (moments[0] - moments[-1]).total_seconds() / (len(moments) - 1) if len(moments) > 1 else None
    passed_s = (now - (moments[0] if moments else job.since)).total_seconds()
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
