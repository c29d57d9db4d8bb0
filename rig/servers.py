"""Server processes that tests start, and stop, for real."""

import atexit
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cloud.workers.processes import bound_to_this_process

ROOT = Path(__file__).resolve().parent.parent
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def reserved_port() -> int:
    """A TCP port that no one else is given while this process lives, and where no one listens until a server does.

    The port stays bound here without listening; servers set SO_REUSEADDR, so they may listen there none the less.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    atexit.register(held.close)
    return int(held.getsockname()[1])


def printed_by(program: str, **environment: str) -> str:
    """What a fresh Python prints that runs the program in the repository's folder; it fails as the program does.

    Variables that are named replace those of this process.
    """
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment or None,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


@contextmanager
def server_process(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command from the repository's folder while the block runs, then stop it, first kindly."""
    with open(log or os.devnull, "ab") as output:
        process = subprocess.Popen(
            bound_to_this_process(command),
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(condition: Callable[[], object], *, within_s: float, what: str) -> None:
    """Return as soon as the condition holds; fail, naming `what`, when it does not in time."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"{what}: not within {within_s:g} s")
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Whether a GET of this address gives 200."""
    try:
        with _NO_PROXY.open(url, timeout=60) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def manage(*arguments: str) -> list[str]:
    """The command line of a management command."""
    return [sys.executable, str(ROOT / "manage.py"), *arguments]
