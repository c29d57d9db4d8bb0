"""Pages of results that stay what they are while rows come: a cursor says after which row to go on."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from ninja import Query
from pydantic import BaseModel, Field

from webapp.api.problems import Refused

Row = TypeVar("Row")
Word = Annotated[str, Query(max_length=100, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Query(ge=1, le=200, description="At most so many results.")]
Cursor = Annotated[str, Query(max_length=200, description="`next` of the page before; empty for the first.")]
After = Annotated[int, Query(ge=0, le=2**53, description="Only what comes after this number.")]


class Page(BaseModel, Generic[Row]):
    results: list[Row]
    next: str | None = Field(None, description="The cursor of the next page; null on the last one.")


class NumberedPage(BaseModel, Generic[Row]):
    """Rows with numbers of their own."""

    results: list[Row]
    next: int | None = Field(
        None, description="What to give as `after` for the next page; null on the last one."
    )


def cursor_of(moment: datetime, key: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([moment.isoformat(), key]).encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[datetime, str]:
    """The row a cursor names; Refused if it is none of ours."""
    try:
        moment, key = json.loads(
            base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        )
        at = datetime.fromisoformat(moment)
        at = at.astimezone(UTC) if at.tzinfo else at
        if at.tzinfo is None or not isinstance(key, str) or "\x00" in key:
            raise ValueError
    except (ValueError, TypeError, OverflowError, binascii.Error):
        raise Refused(
            422,
            "cursor",
            "No page was made.",
            "The cursor is not one that an earlier page gave.",
            "Begin without a cursor, and give `next` of each page on as it is.",
        ) from None
    return at, key
