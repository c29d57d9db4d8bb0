#!/usr/bin/env python
"""Starling's commands: `manage.py help` lists them, `manage.py up` starts everything."""

import os
import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility


class Commands(ManagementUtility):
    """Django's commands and ours. A name that is none of them is wrong input, which ends with 2."""

    def fetch_command(self, subcommand: str) -> Any:
        try:
            return super().fetch_command(subcommand)
        except SystemExit:
            sys.exit(2)


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    if sys.argv[1:2] == ["train"]:
        os.environ.setdefault("STARLING_HEADLESS", "true")
    try:
        Commands(sys.argv).execute()
    except ImproperlyConfigured as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
