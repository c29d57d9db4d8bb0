"""The emulated account: every service of AWS behind one address."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cloud.emulator.aws.account import Account
from cloud.emulator.aws.control import Control
from cloud.emulator.aws.environments import Environments, Setting
from cloud.emulator.aws.errors import AwsError, as_response
from cloud.emulator.aws.functions import Functions
from cloud.emulator.aws.identity import Identity
from cloud.emulator.aws.invocations import Invocations
from cloud.emulator.aws.logs import Logs
from cloud.emulator.aws.meter import Meter
from cloud.emulator.aws.signatures import Claim, check_region, sender
from cloud.emulator.aws.storage import Storage
from cloud.emulator.aws.stub_functions import StubFunction, decode_result
from cloud.emulator.aws.tagging import Tagging
from cloud.emulator.control_api import Actions
from cloud.emulator.faults import AwsFaults
from cloud.emulator.http import HttpRequest, HttpResponse
from cloud.emulator.server import Emulator


class AwsEmulator(Emulator):
    """`with AwsEmulator() as aws:` — `aws.endpoint` is what boto3 gets as `endpoint_url` for every service."""

    def __init__(
        self,
        *,
        account: Account | None = None,
        faults: AwsFaults | None = None,
        region: str = "us-east-1",
        setting: Setting | None = None,
    ) -> None:
        self.account = account or Account()
        self.faults = faults or AwsFaults()
        self.region = region
        super().__init__("aws", self.faults, self._actions())
        self.meter = Meter()
        self.storage = Storage(self.account)
        self.logs = Logs(self.account, region)
        self.functions = Functions(self.account.id, region, self.folder / "code")
        self.environments = Environments(self.functions, self.meter, region, setting or Setting())
        self.invocations = Invocations(
            self.account, self.functions, self.faults, self.meter, self.logs, self.environments
        )
        self._control = Control(
            self.account, self.functions, self.faults, self.environments.retire, self.environments.provision
        )
        self._identity = Identity(self.account)
        self._tagging = Tagging(self.account, self.functions)

    def tidy(self) -> None:
        self.environments.end_idle()

    def close_processes(self) -> None:
        self.environments.close()

    def _actions(self) -> Actions:
        return {
            "meter": lambda given: [asdict(one) for one in self.meter.invocations],
            "park": self._add_stub,
            "concurrency": lambda given: setattr(self.account, "concurrency", int(given["concurrency"])),
            "external-id": lambda given: self.account.set_external_id(str(given["external_id"])),
            "expire": lambda given: self.account.expire_sessions(),
            "state": lambda given: {
                "in_flight": self.invocations.in_flight,
                "processes": self.environments.pids(),
            },
        }

    def _add_stub(self, given: dict[str, Any]) -> None:
        result = decode_result(given["result"]) if given.get("result") is not None else None
        self.invocations.stubs[str(given["function"])] = StubFunction(float(given["seconds"]), result)

    async def answer(self, request: HttpRequest) -> HttpResponse:
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
                    return await self.invocations.handle(request, caller)
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
