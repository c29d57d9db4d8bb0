"""`python -m emulator aws|azure`: an emulated account in its own process, until its input closes or Ctrl-C.

Prints one line of JSON with what a connection to it needs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from emulator.aws import demo as aws_demo
from emulator.aws.account import EmulatedAccount
from emulator.aws.server import AwsEmulator
from emulator.azure import demo as azure_demo
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import Subscription
from emulator.faults import AwsFaults, AzureFaults
from emulator.server import run_until_stopped


def main() -> None:
    parser = argparse.ArgumentParser(prog="emulator")
    add = parser.add_argument
    add("cloud", choices=("aws", "azure"))
    add("--port", type=int, default=0)
    add("--region")
    add("--concurrency", type=int, default=1000, help="AWS functions at once")
    add("--cores", type=int, default=100, help="Azure cores at once")
    add("--seed", type=int, default=0, help="of the faults")
    add("--keep", type=Path, help="a file for its keys, so that the next start has the same")
    add("--folder", type=Path, help="where to put Azure's certificate")
    options = parser.parse_args()
    if options.cloud == "aws":
        aws = AwsEmulator(
            account=EmulatedAccount(concurrency=options.concurrency),
            faults=AwsFaults(seed=options.seed),
            region=options.region or "us-east-1",
        )
        run_until_stopped(aws, options.port, lambda: aws_demo.furnish(aws, keys_file=options.keep).values())
    else:
        subscription = Subscription(region=options.region or "eastus", cores_at_most=options.cores)
        azure = AzureEmulator(
            subscription=subscription, faults=AzureFaults(seed=options.seed), folder=options.folder
        )
        run_until_stopped(
            azure, options.port, lambda: azure_demo.furnish(azure, keys_file=options.keep).values()
        )


if __name__ == "__main__":
    main()
