"""`manage.py run-scheduler-training ID`: the process of one training. Started by the worker; dies with it."""

import os
import signal
from argparse import ArgumentParser
from typing import Any

from cloud.workers.processes import die_with_parent
from webapp.jobs.launch.job_memory import limit_to_most
from webapp.jobs.running.graceful_exit import GracefulExit
from webapp.management.command import LineCommand
from webapp.schedulers.leases import hand_back
from webapp.schedulers.training_run import run_training

_NICENESS = 10
"""Low priority: pages and jobs go first, and the virtual clock of a training is not affected."""


class Command(LineCommand):
    help = "Trains one scheduler to its end. After SIGTERM another process continues; the present episode starts again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("training_id", type=int)
        parser.add_argument("--owner", required=True, help="a name for this process, never used before")
        parser.add_argument("--parent", type=int, help="process id of its parent, with which it ends")

    def handle(self, *args: Any, training_id: int, owner: str, parent: int | None, **options: Any) -> None:
        die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides who ends when
        os.nice(_NICENESS)
        # While these load, Python may not answer for seconds; SIGTERM then ends the process, which has no lease yet.
        leaving = GracefulExit(lambda: hand_back(training_id, owner))
        leaving.listen()
        limit_to_most()
        leaving.leave(run_training(training_id, owner=owner, hand_over=leaving.requested))
