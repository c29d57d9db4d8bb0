"""The clouds' SDKs for the test of a connection: with short time limits, few retries and no configured addresses.

They are imported at their first use: a page that shows a connection does not need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cloud.accounts.connections import AwsClients, AwsConnection, AwsKeys, AzureConnection
from cloud.platforms.aws.checks import ClientMaker
from cloud.platforms.azure.clients import AzureClients

_CONNECT_S = 3
_READ_S = 8
_ATTEMPTS = 2


def aws_clients(connection: AwsConnection) -> ClientMaker:
    """Return a maker of clients with the connection's keys; for a role, with the keys that assume it."""

    opened: dict[str, AwsClients] = {}

    def make(service: str, credentials: Mapping[str, str] | None = None) -> Any:
        access: AwsKeys | None = None
        if credentials is not None:
            access = AwsKeys(
                credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"]
            )
        elif isinstance(connection.access, AwsKeys):
            access = connection.access
        else:
            access = connection.access.ours
        if access is None:
            return _with_our_own_identity(service, connection)
        if access.access_key_id not in opened:
            opened[access.access_key_id] = replace(connection, access=access).open()
        return opened[access.access_key_id].client(service, read_timeout_s=_READ_S, tries=_ATTEMPTS)

    return make


def _with_our_own_identity(service: str, connection: AwsConnection) -> Any:
    """Return a client with the credentials of this machine's own cloud or variables, but of no file."""
    import botocore.session
    from botocore.config import Config

    session = botocore.session.Session()
    session.set_config_variable("config_file", "/dev/null")
    session.set_config_variable("credentials_file", "/dev/null")
    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        ignore_configured_endpoint_urls=True,
    )
    return session.create_client(
        service, region_name=connection.region, endpoint_url=connection.endpoint_url, config=config
    )


def azure_clients(connection: AzureConnection, *, transport: Any = None) -> AzureClients:
    """`transport` replaces the network in tests."""
    return AzureClients(connection, read_timeout_s=_READ_S, tries=_ATTEMPTS, transport=transport)
