"""Specs made to cost memory: whoever takes one refuses it early."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_project, make_spec, make_user
from tests.memory import memory_peak
from tests.webapp.api_callers import ApiCaller
from tests.work import slowness
from webapp.jobs.form.spec_documents import LARGEST_BYTES, SpecError, read_spec, read_spec_file
from webapp.jobs.spec import Limits

FILE_BYTES, BODY_BYTES = 250_000, 1_000_000


def with_tags(tag: str) -> Callable[[int], bytes]:
    def made(size: int) -> bytes:
        document = make_spec().model_dump(mode="json")
        rest = json.dumps({**document, "tags": []})
        tags = ",".join([tag] * ((size - len(rest)) // (len(tag) + 1)))
        return rest.replace('"tags": []', f'"tags": [{tags}]').encode()

    return made


def unknown_fields(size: int) -> bytes:
    return json.dumps({f"a{at}": 0 for at in range(size // 14)}).encode()


SPECS = {
    "wrong tags": with_tags("0"),
    "empty tables": with_tags("{}"),
    "lists in lists": lambda size: b'{"tags":' + b"[" * (size - 20),
    "unknown fields": unknown_fields,
    "a long kind": lambda size: json.dumps({"platform": {"kind": "x" * (size - 50)}}).encode(),
    "a long number": lambda size: b'{"budget_usd": ' + b"9" * (size - 50) + b"}",
}
"""Each makes a document of about so many bytes."""


def refused_cheaply(limit_bytes: int, ask: Callable[[], Any]) -> Any:
    with memory_peak() as peak:
        began_s = time.thread_time()
        answer = ask()
        took_s = time.thread_time() - began_s
    assert peak.grown_bytes <= 2 * limit_bytes + 32 * 2**20
    assert took_s <= 2 * slowness()
    return answer


@pytest.mark.parametrize("made", SPECS.values(), ids=SPECS.keys())
def test_a_spec_in_a_file_is_refused_for_little_memory(made: Callable[[int], bytes], tmp_path: Path) -> None:
    content = made(FILE_BYTES)
    assert len(content) <= LARGEST_BYTES

    def upload() -> None:
        with pytest.raises(SpecError):
            read_spec_file(io.BytesIO(content), "spec.json")

    refused_cheaply(LARGEST_BYTES, upload)
    file = tmp_path / "spec.json"
    file.write_bytes(made(BODY_BYTES))

    def name() -> None:
        with pytest.raises(SpecError):
            read_spec(str(file), ["training.seed=7"], Limits(local=4, simulated=100))

    refused_cheaply(BODY_BYTES, name)


@pytest.mark.django_db
@pytest.mark.parametrize("made", SPECS.values(), ids=SPECS.keys())
def test_a_spec_sent_to_the_api_is_refused_for_little_memory(made: Callable[[int], bytes]) -> None:
    user = make_user()
    caller, project = ApiCaller(user), make_project(user)
    caller.get(f"/projects/{project.slug}")  # the first answer loads the API
    body = made(BODY_BYTES)
    answer = refused_cheaply(
        BODY_BYTES, lambda: caller.post(f"/projects/{project.slug}/jobs", body, Idempotency_Key="one")
    )
    assert answer.status_code in (400, 422)
    assert len(answer.content) < 100_000
