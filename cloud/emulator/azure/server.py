"""The emulated subscription behind one address on loopback, with TLS, in a thread of its own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from cloud.emulator.asyncio_thread import OwnThread, T
from cloud.emulator.azure import certificates
from cloud.emulator.azure.control_api import Desk
from cloud.emulator.azure.errors import ArmError, as_response
from cloud.emulator.azure.faults import Faults
from cloud.emulator.azure.groups import Groups
from cloud.emulator.azure.meter import Meter
from cloud.emulator.azure.resources import Resources
from cloud.emulator.azure.signing_in import SigningIn
from cloud.emulator.azure.subscription import Subscription
from cloud.emulator.http import HttpRequest, HttpResponse, HttpServer


class AzureEmulator:
    """`with AzureEmulator() as azure:` — `azure.endpoint` and `azure.ca` are what connections need.

    It stands for the sign-in and for the resource manager. `subscription`, `faults` and `meter` may be looked at from
    any thread; what changes groups goes through `inside`. Every container ends with it, however it ends.
    """

    def __init__(
        self,
        *,
        subscription: Subscription | None = None,
        faults: Faults | None = None,
        folder: Path | None = None,
    ) -> None:
        """`folder`: where the authority's certificate is put, if somebody else must find it."""
        self.subscription = subscription or Subscription()
        self.faults = faults or Faults()
        self.meter = Meter()
        self.groups = Groups(self.meter, self.faults)
        self._own_folder = tempfile.TemporaryDirectory(prefix="starling-azure-")
        self._certificates = certificates.made_in(folder or Path(self._own_folder.name))
        self._desk = Desk(self.subscription, self.faults, self.meter, self.groups)
        self._signing_in: SigningIn | None = None
        self._resources: Resources | None = None
        self._thread = OwnThread("azure-emulator", self._serve)
        self._port = 0

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca(self) -> str:
        """The file with the certificate by which it is known."""
        return str(self._certificates.ca)

    def start(self, port: int = 0) -> AzureEmulator:
        self._port = port
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every process and answer nothing more. Safe to call twice."""
        self._thread.stop()
        self._own_folder.cleanup()

    def __enter__(self) -> AzureEmulator:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def inside(self, act: Callable[[], T]) -> T:
        """Do something in the emulator's own thread, and wait for it."""
        return self._thread.inside(act)

    async def _serve(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        server = HttpServer(self._answer)
        self._port = await server.start(self._port, self._certificates.server)
        self._signing_in = SigningIn(self.subscription, self.endpoint)
        self._resources = Resources(self.subscription, self.groups, self.faults, self.endpoint)
        ready()
        try:
            await stop.wait()
        finally:
            server.close()
            self.groups.close()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        assert self._signing_in is not None
        assert self._resources is not None
        try:
            match request.parts[0]:
                case "_emulator":
                    return self._desk.handle(request)
                case "subscriptions":
                    return await self._resources.handle(request)
                case _:
                    return self._signing_in.handle(request)
        except ArmError as error:
            return as_response(error)
        except (KeyError, ValueError, TypeError) as error:
            words = f"The request content was invalid: {type(error).__name__}: {error}"
            return as_response(ArmError(400, "InvalidRequestContent", words))
