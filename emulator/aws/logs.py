"""CloudWatch Logs: the functions' output, its retention, and a search."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.errors import AwsError
from emulator.http import HttpRequest, HttpResponse

_EVENTS_KEPT = 100_000


@dataclass
class LogGroup:
    name: str
    retention_days: int | None = None
    events: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_EVENTS_KEPT))


class Logs:
    """Answers JSON requests, which name their action in a header."""

    def __init__(self, account: EmulatedAccount, region: str) -> None:
        self._account = account
        self._region = region
        self.groups: dict[str, LogGroup] = {}

    def write(self, group: str, lines: list[str]) -> None:
        now_ms = int(time.time() * 1000)
        log_group = self.groups.setdefault(group, LogGroup(group))
        log_group.events.extend((now_ms, line) for line in lines)

    def handle(self, request: HttpRequest, caller: Principal) -> HttpResponse:
        action = request.headers.get("x-amz-target", "").rpartition(".")[2]
        given: dict[str, Any] = json.loads(request.body or b"{}")
        name = str(given.get("logGroupName", "*"))
        self._account.require(caller, "logs", f"logs:{action}", self._arn(name))
        return HttpResponse(
            200,
            json.dumps(self._act(action, name, given)).encode(),
            {"Content-Type": "application/x-amz-json-1.1"},
        )

    def _act(self, action: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
        match action:
            case "CreateLogGroup":
                if name in self.groups:
                    raise AwsError(
                        400, "ResourceAlreadyExistsException", "The specified log group already exists"
                    )
                self.groups[name] = LogGroup(name)
            case "PutRetentionPolicy":
                self._group(name).retention_days = int(given["retentionInDays"])
            case "DeleteLogGroup":
                self._group(name)
                del self.groups[name]
            case "FilterLogEvents":
                return {"events": self._found(self._group(name), given), "searchedLogStreams": []}
            case _:
                raise AwsError(400, "UnknownOperationException", f"{action} is not known here")
        return {}

    def _found(self, group: LogGroup, given: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events that hold any of the pattern's terms."""
        terms = [term.strip('?"') for term in _terms(str(given.get("filterPattern", "")))]
        earliest, latest = int(given.get("startTime", 0)), int(given.get("endTime", 2**62))
        return [
            {"timestamp": when, "message": line, "logStreamName": "emulated", "eventId": str(number)}
            for number, (when, line) in enumerate(group.events)
            if earliest <= when <= latest and (not terms or any(term in line for term in terms))
        ]

    def _group(self, name: str) -> LogGroup:
        if name not in self.groups:
            raise AwsError(400, "ResourceNotFoundException", "The specified log group does not exist.")
        return self.groups[name]

    def _arn(self, name: str) -> str:
        return f"arn:aws:logs:{self._region}:{self._account.id}:log-group:{name}"


def _terms(pattern: str) -> list[str]:
    """Return the terms of a pattern such as `?"a b" ?"c"` or `"a b"`."""
    pieces = pattern.split('"')
    return [piece for piece in pieces[1::2] if piece] if len(pieces) > 1 else pattern.split()
