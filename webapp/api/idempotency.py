"""A request with an Idempotency-Key takes effect once, however often it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.http import HttpResponse
from pydantic import BaseModel

from webapp.accounts.models import Project
from webapp.api.models import Made
from webapp.api.problems import ApiRefused
from webapp.comparing.abtests.models import ABTest
from webapp.jobs.models import Job, JobGroup

REPLAYED = "Idempotency-Replayed"
"""The header of an answer that an earlier request with the same key brought about."""


def say_if_replayed(response: HttpResponse, made: Job | JobGroup | ABTest) -> None:
    if made.replayed:
        response[REPLAYED] = "true"


def create_once(
    project: Project,
    kind: str,
    key: str,
    request: BaseModel,
    make: Callable[[], Any],
    response: HttpResponse,
) -> str:
    """The id of the row that `make` creates, or created when this key was first used in the project: then the response
    says so.

    ApiRefused if the key was used for another request. If `make` raises, the key stays unused.
    """
    if not key:
        return str(make().pk)
    sha256 = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    with transaction.atomic():
        row, is_new = Made.objects.get_or_create(
            project=project, kind=kind, key=key, defaults={"sha256": sha256}
        )
        if is_new:
            row.made_id = str(make().pk)
            row.save(update_fields=["made_id"])
    if row.sha256 != sha256:
        raise ApiRefused(
            409,
            "key-used",
            f"No {kind} was requested.",
            f"This Idempotency-Key belongs to another request, which created the {kind} {row.made_id}.",
            f"Use a new key for a new {kind}.",
        )
    if not is_new:
        response[REPLAYED] = "true"
    return row.made_id
