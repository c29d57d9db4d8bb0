"""Checks the books and the jobs' rows against each other: exit code 1 and a line for each finding."""

from typing import Any

from django.core.management.base import BaseCommand

from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.invariants import findings


class Command(BaseCommand):
    help = "Check that the money and the events in the database hold together."

    def handle(self, *args: Any, **options: Any) -> None:
        faults = findings(SYSTEM_CLOCK.shared_now())
        for finding in faults:
            self.stderr.write(finding)
        if faults:
            raise SystemExit(1)
        self.stdout.write("Everything adds up.")
