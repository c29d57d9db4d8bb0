"""The person of a session, outside of a request's middleware: before a body is read."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser


def session_holder(session_key: str | None) -> AbstractBaseUser | AnonymousUser:
    """The person of the session in the database now. Anonymous if it has ended."""
    engine: Any = import_module(settings.SESSION_ENGINE)
    return get_user(SimpleNamespace(session=engine.SessionStore(session_key)))  # type: ignore[arg-type]
