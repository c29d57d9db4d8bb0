"""One sandbox of a function: a process with the function's code under AWS's runtime client, and the API it uses."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.aws.functions import FunctionVersion
from emulator.child_process import ChildProcess
from emulator.http import HttpRequest, HttpResponse, HttpServer
from emulator.image import Image

RESPONSE_LIMIT_BYTES = 6_291_556
_MEMORY_EVERY_S = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Ended:
    """How one invocation ended. `error` is the type of a function error, empty when there was none."""

    body: bytes
    error: str
    duration_s: float
    timed_out: bool = False


class Sandbox:
    """Start it once, invoke it once at a time, kill it. Everything happens in the emulator's event loop."""

    def __init__(
        self, version: FunctionVersion, region: str, image: Image, *, provisioned: bool = False
    ) -> None:
        self.version = version
        self.provisioned = provisioned
        self.init_s = 0.0
        self.idle_since_s = time.monotonic()
        self.most_memory_mb = 0
        self.busy = False
        self.spoilt = False
        self._region = region
        self._image = image
        self._server = HttpServer(self._runtime_api)
        self._process = ChildProcess(self._server.close)
        self._events: asyncio.Queue[tuple[str, bytes, float]] = asyncio.Queue()
        self._ready = asyncio.Event()
        self._result: asyncio.Future[tuple[str, bytes]] | None = None
        self._init_error: bytes | None = None
        self._running = ""
        self._killed_for_memory = False
        self._seen = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def start(self, extra_s: float = 0.0) -> Ended | None:
        """Start the process and wait until it asks for work. Return how it ended if it does not."""
        began_s = time.monotonic()
        if extra_s:
            await asyncio.sleep(extra_s)
        port = await self._server.start()
        folder = self.version.folder
        assert folder is not None
        command = [self._image.python, "-m", "awslambdaric", self.version.handler]
        self._process.start(command, folder, self._variables(port, folder))
        await _first_of(self._ready.wait(), self._process.exited.wait())
        self.init_s = time.monotonic() - began_s
        if self._ready.is_set():
            return None
        error = self._init_error or _error("Runtime.ExitError", f"Error: {self._how_it_ended()}")
        return Ended(error, "Unhandled", self.init_s)

    async def invoke(self, request_id: str, event: bytes, timeout_s: float, shown_s: float) -> Ended:
        """Run one event. The process is killed after `timeout_s`; the function sees a limit of `shown_s`."""
        began_s = time.monotonic()
        self._running = request_id
        self._result = asyncio.get_running_loop().create_future()
        self._events.put_nowait((request_id, event, time.time() + shown_s))
        watch = asyncio.create_task(self._watch_memory())
        try:
            ended = _first_of(_of(self._result), self._process.exited.wait())
            await asyncio.wait_for(ended, timeout_s)
        except TimeoutError:
            self.kill()
            words = f"RequestId: {request_id} Error: Task timed out after {shown_s:.2f} seconds"
            return Ended(_error("Sandbox.Timedout", words), "Unhandled", timeout_s, timed_out=True)
        finally:
            watch.cancel()
            self.idle_since_s = time.monotonic()
        # The loop may notice the end late, but nothing runs, or is billed, beyond its limit.
        duration_s = min(time.monotonic() - began_s, timeout_s)
        if not self._result.done():
            words = f"RequestId: {request_id} Error: {self._how_it_ended()}"
            return Ended(_error("Runtime.ExitError", words), "Unhandled", duration_s)
        self._measure_memory()
        kind, body = self._result.result()
        return Ended(body, "" if kind == "response" else "Unhandled", duration_s)

    @property
    def alive(self) -> bool:
        return self.pid is not None

    def new_output(self) -> str:
        """Return what was printed since the last call."""
        text = self._process.output(self._seen)
        self._seen += len(text)
        return text.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")

    def close_output(self) -> None:
        self._process.close_output()

    def kill(self) -> None:
        """End the process and its API. Safe to call twice."""
        self._process.kill()
        self._server.close()

    def _how_it_ended(self) -> str:
        code = self._process.exit_code
        if self._killed_for_memory or (code is not None and code < 0):
            return "Runtime exited with error: signal: killed"
        return (
            f"Runtime exited with error: exit status {code}"
            if code
            else "Runtime exited without providing a reason"
        )

    def _variables(self, port: int, folder: Path) -> dict[str, str]:
        version = self.version
        return {
            "TZ": ":UTC",
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
            # The runtime client ends at this answer.
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
            await asyncio.sleep(_MEMORY_EVERY_S)
            if self._measure_memory() > self.version.memory_mb:
                self._killed_for_memory = True
                self._process.kill()
                return

    def _measure_memory(self) -> int:
        """Return how many megabytes the process holds now."""
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
