"""`manage.py starling …`: the command line that people download, from the checkout."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from client.main import main


class Command(BaseCommand):
    help = "Jobs through the API, with STARLING_URL and STARLING_TOKEN. `manage.py starling jobs --help` says more."

    def run_from_argv(self, argv: list[str]) -> None:
        """Everything after the name is the client's own to understand."""
        sys.exit(main(argv[2:]))

    def handle(self, *args: Any, **options: Any) -> None:
        main(list(args))
