"""The site in a process of its own, as uvicorn serves it, kept from one test to the next."""

import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from rig.servers import answers, server_process, wait_until
from webapp.web_server import web_server


class KeptSite:
    """Starts the site for a test, and again only when the next test's environment is another.

    Starting it takes longer than most tests that look at it. It keeps nothing of a test: all state is in the database
    and in Redis, which the tests empty.
    """

    def __init__(self, folder: Path) -> None:
        self.log = folder / "web.log"
        self._url = ""
        self._environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._running = ExitStack()

    def at(self, environment: Mapping[str, str], port: int) -> str:
        """The address of the site in this environment; it listens on `port` if it has to be started."""
        if self._environment != environment or self._process is None or self._process.poll() is not None:
            self.close()
            self._start(dict(environment), port)
        return self._url

    def close(self) -> None:
        """Stops it; it starts again when it is asked for."""
        self._running.close()
        self._process = None

    def _start(self, environment: dict[str, str], port: int) -> None:
        command = web_server(port=port, grace_s=1)
        process = self._running.enter_context(server_process(command, environment=environment, log=self.log))
        url = f"http://127.0.0.1:{port}"
        wait_until(
            lambda: process.poll() is not None or answers(f"{url}/livez"),
            within_s=120,  # no promise: a busy machine is no fault of the site
            what="the site answers",
        )
        assert process.poll() is None, self.log.read_text()
        self._url, self._environment, self._process = url, environment, process
