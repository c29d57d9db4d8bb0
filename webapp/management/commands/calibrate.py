"""`manage.py calibrate`: measure this machine, and write a stack and a profile of it."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

_BASE = "starling-stack"


class Command(BaseCommand):
    help = (
        "Measures how fast Starling's software is on this machine and writes a stack and a profile for the simulated"
        " cloud. Exit 1 when others kept the machine busy: such figures are no good."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--environments", nargs="+", metavar="ENVIRONMENT")
        parser.add_argument("--name", metavar="NAME", help="of the stack's file (this-machine-stack-DATE)")
        parser.add_argument(
            "--out", type=Path, metavar="FOLDER", help="default: `profiles` in the data folder"
        )
        parser.add_argument(
            "--quick", action="store_true", help="seconds instead of minutes: looks, no figures"
        )
        parser.add_argument(
            "--anyway", action="store_true", help="write also what was measured beside others' load"
        )

    def handle(self, **options: Any) -> None:
        from cloud import stack as stacks
        from cloud.calibration import measuring, report
        from cloud.calibration.part import BUSY_LIMIT
        from cloud.calibration.writing import write_toml
        from training.environments.catalogue import require_known

        chosen = options["environments"] or measuring.ENVIRONMENTS
        try:
            for name in chosen:
                require_known(name)
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from None
        today = datetime.now(UTC).date()
        effort = measuring.QUICK if options["quick"] else measuring.Effort()
        found = measuring.calibration(chosen, effort, stacks.load(_BASE), today, self._tell)
        for line in report.table(found):
            self._tell(line)
        if not (found.good or options["quick"] or options["anyway"]):
            raise CommandError(
                f"Others kept {found.busy:.0%} of the cores busy, more than {BUSY_LIMIT:.0%}: these figures"
                " are no good and were not written. Try again when it is quiet, or write them with --anyway.",
                returncode=1,
            )
        folder: Path = options["out"] or settings.STARLING_DATA / "profiles"
        heading = report.heading(found, quick=options["quick"])
        for name, model in (
            (options["name"] or f"this-machine-stack-{today}", found.stack),
            (f"this-machine-{today}", found.profile),
        ):
            write_toml(folder / f"{name}.toml", model, heading)
            self._tell(str(folder / f"{name}.toml"))

    def _tell(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
