"""Made-up seeds and sweeps for looking at comparisons: two algorithms with five seeds each, and rates with three."""

from __future__ import annotations

import math
import random
from datetime import timedelta

from rig.stored_rounds import store_rounds
from tests.journeys.scenes import USD, put, round_report, spend, submitted
from training.rl.algorithms import AnyAlgorithm
from training.rl.algorithms.a2c import A2C
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs.list import actions
from webapp.jobs.list.run_table import save_view
from webapp.jobs.models import Job, JobGroup

ROUNDS = 120


def _grown(job: Job, seed: int, peak: float, pace: float, usd: float) -> None:
    """A run that is over, whose curve is its seed's."""
    chance = random.Random(f"{peak} {seed}")
    peak *= chance.uniform(0.85, 1.15)
    reports, means, now = [], [], SYSTEM_CLOCK.now()
    for round_no in range(1, ROUNDS + 1):
        mean = peak * (1 - math.exp(-round_no / pace)) * chance.uniform(0.85, 1.1) + 15
        means.append(mean)
        report = round_report(round_no).model_dump(mode="json")
        spent = {"spent_picodollars": round(usd * USD * round_no / ROUNDS)}
        report |= {"episode_return_mean": mean, "spend": {**report["spend"], **spent}}
        reports.append(report)
    store_rounds(job, reports, now)
    put(
        job,
        Observed.SUCCEEDED,
        "Reached 245,760 steps.",
        minutes=90 + seed,
        round_no=ROUNDS,
        total_progress=ROUNDS * 2048,
        actors=8,
        training_score=means[-1],
        best_training_score=max(means),
        worst_training_score=min(means),
        platform_s=ROUNDS * 2.3 * chance.uniform(0.9, 1.2),
        finished_at=now - timedelta(minutes=80),
    )
    spend(job, usd * chance.uniform(0.95, 1.05))


def seeds_of(
    project: Project,
    user: User,
    name: str,
    *,
    peak: float,
    pace: float,
    usd: float,
    count: int = 5,
    algorithm: AnyAlgorithm | None = None,
) -> JobGroup:
    group = JobGroup.objects.create(project=project, name=name, created_at=SYSTEM_CLOCK.now())
    for seed in range(count):
        job = submitted(project, user, "hopper-simulated", f"{name}, seed {seed}", "1.00", algorithm)
        job.spec["training"]["seed"] = seed
        Job.objects.filter(pk=job.pk).update(spec=job.spec)
        job.groups.add(group)
        actions.set_tags(job=job, names=["trial"] if algorithm else ["baseline"])
        _grown(job, seed, peak, pace, usd)
    return group


def sweep_of(project: Project, user: User) -> JobGroup:
    group = JobGroup.objects.create(project=project, name="Hopper rates", created_at=SYSTEM_CLOCK.now())
    for at, rate in enumerate((0.0001, 0.0003, 0.001, 0.003)):
        for seed in range(3):
            name = f"Hopper rates: Learning rate {rate}, seed {seed}"
            job = submitted(project, user, "hopper-simulated", name, "0.50")
            job.spec["training"]["seed"] = seed
            job.spec["training"]["algorithm"]["learning_rate"] = rate
            Job.objects.filter(pk=job.pk).update(spec=job.spec)
            job.groups.add(group)
            _grown(job, seed, (900, 2100, 1700, 400)[at], (80, 50, 30, 20)[at], 0.3 + 0.02 * at)
    return group


def comparisons(project: Project, user: User) -> dict[str, str]:
    """Addresses of pages, by the name of their picture."""
    many = seeds_of(project, user, "Hopper with PPO", peak=2300, pace=35, usd=0.62)
    few = seeds_of(project, user, "Hopper with A2C", peak=1650, pace=55, usd=0.31, algorithm=A2C())
    sweep = sweep_of(project, user)
    save_view(project=project, user=user, name="Dear ones", address="?q=cost>0.5&sort=-spent")
    first = many.jobs.order_by("pk").first()
    assert first is not None
    base, jobs = f"/p/{project.slug}", f"/p/{project.slug}/jobs/"
    return {
        "runs": jobs,
        "runs-search": f"{jobs}?q=tag:baseline+cost>0.1&columns=return,best,spent,time,algorithm,tags,group",
        "runs-problem": f"{jobs}?q=stat:active",
        "compare": f"{base}/compare/?of=group_{many.pk}&of=group_{few.pk}",
        "compare-usd": f"{base}/compare/?of=group_{many.pk}&of=group_{few.pk}&of={first.pk}&over=usd",
        "compare-empty": f"{base}/compare/",
        "group": f"{base}/groups/{many.pk}/",
        "sweep": f"{base}/groups/{sweep.pk}/",
        "sweep-new": f"{base}/sweeps/new/?preset=hopper-simulated",
        "runs-job": f"{jobs}{first.pk}/",
    }
