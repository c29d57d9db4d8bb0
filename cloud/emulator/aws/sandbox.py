"""One execution environment: a process with the function's code under AWS's runtime client, and the API it talks to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud.emulator.aws.functions import Version
from cloud.emulator.http import HttpRequest, HttpResponse, HttpServer
from cloud.workers.processes import bound_to_this_process

RESPONSE_LIMIT_BYTES = 6_291_556
_MEMORY_LOOK_S = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BASE = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
    "TZ": ":UTC",
}


@dataclass(frozen=True)
class Ended:
    """How one invocation ended. `error` is the type of a function error, empty when there was none."""

    body: bytes
    error: str
    duration_s: float
    timed_out: bool = False


class Sandbox:
    """Start once, invoke one at a time, kill. Everything in the emulator's event loop."""

    def __init__(self, version: Version, region: str, *, provisioned: bool = False) -> None:
        self.version = version
        self.provisioned = provisioned
        self.init_s = 0.0
        self.idle_since_s = time.monotonic()
        self.most_memory_mb = 0
        self.busy = False
        self.spoilt = False
        self._region = region
        self._server = HttpServer(self._runtime_api)
        self._events: asyncio.Queue[tuple[str, bytes, float]] = asyncio.Queue()
        self._ready = asyncio.Event()
        self._exited = asyncio.Event()
        self._result: asyncio.Future[tuple[str, bytes]] | None = None
        self._init_error: bytes | None = None
        self._running = ""
        self._killed_for_memory = False
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill
        self._seen = 0
        self._pidfd: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and not self._exited.is_set() else None

    async def start(self, extra_s: float = 0.0) -> Ended | None:
        """Bring the process up until it asks for work. What went wrong, if it does not."""
        began_s = time.monotonic()
        if extra_s:
            await asyncio.sleep(extra_s)
        port = await self._server.start()
        folder = self.version.folder
        assert folder is not None
        self._process = subprocess.Popen(
            bound_to_this_process([sys.executable, "-m", "awslambdaric", self.version.handler]),
            cwd=folder,
            env=self._environment(port, folder),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_exit)
        await _first_of(self._ready.wait(), self._exited.wait())
        self.init_s = time.monotonic() - began_s
        if self._ready.is_set():
            return None
        error = self._init_error or _error("Runtime.ExitError", f"Error: {self._how_it_ended()}")
        return Ended(error, "Unhandled", self.init_s)

    async def invoke(self, request_id: str, event: bytes, timeout_s: float, told_s: float) -> Ended:
        """Run one event. After `timeout_s` the process is killed; the function is told it has `told_s`."""
        began_s = time.monotonic()
        self._running = request_id
        self._result = asyncio.get_running_loop().create_future()
        self._events.put_nowait((request_id, event, time.time() + told_s))
        watch = asyncio.create_task(self._watch_memory())
        try:
            await asyncio.wait_for(_first_of(_of(self._result), self._exited.wait()), timeout_s)
        except TimeoutError:
            self.kill()
            words = f"RequestId: {request_id} Error: Task timed out after {told_s:.2f} seconds"
            return Ended(_error("Sandbox.Timedout", words), "Unhandled", timeout_s, timed_out=True)
        finally:
            watch.cancel()
            self.idle_since_s = time.monotonic()
        # The loop may hear of the end late; nothing ever runs, or is billed, beyond its limit.
        duration_s = min(time.monotonic() - began_s, timeout_s)
        if not self._result.done():
            words = f"RequestId: {request_id} Error: {self._how_it_ended()}"
            return Ended(_error("Runtime.ExitError", words), "Unhandled", duration_s)
        self._look_at_memory()
        kind, body = self._result.result()
        return Ended(body, "" if kind == "response" else "Unhandled", duration_s)

    @property
    def alive(self) -> bool:
        return self._process is not None and not self._exited.is_set()

    def new_output(self) -> str:
        """What was printed since the last look."""
        if self._output.closed:
            return ""
        end = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), min(end, 2**20), max(0, self._seen))
        self._seen += len(text)
        return text.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")

    def close_output(self) -> None:
        self._output.close()

    def kill(self) -> None:
        """End the process and its API. Safe to call twice."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self._forget_pid()
        self._exited.set()
        self._server.close()

    def _on_exit(self) -> None:
        assert self._process is not None
        self._process.wait()
        self._forget_pid()
        self._server.close()
        self._exited.set()

    def _forget_pid(self) -> None:
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _how_it_ended(self) -> str:
        code = self._process.returncode if self._process is not None else None
        if self._killed_for_memory or (code is not None and code < 0):
            return "Runtime exited with error: signal: killed"
        return (
            f"Runtime exited with error: exit status {code}"
            if code
            else "Runtime exited without providing a reason"
        )

    def _environment(self, port: int, folder: Path) -> dict[str, str]:
        version = self.version
        return {
            **_BASE,
            **dict(version.variables),
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}",
            "AWS_LAMBDA_FUNCTION_NAME": version.function,
            "AWS_LAMBDA_FUNCTION_VERSION": version.number,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(version.memory_mb),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency" if self.provisioned else "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{version.function}",
            "AWS_REGION": self._region,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{version.runtime}",
            "LAMBDA_TASK_ROOT": str(folder),
            "_HANDLER": version.handler,
        }

    async def _runtime_api(self, request: HttpRequest) -> HttpResponse:
        """The four addresses of the runtime API."""
        match request.method, request.parts[1:]:
            case "GET", ["runtime", "invocation", "next"]:
                self._ready.set()
                request_id, event, deadline_unix_s = await self._events.get()
                return HttpResponse(200, event, self._event_headers(request_id, deadline_unix_s))
            case "POST", ["runtime", "invocation", request_id, "response" | "error" as kind]:
                return self._take(request_id, kind, request.body)
            case "POST", ["runtime", "init", "error"]:
                self._init_error = request.body
                return HttpResponse(202, b'{"status":"OK"}')
            case _:
                return HttpResponse(404)

    def _take(self, request_id: str, kind: str, body: bytes) -> HttpResponse:
        if self._result is None or self._result.done() or request_id != self._running:
            return HttpResponse(400, _error("InvalidRequestID", "Invalid request ID"))
        if kind == "response" and len(body) > RESPONSE_LIMIT_BYTES:
            words = (
                f"Response payload size exceeded maximum allowed payload size ({RESPONSE_LIMIT_BYTES} bytes)."
            )
            self._result.set_result(("error", _error("Function.ResponseSizeTooLarge", words)))
            # The runtime client does not survive this answer.
            self.spoilt = True
            return HttpResponse(413, _error("RequestEntityTooLarge", words))
        self._result.set_result((kind, body))
        return HttpResponse(202, b'{"status":"OK"}')

    def _event_headers(self, request_id: str, deadline_unix_s: float) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(int(deadline_unix_s * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:{self._region}:function:{self.version.function}",
            "Lambda-Runtime-Trace-Id": "Root=1-emulated",
        }

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(_MEMORY_LOOK_S)
            if self._look_at_memory() > self.version.memory_mb:
                self._killed_for_memory = True
                assert self._process is not None
                self._process.kill()
                return

    def _look_at_memory(self) -> int:
        """Megabytes that the process holds now."""
        if self.pid is None:
            return 0
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        held_mb = -(-pages * _PAGE_BYTES // 2**20)
        self.most_memory_mb = max(self.most_memory_mb, held_mb)
        return held_mb


async def _of(future: asyncio.Future[Any]) -> Any:
    return await asyncio.shield(future)


async def _first_of(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def exit_error(request_id: str) -> bytes:
    words = f"RequestId: {request_id} Error: Runtime exited with error: exit status 1"
    return _error("Runtime.ExitError", words)


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()
