"""The emulator's own desk, for whoever runs it in another process: faults, quotas and the meter."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from cloud.emulator.azure.faults import KINDS, Faults
from cloud.emulator.azure.groups import Groups
from cloud.emulator.azure.meter import Meter
from cloud.emulator.azure.subscription import Subscription
from cloud.emulator.http import HttpRequest, HttpResponse

_SECONDS = ("visibility_delay_s", "slow_start_s", "zombie_s", "crash_after_s")


class Desk:
    """JSON at `/_emulator/NAME`. No cloud has this; nothing of the product talks to it."""

    def __init__(self, subscription: Subscription, faults: Faults, meter: Meter, groups: Groups) -> None:
        self._subscription = subscription
        self._faults = faults
        self._meter = meter
        self._groups = groups

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
                return [{**asdict(one), "billed_s": one.billed_s} for one in self._meter.spans]
            case "faults":
                return self._set_faults(given)
            case "quota":
                for kind in ("groups_at_most", "cores_at_most"):
                    setattr(self._subscription, kind, int(given.get(kind, getattr(self._subscription, kind))))
            case "park":
                self._groups.parked = str(given["names"])
            case "start":
                self._groups.start_s = float(given["seconds"])
            case "expire":
                self._subscription.expire_tokens()
            case "state":
                groups = {one.name: one.state for one in self._groups.all()}
                return {"groups": groups, "processes": self._groups.pids()}
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
        for name in _SECONDS:
            if name in given:
                setattr(self._faults, name, float(given[name]))
        return {"struck": dict(self._faults.struck)}
