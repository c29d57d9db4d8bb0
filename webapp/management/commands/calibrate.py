"""`manage.py calibrate`: measure this machine, or an account of a cloud, and write what was found."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from cloud.accounts.profiling_runs import NoWeights
from cloud.money.billing.price_book import UnknownSku
from cloud.timing.calibration import report, run_parts
from cloud.timing.calibration.account import QUICK, SIZES, AccountEffort, CalibrationFailed
from cloud.timing.calibration.part import BUSY_LIMIT
from cloud.timing.calibration.report import numbers
from cloud.timing.calibration.toml_writer import write_toml
from cloud.timing.numbers import stack as stacks
from training.rl.environments.catalogue import require_known
from webapp.connections.account_lease import LeaseRefused
from webapp.connections.models import Connection
from webapp.formatting import display_usd
from webapp.management.command import LineCommand
from webapp.resources.profiling import account_calibration
from webapp.resources.profiling.services import BudgetTooSmall


class Command(LineCommand):
    help = (
        "Measures how fast Starling's software is on this machine and writes a stack and a profile for the simulated"
        " cloud. Exit 1 when others kept the machine busy: such figures are no good. With --account it measures an"
        " account of yours instead and writes a profile of it; this costs money and needs a confirmation."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--environments", nargs="+", metavar="ENVIRONMENT")
        add("--name", metavar="NAME", help="of the stack's file (this-machine-stack-DATE)")
        add("--out", type=Path, metavar="FOLDER", help="default: `profiles` in the data folder")
        add("--quick", action="store_true", help="seconds instead of minutes: looks, no figures")
        add("--anyway", action="store_true", help="write also what was measured beside others' load")
        account = parser.add_argument_group("an account instead of this machine")
        account.add_argument("--account", choices=("aws",), help="which cloud it is of")
        account.add_argument("--connection", metavar="ID", help="the connection that reaches it: con_…")
        account.add_argument(
            "--memory", nargs="+", type=int, metavar="MB", help="sizes to measure (1024 1769 3008)"
        )
        account.add_argument("--yes", action="store_true", help="do not ask before money is spent")

    def handle(self, **options: Any) -> None:
        if options["account"]:
            self._account(options)
        elif options["connection"]:
            raise CommandError("--connection goes with --account aws.", returncode=2)
        else:
            self._machine(options)

    def _machine(self, options: dict[str, Any]) -> None:
        chosen = options["environments"] or run_parts.ENVIRONMENTS
        try:
            for name in chosen:
                require_known(name)
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from None
        today = datetime.now(UTC).date()
        effort = run_parts.QUICK if options["quick"] else run_parts.MachineEffort()
        measured = run_parts.calibration(chosen, effort, stacks.load(stacks.OURS), today, self.tell)
        for line in report.table(measured):
            self.tell(line)
        if not (measured.good or options["quick"] or options["anyway"]):
            raise CommandError(
                f"Others kept {100 * measured.busy:.0f} % of the cores busy, more than {100 * BUSY_LIMIT:.0f} %: these"
                " figures are no good and were not written. Try again when it is quiet, or write them with --anyway.",
                returncode=1,
            )
        folder = self._folder(options)
        heading = report.heading(measured, quick=options["quick"])
        for name, model in (
            (options["name"] or f"this-machine-stack-{today}", measured.stack),
            (f"this-machine-{today}", measured.profile),
        ):
            write_toml(folder / f"{name}.toml", model, heading)
            self.tell(str(folder / f"{name}.toml"))

    def _account(self, options: dict[str, Any]) -> None:
        from pydantic import ValidationError

        connection = _connection(options["connection"])
        effort = QUICK if options["quick"] else AccountEffort()
        sizes = tuple(options["memory"] or SIZES)
        try:
            likely = account_calibration.likely_cost(connection, effort, sizes)
            self._agree(
                connection, display_usd(likely), display_usd(account_calibration.LIMIT_PICODOLLARS), options
            )
            found = account_calibration.calibrate_account(connection, effort, sizes, tell=self.tell)
        except ValidationError as error:
            raise CommandError(f"--memory: {error.errors()[0]['msg']}.", returncode=2) from None
        except (LeaseRefused, CalibrationFailed, BudgetTooSmall, NoWeights, UnknownSku) as error:
            raise CommandError(f"Nothing was written. {error}", returncode=1) from None
        for line in numbers("profile", found.profile):
            self.tell(line)
        self.tell(f"It cost {display_usd(found.spent_picodollars)}.")
        self.tell(str(account_calibration.write(found, connection, self._folder(options), datetime.now(UTC))))

    def _agree(self, connection: Any, likely: str, most: str, options: dict[str, Any]) -> None:
        """Ask before anything is spent; no answer is a no."""
        where = f"{connection.name} ({connection.region}{', emulated' if connection.emulated else ''})"
        self.tell(f"This runs functions in {where}. About {likely}, and never more than {most}.")
        if options["yes"]:
            return
        try:
            answer = input("Go on? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was run, and nothing spent.", returncode=1)

    def _folder(self, options: dict[str, Any]) -> Path:
        folder: Path = options["out"] or settings.STARLING_DATA / "profiles"
        return folder


def _connection(connection_id: str | None) -> Any:
    connection = Connection.objects.select_related("project").filter(pk=connection_id or "").first()
    if connection is None or connection.cloud != "aws":
        there = ", ".join(f"{one.pk} ({one.name})" for one in Connection.objects.all() if one.cloud == "aws")
        raise CommandError(
            f"Name the account with --connection ID. There are: {there or 'none yet; connect one under Clouds'}.",
            returncode=2,
        )
    return connection
