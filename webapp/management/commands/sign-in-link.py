"""`manage.py sign-in-link ADDRESS`: a one-time link for a person who cannot sign in otherwise."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts.models import User
from webapp.accounts.services import one_time_sign_in_path


class Command(BaseCommand):
    help = "Print a link that signs one person in, once, within an hour. The first password is set after it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", help="the e-mail address the person signs in with")

    def handle(self, *args: Any, **options: Any) -> None:
        address = options["address"].strip().lower()
        try:
            user = User.objects.get_by_natural_key(address)
        except User.DoesNotExist:
            raise CommandError(f"No account has the address {address}.") from None
        if not user.is_active:
            raise CommandError(f"The account of {address} is switched off: no link would sign in there.")
        self.stdout.write(f"{settings.STARLING_BASE_URL}{one_time_sign_in_path(user)}")
