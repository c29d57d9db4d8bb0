"""`manage.py rotate-keys`: another master key, and everything that is stored under it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.connections import key_ring
from webapp.connections.key_ring import Rotation, rotate
from webapp.formatting import plural


class Command(BaseCommand):
    help = (
        "Makes a new master key and wraps every stored secret with it, while everything goes on running. Keys given by"
        " STARLING_MASTER_KEYS are not ours to change: put a new one first there (--new prints one), start again, and"
        " then run this."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--new", action="store_true", help="print a new master key and do nothing else")
        parser.add_argument(
            "--retire", action="store_true", help="also remove keys that seal no secret any more"
        )

    def handle(self, **options: Any) -> None:
        if options["new"]:
            self.stdout.write(key_ring.new_key())
            return
        try:
            done = rotate(retire=options["retire"])
        except key_ring.KeysUnusable as error:
            raise CommandError(str(error), returncode=2) from None
        self._tell(done)
        if done.unopened:
            secrets = plural(len(done.unopened), "secret")
            raise CommandError(f"{secrets} could not be opened, and kept the key.", returncode=1)

    def _tell(self, done: Rotation) -> None:
        self.stdout.write(f"{plural(done.rewrapped, 'secret')} sealed with the key {done.key_id} now.")
        if done.retired:
            self.stdout.write(f"Removed, as nothing needs them: {', '.join(done.retired)}.")
        for line in done.unopened:
            self.stderr.write(line)
