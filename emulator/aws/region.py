"""One region of the account: its functions, their environments and logs, and what it bills.

Identities, rights and the names of buckets belong to the whole account, which every region shares.
"""

from __future__ import annotations

from pathlib import Path

from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.control import LambdaControl
from emulator.aws.environments import Environments, SandboxSetting
from emulator.aws.errors import AwsError
from emulator.aws.functions import EmulatedFunctions
from emulator.aws.invocations import Invocations
from emulator.aws.logs import Logs
from emulator.aws.meter import LambdaMeter
from emulator.aws.tagging import Tagging
from emulator.faults import AwsFaults
from emulator.http import HttpRequest, HttpResponse
from emulator.image import Image


class Region:
    """The services whose state a region keeps for itself."""

    def __init__(
        self,
        name: str,
        account: EmulatedAccount,
        faults: AwsFaults,
        folder: Path,
        image: Image,
        setting: SandboxSetting,
    ) -> None:
        self.name = name
        self.meter = LambdaMeter()
        self.logs = Logs(account, name)
        self.functions = EmulatedFunctions(account.id, name, folder)
        self.environments = Environments(self.functions, self.meter, name, image, setting)
        self.invocations = Invocations(
            account, self.functions, faults, self.meter, self.logs, self.environments
        )
        self._control = LambdaControl(
            account, self.functions, faults, self.environments.retire, self.environments.provision
        )
        self._tagging = Tagging(account, self.functions)

    async def handle(self, service: str, request: HttpRequest, caller: Principal) -> HttpResponse:
        match service:
            case "lambda" if request.raw_path.endswith("/invocations"):
                return await self.invocations.handle(request, caller)
            case "lambda":
                return self._control.handle(request, caller)
            case "logs":
                return self.logs.handle(request, caller)
            case "tagging":
                return self._tagging.handle(request, caller)
            case _:
                raise AwsError(400, "UnknownService", f"{service} is not known here")
