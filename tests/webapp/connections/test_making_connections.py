"""Connections are made in two steps, and what is wrong is said at its field."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from cloud.accounts.provision import regions
from cloud.accounts.provision.aws_bucket import bucket_name
from cloud.money.billing.price_book import PriceBook
from cloud.platforms.aws.functions import function_name
from tests.factories import make_connection, make_project
from tests.webapp.connections.connected import AZURE_IDS, url
from webapp.connections import iam_documents, services
from webapp.connections.models import Connection, ConnectionKind

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", ConnectionKind.values)
def test_the_first_step_makes_a_connection_without_an_identity(
    kind: str, as_owner: Client, project: Any
) -> None:
    place = {"subscription_id": AZURE_IDS["client_id"], "resource_group": "starling"}
    region = "westeurope" if kind == "azure_principal" else "eu-central-1"
    answer = as_owner.post(url(project, "new", kind), {"name": "Lab", "region": region, **place})
    connection = Connection.objects.get()
    assert answer.headers["Location"] == url(project, connection.pk)
    assert not connection.has_identity
    assert bool(connection.external_id) == (kind == "aws_role")
    page = as_owner.get(url(project, connection.pk)).content.decode()
    assert "Not set up" in page
    for paper in iam_documents.policy_documents(connection).values():
        assert paper.title in page
        file = as_owner.get(url(project, connection.pk) + f"files/{paper.key}")
        assert json.loads(file.content) == json.loads(paper.text)
        assert paper.file_name in file.headers["Content-Disposition"]


def test_two_connections_share_no_name_in_their_account(as_owner: Client, project: Any) -> None:
    """Policies end at the prefix and a hyphen, so no prefix may begin another, that of older connections included."""
    made = [make_connection(project, kind="aws_role") for _ in range(2)]
    prefixes = ["starling", *(one.prefix for one in made)]
    for one in prefixes:
        assert [other for other in prefixes if f"{other}-".startswith(f"{one}-")] == [one]
    for connection in made:
        page = as_owner.get(url(project, connection.pk)).content.decode()
        for name in ("dashboard", "actor"):
            assert f"<code>{connection.prefix}-{name}</code>" in page
        assert "starling-" not in page.replace(connection.external_id, "")
        stack = json.loads(iam_documents.policy_documents(connection)["stack"].text)
        names = {one["Properties"]["RoleName"] for one in stack["Resources"].values()}
        assert names == {f"{connection.prefix}-dashboard", f"{connection.prefix}-actor"}


def test_names_fit_where_they_go(project: Any) -> None:
    """AWS takes 64 letters for functions and roles, and 63 small ones for buckets."""
    connection = make_connection(project, kind="aws_role")
    scope = iam_documents.scope_of(connection)
    names = (function_name(scope.prefix, 10_240), scope.own_role_name, scope.actor_role_name)
    assert max(map(len, names)) <= 64
    assert re.fullmatch(r"[a-z0-9-]{3,63}", bucket_name(connection.prefix, connection.pk))


def test_azure_has_roles_of_two_connections_side_by_side(project: Any) -> None:
    """A directory has one custom role of a name."""
    place = {"subscription_id": AZURE_IDS["client_id"], "resource_group": "lab", "region": "westeurope"}
    names = [
        json.loads(paper.text)["Name"]
        for _ in range(2)
        for paper in iam_documents.policy_documents(
            make_connection(project, kind="azure_principal", **place)
        ).values()
    ]
    assert len(set(names)) == 4


def test_the_region_it_begins_with_has_prices(as_owner: Client, project: Any) -> None:
    for kind, cloud in (("aws_role", "aws"), ("azure_principal", "azure")):
        shown = as_owner.get(url(project, "new", kind)).content.decode()
        (begun,) = re.findall(r'name="region" value="([^"]+)"', shown)
        assert regions.has_prices(cloud, begun, PriceBook.load())
        assert "no prices yet" in shown


def test_external_ids_are_ours_long_and_never_the_same(project: Any, owner: Any) -> None:
    ids = {
        services.create_connection(
            project=project, user=owner, kind="aws_role", name=f"n{number}", region="eu-west-1"
        ).external_id
        for number in range(20)
    }
    assert len(ids) == 20
    assert all(re.fullmatch(r"[\w+=,.@:/-]{2,1224}", one) and len(one) >= 40 for one in ids)


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("aws_keys", {"region": "eu-central-1.evil.example/"}, "region"),
        ("aws_keys", {"region": "frankfurt"}, "region"),
        ("aws_keys", {"name": ""}, "name"),
        ("azure_principal", {"region": "West Europe"}, "region"),
        ("azure_principal", {"subscription_id": "12"}, "subscription_id"),
        ("azure_principal", {"resource_group": "a/../b"}, "resource_group"),
        ("azure_principal", {"resource_group": "ends."}, "resource_group"),
    ],
)
def test_what_is_wrong_is_said_at_the_field(
    kind: str, data: dict[str, str], field: str, as_owner: Client, project: Any
) -> None:
    good = {
        "name": "Lab",
        "region": "westeurope" if kind == "azure_principal" else "eu-central-1",
        "subscription_id": AZURE_IDS["client_id"],
        "resource_group": "starling",
    }
    answer = as_owner.post(url(project, "new", kind), {**good, **data})
    assert answer.status_code == 422
    assert f'id="id_{field}-problem"' in answer.content.decode()
    assert not Connection.objects.exists()


def test_a_name_is_used_once_a_project(as_owner: Client, project: Any) -> None:
    make_connection(project, name="Lab")
    make_connection(make_project(), name="Lab")
    answer = as_owner.post(url(project, "new", "aws_role"), {"name": "Lab", "region": "eu-central-1"})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["name"]
    assert "connection named Lab" in answer.content.decode()


def test_there_is_no_fourth_way(as_owner: Client, project: Any) -> None:
    assert as_owner.get(url(project, "new", "gcp")).status_code == 404


def test_a_role_without_a_principal_to_trust_says_whom_to_ask(
    as_owner: Client, project: Any, settings: Any
) -> None:
    settings.STARLING_AWS_PRINCIPAL = ""
    connection = make_connection(project, kind="aws_role")
    page = as_owner.get(url(project, connection.pk)).content.decode()
    assert "STARLING_AWS_PRINCIPAL" in page
    assert "sts:ExternalId" not in page


def test_the_shown_trust_policy_has_our_principal_and_this_connections_id(project: Any) -> None:
    connection = make_connection(project, kind="aws_role")
    trust = iam_documents.policy_documents(connection)["trust"].text
    assert connection.external_id in trust
    assert "arn:aws:iam::999988887777:role/starling" in trust


def test_policies_narrow_to_the_account_once_it_is_known(project: Any) -> None:
    connection = make_connection(project, kind="aws_role")
    assert ":eu-central-1:*:function:" in iam_documents.policy_documents(connection)["policy"].text
    connection.role_arn = "arn:aws:iam::123456789012:role/mine"
    text = iam_documents.policy_documents(connection)["policy"].text
    assert ":eu-central-1:123456789012:function:" in text
    assert '"arn:aws:iam::123456789012:role/mine"' in text
