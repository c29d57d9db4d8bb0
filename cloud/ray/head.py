"""A Ray cluster of this machine's own, for one job: it stands in a child process and falls with it.

`python -m cloud.ray.head CPUS` starts it, prints its address, and ends it when its input ends, so also when the
process that started it is killed. It is a child because what Ray starts inherits the environment, and a job's holds
secrets.
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

from cloud.workers.handle import SOURCE_ROOT, clean_environment

_STORE_BYTES = 256 * 2**20
_END_S = 20.0
_WORDS_SHOWN = 600


class NoRay(RuntimeError):
    """Ray cannot be used as it is; the text says why and what to do."""


class RayHead:
    """The child. `address` is where a driver attaches."""

    def __init__(self, cpus: int) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close
        # Ray keeps the token by which a driver proves itself in the home folder.
        environment = {
            **clean_environment(),
            "HOME": str(Path.home()),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cloud.ray.head", str(cpus)],
            cwd=SOURCE_ROOT,
            env=environment,
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
        """End it and all that it started. Safe to call twice."""
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
    # Without its types: they are not there where Ray is not installed.
    ray: Any = importlib.import_module("ray")
    # What is printed on the way is not the address.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    context = ray.init(
        address="local",
        num_cpus=int(sys.argv[1]),
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=_STORE_BYTES,
    )
    print(json.dumps({"address": context.address_info["address"]}), file=told, flush=True)
    sys.stdin.buffer.read()
    ray.shutdown()


if __name__ == "__main__":
    main()
