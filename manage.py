#!/usr/bin/env python
"""Starling's commands: `manage.py help` lists them, `manage.py up` starts everything."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
