#!/usr/bin/env python
"""Starling's commands: `manage.py help` lists them, `manage.py up` starts everything."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    if sys.argv[1:2] == ["train"]:
        os.environ.setdefault("STARLING_HEADLESS", "true")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
