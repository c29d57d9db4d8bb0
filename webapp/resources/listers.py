"""Lists the billable resources of an account: one finder for each cloud, over a connection that is decrypted for it."""

from __future__ import annotations

from django.views.decorators.debug import sensitive_variables

from cloud.aws.billable_resources import AwsFinder
from cloud.azure.billable_resources import AzureFinder
from cloud.azure.clients import AzureClients
from cloud.register import Finder
from webapp.connections import decrypt, queries
from webapp.connections.models import Connection

_READ_TIMEOUT_S = 8.0


@sensitive_variables()
def finder_of(connection: Connection) -> Finder:
    """The finder of a connection. Raises CannotOpen, CannotUnseal or KeysUnusable if it cannot be decrypted."""
    if connection.cloud == "aws":
        made = queries.set_up_of(connection)
        return AwsFinder(decrypt.aws_connection(connection).open(), made.asked_mb if made else ())
    return AzureFinder(AzureClients(decrypt.azure_connection(connection), read_timeout_s=_READ_TIMEOUT_S))
