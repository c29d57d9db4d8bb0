"""`python -m cloud.emulator.aws`: an emulated account in a process of its own, until its input closes or Ctrl-C.

Prints one line of JSON with what is needed to connect to it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from cloud.emulator.aws.account import Account
from cloud.emulator.aws.demo import furnish
from cloud.emulator.aws.faults import Faults
from cloud.emulator.aws.server import AwsEmulator


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="cloud.emulator.aws")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--concurrency", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument(
        "--keep", type=Path, help="a file for its keys, so that they hold after the next start"
    )
    asked = parser.parse_args(arguments)
    aws = AwsEmulator(
        account=Account(concurrency=asked.concurrency), faults=Faults(seed=asked.seed), region=asked.region
    )
    aws.start(asked.port)
    try:
        over = _asked_to_stop()
        print(json.dumps(furnish(aws, kept=asked.keep).values()), flush=True)
        over.wait()
    finally:
        aws.stop()


def _asked_to_stop() -> threading.Event:
    """Set when somebody asks for it, or when whoever started this has closed its end of the line."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())

    def read_to_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=read_to_the_end, daemon=True).start()
    return over


if __name__ == "__main__":
    main(sys.argv[1:])
