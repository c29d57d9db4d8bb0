"""A run in Weights & Biases, through a process of its own in which their package is loaded."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from webapp.connections.sealing import Secret
from webapp.http import safe_http
from webapp.trackers.tracking import End, NotTracked, RunFacts, TrackedStep, TryLater

PACKAGE = "wandb"
MISSING = (
    "W&B needs the Python package wandb, which is not installed on this server. Its operator can add it:"
    " pip install wandb."
)
_PROGRAM = Path(__file__).with_name("wandb_process.py")
_BEGIN_WITHIN_S = 120.0
_END_WITHIN_S = 60.0
_LONGEST = 200


def is_installed() -> bool:
    return find_spec(PACKAGE) is not None


class WandbRun:
    """A run of W&B's project `place`, which may begin with its entity and a slash."""

    def __init__(self, address: str, place: str, token: Secret | None) -> None:
        self._address, self._place, self._token = address, place, token
        self._folder = ""
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, facts: RunFacts) -> str:
        if not is_installed():
            raise NotTracked(MISSING)
        if self._address:
            try:
                safe_http.target_of(self._address)
            except (safe_http.AddressRefused, safe_http.HostUnreachable) as refusal:
                raise NotTracked(str(refusal)) from None
        entity, _, project = self._place.rpartition("/")
        self._start()
        self._write(
            {
                "address": self._address,
                "entity": entity,
                "project": project,
                "token": self._token.reveal() if self._token else "",
                "job_id": facts.job_id,
                "name": facts.name,
                "parameters": dict(facts.parameters),
                "tags": [value[:64] for value in facts.tags.values() if value],
            }
        )
        return str(self._answer(_BEGIN_WITHIN_S).get("url", ""))

    def send(self, rows: Sequence[TrackedStep]) -> None:
        for row in rows:
            self._write({"step": row.step, "figures": dict(row.figures)})

    def end(self, end: End, figures: Mapping[str, float]) -> None:
        self._write({"end": end, "summary": dict(figures)})
        self._answer(_END_WITHIN_S)

    def keep(self, files: Mapping[str, bytes]) -> None:
        """W&B gets figures only."""

    def close(self) -> None:
        process = self._process
        if process is not None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except OSError:
                        pass
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        """With none of this process's variables: their package would take the operator's account from them."""
        try:
            self._folder = tempfile.mkdtemp(prefix="starling-wandb-")
        except OSError as error:
            raise TryLater(f"W&B's process has no room for its files: {error.strerror}.") from None
        bare = {
            "HOME": self._folder,
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "WANDB_DIR": self._folder,
            "WANDB_SILENT": "true",
        }
        if self._address:
            bare["WANDB_BASE_URL"] = self._address
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM)],
            cwd=self._folder,
            env=bare,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # their package starts processes, which end with it
        )

    def _write(self, what: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise NotTracked("The process that speaks to W&B has ended.") from None

    def _answer(self, within_s: float) -> dict[str, Any]:
        """The process's next line. NotTracked if it says what went wrong, or nothing."""
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            if not ready.select(within_s):
                raise NotTracked(f"W&B did not answer within {within_s:g} s.")
        try:
            answer = json.loads(self._process.stdout.readline())
        except ValueError:
            raise NotTracked("The process that speaks to W&B has ended.") from None
        if "problem" in answer:
            raise NotTracked(f"W&B refused the run: {str(answer['problem'])[:_LONGEST]}")
        return dict(answer)
