"""`manage.py prepare`: what must be true before the services start."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from webapp.jobs.running.job_watchdog import expire_dead_leases
from webapp.static_files import collect_if_changed

DEMO_SIGN_IN = "The demo account's sign-in: "  # what follows is a path; `manage.py up` reads this line

_LOOK_WITHIN_S = 20.0


class Command(BaseCommand):
    help = "Bring the database up to date and collect static files. Does nothing where nothing is to be done."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--demo", action="store_true", help="on an empty database, make the demo account and job"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
            self.stdout.write("The database is up to date.")
        if count := collect_if_changed():
            self.stdout.write(f"{count} static files collected.")
        expire_dead_leases()
        self._look_at_the_clouds()
        from webapp.jobs.demo import create_demo, demo_sign_in_path  # they need tables

        if options["demo"] and not get_user_model().objects.exists():
            create_demo()
        if (path := demo_sign_in_path()) is not None:
            self.stdout.write(f"{DEMO_SIGN_IN}{path}")

    def _look_at_the_clouds(self) -> None:
        """What a server that died left running is ended before anything new begins."""
        from webapp.resources import scanner

        if scanner.scanned_connections():
            try:
                call_command("reconcile", within=_LOOK_WITHIN_S, stdout=self.stdout)
            except SystemExit:
                self.stdout.write("Not every account could be looked at; the next look follows in seconds.")
