"""Several server processes run as one: started in order, watched, restarted, and stopped in reverse order.

Knows nothing of what the services do; `manage.py up` says which they are. Everything happens in the one thread that
calls in, because the kernel ties each service's life to the thread that started it (see cloud/workers/processes.py):
when this process is killed, `kill -9` included, no service is left behind.
"""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

from cloud.workers.processes import bound_to_this_process
from webapp.processes.startup_patience import PATIENT, StartupPatience, Waiting

_TICK_S = 0.05
_QUICK_DEATH_S = 15.0
_QUICK_DEATHS_ALLOWED = 5
_LONGEST_BACKOFF_S = 8.0


@dataclass(frozen=True)
class ServerProcess:
    """One server process: its command, its check of readiness, and how long it may take to stop."""

    name: str
    command: Sequence[str]
    ready_line: str | None = None  # a pattern that one line of its output contains once it is ready
    ready_probe: Callable[[], bool] | None = (
        None  # or: called until it returns True; must return within a second
    )
    grace_s: float = 8.0


class StopRequested(Exception):
    """Ctrl-C or SIGTERM came during a wait."""


class ServiceFailed(Exception):
    """A service did not start, or died too often. The message says which and what to do."""


@dataclass
class _Running:
    """A service and its present process; the process changes when the service is restarted.

    Services of one `group` started together.
    """

    service: ServerProcess
    group: int
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    restart_at_s: float | None = None
    quick_deaths: int = 0
    ready: bool = False
    unfinished_line: bytes = b""
    heard: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.service.name

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    @property
    def output(self) -> IO[bytes]:
        """The output of the present process; only while there is one."""
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout


class Supervisor:
    """Starts, watches and stops services. Use as a context manager: leaving it stops whatever runs.

    `say(name, line)` receives every line of output of every service, and the supervisor's own words under "starling".
    """

    def __init__(self, say: Callable[[str, str], None]) -> None:
        self._say = say
        self._running: list[_Running] = []
        self._outputs = selectors.DefaultSelector()
        self._groups = 0
        self._stop_requests = 0
        self._previous_handlers: dict[int, object] = {}

    def __enter__(self) -> "Supervisor":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._previous_handlers[number] = signal.signal(number, self._request_stop)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def start(self, services: Iterable[ServerProcess], *, patience: StartupPatience = PATIENT) -> None:
        """Start these services together and return once all are ready. Raises StopRequested or ServiceFailed."""
        added = [_Running(service, self._groups) for service in services]
        self._groups += 1
        for running in added:
            self._running.append(running)
            self._spawn(running)
        wait = Waiting(self._say, "ready", patience)
        while waiting := [running for running in added if not running.ready]:
            self._turn()
            if given_up := wait.given_up(waiting):
                raise ServiceFailed(given_up)

    def run_to_end(self, service: ServerProcess) -> list[str]:
        """Run a command that is meant to end, and return its lines of output. Raises as `start` does."""
        running = _Running(service, self._groups)
        self._groups += 1
        self._spawn(running)
        assert running.process is not None
        self._running.append(running)
        wait = Waiting(self._say, "done", PATIENT)
        while running.process.poll() is None:
            self._turn(watch=False)
            if given_up := wait.given_up([running]):
                raise ServiceFailed(given_up)
        self._read_to_end(running)
        self._running.remove(running)
        if running.process.returncode != 0:
            raise ServiceFailed(
                f"{service.name} failed (exit {running.process.returncode}); its words are above."
            )
        return running.lines

    def watch(self) -> None:
        """Pass output on and restart what dies, until a stop is requested. Raises StopRequested or ServiceFailed."""
        while True:
            self._turn()

    def stop(self) -> None:
        """Stop everything, last started first, and those that started together at once.

        Each gets its grace, then is killed. A second Ctrl-C kills at once.
        """
        for group in sorted({running.group for running in self._running}, reverse=True):
            together = [
                (running, running.process)
                for running in reversed(self._running)
                if running.group == group and running.process is not None
            ]
            for _, process in together:
                process.send_signal(signal.SIGTERM)
            stopped_s = time.monotonic()
            for running, process in together:
                self._see_end(running, process, stopped_s + running.service.grace_s)
        self._running.clear()

    def _turn(self, *, watch: bool = True) -> None:
        self._pass_output_on(_TICK_S)
        if self._stop_requests:
            raise StopRequested
        for running in self._running if watch else ():
            if running.process is not None and running.process.poll() is not None:
                self._note_death(running)
            elif running.restart_at_s is not None and time.monotonic() >= running.restart_at_s:
                self._spawn(running)
            elif (
                running.process is not None and not running.ready and running.service.ready_probe is not None
            ):
                running.ready = running.service.ready_probe()

    def _spawn(self, running: _Running) -> None:
        running.process = subprocess.Popen(
            bound_to_this_process(running.service.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the terminal's Ctrl-C reaches only us, who know the order
        )
        os.set_blocking(running.output.fileno(), False)
        self._outputs.register(running.output, selectors.EVENT_READ, running)
        running.started_s = time.monotonic()
        running.restart_at_s = None
        running.ready = running.service.ready_line is None and running.service.ready_probe is None

    def _note_death(self, running: _Running) -> None:
        assert running.process is not None
        self._read_to_end(running)
        how, name = _manner_of_death(running.process.returncode), running.service.name
        running.process = None
        lived_s = time.monotonic() - running.started_s
        running.quick_deaths = running.quick_deaths + 1 if lived_s < _QUICK_DEATH_S else 1
        if running.quick_deaths >= _QUICK_DEATHS_ALLOWED:
            raise ServiceFailed(
                f"{name} {how} {running.quick_deaths} times within seconds of its start. Giving up."
            )
        wait_s = min(0.5 * 2 ** (running.quick_deaths - 1), _LONGEST_BACKOFF_S)
        running.restart_at_s = time.monotonic() + wait_s
        self._say("starling", f"{name} {how} after {lived_s:.0f} s; starting it again in {wait_s:g} s.")

    def _see_end(self, running: _Running, process: subprocess.Popen[bytes], deadline_s: float) -> None:
        impatience = self._stop_requests + 1
        while process.poll() is None:
            self._pass_output_on(_TICK_S)
            if time.monotonic() > deadline_s or self._stop_requests > impatience:
                self._say("starling", f"{running.service.name} does not stop; killing it.")
                process.kill()
                process.wait()
        # The whole process group, so that its children end with it.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._read_to_end(running)

    def _pass_output_on(self, timeout_s: float) -> None:
        if not self._outputs.get_map():
            time.sleep(timeout_s)
        for key, _ in self._outputs.select(timeout_s):
            self._read_available(key.data)

    def _read_available(self, running: _Running) -> bool:
        """Pass on available output; False at its end."""
        try:
            data = os.read(running.output.fileno(), 65536)
        except BlockingIOError:
            return False
        if not data:
            self._outputs.unregister(running.output)
            running.output.close()
            return False
        *lines, running.unfinished_line = (running.unfinished_line + data).split(b"\n")
        for line in lines:
            self._hear(running, line.decode(errors="replace").rstrip())
        return True

    def _read_to_end(self, running: _Running) -> None:
        while not running.output.closed and self._read_available(running):
            pass
        if not running.output.closed:  # something it started still holds the other end
            self._outputs.unregister(running.output)
            running.output.close()
        if running.unfinished_line:
            self._hear(running, running.unfinished_line.decode(errors="replace"))
            running.unfinished_line = b""

    def _hear(self, running: _Running, line: str) -> None:
        running.lines = [*running.lines[-49:], line]
        running.heard += 1
        if running.service.ready_line is not None and re.search(running.service.ready_line, line):
            running.ready = True
        self._say(running.service.name, line)

    def _request_stop(self, signal_number: int, frame: FrameType | None) -> None:
        self._stop_requests += 1


def _manner_of_death(returncode: int) -> str:
    if returncode >= 0:
        return f"ended (exit {returncode})"
    return f"was killed ({signal.Signals(-returncode).name})"
