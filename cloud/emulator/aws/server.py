"""The emulated account behind one address on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from cloud.emulator.asyncio_thread import OwnThread, T
from cloud.emulator.aws.account import Account
from cloud.emulator.aws.control import Control
from cloud.emulator.aws.control_api import Desk
from cloud.emulator.aws.environments import Environments, Setting
from cloud.emulator.aws.errors import AwsError, as_response
from cloud.emulator.aws.faults import Faults
from cloud.emulator.aws.functions import Functions
from cloud.emulator.aws.identity import Identity
from cloud.emulator.aws.invoking import Invoking
from cloud.emulator.aws.logs import Logs
from cloud.emulator.aws.meter import Meter
from cloud.emulator.aws.signatures import Claim, check_region, sender
from cloud.emulator.aws.storage import Storage
from cloud.emulator.aws.tagging import Tagging
from cloud.emulator.http import HttpRequest, HttpResponse, HttpServer

_REAP_S = 5.0


class AwsEmulator:
    """`with AwsEmulator() as aws:` — `aws.endpoint` is what boto3 gets as `endpoint_url` for every service.

    `account`, `faults`, `meter` and `storage` may be looked at from any thread; what changes processes goes through
    `inside`. Everything it started ends with it, however it ends.
    """

    def __init__(
        self,
        *,
        account: Account | None = None,
        faults: Faults | None = None,
        region: str = "us-east-1",
        setting: Setting | None = None,
    ) -> None:
        self.account = account or Account()
        self.faults = faults or Faults()
        self.region = region
        self.meter = Meter()
        self.storage = Storage(self.account)
        self.logs = Logs(self.account, region)
        self._folder = tempfile.TemporaryDirectory(prefix="starling-aws-")
        self.functions = Functions(self.account.id, region, Path(self._folder.name) / "code")
        self.environments = Environments(self.functions, self.meter, region, setting or Setting())
        self.invoking = Invoking(
            self.account, self.functions, self.faults, self.meter, self.logs, self.environments
        )
        self._control = Control(
            self.account, self.functions, self.faults, self.environments.retire, self.environments.provision
        )
        self._identity = Identity(self.account)
        self._tagging = Tagging(self.account, self.functions)
        self._desk = Desk(self.account, self.faults, self.meter, self.invoking, self.environments)
        self._thread = OwnThread("aws-emulator", self._serve)
        self._port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self, port: int = 0) -> AwsEmulator:
        self._port = port
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every process and answer nothing more. Safe to call twice."""
        self._thread.stop()
        self._folder.cleanup()

    def __enter__(self) -> AwsEmulator:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def inside(self, act: Callable[[], T]) -> T:
        """Do something in the emulator's own thread, and wait for it."""
        return self._thread.inside(act)

    async def _serve(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        server = HttpServer(self._answer)
        self._port = await server.start(self._port)
        ready()
        try:
            while not stop.is_set():
                self.environments.reap()
                try:
                    await asyncio.wait_for(stop.wait(), _REAP_S)
                except TimeoutError:
                    continue
        finally:
            server.close()
            self.environments.close()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.parts[0] == "_emulator":
            return self._desk.handle(request)
        service = "s3"
        try:
            claim = Claim.of(request)
            service = claim.service
            check_region(claim, self.region)
            caller = sender(request, claim, self.account)
            match service:
                case "sts" | "iam":
                    return self._identity.handle(request, caller, service)
                case "lambda" if request.raw_path.endswith("/invocations"):
                    return await self.invoking.handle(request, caller)
                case "lambda":
                    return self._control.handle(request, caller)
                case "s3":
                    return self.storage.handle(request, caller)
                case "logs":
                    return self.logs.handle(request, caller)
                case "tagging":
                    return self._tagging.handle(request, caller)
                case _:
                    raise AwsError(400, "UnknownService", f"{service} is not known here")
        except AwsError as error:
            return as_response(service, error)
        except (KeyError, ValueError, TypeError) as error:
            words = f"{type(error).__name__}: {error}"
            return as_response(service, AwsError(400, "ValidationException", words))
