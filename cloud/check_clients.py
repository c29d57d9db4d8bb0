"""The clouds' SDKs as the test of a connection wants them: short time limits, hardly a retry, and no address of their
own choosing. They are imported when they are needed: a page that shows a connection does without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cloud.aws_checks import ClientMaker
from cloud.connections import AwsClients, AwsConnection, AwsKeys

_CONNECT_S = 3
_READ_S = 8
_ATTEMPTS = 2
_ARM = "https://management.azure.com"


def aws_clients(connection: AwsConnection) -> ClientMaker:
    """Clients under the connection's keys; for a role, under those that it is taken on with."""

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
            return _under_our_own_identity(service, connection)
        if access.access_key_id not in opened:
            opened[access.access_key_id] = replace(connection, access=access).open()
        return opened[access.access_key_id].client(service, read_timeout_s=_READ_S, tries=_ATTEMPTS)

    return make


def _under_our_own_identity(service: str, connection: AwsConnection) -> Any:
    """A client under what this machine has from its own cloud or its environment, and from no file."""
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


@dataclass(frozen=True)
class Emulator:
    """Where Azure is emulated; only a deployment's settings say so. `ca` is a file with its certificate."""

    endpoint: str
    ca: str = ""


@dataclass(frozen=True)
class AzureClients:
    """Azure's SDK, opened for one service principal. `transport` stands in for the network in tests."""

    tenant_id: str
    client_id: str
    client_secret: str = field(repr=False)
    subscription_id: str = ""
    emulator: Emulator | None = None
    transport: Any = None

    def sign_in(self) -> None:
        self._credential().get_token(f"{_ARM}/.default")

    def usages(self, region: str) -> Iterable[Any]:
        from azure.mgmt.containerinstance import ContainerInstanceManagementClient

        with ContainerInstanceManagementClient(
            self._credential(), self.subscription_id, base_url=self._base, **self._scopes, **self._network()
        ) as client:
            return list(client.location.list_usage(region))

    def read(self, path: str, api_version: str) -> Mapping[str, Any]:
        from azure.core.exceptions import HttpResponseError
        from azure.core.pipeline.policies import RetryPolicy
        from azure.core.rest import HttpRequest
        from azure.mgmt.core import ARMPipelineClient
        from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

        policies = [
            RetryPolicy(**self._network()),
            ARMChallengeAuthenticationPolicy(self._credential(), f"{_ARM}/.default"),
        ]
        pipeline: Any = ARMPipelineClient(base_url=self._base, policies=policies, **self._network())
        with pipeline as client:
            request = HttpRequest("GET", f"{self._base}{path}", params={"api-version": api_version})
            response = client.send_request(request)
            if response.status_code >= 400:
                raise HttpResponseError(response=response)
            body: Mapping[str, Any] = response.json()
            return body

    @property
    def _base(self) -> str:
        return self.emulator.endpoint if self.emulator else _ARM

    @property
    def _scopes(self) -> dict[str, Any]:
        return {"credential_scopes": [f"{_ARM}/.default"]}

    def _credential(self) -> Any:
        from azure.identity import ClientSecretCredential

        there = {}
        if self.emulator is not None:
            there = {"authority": self.emulator.endpoint, "disable_instance_discovery": True}
        return ClientSecretCredential(
            self.tenant_id, self.client_id, self.client_secret, **there, **self._network()
        )

    def _network(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "connection_timeout": _CONNECT_S,
            "read_timeout": _READ_S,
            "retry_total": _ATTEMPTS - 1,
        }
        if self.emulator is not None and self.emulator.ca:
            settings["connection_verify"] = self.emulator.ca
        if self.transport is not None:
            settings["transport"] = self.transport
        return settings
