"""The emulators' own addresses, for programs that run one in another process: faults, quotas and the meter."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from emulator.faults import Faults
from emulator.http import HttpRequest, HttpResponse, json_response

Actions = Mapping[str, Callable[[dict[str, Any]], object]]
"""By name: each takes the JSON of a request and returns that of the answer, or None."""


class ControlApi:
    """JSON at `/_emulator/NAME`. No cloud has this, and the product never uses it."""

    def __init__(self, faults: Faults[Any], actions: Actions) -> None:
        self._faults = faults
        self._actions: Actions = {"faults": self._set_faults, **actions}

    def handle(self, request: HttpRequest) -> HttpResponse:
        if "origin" in request.headers:
            # A page in a browser must not reach these addresses.
            return HttpResponse(403)
        name = request.parts[-1]
        try:
            if name not in self._actions:
                raise ValueError(f"{name} is not known here")
            answer = self._actions[name](json.loads(request.body or b"{}"))
        except (KeyError, ValueError, TypeError) as error:
            return json_response(400, {"error": str(error)})
        return json_response(200, {} if answer is None else answer)

    def _set_faults(self, given: dict[str, Any]) -> object:
        unknown = (set(given.get("shares", {})) | set(given.get("order", {}))) - self._faults.kinds
        if unknown:
            raise ValueError(f"unknown faults: {', '.join(sorted(unknown))}")
        if "shares" in given:
            self._faults.shares = {kind: float(share) for kind, share in given["shares"].items()}
        for kind, times in given.get("order", {}).items():
            self._faults.order(kind, int(times))
        for field in fields(self._faults):
            if field.name.endswith("_s") and field.name in given:
                setattr(self._faults, field.name, float(given[field.name]))
        return {"struck": dict(self._faults.struck)}
