"""`python -m cloud.emulator.aws`: an emulated account in its own process, until its input closes or Ctrl-C.

Prints one line of JSON with what a connection to it needs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cloud.emulator.aws.account import Account
from cloud.emulator.aws.demo import furnish
from cloud.emulator.aws.server import AwsEmulator
from cloud.emulator.faults import AwsFaults
from cloud.emulator.server import run_until_stopped


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="cloud.emulator.aws")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--concurrency", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--keep", type=Path, help="a file for its keys, so that the next start has the same")
    options = parser.parse_args(arguments)
    aws = AwsEmulator(
        account=Account(concurrency=options.concurrency),
        faults=AwsFaults(seed=options.seed),
        region=options.region,
    )
    run_until_stopped(aws, options.port, lambda: furnish(aws, keys_file=options.keep).values())


if __name__ == "__main__":
    main(sys.argv[1:])
