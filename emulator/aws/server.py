"""The emulated account: every service of AWS behind one address, in one region or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from emulator.aws.account import EmulatedAccount
from emulator.aws.environments import SandboxSetting
from emulator.aws.errors import AwsError, as_response
from emulator.aws.identity import IdentityApi
from emulator.aws.region import Region
from emulator.aws.signatures import Claim, check_region, sender
from emulator.aws.storage import Storage
from emulator.aws.stub_functions import StubFunction, decode_result
from emulator.control_api import Actions
from emulator.faults import AwsFaults
from emulator.http import HttpRequest, HttpResponse
from emulator.server import Emulator


class AwsEmulator(Emulator):
    """`with AwsEmulator() as aws:` — `aws.endpoint` is what boto3 gets as `endpoint_url` for every service.

    A request is answered by the region that it was signed for. `aws.functions`, `aws.logs`, `aws.meter` and so on are
    those of `region`; `aws.regions["eu-west-1"]` has those of another one, if `other_regions` names it.
    """

    def __init__(
        self,
        *,
        account: EmulatedAccount | None = None,
        faults: AwsFaults | None = None,
        region: str = "us-east-1",
        other_regions: Sequence[str] = (),
        setting: SandboxSetting | None = None,
    ) -> None:
        self.account = account or EmulatedAccount()
        self.faults = faults or AwsFaults()
        self.region = region
        super().__init__("aws", self.faults, self._actions())
        self.storage = Storage(self.account, region)
        self.regions = {
            name: Region(
                name, self.account, self.faults, self.folder / "code", self.image, setting or SandboxSetting()
            )
            for name in (region, *other_regions)
        }
        home = self.regions[region]
        self.meter, self.logs, self.functions = home.meter, home.logs, home.functions
        self.environments, self.invocations = home.environments, home.invocations
        self._identity = IdentityApi(self.account)

    def tidy(self) -> None:
        for region in self.regions.values():
            region.environments.end_idle()

    def close_processes(self) -> None:
        for region in self.regions.values():
            region.environments.close()

    def _actions(self) -> Actions:
        """Requests to them name a region, or mean `region`."""
        return {
            "meter": lambda given: [asdict(one) for one in self._region(given).meter.invocations],
            "park": self._add_stub,
            "concurrency": lambda given: setattr(self.account, "concurrency", int(given["concurrency"])),
            "external-id": lambda given: self.account.set_external_id(str(given["external_id"])),
            "expire": lambda given: self.account.expire_sessions(),
            "state": lambda given: {
                "in_flight": self._region(given).invocations.in_flight,
                "processes": self._region(given).environments.pids(),
            },
        }

    def _region(self, given: dict[str, Any]) -> Region:
        return self.regions[str(given.get("region", self.region))]

    def _add_stub(self, given: dict[str, Any]) -> None:
        result = decode_result(given["result"]) if given.get("result") is not None else None
        stub = StubFunction(float(given["seconds"]), result)
        self._region(given).invocations.stubs[str(given["function"])] = stub

    async def answer(self, request: HttpRequest) -> HttpResponse:
        service = "s3"
        try:
            claim = Claim.of(request)
            service = claim.service
            check_region(claim, self.regions)
            caller = sender(request, claim, self.account)
            match service:
                case "sts" | "iam":
                    return self._identity.handle(request, caller, service)
                case "s3":
                    return self.storage.handle(request, caller, claim.region)
                case _:
                    return await self.regions[claim.region].handle(service, request, caller)
        except AwsError as error:
            return as_response(service, error)
        except (KeyError, ValueError, TypeError) as error:
            words = f"{type(error).__name__}: {error}"
            return as_response(service, AwsError(400, "ValidationException", words))
