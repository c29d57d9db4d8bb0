"""`manage.py emulator`: an AWS account and an Azure subscription on this machine, to try everything without one."""

import json
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from emulator.aws.account import EmulatedAccount
from emulator.aws.demo import OUR_ACCOUNT
from emulator.aws.demo import furnish as furnish_aws
from emulator.aws.server import AwsEmulator
from emulator.azure.demo import furnish as furnish_azure
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import Subscription
from emulator.faults import AwsFaults, AzureFaults
from emulator.server import stop_requested
from emulator.stored_keys import UnreadableKeys
from webapp.management.command import LineCommand

_ANSWERS_WITHIN_S = 10


class Command(LineCommand):
    help = (
        "Runs an emulated AWS account and an emulated Azure subscription on loopback, or one of them, and prints what"
        " to start the server with and what to type into its pages. Ctrl-C stops them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("cloud", nargs="?", choices=("both", "aws", "azure"), default="both")
        add("--port", type=int, default=4566, help="of AWS (4566); 0: any free one")
        add("--azure-port", type=int, default=4567, help="of Azure (4567); 0: any free one")
        add("--region", default="us-east-1", help="of AWS")
        add("--azure-region", default="eastus")
        add("--concurrency", type=int, default=1000, help="AWS functions at once; new accounts have 10")
        add("--cores", type=int, default=100, help="Azure cores at once; new subscriptions have 10")
        add("--external-id", help="the one a connection by role shows, which the role demands")
        add(
            "--set-external-id",
            metavar="ID",
            help="have the role of the account that runs already (at --port) demand this one, and end",
        )
        add("--seed", type=int, default=0, help="of the faults")
        add(
            "--fault",
            action="append",
            default=[],
            metavar="KIND=SHARE",
            help="how often something goes wrong: throttle=0.05, lost_reply=0.01, …",
        )

    def handle(self, *, cloud: str, **options: Any) -> None:
        if options["set_external_id"]:
            _set_external_id(options["port"], options["set_external_id"])
            self.stdout.write("The role of the emulated account demands that id from now on.")
            return
        shares = _shares(options["fault"], _kinds(cloud))
        with ExitStack() as running:
            accounts = []
            if cloud != "azure":
                accounts.append(("An emulated AWS account.", _aws(running, shares, options)))
            if cloud != "aws":
                accounts.append(("An emulated Azure subscription.", _azure(running, shares, options)))
            stopped = stop_requested()
            for title, values in accounts:
                self._tell(title, values)
            self.tell("Ctrl-C stops it.")
            stopped.get()
        self.stdout.write("Stopped.")

    def _tell(self, title: str, values: dict[str, Any]) -> None:
        """Settings of the server are in capitals; the rest is for its pages."""
        self.stdout.write(f"{title} Nothing here costs money.")
        for name, value in values.items():
            self.stdout.write(f"  {name:<26} {value}")


def _aws(running: ExitStack, shares: dict[str, float], options: dict[str, Any]) -> dict[str, Any]:
    aws = AwsEmulator(
        account=EmulatedAccount(concurrency=options["concurrency"]),
        faults=AwsFaults(seed=options["seed"], shares=_known(shares, AwsFaults.kinds)),
        region=options["region"],
    )
    _start(running, aws, options["port"])
    with _refused_if_unreadable():
        keys_file = _folder() / "aws.json"
        values = furnish_aws(aws, external_id=options["external_id"], keys_file=keys_file).values()
    given = {
        "STARLING_AWS_ENDPOINT": aws.endpoint,
        "STARLING_AWS_PRINCIPAL": f"arn:aws:iam::{OUR_ACCOUNT}:user/starling-server",
        "AWS_ACCESS_KEY_ID": values.pop("our_access_key_id"),
        "AWS_SECRET_ACCESS_KEY": values.pop("our_secret_access_key"),
    }
    return {**given, **values}


def _azure(running: ExitStack, shares: dict[str, float], options: dict[str, Any]) -> dict[str, Any]:
    azure = AzureEmulator(
        subscription=Subscription(region=options["azure_region"], cores_at_most=options["cores"]),
        faults=AzureFaults(seed=options["seed"], shares=_known(shares, AzureFaults.kinds)),
        folder=_folder(),
    )
    _start(running, azure, options["azure_port"])
    given = {"STARLING_AZURE_ENDPOINT": azure.endpoint, "STARLING_EMULATOR_CA": azure.ca}
    with _refused_if_unreadable():
        return {**given, **furnish_azure(azure, keys_file=_folder() / "azure.json").values()}


def _folder() -> Path:
    """Return the folder of certificates and keys: a server that was started with them goes on after the next start."""
    folder = Path(settings.STARLING_DATA) / "emulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _refused_if_unreadable() -> Iterator[None]:
    try:
        yield
    except UnreadableKeys as error:
        raise CommandError(str(error), returncode=2) from None


def _set_external_id(port: int, external_id: str) -> None:
    given = json.dumps({"external_id": external_id}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/_emulator/external-id", given)
    try:
        with urllib.request.urlopen(request, timeout=_ANSWERS_WITHIN_S):
            return
    except urllib.error.HTTPError as error:
        why = json.loads(error.read())["error"]
        raise CommandError(f"The emulator did not take it: {why}.", returncode=2) from None
    except OSError:
        words = f"No emulated AWS account answers at port {port}. Start it, or name its --port."
        raise CommandError(words, returncode=2) from None


def _start(running: ExitStack, emulator: Any, port: int) -> None:
    running.callback(emulator.stop)
    try:
        emulator.start(port)
    except OSError as error:
        raise CommandError(f"Port {port} cannot be used: {error.strerror}.", returncode=2) from error


def _kinds(cloud: str) -> Set[str]:
    """Return the kinds of faults of the clouds that are to run."""
    kinds = {"aws": AwsFaults.kinds, "azure": AzureFaults.kinds}
    return {"both": {*kinds["aws"], *kinds["azure"]}, **kinds}[cloud]


def _known(shares: dict[str, float], kinds: Iterable[str]) -> dict[Any, float]:
    return {kind: share for kind, share in shares.items() if kind in kinds}


def _shares(given: list[str], kinds: Set[str]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for text in given:
        kind, _, share = text.partition("=")
        if kind not in kinds:
            raise CommandError(
                f"There is no fault {kind}; there are: {', '.join(sorted(kinds))}.", returncode=2
            )
        try:
            shares[kind] = float(share)
        except ValueError:
            raise CommandError(f"{text}: a share is a number between 0 and 1.", returncode=2) from None
    return shares
