"""The emulator's own desk, for whoever runs it in another process: faults, quotas, ids, parked functions, the meter."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from cloud.emulator.aws.account import Account
from cloud.emulator.aws.environments import Environments
from cloud.emulator.aws.faults import KINDS, Faults
from cloud.emulator.aws.invoking import Invoking
from cloud.emulator.aws.meter import Meter
from cloud.emulator.aws.stub_functions import Parked, decoded
from cloud.emulator.http import HttpRequest, HttpResponse


class Desk:
    """JSON at `/_emulator/NAME`. No cloud has this; nothing of the product talks to it."""

    def __init__(
        self, account: Account, faults: Faults, meter: Meter, invoking: Invoking, environments: Environments
    ) -> None:
        self._account = account
        self._faults = faults
        self._meter = meter
        self._invoking = invoking
        self._environments = environments

    def handle(self, request: HttpRequest) -> HttpResponse:
        if "origin" in request.headers:
            # A page in somebody's browser has no business here.
            return HttpResponse(403)
        try:
            given: dict[str, Any] = json.loads(request.body or b"{}")
            told = self._act(request.parts[-1], given)
        except (KeyError, ValueError, TypeError) as error:
            return HttpResponse(400, json.dumps({"error": str(error)}).encode())
        return HttpResponse(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

    def _act(self, name: str, given: dict[str, Any]) -> object:
        match name:
            case "meter":
                return [asdict(one) for one in self._meter.invocations]
            case "faults":
                return self._set_faults(given)
            case "park":
                result = decoded(given["result"]) if given.get("result") is not None else None
                self._invoking.parked[str(given["function"])] = Parked(float(given["seconds"]), result)
            case "concurrency":
                self._account.concurrency = int(given["concurrency"])
            case "external-id":
                self._account.set_external_id(str(given["external_id"]))
            case "expire":
                self._account.expire_sessions()
            case "state":
                return {"in_flight": self._invoking.in_flight, "processes": self._environments.pids()}
            case _:
                raise ValueError(f"{name} is not known here")
        return {}

    def _set_faults(self, given: dict[str, Any]) -> object:
        unknown = (set(given.get("shares", {})) | set(given.get("order", {}))) - KINDS
        if unknown:
            raise ValueError(f"unknown faults: {', '.join(sorted(unknown))}")
        if "shares" in given:
            self._faults.shares = {kind: float(share) for kind, share in given["shares"].items()}
        for kind, times in given.get("order", {}).items():
            self._faults.order(kind, int(times))
        for name in ("visibility_delay_s", "slow_start_s"):
            if name in given:
                setattr(self._faults, name, float(given[name]))
        return {"struck": dict(self._faults.struck)}
