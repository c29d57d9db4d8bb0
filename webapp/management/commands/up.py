"""`manage.py up`: the whole of Starling as one command, until Ctrl-C."""

import http.client
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.color import supports_color

from webapp.data_folder import FolderHeld, FolderLock, FolderRefused, close_to_others
from webapp.management.command import LineCommand
from webapp.management.commands.prepare import DEMO_SIGN_IN
from webapp.processes.embedded_valkey import NoServerProgram, embedded_valkey, free_port
from webapp.processes.supervisor import ServerProcess, ServiceFailed, StopRequested, Supervisor
from webapp.web_server import web_server

Say = Callable[[str, str], None]

_WORKER_GRACE_S = 9.5
"""It ends itself after 6.5 s (webapp/processes/worker_stop.py), which may come late on a busy machine."""
_COLOURS = {"starling": "1", "valkey": "35", "prepare": "36", "web": "32", "worker": "34", "beat": "33"}


class Command(LineCommand):
    help = "Start Valkey, web, worker and beat as one, and stop them as one. Ctrl-C stops."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--port", type=int, default=8000, help="where to serve; the next free one if it is busy")
        add("--host", default="127.0.0.1", help="which address to serve on (default: this machine only)")
        add("--data", type=Path, default=settings.STARLING_DATA, help="folder of everything written")
        add("--no-demo", action="store_true", help="make no demo account on an empty database")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["data"].resolve()
        os.chdir(settings.BASE_DIR)
        lock = FolderLock(folder)
        try:
            close_to_others(folder)
            lock.take()
        except FolderRefused as refused:
            raise CommandError(f"--data is {folder}, and {refused}", returncode=2) from refused
        except FolderHeld as held:
            raise CommandError(str(held), returncode=2) from held
        say = _printer(coloured=supports_color() and not options["no_color"])
        try:
            _run(folder, lock, say, host=options["host"], port=options["port"], demo=not options["no_demo"])
        except (ServiceFailed, NoServerProgram) as failure:
            raise CommandError(str(failure)) from failure
        finally:
            lock.release()


def _run(folder: Path, lock: FolderLock, say: Say, *, host: str, port: int, demo: bool) -> None:
    """Start everything, print the address, and watch the processes until a stop is requested."""
    began_s = time.monotonic()
    chosen = free_port(port, host=host)
    if chosen != port:
        say("starling", f"Port {port} is busy; using {chosen}.")
    shown_host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host
    url = f"http://{shown_host}:{chosen}"
    lock.describe(url=url)
    # The services inherit these: it is how they find one another.
    os.environ.update({"STARLING_DATA": str(folder), "PYTHONUNBUFFERED": "1"})
    if not settings.STARLING_BASE_URL_GIVEN:
        os.environ["STARLING_BASE_URL"] = url
    url_note = folder / "redis.url"
    try:
        with Supervisor(say) as supervisor:
            try:
                if not settings.REDIS_URL_GIVEN:
                    _start_valkey(supervisor, folder, url_note)
                sign_in = _prepare(supervisor, demo=demo)
                supervisor.start(_services(host, chosen, shown_host))
                _announce(say, url, sign_in, took_s=time.monotonic() - began_s)
                supervisor.watch()
            except StopRequested:
                say("starling", "Stopping.")
            except ServiceFailed as failure:
                say("starling", f"{failure} Stopping everything.")
                raise
        say("starling", "Stopped.")
    finally:
        if not settings.REDIS_URL_GIVEN:
            url_note.unlink(missing_ok=True)


def _start_valkey(supervisor: Supervisor, folder: Path, url_note: Path) -> None:
    valkey = embedded_valkey(folder / "valkey", program=settings.REDIS_SERVER)
    supervisor.start([ServerProcess("valkey", valkey.command, ready_probe=valkey.answers)])
    url_note.touch(mode=0o600)
    url_note.write_text(valkey.url)
    os.environ["REDIS_URL"] = valkey.url


def _prepare(supervisor: Supervisor, *, demo: bool) -> str | None:
    """Migrate, collect, make the demo. Returns the path of a one-time sign-in until someone has signed in."""
    command = [*_manage("prepare"), *(["--demo"] if demo else [])]
    for line in supervisor.run_to_end(ServerProcess("prepare", command)):
        if line.startswith(DEMO_SIGN_IN):
            return line.removeprefix(DEMO_SIGN_IN)
    return None


def _services(host: str, port: int, probed_host: str) -> list[ServerProcess]:
    """Web, worker and beat; started together, as none needs another to start."""
    web = [*web_server(host=host, port=port), "--log-level", "warning"]
    celery = [sys.executable, "-m", "celery", "--quiet", "-A", "webapp.celery"]
    worker = [
        *celery,
        "worker",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "-n",
        "starling@%h",
    ]
    return [
        ServerProcess("web", web, ready_probe=_answers(probed_host, port)),
        ServerProcess("worker", worker, ready_line="worker is ready", grace_s=_WORKER_GRACE_S),
        ServerProcess("beat", [*celery, "beat", "--pidfile="], ready_line="beat is ready"),
    ]


def _manage(command: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), command]


def _answers(host: str, port: int) -> Callable[[], bool]:
    """A probe of /readyz that goes there directly, whatever proxy the machine names."""

    def probe() -> bool:
        connection = http.client.HTTPConnection(host, port, timeout=1)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe


def _announce(say: Say, url: str, sign_in: str | None, *, took_s: float) -> None:
    lines = ["", f"Starling is ready after {took_s:.1f} s:  {url}"]
    if sign_in is not None:
        lines.append(f"Sign in to the demo (works once):  {url}{sign_in}")
    for line in [*lines, "Ctrl-C stops everything.", ""]:
        say("starling", line)


def _printer(*, coloured: bool) -> Say:
    """Prints a line with the name of who said it before it."""
    width = max(len(name) for name in _COLOURS)

    def say(name: str, line: str) -> None:
        prefix = f"{name:<{width}} |"
        if coloured:
            prefix = f"\033[{_COLOURS.get(name, '0')}m{prefix}\033[0m"
        print(f"{prefix} {line}".rstrip(), flush=True)

    return say
