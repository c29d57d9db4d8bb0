"""A cache in the database, for counts that every process must see and that outlive a restart.

Django's own database cache stores pickles, which can run code when they are read. This one stores JSON. Redis is no
alternative: the embedded Valkey keeps nothing on disk.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db.models import Q, QuerySet

from webapp.limits.models import Counted

_TIDY_EVERY_S = 60.0


class SharedCache(BaseCache):
    """Stores JSON values. Writes delete expired rows."""

    def __init__(self, location: str, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._tidied_s = -_TIDY_EVERY_S
        self._lock = threading.Lock()

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        found = self._living().filter(key=self._name(key, version)).values_list("value", flat=True).first()
        return default if found is None else found

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._tidy()
        kept = {"value": value, "expires_unix_s": self.get_backend_timeout(timeout)}
        Counted.objects.update_or_create(key=self._name(key, version), defaults=kept)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Set the key unless it exists. Returns whether it was set; of concurrent calls, one sets it."""
        self._tidy()
        name = self._name(key, version)
        self._expired().filter(key=name).delete()
        kept = {"value": value, "expires_unix_s": self.get_backend_timeout(timeout)}
        _, made = Counted.objects.get_or_create(key=name, defaults=kept)
        return made

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        here = self._living().filter(key=self._name(key, version))
        return bool(here.update(expires_unix_s=self.get_backend_timeout(timeout)))

    def delete(self, key: Any, version: int | None = None) -> bool:
        deleted, _ = Counted.objects.filter(key=self._name(key, version)).delete()
        return bool(deleted)

    def clear(self) -> None:
        Counted.objects.all().delete()

    def _name(self, key: Any, version: int | None) -> str:
        """The key, or its digest if it is too long for the column."""
        name: str = self.make_key(key, version=version)
        return name if len(name) <= 250 else hashlib.sha256(name.encode()).hexdigest()

    def _living(self) -> QuerySet[Counted]:
        return Counted.objects.filter(Q(expires_unix_s=None) | Q(expires_unix_s__gt=time.time()))

    def _expired(self) -> QuerySet[Counted]:
        return Counted.objects.filter(expires_unix_s__lte=time.time())

    def _tidy(self) -> None:
        with self._lock:
            if time.monotonic() - self._tidied_s < _TIDY_EVERY_S:
                return
            self._tidied_s = time.monotonic()
        self._expired().delete()
