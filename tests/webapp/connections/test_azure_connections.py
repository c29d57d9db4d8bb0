"""Azure subscriptions from their pages: tested, set up, what stands against a job there, and removed; emulated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from emulator.azure.demo import DemoSubscription, furnish
from emulator.azure.server import AzureEmulator
from tests.factories import make_project, make_spec, make_user
from tests.figures import figures_in
from webapp.celery import app as celery_app
from webapp.connections import account_setup, connection_check, queries, services
from webapp.connections.models import CheckState, Connection
from webapp.connections.sealing import Secret
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.launch.azure_containers import WITHOUT_IMAGE
from webapp.jobs.launch.requirements import NOT_TESTED
from webapp.jobs.services import SpecRefused, submit_job

pytestmark = pytest.mark.django_db

IMAGE = "registry.example/lab/starling-actor:1"


@pytest.fixture
def account() -> Iterator[tuple[AzureEmulator, DemoSubscription]]:
    with AzureEmulator() as azure:
        yield azure, furnish(azure)


@pytest.fixture(autouse=True)
def _installation(settings: Any, tmp_path: Path, account: tuple[AzureEmulator, DemoSubscription]) -> None:
    settings.STARLING_DATA = tmp_path
    settings.STARLING_MASTER_KEYS = []
    settings.STARLING_AZURE_ENDPOINT, settings.STARLING_EMULATOR_CA = account[0].endpoint, account[0].ca


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery_app, "send_task", lambda *_, **__: None)


@pytest.fixture
def owner() -> Any:
    return make_user()


@pytest.fixture
def connection(owner: Any, account: tuple[AzureEmulator, DemoSubscription]) -> Connection:
    """Connected, not tested yet."""
    there = account[1].connection
    made = services.create_connection(
        project=make_project(owner),
        user=owner,
        kind="azure_principal",
        name="Lab",
        region=there.region,
        subscription_id=there.subscription_id,
        resource_group=there.resource_group,
    )
    return services.set_identity(
        connection=made,
        plain={"tenant_id": there.access.tenant_id, "client_id": there.access.client_id},
        secrets={"client_secret": Secret(there.access.client_secret)},
    )


def _tested(connection: Connection) -> Connection:
    Connection.objects.filter(pk=connection.pk).update(
        test_state=CheckState.DONE, test_report=connection_check.report_on(connection)
    )
    connection.refresh_from_db()
    return connection


def _set_up(connection: Connection, image: str = IMAGE) -> Any:
    made = account_setup.request_containers(connection=connection, image=image)
    account_setup.run(connection.pk, made.number)
    made.refresh_from_db()
    return made


def _spec(connection: Connection, actors: int = 2, **platform: Any) -> Any:
    return make_spec(
        platform={"kind": "azure_container", "connection": connection.pk, **platform},
        training={**make_spec().training.model_dump(), "scaling": {"kind": "fixed", "actors": actors}},
    )


def _refused(connection: Connection, **requested: Any) -> str:
    with pytest.raises(SpecRefused) as refused:
        submit_job(
            project=connection.project,
            user=connection.created_by,
            spec=_spec(connection, **requested),
            idempotency_key="k",
        )
    return " ".join(problem.sentence for problem in refused.value.problems)


@pytest.mark.django_db(transaction=True)
def test_each_right_is_a_row_of_the_live_test(
    connection: Connection, account: tuple[AzureEmulator, DemoSubscription]
) -> None:
    report = connection_check.report_on(connection)
    assert report["ok"], report
    (app,) = account[0].subscription.apps.values()
    app.roles = [role for role in app.roles if "resourceGroups" in role.scope]
    failed = [check for check in connection_check.report_on(connection)["checks"] if check["ok"] is False]
    assert [check["name"] for check in failed] == ["Microsoft.ContainerInstance/locations/usages/read"]
    assert app.secret not in str(report)


def test_set_up_runs_one_container_and_remove_leaves_nothing(
    connection: Connection, account: tuple[AzureEmulator, DemoSubscription]
) -> None:
    made = _set_up(connection)
    assert {step["state"] for step in made.steps} == {"done", "made", "gone"}, made.steps
    assert made.ready_image == IMAGE
    assert account[0].groups.all() == []
    removal = account_setup.request_removal(connection=connection)
    account_setup.run(connection.pk, removal.number)
    made.refresh_from_db()
    assert (made.requested, made.ready, made.image) == (False, False, "")


def test_an_image_that_does_not_run_is_not_ready(connection: Connection) -> None:
    made = _set_up(connection, "registry.example/other:1")
    assert made.ready_image == ""
    assert "missing" in {step["state"] for step in made.steps}
    assert "fetch the image" in str(made.steps)


@pytest.mark.django_db(transaction=True)
def test_what_stands_against_a_launch_is_said_one_after_the_other(
    connection: Connection, account: tuple[AzureEmulator, DemoSubscription], settings: Any
) -> None:
    assert NOT_TESTED.format(connection.name) in _refused(connection)
    account[0].subscription.cores_at_most = 10
    _tested(connection)
    assert WITHOUT_IMAGE.format(connection.name) in _refused(connection)
    _set_up(connection)
    refused = _refused(connection, actors=11)
    assert "10 cores free" in refused
    assert figures_in(refused) == ["10", "11"]
    assert "the price of 'aci.vcpu.linux.spot'" in _refused(connection, spot=True)
    job = submit_job(
        project=connection.project, user=connection.created_by, spec=_spec(connection), idempotency_key="k"
    )
    assert job.spec["platform"]["image"] == IMAGE
    assert job.spec["platform"]["region"] == "eastus"
    # On a real account the site's own address matters.
    Connection.objects.filter(pk=connection.pk).update(emulated=False)
    settings.STARLING_AZURE_ENDPOINT = ""
    assert "STARLING_BASE_URL" in _refused(connection)


def test_the_pages_offer_it(connection: Connection, client: Client, owner: Any) -> None:
    client.force_login(owner)
    slug = connection.project.slug
    page = client.get(f"/p/{slug}/clouds/{connection.pk}/").content.decode()
    assert 'name="image"' in page
    assert "memory_mb" not in page
    answer = client.post(f"/p/{slug}/clouds/{connection.pk}/set-up/", {"image": "Not an image"})
    assert answer.status_code == 302
    assert queries.set_up_of(connection) is None
    offered = cloud_requirements.list_connections(connection.project)
    assert [one.value for one in offered["azure_container"]] == [connection.pk]
    assert offered["aws_lambda"] == []
