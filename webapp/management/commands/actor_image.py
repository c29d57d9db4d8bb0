"""`manage.py actor_image FOLDER`: the build context of the image that containers run."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from cloud.actor.bundle import BundleError, write_context
from webapp.management.command import LineCommand


class Command(LineCommand):
    help = "Writes a folder that `docker build` makes the actors' image of. The folder must be new or empty."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *, folder: Path, **options: Any) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_context(folder)
        except (BundleError, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"docker build -t REGISTRY/starling-actor:1 {folder}\ndocker push REGISTRY/starling-actor:1"
        )
