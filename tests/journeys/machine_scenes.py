"""A made-up job on machines that call, two of which are there."""

from __future__ import annotations

from cloud.platforms.gateway.store import WaitingPuller
from tests.factories import make_spec
from tests.journeys import scenes
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.gateway import services
from webapp.connections.gateway.store import DatabaseStore
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.jobs.services import submit_job


def on_machines(project: Project, user: User, name: str, *present: str) -> Job:
    """Running on four machines of three actors each, of which these are here."""
    platform = {"kind": "hosts", "machines": 4, "processes": 3}
    spec = make_spec("hopper", platform=platform).model_copy(update={"name": name})
    job = submit_job(project=project, user=user, spec=spec)
    scenes.put(job, Observed.RUNNING, "Running.", minutes=3)
    services.open_box(job_id=job.pk, epoch=1, clock=SYSTEM_CLOCK)
    callers = [WaitingPuller(f"{unit}-{number}", unit) for unit in present for number in range(3)]
    if callers:
        DatabaseStore().hand_out(job.pk, callers)
    for _ in present:
        services.new_token(job_id=job.pk, user=user)
    return job
