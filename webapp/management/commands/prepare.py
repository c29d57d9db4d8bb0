"""`manage.py prepare`: what must be true before the services start."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from webapp.accounts.models import User
from webapp.accounts.services import create_person, one_time_sign_in_path
from webapp.data_folder import FolderRefused, close_contents
from webapp.database.leases import expire_dead
from webapp.database.schema import is_behind
from webapp.http.static_files import collect_if_changed
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job
from webapp.jobs.services import submit_job
from webapp.management.command import LineCommand
from webapp.resources import scanner

DEMO_SIGN_IN = "The demo account's sign-in: "  # what follows is a path; `manage.py up` reads this line

_LOOK_WITHIN_S = 20.0
DEMO_EMAIL = "demo@starling.localhost"
DEMO_STEPS = 10_000_000
"""Some hours of work, so that a visitor in the first hour sees the job run, if its dollar lasts that long."""


class Command(LineCommand):
    help = "Bring the database up to date and collect static files. Does nothing where nothing is to be done."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--demo", action="store_true", help="on an empty database, make the demo account and job"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._close_the_data_folder()
        if is_behind():
            self.check(tags=["database"], databases=["default"])
            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
            self.stdout.write("The database is up to date.")
        if count := collect_if_changed():
            self.stdout.write(f"{count} static files collected.")
        expire_dead(Job)
        self._look_at_the_clouds()
        if options["demo"] and not User.objects.exists():
            create_demo()
        if (path := demo_sign_in_path()) is not None:
            self.stdout.write(f"{DEMO_SIGN_IN}{path}")

    def _close_the_data_folder(self) -> None:
        try:
            count = close_contents(settings.STARLING_DATA)
        except FolderRefused as refused:
            raise CommandError(str(refused), returncode=2) from refused
        if count:
            self.stdout.write(
                f"{count} files and folders in {settings.STARLING_DATA} could be read by other users of this machine; "
                "now they cannot. If they may have, ask people to sign out everywhere on their account's page: that "
                "ends their sessions and tokens."
            )

    def _look_at_the_clouds(self) -> None:
        """What a server that died left running is ended before anything new begins."""
        if scanner.scanned_connections():
            try:
                call_command("reconcile", within=_LOOK_WITHIN_S, stdout=self.stdout)
            except SystemExit:
                self.stdout.write("Not every account could be looked at; the next look follows in seconds.")


@transaction.atomic
def create_demo() -> None:
    """Create the demo account with its project and job in one transaction: a start may be killed at any
    moment."""
    user = create_person(DEMO_EMAIL)
    spec = presets()["hopper-simulated"].spec
    stop = spec.training.stop.model_copy(update={"env_steps": DEMO_STEPS})
    training = spec.training.model_copy(update={"stop": stop})
    demo = spec.model_copy(update={"name": "Demo: Hopper on the simulated cloud", "training": training})
    submit_job(project=user.projects.get(), user=user, spec=demo, idempotency_key="demo")


def demo_sign_in_path() -> str | None:
    """Return a fresh one-time sign-in path of the demo account; None once any user has signed in here.

    Until then each start prints a new path, so a lost one locks no one out.
    """
    if User.objects.filter(last_login__isnull=False).exists():
        return None
    user = User.objects.filter(email=DEMO_EMAIL, is_active=True).first()
    return one_time_sign_in_path(user) if user is not None else None
