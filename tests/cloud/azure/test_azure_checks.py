"""What the test of a connection to Azure finds: the real SDK over a network whose answers are made up."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import BaseAdapter

from cloud.accounts import checks
from cloud.accounts.check_clients import azure_clients
from cloud.accounts.checks import AccountCheck, AccountReport
from cloud.accounts.connections import AzureConnection, AzurePrincipal
from cloud.accounts.provision.permissions import AZURE
from cloud.platforms.azure.checks import CONTAINERS_USABLE, GROUP_EXISTS, AzureQuestion, check_azure

LIMIT_S = 20.0


def _by_name(report: AccountReport) -> dict[str, AccountCheck]:
    return {check.name: check for check in report.checks}


def _failed(report: AccountReport) -> set[str]:
    return {check.name for check in report.checks if check.ok is False}


TENANT, CLIENT, SUBSCRIPTION = (f"{digit * 8}-0000-0000-0000-000000000000" for digit in "123")
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/starling"
CONNECTION = AzureConnection(
    AzurePrincipal(TENANT, CLIENT, "the-client-secret"), SUBSCRIPTION, "starling", "westeurope"
)
QUESTION = AzureQuestion("westeurope", SUBSCRIPTION, "starling", TENANT, CLIENT)
USAGES = {
    "value": [
        {"unit": "Count", "currentValue": 3, "limit": 10, "name": {"value": "StandardCores"}},
        {"unit": "Count", "currentValue": 1, "limit": 100, "name": {"value": "ContainerGroups"}},
        {"unit": "Count", "currentValue": 0, "limit": 0, "name": {"value": "StandardK80Cores"}},
    ]
}


class _AzureAnswers(BaseAdapter):
    """The network below Azure's SDK: addresses and what they answer."""

    def __init__(self, answers: Mapping[str, tuple[int, Any]]) -> None:
        super().__init__()
        self._answers = answers

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        path = str(request.path_url).partition("?")[0].lower()
        status, body = next(
            (reported for ending, reported in self._answers.items() if path.endswith(ending.lower())),
            (404, {}),
        )
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = status, request, str(request.url)
        answer.headers["Content-Type"] = "application/json"
        answer._content = json.dumps(body).encode()
        answer.raw = _Raw()
        return answer

    def close(self) -> None:
        pass


class _Raw:
    """What the SDK asks of the connection below an answer."""

    enforce_content_length = False
    version = 11

    def read(self, *args: Any, **options: Any) -> bytes:
        return b""


def _error(code: str, status: int = 403) -> tuple[int, Any]:
    return status, {"error": {"code": code, "message": "canary-in-message"}}


GOOD: dict[str, tuple[int, Any]] = {
    "/openid-configuration": (
        200,
        {
            "issuer": f"https://login.microsoftonline.com/{TENANT}/v2.0",
            "token_endpoint": f"https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token",
            "authorization_endpoint": f"https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/authorize",
        },
    ),
    "/oauth2/v2.0/token": (200, {"token_type": "Bearer", "expires_in": 3600, "access_token": "t0ken"}),
    "/discovery/instance": (
        200,
        {
            "tenant_discovery_endpoint": f"https://login.microsoftonline.com/{TENANT}/v2.0/.well-known/openid-configuration",
            "metadata": [],
        },
    ),
    "/usages": (200, USAGES),
    "/resourcegroups/starling": (200, {"location": "westeurope"}),
    "/permissions": (200, {"value": [{"actions": [one.action for one in AZURE], "notActions": []}]}),
}


def _azure(**changed: tuple[int, Any]) -> AccountReport:
    names = {"token": "/oauth2/v2.0/token", "group": "/resourcegroups/starling"}
    answers = {**GOOD, **{names.get(name, f"/{name}"): reported for name, reported in changed.items()}}
    session = requests.Session()
    session.mount("https://", _AzureAnswers(answers))
    transport = RequestsTransport(session=session, session_owner=False)
    door = azure_clients(CONNECTION, transport=transport)
    return checks.within(LIMIT_S, "westeurope", lambda findings: check_azure(door, QUESTION, findings))


def test_an_app_with_our_roles_has_everything() -> None:
    report = _azure()
    assert _failed(report) == set()
    assert report.ok
    assert CLIENT in report.identity
    assert {one.action for one in AZURE} <= set(_by_name(report))
    cores, groups = report.quotas
    assert (cores.name, cores.limit, cores.used) == ("Cores", 10, 3)
    assert "Ask for more" in cores.words
    assert (groups.limit, groups.words) == (100, "")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AADSTS7000215: canary", "secret is wrong"),
        ("AADSTS7000222: canary", "has expired"),
        ("AADSTS700016: canary", "client ID"),
        ("AADSTS90002: canary", "no such tenant"),
    ],
)
def test_sign_in_that_fails_is_explained(code: str, words: str) -> None:
    report = _azure(token=(401, {"error": "invalid_client", "error_description": code}))
    (row,) = report.checks
    assert words in row.words
    assert row.fix
    assert "canary" not in json.dumps(report.as_dict())


def test_a_subscription_that_is_not_registered_is_reported_with_the_fix() -> None:
    rows = _by_name(_azure(usages=_error("MissingSubscriptionRegistration", 409)))
    assert "az provider register" in rows[CONTAINERS_USABLE].fix


def test_a_missing_resource_group_is_reported() -> None:
    rows = _by_name(_azure(group=_error("ResourceGroupNotFound", 404)))
    assert "no such resource" in rows[GROUP_EXISTS].words


def test_limits_that_may_not_be_read_are_a_missing_permission() -> None:
    report = _azure(usages=_error("AuthorizationFailed"))
    assert "Microsoft.ContainerInstance/locations/usages/read" in _failed(report)
    assert not report.quotas


@pytest.mark.parametrize("missing", [one.action for one in AZURE if "usages" not in one.action])
def test_each_missing_azure_permission_is_on_its_own_row(missing: str) -> None:
    actions = [one.action for one in AZURE if one.action != missing]
    report = _azure(permissions=(200, {"value": [{"actions": actions, "notActions": []}]}))
    assert _failed(report) == {missing}
    assert missing in _by_name(report)[missing].fix


def test_wide_roles_count_and_exceptions_in_them_too() -> None:
    wide = {"actions": ["Microsoft.ContainerInstance/*", "*/read"], "notActions": []}
    assert _azure(permissions=(200, {"value": [wide]})).ok
    narrowed = {**wide, "notActions": ["microsoft.containerinstance/containergroups/DELETE"]}
    report = _azure(permissions=(200, {"value": [narrowed]}))
    assert _failed(report) == {"Microsoft.ContainerInstance/containerGroups/delete"}


def test_without_the_list_of_permissions_they_are_not_known() -> None:
    report = _azure(permissions=_error("AuthorizationFailed"))
    rows = _by_name(report)
    assert rows["Microsoft.ContainerInstance/containerGroups/write"].ok is None
    assert rows["Microsoft.Authorization/permissions/read"].optional
    assert "canary" not in json.dumps(report.as_dict())
    assert report.ok


def test_the_clients_do_not_show_the_secret() -> None:
    assert "the-client-secret" not in repr(CONNECTION)
    assert "the-client-secret" not in repr(vars(azure_clients(CONNECTION)))
