"""What lost calls cost, from the provider's own log: the actor wrote which call a request was, AWS what it bills.

Log lines come some seconds late, so what is not found yet may be found later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from cloud.aws_functions import log_group
from cloud.aws_invoke import Report, report_in

# A filter may have 1,024 letters.
_TERMS_AT_ONCE = 10
_LINE = re.compile(r"^starling call (?P<call>.+) request (?P<request>\S+)$", re.MULTILINE)


def reports_of(
    log_client: Any, function: str, call_ids: Sequence[str], since_unix_s: float
) -> dict[str, list[Report]]:
    """The executions of each call that the log tells of. A call of which nothing is found is left out."""
    wanted = set(call_ids)
    requests: dict[str, str] = {}
    for line in _lines(
        log_client, function, [f"starling call {one} request" for one in call_ids], since_unix_s
    ):
        for found in _LINE.finditer(line):
            if found["call"] in wanted:
                requests[found["request"]] = found["call"]
    executions: dict[str, list[Report]] = {}
    for line in _lines(log_client, function, [f"REPORT RequestId: {one}" for one in requests], since_unix_s):
        report = report_in(line)
        if report is not None and report.request_id in requests:
            executions.setdefault(requests[report.request_id], []).append(report)
    return executions


def _lines(log_client: Any, function: str, terms: Sequence[str], since_unix_s: float) -> Iterable[str]:
    """All lines that hold one of the terms, a few terms at a time."""
    for begin in range(0, len(terms), _TERMS_AT_ONCE):
        pattern = " ".join(f'?"{term}"' for term in terms[begin : begin + _TERMS_AT_ONCE])
        asked = {
            "logGroupName": log_group(function),
            "filterPattern": pattern,
            "startTime": int(since_unix_s * 1000),
        }
        while True:
            page = log_client.filter_log_events(**asked)
            yield from (event["message"] for event in page["events"])
            token = page.get("nextToken")
            if not token:
                break
            asked["nextToken"] = token
