"""Sessions in the database, each under a hash of its key: a copy of the database signs no one in.

The key itself is only in the person's cookie. It is random and long, so it needs no slow hash.
"""

from __future__ import annotations

import hashlib
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.db import SessionStore as PlainStore
from django.utils import timezone


def stored_key(session_key: str) -> str:
    """The key of a session's row: as many letters of its hash as the column holds, which are 160 bits."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:40]


class SessionStore(PlainStore):
    """Django's, but for the key of a row. Django finds this class by its name."""

    def _get_session_from_db(self) -> Any:
        rows = self.model.objects.filter(expire_date__gt=timezone.now())
        row = rows.filter(session_key=stored_key(self.session_key)).first() if self.session_key else None
        if row is None:
            self._session_key = None
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row = super().create_model_instance(data)
        row.session_key = stored_key(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            super().delete(stored_key(key))

    async def _aget_session_from_db(self) -> Any:
        return await sync_to_async(self._get_session_from_db)()

    async def aexists(self, session_key: str) -> bool:
        return await sync_to_async(self.exists)(session_key)

    async def acreate_model_instance(self, data: dict[str, Any]) -> Any:
        return await sync_to_async(self.create_model_instance)(data)

    async def adelete(self, session_key: str | None = None) -> None:
        await sync_to_async(self.delete)(session_key)
