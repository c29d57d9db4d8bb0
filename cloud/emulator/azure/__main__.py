"""`python -m cloud.emulator.azure`: an emulated subscription in a process of its own, until its input closes or Ctrl-C.

Prints one line of JSON with what is needed to connect to it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from cloud.emulator.azure.demo import furnish
from cloud.emulator.azure.faults import Faults
from cloud.emulator.azure.server import AzureEmulator
from cloud.emulator.azure.subscription import Subscription


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="cloud.emulator.azure")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--region", default="eastus")
    parser.add_argument("--cores", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=None, help="where the certificate is put")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    asked = parser.parse_args(arguments)
    azure = AzureEmulator(
        subscription=Subscription(region=asked.region, cores_at_most=asked.cores),
        faults=Faults(seed=asked.seed),
        folder=asked.folder,
    )
    azure.start(asked.port)
    try:
        over = _asked_to_stop()
        print(json.dumps(furnish(azure).values()), flush=True)
        over.wait()
    finally:
        azure.stop()


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
