"""Fills a fresh data folder with jobs; prints a session and the pages to ask for: `python -m benchmarks.paging N`."""

# ruff: noqa: E402 - Django is set up before models are imported

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from rig.rounds import round_finished
from rig.stored_rounds import store_rounds
from webapp.accounts import services as accounts
from webapp.job_states import Observed
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.services import submit_job
from webapp.money.models import Account

_ROUNDS = 300
_OF_A_GROUP = 5


def main(count: int) -> dict[str, object]:
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    person = accounts.create_person("bench@example.org", "correct horse battery")
    project = accounts.ensure_personal_project(person)
    first = submit_job(project=project, user=person, spec=presets()["hopper-simulated"].spec)
    jobs = list(_jobs(first, count))
    Job.objects.bulk_create(jobs, batch_size=500)
    Account.objects.bulk_create(
        [Account(job=job, limit_picodollars=10**12, granted_picodollars=10**12) for job in jobs],
        batch_size=500,
    )
    groups = [_group(project, jobs[at : at + _OF_A_GROUP]) for at in (0, _OF_A_GROUP)]
    base = f"/p/{project.slug}"
    client = Client()
    client.force_login(person)
    pages = {
        "list": f"{base}/jobs/",
        "list, page 150": f"{base}/jobs/?page=150",
        "list, searched": f"{base}/jobs/?q=state:succeeded+cost%3C1+return%3E1000&sort=-best",
        "list, fresh rows": f"{base}/jobs/?rows=1",
        "job": f"{base}/jobs/{jobs[0].pk}/",
        "comparison of 2 groups": f"{base}/compare/?of=group_{groups[0]}&of=group_{groups[1]}",
    }
    return {
        "cookie": f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}",
        "pages": pages,
    }


def _jobs(first: Job, count: int) -> Iterator[Job]:
    now, chance = timezone.now(), random.Random(1)
    for at in range(count):
        score = chance.uniform(50, 3000)
        yield Job(
            project=first.project,
            name=f"Run {at:05d}",
            spec=first.spec,
            simulated=True,
            created_by=first.created_by,
            created_at=now - timedelta(minutes=at),
            since=now,
            observed=chance.choice((Observed.SUCCEEDED, Observed.FAILED, Observed.CANCELLED)),
            algorithm=first.algorithm,
            subject=first.subject,
            cloud=first.cloud,
            training_score=score,
            best_training_score=score * 1.1,
            worst_training_score=10.0,
            round_no=_ROUNDS,
            total_progress=_ROUNDS * 2048,
            actors=8,
            platform_s=700.0,
        )


def _group(project: object, jobs: list[Job]) -> int:
    """Runs with as many rounds as a real one has."""
    group = JobGroup.objects.create(
        project=project, name=f"Group of {jobs[0].name}", created_at=timezone.now()
    )
    group.jobs.set(jobs)
    for job in jobs:
        store_rounds(job, [_report(no) for no in range(1, _ROUNDS + 1)], job.since)
    return group.pk


def _report(round_no: int) -> Any:
    mean = 2000.0 * (1 - 0.98**round_no)
    return round_finished(round_no, mean=mean, spent=10**9 * round_no).report.model_dump(mode="json")


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
