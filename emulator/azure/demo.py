"""A subscription as a newcomer sets it up: a resource group, and an app with the two roles that are shown to be copied.

The app has exactly the rights of those roles, so whatever runs here also runs with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud.accounts.connections import AzureConnection, AzurePrincipal
from cloud.accounts.provision.policies import azure_reader_role, azure_role
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import RoleAssignment
from emulator.stored_keys import read_keys, write_keys

RESOURCE_GROUP = "starling"
IMAGE = "registry.example/starling-actor:latest"


@dataclass(frozen=True)
class DemoSubscription:
    """A connection to the subscription, and the image that its actors run."""

    connection: AzureConnection
    image: str

    def values(self) -> dict[str, Any]:
        """Return what to type into the form."""
        connection, access = self.connection, self.connection.access
        return {
            "endpoint": connection.endpoint_url,
            "ca": connection.ca,
            "region": connection.region,
            "subscription_id": connection.subscription_id,
            "resource_group": connection.resource_group,
            "tenant_id": access.tenant_id,
            "client_id": access.client_id,
            "client_secret": access.client_secret,
            "image": self.image,
        }


def furnish(
    azure: AzureEmulator, *, resource_group: str = RESOURCE_GROUP, keys_file: Path | None = None
) -> DemoSubscription:
    """Add an app and a resource group to a running emulator's subscription.

    `keys_file`: ids and secret of the last start, which are used again. Raises UnreadableKeys.
    """
    subscription, last = azure.subscription, read_keys(keys_file)
    subscription.id = last.get("subscription_id", subscription.id)
    subscription.tenant_id = last.get("tenant_id", subscription.tenant_id)
    subscription.add_resource_group(resource_group)
    roles = [azure_role(subscription.id, resource_group), azure_reader_role(subscription.id)]
    identity = (
        (last["client_id"], last["client_secret"]) if {"client_id", "client_secret"} <= set(last) else None
    )
    app = subscription.add_app([RoleAssignment.of(role) for role in roles], identity=identity)
    write_keys(
        keys_file,
        {
            "subscription_id": subscription.id,
            "tenant_id": subscription.tenant_id,
            "client_id": app.client_id,
            "client_secret": app.secret,
        },
    )
    access = AzurePrincipal(subscription.tenant_id, app.client_id, app.secret)
    connection = AzureConnection(
        access,
        subscription.id,
        resource_group,
        subscription.region,
        endpoint_url=azure.endpoint,
        ca=azure.ca,
    )
    return DemoSubscription(connection, IMAGE)
