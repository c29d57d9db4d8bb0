"""Pages of results that stay stable while rows are added: a cursor names the row after which the next page begins."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from ninja import Path, Query
from pydantic import BaseModel, Field

from webapp.api.problems import ApiRefused

Row = TypeVar("Row")
Stored = TypeVar("Stored", bound=Model)
RowId = Annotated[int, Path(ge=0, le=2**63 - 1)]
Word = Annotated[str, Query(max_length=100, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Query(ge=1, le=200, description="At most so many results.")]
Cursor = Annotated[str, Query(max_length=200, description="`next` of the page before; empty for the first.")]
After = Annotated[int, Query(ge=0, le=2**53, description="Only what comes after this number.")]


class Page(BaseModel, Generic[Row]):
    results: list[Row]
    next: str | None = Field(None, description="The cursor of the next page; null on the last one.")


class NumberedPage(BaseModel, Generic[Row]):
    results: list[Row]
    next: int | None = Field(
        None, description="The value of `after` for the next page; null on the last one."
    )


def cursor_of(moment: datetime, key: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([moment.isoformat(), key]).encode()).decode().rstrip("=")


def newest_first(
    rows: QuerySet[Stored], moment: str, cursor: str, limit: int, shape: Callable[[Stored], Row]
) -> Page[Row]:
    """A page of rows by `moment`, each as `shape` shows it. A row's moment may move forward, never back."""
    rows = rows.order_by(f"-{moment}", "-pk")
    if cursor:
        at, key = read_cursor(cursor)
        try:
            after = rows.model._meta.pk.to_python(key)
        except ValidationError:
            raise _no_cursor() from None
        rows = rows.filter(Q(**{f"{moment}__lt": at}) | Q(**{moment: at, "pk__lt": after}))
    page = list(rows[: limit + 1])
    following = None
    if len(page) > limit:
        last = page[limit - 1]
        following = cursor_of(getattr(last, moment), str(last.pk))
    return Page(results=[shape(row) for row in page[:limit]], next=following)


def oldest_first(
    rows: QuerySet[Stored], after: int, limit: int, shape: Callable[[Stored], Row], number: str = "pk"
) -> NumberedPage[Row]:
    """A page of rows by their numbers, each as `shape` shows it."""
    page = list(rows.filter(**{f"{number}__gt": after}).order_by(number)[: limit + 1])
    following = getattr(page[limit - 1], number) if len(page) > limit else None
    return NumberedPage(results=[shape(row) for row in page[:limit]], next=following)


def read_cursor(text: str) -> tuple[datetime, str]:
    """The row that a cursor names. ApiRefused if the cursor is invalid."""
    try:
        moment, key = json.loads(
            base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        )
        at = datetime.fromisoformat(moment)
        at = at.astimezone(UTC) if at.tzinfo else at
        if at.tzinfo is None or not isinstance(key, str) or "\x00" in key:
            raise ValueError
    except (ValueError, TypeError, OverflowError, binascii.Error):
        raise _no_cursor() from None
    return at, key


def _no_cursor() -> ApiRefused:
    return ApiRefused(
        422,
        "cursor",
        "No page was made.",
        "No earlier page returned this cursor.",
        "Start without a cursor, then send `next` of each page unchanged.",
    )
