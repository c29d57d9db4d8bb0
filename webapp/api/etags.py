"""Answers with an ETag: whoever has them already is told so, and not told them again."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpResponse
from ninja import Header
from ninja.responses import Status
from pydantic import BaseModel

from webapp.api.job_serialization import etag_of

IfNoneMatch = Annotated[
    str, Header(alias="If-None-Match", max_length=200, description="304 if the ETag is still this one.")
]


def if_changed(response: HttpResponse, shape: BaseModel, if_none_match: str) -> Status:
    """The shape with its ETag, or 304 for those who named that one."""
    response["ETag"] = tag = etag_of(shape)
    return Status(304, None) if tag in if_none_match else Status(200, shape)
