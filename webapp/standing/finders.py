"""Who looks at an account: one finder for each cloud, with the connection opened for the moment."""

from __future__ import annotations

from django.views.decorators.debug import sensitive_variables

from cloud.aws_standing import AwsFinder
from cloud.register import Finder
from webapp.credentials import opening, queries
from webapp.credentials.models import Connection


@sensitive_variables()
def finder_of(connection: Connection) -> Finder:
    """Raises CannotOpen, CannotUnseal or KeysUnusable where it cannot be opened."""
    if connection.cloud == "aws":
        made = queries.set_up_of(connection)
        return AwsFinder(opening.aws_connection(connection).open(), made.asked_mb if made else ())
    raise opening.CannotOpen(f"Nobody looks after {connection.get_kind_display()} yet.")
