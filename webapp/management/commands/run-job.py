"""`manage.py run-job ID`: the process of one job. Started by the worker; dies with it."""

import os
import signal
from argparse import ArgumentParser
from typing import Any

from cloud.workers.processes import die_with_parent
from webapp.jobs.models import Job
from webapp.jobs.running.graceful_exit import GracefulExit
from webapp.jobs.running.recovery import hand_back
from webapp.jobs.running.runner import run_job
from webapp.management.command import LineCommand
from webapp.processes.open_connections import raise_descriptor_limit
from webapp.resources.register import holder

_SIMULATED_NICENESS = 10
"""A virtual clock does not notice that its work gives way to pages and to training that people wait for."""


class Command(LineCommand):
    help = "Runs one job until it ends. SIGTERM hands it over: it saves a checkpoint, then another process continues."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job_id")
        parser.add_argument("--owner", required=True, help="a name for this process, never used before")
        parser.add_argument("--parent", type=int, help="process id of its parent, with which it ends")

    def handle(self, *args: Any, job_id: str, owner: str, parent: int | None, **options: Any) -> None:
        die_with_parent(parent)
        raise_descriptor_limit()  # a call in flight to a cloud takes one
        # Ctrl-C reaches the whole group of processes; the supervisor decides who ends when.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # While these load, Python may not answer for seconds; SIGTERM then ends the process, which has no lease yet.
        leaving = GracefulExit(lambda: hand_back(job_id=job_id, owner=owner))
        leaving.listen()
        if Job.objects.filter(pk=job_id, simulated=True).exists():
            os.nice(_SIMULATED_NICENESS)

        ran = run_job(job_id, owner=owner, hand_over=leaving.requested, holder_of=holder, own_process=True)
        leaving.leave(ran)
