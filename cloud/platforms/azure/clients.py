"""Azure's SDK for one connection, imported at its first use: pages do not need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloud.accounts.connections import CONNECT_TIMEOUT_S, AzureConnection

_ARM = "https://management.azure.com"
_SCOPE = f"{_ARM}/.default"
_READ_TIMEOUT_S = 30.0


class AzureClients:
    """The clients of one service principal. May be used from several threads.

    `tries`: with 1 the SDK never repeats a request. `transport` replaces the network in tests.
    """

    def __init__(
        self,
        connection: AzureConnection,
        *,
        read_timeout_s: float = _READ_TIMEOUT_S,
        tries: int = 2,
        transport: Any = None,
    ) -> None:
        self.connection = connection
        self._network: dict[str, Any] = {
            "connection_timeout": CONNECT_TIMEOUT_S,
            "read_timeout": read_timeout_s,
            "retry_total": tries - 1,
        }
        if connection.ca is not None:
            self._network["connection_verify"] = connection.ca
        if transport is not None:
            self._network["transport"] = transport
        self._credential_made: Any = None
        self._client_made: Any = None

    def sign_in(self) -> None:
        """Get a token, or raise the SDK's error."""
        self._credential.get_token(_SCOPE)

    def forget_token(self) -> None:
        """Sign in again at the next call, because the token was refused."""
        self._credential_made = self._client_made = None

    def usages(self, region: str) -> Iterable[Any]:
        """The region's limits, as the SDK's models."""
        return list(self._client.location.list_usage(region))

    @property
    def container_groups(self) -> Any:
        """The SDK's operations on container groups."""
        return self._client.container_groups

    @property
    def containers(self) -> Any:
        """The SDK's operations on single containers: their logs."""
        return self._client.containers

    def read(self, path: str, api_version: str) -> Mapping[str, Any]:
        """Return the answer of a GET of the resource manager, or raise the SDK's error."""
        from azure.core.exceptions import HttpResponseError
        from azure.core.pipeline.policies import RetryPolicy
        from azure.core.rest import HttpRequest
        from azure.mgmt.core import ARMPipelineClient
        from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

        policies = [
            RetryPolicy(**self._network),
            ARMChallengeAuthenticationPolicy(self._credential, _SCOPE),
        ]
        pipeline: Any = ARMPipelineClient(base_url=self._base, policies=policies, **self._network)
        with pipeline as client:
            request = HttpRequest("GET", f"{self._base}{path}", params={"api-version": api_version})
            response = client.send_request(request)
            if response.status_code >= 400:
                raise HttpResponseError(response=response)
            body: Mapping[str, Any] = response.json()
            return body

    def close(self) -> None:
        if self._client_made is not None:
            self._client_made.close()

    @property
    def _base(self) -> str:
        return self.connection.endpoint_url or _ARM

    @property
    def _credential(self) -> Any:
        if self._credential_made is None:
            from azure.identity import ClientSecretCredential

            emulated: dict[str, Any] = {}
            if self.connection.endpoint_url is not None:
                emulated = {"authority": self.connection.endpoint_url, "disable_instance_discovery": True}
            access = self.connection.access
            self._credential_made = ClientSecretCredential(
                access.tenant_id, access.client_id, access.client_secret, **emulated, **self._network
            )
        return self._credential_made

    @property
    def _client(self) -> Any:
        if self._client_made is None:
            from azure.mgmt.containerinstance import ContainerInstanceManagementClient

            self._client_made = ContainerInstanceManagementClient(
                self._credential,
                self.connection.subscription_id,
                base_url=self._base,
                credential_scopes=[_SCOPE],
                **self._network,
            )
        return self._client_made
