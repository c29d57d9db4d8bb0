"""Made-up jobs for looking at pages: in every state, with rounds, events and money that could have been."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import F

from training.engine.checkpoints import FileCheckpointStore, Progress
from training.engine.messages import Evaluated
from training.engine.reports import RoundReport, Spend, Usage
from training.rl.algorithms import AnyAlgorithm
from training.rl.environments.making import spaces_of
from training.rl.figures import UpdateReport
from training.rl.learner import LearnerState
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs import services
from webapp.jobs.events.event_log import EventEntry, event_row
from webapp.jobs.form.presets import presets
from webapp.jobs.list import actions
from webapp.jobs.models import Checkpoint, Event, EventKind, Film, FilmState, Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies import film_process
from webapp.jobs.policies.film_process import film_folder
from webapp.money.models import Account, Charge

USD = 10**12
NO_UPDATE = UpdateReport(
    policy_loss=-0.01,
    value_loss=0.4,
    entropy=1.2,
    approximate_kl=0.008,
    clip_fraction=0.11,
    explained_variance=0.7,
    gradient_norm=0.5,
    learning_rate=3e-4,
)


def submitted(
    project: Project,
    user: User,
    preset: str,
    name: str,
    budget_usd: str = "1.00",
    algorithm: AnyAlgorithm | None = None,
) -> Job:
    spec = presets()[preset].spec.model_copy(update={"name": name, "budget_usd": Decimal(budget_usd)})
    if algorithm is not None:
        training = spec.training.model_copy(update={"algorithm": algorithm})
        spec = spec.model_copy(update={"training": training})
    return services.submit_job(project=project, user=user, spec=spec)


def put(
    job: Job, observed: Observed, reason: str, reason_code: str = "", minutes: float = 12, **figures: Any
) -> Job:
    """Sets a job's row as a run would have left it."""
    now = SYSTEM_CLOCK.now()
    Job.objects.filter(pk=job.pk).update(
        observed=observed,
        reason=reason,
        reason_code=reason_code,
        since=now - timedelta(minutes=minutes),
        created_at=now - timedelta(minutes=minutes * 1.2),
        started_at=now - timedelta(minutes=minutes),
        **figures,
    )
    job.refresh_from_db()
    return job


def spend(job: Job, spent_usd: float, reserved_usd: float = 0.0) -> None:
    Account.objects.filter(job=job).update(
        spent_picodollars=round(spent_usd * USD),
        reserved_picodollars=round(reserved_usd * USD),
        granted_picodollars=F("limit_picodollars"),  # budgets above it have granted it all
    )


def round_report(
    round_no: int, *, actors: int = 8, peak: float = 2200.0, usd_a_round: float = 0.0032
) -> RoundReport:
    """A round of a run that learns: noisy, quick at first, slower later."""
    noise = random.Random(round_no)
    reward = peak * (1 - math.exp(-round_no / 60)) * noise.uniform(0.75, 1.1) + 15
    collect_s, update_s = noise.uniform(1.1, 1.9), noise.uniform(0.5, 0.7)
    return RoundReport(
        round_no=round_no,
        version=round_no,
        actors=actors,
        plan_reason=f"fixed at {actors}",
        env_steps=actors * 256,
        total_progress=round_no * 2048,
        episodes=9,
        episode_return_mean=reward,
        episode_length_mean=310.0,
        update=NO_UPDATE,
        started_s=(round_no - 1) * 2.3,
        collect_s=collect_s,
        update_s=update_s,
        total_s=collect_s + update_s + 0.08,
        cold_starts=0,
        failed_calls=0,
        retried_calls=0,
        usage=Usage(steps=actors * 256),
        learner_usage=Usage(),
        cost_picodollars=round(usd_a_round * USD),
        spend=Spend(
            spent_picodollars=round(usd_a_round * round_no * USD),
            reserved_picodollars=0,
            limit_picodollars=USD,
        ),
    )


def evaluation(round_no: int) -> Evaluated:
    mean = round_report(round_no).score or 0.0
    return Evaluated(
        round_no=round_no,
        total_progress=round_no * 2048,
        at_s=round_no * 2.3,
        episode_returns=(mean * 1.1,) * 5,
        return_mean=mean * 1.12,
        return_std=mean * 0.08,
        length_mean=400.0,
        cost_picodollars=USD // 1000,
    )


def history(job: Job, rounds: int, actors: Sequence[int] = (8,)) -> None:
    """Rounds with their events, an evaluation and a checkpoint every 20, and one call that failed."""
    now = SYSTEM_CLOCK.now()
    started = {"kind": "started", "resumed_from_round": None, "notes": []}
    events: list[tuple[str, dict[str, Any]]] = [("started", started)]
    reports = [
        round_report(no, actors=actors[no * len(actors) // (rounds + 1)]) for no in range(1, rounds + 1)
    ]
    for report in reports:
        events.append(("round", {"kind": "round", "report": report.model_dump(mode="json")}))
        if report.round_no % 20 == 0:
            events.append(("evaluation", evaluation(report.round_no).model_dump(mode="json")))
            saved = {"round_no": report.round_no, "name": f"{report.round_no}.ckpt", "sha256": "0" * 64}
            events.append(("checkpoint", {"kind": "checkpoint", **saved, "byte_count": 412_300}))
        if report.round_no == rounds // 2:
            events.append(("call_failed", failed_call(report.round_no)))
    first = job.last_seq + 1
    Event.objects.bulk_create(
        event_row(
            job.pk, first + at, now - timedelta(seconds=2 * (len(events) - at)), EventEntry(*event), epoch=1
        )
        for at, event in enumerate(events)
    )
    Job.objects.filter(pk=job.pk).update(last_seq=first + len(events) - 1)
    job.refresh_from_db()


def failed_call(round_no: int) -> dict[str, Any]:
    return {
        "kind": "call_failed",
        "call_id": f"r{round_no}-s3-a1",
        "call_kind": "rollout",
        "round_no": round_no,
        "slot": 3,
        "attempt": 1,
        "reason": "the function was stopped by its platform",
        "reason_code": "crashed",
        "will_retry": True,
    }


def tell(job: Job, kind: EventKind, text: str, **facts: Any) -> None:
    job.refresh_from_db()
    Event.objects.create(
        job=job, seq=job.last_seq + 1, at=SYSTEM_CLOCK.now(), kind=kind, payload={"text": text, **facts}
    )
    Job.objects.filter(pk=job.pk).update(last_seq=job.last_seq + 1)


def running_job(project: Project, user: User) -> Job:
    """A simulated job in the middle of its life, with calls in flight."""
    job = submitted(project, user, "hopper-simulated", "Hopper, simulated cloud")
    history(job, 140, actors=(8, 8, 12, 16, 12))
    put(
        job,
        Observed.RUNNING,
        "Round 141: 12 of 12 calls in flight.",
        round_no=140,
        total_progress=286_720,
        actors=12,
        training_score=round_report(140).score,
        evaluated_score=evaluation(140).score,
        platform_s=322.4,
    )
    spend(job, 0.448, 0.0312)
    account = Account.objects.get(job=job)
    charges = [
        Charge(
            account=account,
            epoch=1,
            name=f"call-{at}",
            round_no=141,
            kind="rollout",
            reserved_picodollars=26 * USD // 10_000,
            opened_at=SYSTEM_CLOCK.now(),
        )
        for at in range(12)
    ]
    Charge.objects.bulk_create(charges)
    return job


def job_stopped_by_budget(project: Project, user: User) -> Job:
    job = submitted(project, user, "hopper-simulated", "Hopper, wide", "0.25")
    history(job, 78)
    put(
        job,
        Observed.PAUSED,
        "The next round could cost more than the budget has left.",
        "budget",
        minutes=47,
        round_no=78,
        total_progress=159_744,
        actors=8,
        training_score=round_report(78).score,
        evaluated_score=evaluation(60).score,
        platform_s=179.4,
    )
    spend(job, 0.25)
    text = "The next round could cost more than the budget has left."
    tell(job, EventKind.STATE, text, observed="paused", reason_code="budget")
    return job


def policies_with_films(job: Job) -> None:
    """Checkpoints of a policy that learned nothing: one filmed after its evaluation, one whose film failed, one
    that waits."""
    now, spec = SYSTEM_CLOCK.now(), job.parsed_spec().training
    store = FileCheckpointStore(policies.checkpoint_path(job.pk, ""), keep=9)
    states = {100: FilmState.QUEUED, 120: FilmState.FAILED, 140: FilmState.READY}
    for at, (round_no, state) in enumerate(states.items()):
        learner = LearnerState.initial(spec.network, spaces_of(spec.environment), round_no)
        progress = Progress(learner=learner.encode(), weights=b"", round_no=round_no)
        saved = store.save(round_no, progress.encode(spec))
        kept = {"round_no": round_no, "sha256": saved.sha256}
        moment = now - timedelta(minutes=4 * (len(states) - at))
        Checkpoint.objects.create(
            job=job, epoch=1, name=saved.name, byte_count=saved.byte_count, at=moment, **kept
        )
        film = Film(
            job=job, checkpoint=saved.name, state=state, since=now, requested_by=job.created_by, **kept
        )
        if state == FilmState.FAILED:
            film.reason = "MuJoCo cannot draw without a screen on this machine: it needs EGL."
        elif state == FilmState.READY:
            film.file = f"{job.pk}/{round_no}.webp"
            path = policies.checkpoint_path(job.pk, saved.name)
            film.facts = film_process.shoot(path, film_folder() / film.file)
            film.facts["used_cpu_s"] = film.facts["cpu_s"]
            film.requested_by = None
        film.save()


def jobs_in_every_state(project: Project, user: User) -> None:
    """A project that has been used for a while."""
    rows = (
        ("cartpole", "Cart pole, first try", Observed.SUCCEEDED, "Reached 475 three times.", 4000, 61_440, 8, 492.6),
        ("hopper", "Hopper, local, seed 3", Observed.FAILED, "The update ran out of memory.", 1500, 20_480, 8, 88.2),
        ("cartpole", "Cart pole, relu", Observed.CANCELLED, "Stopped on request.", 300, 10_240, 8, 121.9),
        ("hopper", "Hopper, local, seed 4", Observed.RECOVERING, "Resuming from round 40.", 3, 81_920, 8, 640.7),
        ("cartpole", "Cart pole, seed 7", Observed.DRAINING, "Stop requested.", 1, 30_720, 8, 244.0),
    )  # fmt: skip
    for preset, name, observed, reason, minutes, steps, actors, reward in rows:
        job = submitted(project, user, preset, name, "2.00")
        put(job, observed, reason, "", minutes, total_progress=steps, actors=actors, training_score=reward)
    job_stopped_by_budget(project, user)
    put(
        submitted(project, user, "cartpole", "Cart pole, seed 8"),
        Observed.STARTING,
        "Starting the workers.",
        minutes=0.1,
    )
    running_job(project, user)
    put(
        submitted(project, user, "cartpole", "Cart pole, seed 9"),
        Observed.QUEUED,
        "Waiting for a worker.",
        minutes=0.05,
    )


def jobs_put_away(project: Project, user: User) -> tuple[Job, Job]:
    """An archived job, and a deleted one."""
    archived, deleted = (
        submitted(project, user, "cartpole", name) for name in ("Cart pole, too slow", "Cart pole, mistyped")
    )
    for job in (archived, deleted):
        put(
            job, Observed.CANCELLED, "Stopped on request.", "", 300, total_progress=2_048, training_score=21.5
        )
        actions.archive(job=job, user=user)
    actions.delete(job=deleted, user=user)
    return archived, deleted
