"""Small functions for tests of the emulator, as zips."""

from __future__ import annotations

import io
import zipfile
from typing import Any

SLEEPER = """
import time
def handler(event, context):
    time.sleep(event.get("s", 0))
    return {"said": event, "request": context.aws_request_id, "left_ms": context.get_remaining_time_in_millis()}
"""
WAITER = """
import os, time
def handler(event, context):
    while not os.path.exists(event["until"]):
        time.sleep(0.01)
    return "done"
"""
ALL_KINDS = """
import os, sys, time
import json
kept = []
def handler(event, context):
    what = event["do"]
    if what == "raise":
        raise ValueError("no such luck")
    if what == "exit":
        os._exit(7)
    if what == "large":
        return "x" * 7_000_000
    if what == "memory":
        kept.append(bytearray(300 * 2**20))
        for at in range(0, len(kept[0]), 4096):
            kept[0][at] = 1
        time.sleep(15)
    if what == "environment":
        return dict(os.environ)
    if what == "print":
        print("said aloud")
    return {"pid": os.getpid()}
"""


def zipped(source: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("main.py", source)
    return buffer.getvalue()


def create(client: Any, name: str, role: str, source: str = SLEEPER, **changes: Any) -> dict[str, Any]:
    given = {
        "FunctionName": name,
        "Role": role,
        "Runtime": "python3.13",
        "Handler": "main.handler",
        "Code": {"ZipFile": zipped(source)},
        "Timeout": 10,
        "MemorySize": 1769,
    }
    answer: dict[str, Any] = client.create_function(**{**given, **changes})
    return answer
