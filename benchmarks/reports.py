"""A report of 100,000 calls: how soon CSV begins, how fast it goes on and in what memory; and the other files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rig.figures import Figure

_ROOT = Path(__file__).resolve().parent.parent
_CALLS = 100_000
_QUICK_CALLS = 5_000


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """In a process and a data folder of its own, on SQLite."""
    folder = Path(tempfile.mkdtemp(prefix="starling-bench-reports-"))
    try:
        answer = _run(folder, _QUICK_CALLS if quick else _CALLS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    yield Figure("CSV of 100,000 calls: first piece", answer["csv_first_s"], "s", at_most=1)
    yield Figure("CSV of 100,000 calls: rows a second", answer["csv_rows_a_s"], "/s", at_least=20_000)
    yield Figure("CSV of 100,000 calls: more memory", answer["csv_more_mb"], "MB", at_most=50)
    yield Figure("XLSX of 100,000 calls", answer["xlsx_s"], "s", at_most=20)
    yield Figure("PDF of 100,000 calls", answer["pdf_s"], "s", at_most=10)
    yield Figure("FOCUS of 100,000 calls", answer["focus_s"], "s")
    yield Figure("JSON of 100,000 calls", answer["json_s"], "s")
    yield Figure("page of 100,000 calls, by day", answer["page_s"], "s")
    yield Figure("total in every file equal to the ledger's (1: yes)", answer["equal"], "", at_least=1)


def _run(folder: Path, calls: int) -> dict[str, float]:
    environment = {
        **os.environ,
        "STARLING_DATA": str(folder),
        "DATABASE_URL": "",
        "STARLING_LOG_LEVEL": "ERROR",
    }
    command = [sys.executable, "-m", "benchmarks.reporting", str(calls)]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the reports could not be made:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
