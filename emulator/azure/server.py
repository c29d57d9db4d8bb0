"""The emulated subscription: sign-in and resource manager behind one address, with TLS."""

from __future__ import annotations

import ssl
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emulator.azure import certificates
from emulator.azure.errors import ArmError, as_response
from emulator.azure.groups import Groups
from emulator.azure.meter import GroupMeter
from emulator.azure.resources import ResourceApi
from emulator.azure.sign_in import SignIn
from emulator.azure.subscription import Subscription
from emulator.control_api import Actions
from emulator.faults import AzureFaults
from emulator.http import HttpRequest, HttpResponse
from emulator.server import Emulator


class AzureEmulator(Emulator):
    """`with AzureEmulator() as azure:` — connections need `azure.endpoint` and `azure.ca`.

    Its address is both that of the sign-in and that of the resource manager.
    """

    def __init__(
        self,
        *,
        subscription: Subscription | None = None,
        faults: AzureFaults | None = None,
        folder: Path | None = None,
    ) -> None:
        """`folder`: where to put the authority's certificate, if another process must find it."""
        self.subscription = subscription or Subscription()
        self.faults = faults or AzureFaults()
        super().__init__("azure", self.faults, self._actions())
        self.meter = GroupMeter()
        self.groups = Groups(self.meter, self.faults, self.image)
        self._certificates = certificates.create(folder or self.folder)

    @property
    def tls(self) -> ssl.SSLContext:
        return self._certificates.server

    @property
    def ca(self) -> str:
        """The file with the certificate that a client must trust."""
        return str(self._certificates.ca)

    def close_processes(self) -> None:
        self.groups.close()

    def _actions(self) -> Actions:
        return {
            "meter": lambda given: [{**asdict(span), "billed_s": span.billed_s} for span in self.meter.spans],
            "quota": self._set_quota,
            "park": lambda given: setattr(self.groups, "stubs", str(given["names"])),
            "start": lambda given: setattr(self.groups, "start_s", float(given["seconds"])),
            "expire": lambda given: self.subscription.expire_tokens(),
            "state": lambda given: {
                "groups": {group.name: group.state for group in self.groups.all()},
                "processes": self.groups.pids(),
            },
        }

    def _set_quota(self, given: dict[str, Any]) -> None:
        for kind in ("groups_at_most", "cores_at_most"):
            if kind in given:
                setattr(self.subscription, kind, int(given[kind]))

    async def answer(self, request: HttpRequest) -> HttpResponse:
        try:
            if request.parts[0] == "subscriptions":
                return ResourceApi(self.subscription, self.groups, self.faults, self.endpoint).handle(request)
            return SignIn(self.subscription, self.endpoint).handle(request)
        except ArmError as error:
            return as_response(error)
        except (KeyError, ValueError, TypeError) as error:
            words = f"The request content was invalid: {type(error).__name__}: {error}"
            return as_response(ArmError(400, "InvalidRequestContent", words))
