"""`manage.py emulator`: an AWS account on this machine, to try everything without one of your own."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Runs an emulated AWS account on loopback and prints what to connect with. Ctrl-C stops it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=4566, help="where it listens (4566); 0: any free one")
        parser.add_argument("--region", default="us-east-1")
        parser.add_argument(
            "--concurrency", type=int, default=1000, help="functions at once; new accounts have 10"
        )
        parser.add_argument("--external-id", help="the one the role demands; otherwise one is made up")
        parser.add_argument("--seed", type=int, default=0, help="of the faults")
        parser.add_argument(
            "--fault",
            action="append",
            default=[],
            metavar="KIND=SHARE",
            help="how often something goes wrong: throttle=0.05, lost_reply=0.01, …",
        )

    def handle(self, **options: Any) -> None:
        from cloud.emulator.aws.account import Account
        from cloud.emulator.aws.demo import furnish
        from cloud.emulator.aws.faults import Faults
        from cloud.emulator.aws.server import AwsEmulator

        aws = AwsEmulator(
            account=Account(concurrency=options["concurrency"]),
            faults=Faults(seed=options["seed"], shares=_shares(options["fault"])),
            region=options["region"],
        )
        try:
            aws.start(options["port"])
        except OSError as error:
            raise CommandError(
                f"Port {options['port']} cannot be used: {error.strerror}.", returncode=2
            ) from error
        try:
            over = _asked_to_stop()
            self._tell(furnish(aws, external_id=options["external_id"]).values())
            over.wait()
        finally:
            aws.stop()
        self.stdout.write("Stopped.")

    def _tell(self, values: dict[str, Any]) -> None:
        self.stdout.write("An emulated AWS account. Nothing here costs money.")
        for name, value in values.items():
            self.stdout.write(f"  {name:<26} {value}")
        self.stdout.write("Ctrl-C stops it.")
        self.stdout.flush()


def _shares(given: list[str]) -> dict[Any, float]:
    from cloud.emulator.aws.faults import KINDS

    shares: dict[Any, float] = {}
    for one in given:
        kind, _, share = one.partition("=")
        if kind not in KINDS:
            raise CommandError(
                f"There is no fault {kind}; there are: {', '.join(sorted(KINDS))}.", returncode=2
            )
        try:
            shares[kind] = float(share)
        except ValueError:
            raise CommandError(f"{one}: a share is a number between 0 and 1.", returncode=2) from None
    return shares


def _asked_to_stop() -> threading.Event:
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    return over
