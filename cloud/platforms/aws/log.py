"""The cost of lost calls, from the provider's log: there the actor names the call of a request, and AWS what it bills.

Log lines arrive some seconds late, so a call that is not found yet may be found later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cloud.platforms.aws.functions import log_group
from cloud.platforms.aws.invoke import Report, report_in

# A filter may have 1,024 letters.
_FILTER_LETTERS = 1000
_LINE = re.compile(r"^starling call (?P<call>.+) request (?P<request>\S+)(?P<ready> ready)?$", re.MULTILINE)


def reports_of(
    log_client: Any, function: str, call_ids: Sequence[str], since_unix_s: float
) -> dict[str, list[Report]]:
    """Return the executions in the log by call. A call without a line is left out."""
    wanted = set(call_ids)
    requests: dict[str, re.Match[str]] = {}
    for line in _lines(
        log_client, function, [f"starling call {call_id} request" for call_id in call_ids], since_unix_s
    ):
        for match in _LINE.finditer(line):
            if match["call"] in wanted:
                requests[match["request"]] = match
    executions: dict[str, list[Report]] = {}
    for line in _lines(log_client, function, [f"REPORT RequestId: {one}" for one in requests], since_unix_s):
        report = report_in(line)
        if report is not None and report.request_id in requests:
            named = requests[report.request_id]
            report = replace(report, provisioned=named["ready"] is not None)
            executions.setdefault(named["call"], []).append(report)
    return executions


def unnamed(log_client: Any, function: str, since_unix_s: float, until_unix_s: float) -> list[Report]:
    """Return executions whose call is unknown: the actor's process ended before it wrote the call's line."""
    named: set[str] = set()
    reports: dict[str, Report] = {}
    terms = ["starling call", "REPORT RequestId"]
    for line in _lines(log_client, function, terms, since_unix_s, until_unix_s):
        named.update(match["request"] for match in _LINE.finditer(line))
        report = report_in(line)
        if report is not None:
            reports[report.request_id] = report
    return [report for request_id, report in reports.items() if request_id not in named]


def _lines(
    log_client: Any,
    function: str,
    terms: Sequence[str],
    since_unix_s: float,
    until_unix_s: float | None = None,
) -> Iterable[str]:
    """Yield all lines that hold one of the terms; each request has as many terms as a filter may have."""
    until = {} if until_unix_s is None else {"endTime": int(until_unix_s * 1000)}
    for pattern in _filters(terms):
        request = {
            "logGroupName": log_group(function),
            "filterPattern": pattern,
            "startTime": int(since_unix_s * 1000),
            **until,
        }
        while True:
            page = log_client.filter_log_events(**request)
            yield from (event["message"] for event in page["events"])
            token = page.get("nextToken")
            if not token:
                break
            request["nextToken"] = token


def _filters(terms: Sequence[str]) -> Iterable[str]:
    pattern = ""
    for term in terms:
        quoted = f'?"{term}"'
        if pattern and len(pattern) + 1 + len(quoted) > _FILTER_LETTERS:
            yield pattern
            pattern = ""
        pattern = f"{pattern} {quoted}".strip()
    if pattern:
        yield pattern
