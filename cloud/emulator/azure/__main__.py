"""`python -m cloud.emulator.azure`: an emulated subscription in its own process, until its input closes or Ctrl-C.

Prints one line of JSON with what a connection to it needs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cloud.emulator.azure.demo import furnish
from cloud.emulator.azure.server import AzureEmulator
from cloud.emulator.azure.subscription import Subscription
from cloud.emulator.faults import AzureFaults
from cloud.emulator.server import run_until_stopped


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="cloud.emulator.azure")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--region", default="eastus")
    parser.add_argument("--cores", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=None, help="where to put the certificate")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    options = parser.parse_args(arguments)
    azure = AzureEmulator(
        subscription=Subscription(region=options.region, cores_at_most=options.cores),
        faults=AzureFaults(seed=options.seed),
        folder=options.folder,
    )
    run_until_stopped(azure, options.port, lambda: furnish(azure).values())


if __name__ == "__main__":
    main(sys.argv[1:])
