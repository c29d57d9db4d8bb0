"""What is known of somebody's account, and the SDK's clients made from it.

Plain values that the caller decrypted for the moment. Secrets do not show in their `repr`, nothing is read from this
machine's own configuration, and an endpoint other than the vendor's is used only when the deployment gave one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cloud.provision.permissions import DEFAULT_PREFIX

CONNECT_TIMEOUT_S = 5.0
_SESSION_NAME = "starling"
_READ_TIMEOUT_S = 30.0
_SESSION_S = 3600
# Files and variables of this machine are for whoever runs it, not for somebody's connection. The SDK's form: the
# option's name in a file, the variables it is read from, and what it is otherwise.
_NOT_FROM_HERE = {
    "profile": (None, None, None, None),
    "config_file": (None, None, "/dev/null", None),
    "credentials_file": (None, None, "/dev/null", None),
}


@dataclass(frozen=True)
class AwsKeys:
    """An access key of a user, or of ourselves where we assume other people's roles."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class AwsRole:
    """A role in somebody's account that trusts us, for as long as we show the external id made for this connection.

    `ours` are the keys we assume it with; None: those that the machine has from its own cloud.
    """

    role_arn: str
    external_id: str
    ours: AwsKeys | None = None


@dataclass(frozen=True)
class AwsConnection:
    """One account in one region. `endpoint_url` stands for every service of an emulated cloud."""

    access: AwsRole | AwsKeys
    region: str = "us-east-1"
    prefix: str = DEFAULT_PREFIX
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
    """One resource group of one subscription. `endpoint_url` stands for the sign-in and the resource manager of an
    emulated cloud, `ca` is the file with the certificate by which that one is known.
    """

    access: AzurePrincipal
    subscription_id: str
    resource_group: str
    region: str = "eastus"
    prefix: str = DEFAULT_PREFIX
    endpoint_url: str | None = None
    ca: str | None = None

    @property
    def emulated(self) -> bool:
        return self.endpoint_url is not None

    @property
    def group_path(self) -> str:
        return f"/subscriptions/{self.subscription_id}/resourcegroups/{self.resource_group}"


class AwsClients:
    """The SDK's clients for one connection. Sessions of a role are renewed by the SDK before they end."""

    def __init__(self, connection: AwsConnection) -> None:
        self.connection = connection
        self._session = _session(connection)

    def client(
        self, service: str, *, read_timeout_s: float = _READ_TIMEOUT_S, tries: int = 3, connections: int = 10
    ) -> Any:
        """A client that asks at most `tries` times. One try means that nothing is sent twice without our knowing."""
        from botocore.config import Config

        config = Config(
            retries={"mode": "standard", "total_max_attempts": tries},
            read_timeout=read_timeout_s,
            connect_timeout=CONNECT_TIMEOUT_S,
            max_pool_connections=connections,
            tcp_keepalive=True,
            proxies={},
            # Addresses to read from are signed as everything else is, which is not what the SDK does by itself.
            signature_version="s3v4" if service == "s3" else None,
            s3={"addressing_style": "path"} if self.connection.emulated else None,
        )
        return self._session.client(
            service,
            region_name=self.connection.region,
            endpoint_url=self.connection.endpoint_url,
            config=config,
        )


def _session(connection: AwsConnection) -> Any:
    """A boto3 session that knows these credentials and no others."""
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
    """What the SDK knows of each service: megabytes of files, which every session would read anew."""
    from botocore.loaders import create_loader

    return create_loader()


def _assumed(inner: Any, role: AwsRole, connection: AwsConnection) -> Any:
    """Credentials that assume the role when they are first needed, and again before they end."""
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
                # The SDK would go on with nothing and stumble over it.
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
