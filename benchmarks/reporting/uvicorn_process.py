"""The site, served by a process whose memory can be read."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cloud.workers.processes import bound_to_this_process
from webapp.processes.embedded_valkey import free_port
from webapp.web_server import web_server

_KB_PER_MB = 1024
_WITHIN_S = 60
_PIECE_BYTES = 1 << 16


class Server:
    """A site on a port of this machine."""

    def __init__(self, port: int, pid: int) -> None:
        self._site, self._pid = f"http://127.0.0.1:{port}", pid

    def get(self, path: str, cookie: str = "") -> bytes:
        with urllib.request.urlopen(self._request(path, cookie), timeout=_WITHIN_S) as answer:
            return bytes(answer.read())

    def streamed(self, path: str, cookie: str) -> tuple[float, str, float]:
        """Seconds until the first bytes, all of the text, and the most memory of the server meanwhile in MB."""
        began_s, first_s, most_mb = time.perf_counter(), 0.0, 0.0
        pieces: list[bytes] = []
        with urllib.request.urlopen(self._request(path, cookie), timeout=_WITHIN_S) as answer:
            while piece := answer.read1(_PIECE_BYTES):
                first_s = first_s or time.perf_counter() - began_s
                pieces.append(piece)
                if len(pieces) % 20 == 1:
                    most_mb = max(most_mb, self.memory_mb())
        return first_s, b"".join(pieces).decode(), max(most_mb, self.memory_mb())

    def memory_mb(self) -> float:
        """What the process holds now."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / _KB_PER_MB

    def _request(self, path: str, cookie: str) -> urllib.request.Request:
        return urllib.request.Request(self._site + path, headers={"Cookie": cookie})


@contextmanager
def serving() -> Iterator[Server]:
    """Serve the site of this process's data folder while the block runs."""
    port = free_port()
    command = [*web_server(port=port), "--log-level", "warning"]
    process = subprocess.Popen(bound_to_this_process(command), stdout=sys.stderr)
    server = Server(port, process.pid)
    try:
        deadline_s = time.monotonic() + _WITHIN_S
        while True:
            try:
                server.get("/livez")
                break
            except OSError:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait()
