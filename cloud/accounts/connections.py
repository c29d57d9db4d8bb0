"""Connections to cloud accounts, and the SDK's clients for them.

They are plain values that the caller has decrypted for a moment. Their `repr` shows no secrets, nothing is read from
this machine's own configuration, and another endpoint than the vendor's is used only if the deployment sets one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from cloud.accounts.provision.permissions import SHARED_PREFIX

CONNECT_TIMEOUT_S = 5.0
_SESSION_NAME = "starling"
_READ_TIMEOUT_S = 30.0
_SESSION_S = 3600
# Files and variables of this machine belong to its operator, not to a connection. The SDK's format is: the option's
# name in a file, the variables it is read from, its default, and a converter.
_NOT_FROM_HERE = {
    "profile": (None, None, None, None),
    "config_file": (None, None, "/dev/null", None),
    "credentials_file": (None, None, "/dev/null", None),
}


@dataclass(frozen=True)
class AwsKeys:
    """An access key of a user, or our own, with which we assume other accounts' roles."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AwsRole:
    """A role in another account that trusts us if we show this connection's external id.

    `ours` are the keys that we assume it with; None: those that this machine has from its own cloud.
    """

    role_arn: str
    external_id: str
    ours: AwsKeys | None = None


@dataclass(frozen=True)
class AwsConnection:
    """One account in one region. `endpoint_url` is the address of every service of an emulated cloud."""

    access: AwsRole | AwsKeys
    region: str = "us-east-1"
    prefix: str = SHARED_PREFIX
    bucket: str | None = None
    endpoint_url: str | None = None

    @property
    def emulated(self) -> bool:
        return self.endpoint_url is not None

    def open(self) -> AwsClients:
        return AwsClients(self)


@dataclass(frozen=True)
class AzurePrincipal:
    """An app of a tenant, with its secret."""

    tenant_id: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True)
class AzureConnection:
    """One resource group of one subscription. `endpoint_url` is the address of an emulated cloud's sign-in and resource
    manager, `ca` the file with the certificate to trust there.
    """

    access: AzurePrincipal
    subscription_id: str
    resource_group: str
    region: str = "eastus"
    prefix: str = SHARED_PREFIX
    endpoint_url: str | None = None
    ca: str | None = None

    @property
    def emulated(self) -> bool:
        return self.endpoint_url is not None

    @property
    def group_path(self) -> str:
        return f"/subscriptions/{self.subscription_id}/resourcegroups/{self.resource_group}"


class AwsClients:
    """The SDK's clients for one connection. The SDK renews sessions of a role before they end."""

    def __init__(self, connection: AwsConnection) -> None:
        self.connection = connection
        self._session = _session(connection)

    def client(
        self, service: str, *, read_timeout_s: float = _READ_TIMEOUT_S, tries: int = 3, connections: int = 10
    ) -> Any:
        """Return a client that tries each request at most `tries` times. With 1 it never repeats a request."""
        from botocore.config import Config

        endpoint, proxies = self.connection.endpoint_url, {}
        if endpoint and service == "s3":
            # Emulated buckets have hosts of their own, as real ones do. Not every machine resolves names below
            # localhost, so the emulator takes these requests as a proxy.
            proxies = {"http": endpoint}
            endpoint = f"http://s3.{self.connection.region}.localhost:{urlsplit(endpoint).port or 80}"
        config = Config(
            retries={"mode": "standard", "total_max_attempts": tries},
            read_timeout=read_timeout_s,
            connect_timeout=CONNECT_TIMEOUT_S,
            max_pool_connections=connections,
            tcp_keepalive=True,
            proxies=proxies,
            # Presigned addresses have signatures of version 4 too, which is not the SDK's default.
            signature_version="s3v4" if service == "s3" else None,
            # The bucket's host in its region: the global host answers with a redirect, which actors do not follow.
            s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"},
        )
        return self._session.client(
            service,
            region_name=self.connection.region,
            endpoint_url=endpoint,
            config=config,
        )


def _session(connection: AwsConnection) -> Any:
    """Return a boto3 session with these credentials and no others."""
    import boto3
    import botocore.session

    inner = botocore.session.Session(session_vars=_NOT_FROM_HERE)
    inner.register_component("data_loader", _descriptions())
    inner.set_config_variable("ignore_configured_endpoint_urls", True)
    access = connection.access
    if isinstance(access, AwsKeys):
        inner.set_credentials(access.access_key_id, access.secret_access_key, access.session_token)
    else:
        inner._credentials = _assumed(inner, access, connection)
    return boto3.Session(botocore_session=inner, region_name=connection.region)


@cache
def _descriptions() -> Any:
    """Return the SDK's descriptions of services: megabytes of files that every session would read again."""
    from botocore.loaders import create_loader

    return create_loader()


def _assumed(inner: Any, role: AwsRole, connection: AwsConnection) -> Any:
    """Return credentials that assume the role at their first use, and again before they end."""
    from botocore.credentials import (
        AssumeRoleCredentialFetcher,
        Credentials,
        DeferredRefreshableCredentials,
    )
    from botocore.exceptions import NoCredentialsError

    def sts(service: str, **given: Any) -> Any:
        return inner.create_client(
            service, **{**given, "region_name": connection.region, "endpoint_url": connection.endpoint_url}
        )

    def fetch() -> dict[str, Any]:
        if role.ours is None:
            source = inner.get_component("credential_provider").load_credentials()
            if source is None:
                # The SDK would continue without credentials and fail later.
                raise NoCredentialsError
        else:
            ours = role.ours
            source = Credentials(ours.access_key_id, ours.secret_access_key, ours.session_token)
        fetcher = AssumeRoleCredentialFetcher(
            client_creator=sts,
            source_credentials=source,
            role_arn=role.role_arn,
            extra_args={
                "ExternalId": role.external_id,
                "RoleSessionName": _SESSION_NAME,
                "DurationSeconds": _SESSION_S,
            },
        )
        fetched: dict[str, Any] = fetcher.fetch_credentials()
        return fetched

    return DeferredRefreshableCredentials(method="assume-role", refresh_using=fetch)
