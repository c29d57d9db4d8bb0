"""A Ray cluster on this machine, for one job, in a child process with which it ends.

`python -m cloud.platforms.ray.head CPUS` starts it, prints its address, and ends it when its input ends, so also when
the parent process is killed. It is a child because everything that Ray starts inherits its variables, and a job's
holds secrets.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from training.engine.child_variables import SOURCE_ROOT, clean_variables

_STORE_BYTES = 256 * 2**20
_END_S = 20.0
_WORDS_SHOWN = 600


class NoRay(RuntimeError):
    """Ray cannot be used. The text says why and what to do."""


class RayHead:
    """The child process. A driver attaches at `address`."""

    def __init__(self, cpus: int) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close
        # Ray reads the token that authenticates a driver from the home folder.
        variables = {
            **clean_variables(),
            "HOME": str(Path.home()),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cloud.platforms.ray.head", str(cpus)],
            cwd=SOURCE_ROOT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            words = self._last_words()
            self.close()
            raise NoRay(f"Ray could not start on this machine: {words}")
        self.address = str(json.loads(line)["address"])

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it and everything that it started. Safe to call twice."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._output.close()

    def _last_words(self) -> str:
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _WORDS_SHOWN))
        return self._output.read().decode(errors="replace").strip()


def main() -> None:
    # Without types, because Ray may not be installed.
    ray: Any = importlib.import_module("ray")
    # Only the address goes to the standard output; everything else that is printed goes to the log.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    context = ray.init(
        address="local",
        num_cpus=int(sys.argv[1]),
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=_STORE_BYTES,
    )
    print(json.dumps({"address": context.address_info["address"]}), file=output, flush=True)
    sys.stdin.buffer.read()
    ray.shutdown()


if __name__ == "__main__":
    main()
