"""People who are members already, without the invitation that made them so."""

from __future__ import annotations

from typing import Any

from webapp.accounts.models import User
from webapp.accounts.services import join_project


def add_member(project: Any, email: str, role: str) -> Any:
    """The membership of the user with this address."""
    return join_project(project, User.objects.get_by_natural_key(email), role)
