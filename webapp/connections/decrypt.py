"""The only place where stored secrets become plaintext, for cloud clients."""

from __future__ import annotations

from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole, AzureConnection, AzurePrincipal
from cloud.accounts.provision.aws_bucket import bucket_name
from webapp.connections import key_ring, services
from webapp.connections.models import Connection, ConnectionKind, SealedSecret, SetUp
from webapp.connections.sealing import CannotOpen as CannotOpen
from webapp.connections.sealing import Secret, unseal


@sensitive_variables()
def secret(connection: Connection, field: str) -> Secret:
    """The connection's secret. CannotOpen if it has none, or if the row or the master key is wrong."""
    row = SealedSecret.objects.filter(connection=connection, field=field).first()
    if row is None:
        raise CannotOpen(f"{connection.name} has no credentials yet. Set it up first.")
    return unseal(row.sealed(), connection.place(field), key_ring.ring().by_id)


def require_usable(connection: Connection) -> None:
    """CannotOpen without an identity, or if the connection and the installation differ in emulation."""
    if not connection.has_identity:
        raise CannotOpen(f"{connection.name} has no credentials yet. Set it up first.")
    if connection.emulated == services.is_emulated(connection.cloud):
        return
    made_for, here = "a real account", "reaches an emulator"
    if connection.emulated:
        made_for, here = "an emulator", "reaches the real cloud"
    raise CannotOpen(
        f"{connection.name} was made for {made_for}, and this installation {here}. Make a new connection."
    )


@sensitive_variables()
def azure_connection(connection: Connection) -> AzureConnection:
    """The connection for Azure clients. Raises as `secret` does. Only this installation's settings name an emulator."""
    require_usable(connection)
    access = AzurePrincipal(
        connection.tenant_id, connection.client_id, secret(connection, "client_secret").reveal()
    )
    return AzureConnection(
        access,
        connection.subscription_id,
        connection.resource_group,
        connection.region,
        connection.prefix,
        endpoint_url=settings.STARLING_AZURE_ENDPOINT or None,
        ca=settings.STARLING_EMULATOR_CA or None,
    )


@sensitive_variables()
def aws_connection(connection: Connection) -> AwsConnection:
    """The connection for AWS clients, with its plaintext secret. Raises as `secret` does."""
    require_usable(connection)
    access: AwsRole | AwsKeys = AwsRole(connection.role_arn, connection.external_id)
    if connection.kind == ConnectionKind.AWS_KEYS:
        access = AwsKeys(connection.access_key_id, secret(connection, "secret_access_key").reveal())
    ready = SetUp.objects.filter(connection=connection, ready_bucket=True).exists()
    return AwsConnection(
        access,
        connection.region,
        connection.prefix,
        bucket=bucket_name(connection.prefix, connection.pk) if ready else None,
        endpoint_url=settings.STARLING_AWS_ENDPOINT or None,
    )


def open_connection(project_id: int, connection_id: str) -> AwsConnection | AzureConnection:
    """The decrypted connection that a job's spec names. CannotOpen if it was removed; else raises as `secret` does."""
    connection = Connection.objects.filter(project_id=project_id, pk=connection_id).first()
    if connection is None:
        raise CannotOpen("The cloud connection of this job was removed.")
    return aws_connection(connection) if connection.cloud == "aws" else azure_connection(connection)
