"""Whatever is sent to the API: no fault of ours, and every answer as its description says. Drawn from the description.

Requests name what is really there half of the time, so that they come past the doors.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.webapp.api.test_doors import Scene, _rows, operations
from tests.webapp.api_callers import ApiCaller
from webapp.api.tokens import make_token
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db(transaction=True)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LITTLE_TO_DRAW = 20
"""Requests to an address that takes nothing."""
QUIET = ("django.request", "webapp.doorbell", "webapp.jobs.launch.forecast_panel")


def _fuzz(requests: int, modes: list[schemathesis.GenerationMode], config: Any) -> int:
    """Send about so many requests, spread over all operations; how many were sent."""
    config.STARLING_API_REQUESTS_A_MINUTE = 10**9
    scene = Scene()
    _, key = make_token(user=scene.people["owner"], name="t", scopes=("jobs", "budget", "manage"))
    there = {name.strip("{}"): value for name, value in scene.named.items()}
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
    for name in QUIET:  # after the application has set its logging up
        logging.getLogger(name).setLevel(logging.CRITICAL)
    operations = [one.ok() for one in schema.get_all_operations()]
    sent = 0

    def tried(operation: Any, mode: schemathesis.GenerationMode, most: int) -> None:
        cases = operation.as_strategy(generation_mode=mode)

        @settings(
            max_examples=most,
            deadline=None,
            database=None,
            derandomize=requests < 1_000,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, real=st.booleans())
        def send(case: Any, real: bool) -> None:
            nonlocal sent
            if real:
                case.path_parameters = {
                    **(case.path_parameters or {}),
                    **_fitting(case.operation.path, there),
                }
            sent += 1
            # Over WSGI the tool reads bodies as they come: what browsers unpack would be noise to it.
            plain = {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}
            answer = case.call(headers=plain)
            case.validate_response(answer, checks=CHECKS)
            # What was launched is stopped: the table stays as small as it was.
            Job.objects.exclude(pk=scene.job.pk).delete()

        send()

    for operation in operations:
        asks = any(True for _ in operation.iter_parameters()) or operation.body
        share = requests // len(operations) // len(modes)
        for mode in modes:
            tried(operation, mode, max(1, share if asks else min(share, LITTLE_TO_DRAW)))
    return sent


def _fitting(path: str, there: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in there.items() if f"{{{name}}}" in path}


@pytest.mark.slow
def test_three_hundred_requests_break_nothing(settings: Any) -> None:
    sent = _fuzz(300, [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE], settings)
    assert sent >= 150, "some operations take no parameters, and so but one request each"


@pytest.mark.endurance
@pytest.mark.slow
def test_twenty_thousand_requests_break_nothing(settings: Any) -> None:
    sent = _fuzz(
        26_000, [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE], settings
    )
    print(f"{sent:,} requests")
    assert sent >= 20_000


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")


@pytest.mark.parametrize("signed_in", [True, False])
def test_methods_that_an_address_lacks_change_nothing_and_are_no_faults(
    signed_in: bool, settings: Any
) -> None:
    settings.STARLING_API_REQUESTS_A_MINUTE = 10**9
    scene = Scene()
    call = ApiCaller(scene.people["owner"])
    if not signed_in:
        call.key = "none"
    described: dict[str, set[str]] = {}
    for operation in operations().values():
        described.setdefault(operation.path, set()).add(operation.method)
    before = _rows()
    for path, there in described.items():
        for method in set(METHODS) - there:
            for body in (None, b"{", b"\xff" * 100):
                answer = call(method, scene.address(path), body)
                assert answer.status_code < 500, (method, path)
                assert answer.status_code in (200, 304, 401, 404, 405, 400, 406), (
                    method,
                    path,
                    answer.status_code,
                )
    assert _rows() == before
