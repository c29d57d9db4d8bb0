"""A newcomer trains in Azure's containers: connect, test, set up, launch, watch, pay, remove; on the emulated one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud.accounts.provision.permissions import AZURE
from cloud.money.billing.price_book import PriceBook
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import App, RoleAssignment, Subscription
from tests.cloud.emulated_bills import picodollars_of_groups
from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from webapp.job_states import Observed
from webapp.jobs.models import Job

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

REGION = "eastus"
IMAGE = "registry.example/lab/starling-actor:1"


@pytest.fixture
def azure() -> Iterator[AzureEmulator]:
    """A subscription that is as small as some are."""
    with AzureEmulator(subscription=Subscription(region=REGION, cores_at_most=10)) as emulator:
        emulator.subscription.add_resource_group("starling")
        yield emulator


@pytest.fixture
def app(azure: AzureEmulator) -> App:
    return azure.subscription.add_app()


@pytest.fixture
def service_environment(
    service_environment: dict[str, str], azure: AzureEmulator, site_port: int
) -> dict[str, str]:
    """The worker tells containers where the site is, so its port is chosen before both begin."""
    return {
        **service_environment,
        "STARLING_BASE_URL": f"http://127.0.0.1:{site_port}",
        "STARLING_AZURE_ENDPOINT": azure.endpoint,
        "STARLING_EMULATOR_CA": azure.ca,
        "STARLING_LOG_LEVEL": "DEBUG",
    }


# The set-up itself has this much patience with a cloud: one second more, and it is at fault.
_TRIED_MS = 361_000


def _connect(page: "Page", site: str, slug: str, azure: AzureEmulator, app: App) -> None:
    """With the roles that the page shows, and no other rights."""
    page.goto(f"{site}/p/{slug}/clouds/")
    page.click("text=Azure with a service principal")
    page.fill("[name=name]", "The lab's subscription")
    page.fill("[name=region]", REGION)
    page.fill("[name=subscription_id]", azure.subscription.id)
    page.fill("[name=resource_group]", "starling")
    page.click("text=Continue")
    page.wait_for_url("**/clouds/con_*/")
    for key in ("group_role", "limits_role"):
        document = json.loads(page.locator(f"[data-copy-text='{key}']").text_content() or "")
        app.roles.append(RoleAssignment.of(document))
    page.fill("[name=tenant_id]", azure.subscription.tenant_id)
    page.fill("[name=client_id]", app.client_id)
    page.fill("[name=client_secret]", app.secret)
    page.click("text=Save and test")
    page.wait_for_selector(".report .pill:has-text('Ready')", timeout=60_000)
    assert page.is_visible(".found >> text=10 cores")
    assert not page.is_visible(".check.tone-failed")
    rows = page.locator(".report .check-name").all_text_contents()
    assert {one.action for one in AZURE} <= {row.strip() for row in rows}, "each right has a row of its own"


def _fill_job(page: "Page", site: str, slug: str, **fields: str) -> None:
    page.goto(f"{site}/p/{slug}/jobs/new/?preset=hopper")
    for details in page.locator("details.more").all():
        details.evaluate("one => one.open = true")
    page.select_option("[name='platform.kind']", "azure_container")
    page.select_option(
        "[name='platform.azure_container.connection']", label="The lab's subscription (emulated)"
    )
    assert page.is_visible("[data-emulated-note]")
    for name, value in fields.items():
        page.fill(f"[name='{name.replace('__', '.')}']", value)


def test_hopper_in_emulated_containers_from_connecting_to_removing(
    live_site: str, live_worker: Path, page: "Page", azure: AzureEmulator, app: App, tmp_path: Path
) -> None:
    faults = watch_for_faults(page)
    user = make_user()
    slug = make_project(user).slug
    sign_in(page, live_site, user)
    _connect(page, live_site, slug, azure, app)
    account_page = page.url
    small = {"training__stop__env_steps": "", "training__stop__rounds": "2"}

    # What is not set up, and what the subscription does not have, is said before anything starts.
    _fill_job(page, live_site, slug, training__scaling__fixed__actors="2", **small)
    page.click("[data-launch]")
    page.wait_for_selector("text=there is no image to run")
    page.goto(account_page)
    page.fill("[name=image]", IMAGE)
    page.click("text=Set up the account")
    page.wait_for_selector("#set-up .check:has-text('group') >> text=Deleted again", timeout=_TRIED_MS)
    page.wait_for_selector("#set-up .pill.tone-ok:has-text('Set up')")
    assert azure.groups.all() == []
    tried = len(azure.meter.spans)
    _fill_job(page, live_site, slug, training__scaling__fixed__actors="64", **small)
    page.click("[data-launch]")
    page.wait_for_selector("text=This subscription has 10 cores free in eastus; the job asks for 64.")
    assert not Job.objects.exists()

    _fill_job(page, live_site, slug, training__scaling__fixed__actors="2", **small)
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")
    assert page.is_visible(".simulated-word:text-is('emulated')")
    page.wait_for_selector(".pill:has-text('Succeeded')", timeout=180_000)
    job = Job.objects.select_related("account").get()
    assert (job.observed, job.round_no) == (Observed.SUCCEEDED, 2)
    _assert_books_hold_the_meter(job, azure, tried)

    page.goto(account_page)
    page.click("text=Remove everything from the account")
    page.wait_for_selector("#set-up .pill:has-text('Removed')", timeout=60_000)
    assert azure.groups.all() == []
    assert not faults
    for log in (live_worker, tmp_path / "web.log"):
        assert app.secret not in log.read_text(), log.name


def _assert_books_hold_the_meter(job: Any, azure: AzureEmulator, tried: int) -> None:
    """Rent begins before a group is asked for and ends after it is gone; the trial of the set-up is no one's."""
    assert azure.groups.all() == []
    spans = azure.meter.spans[tried:]
    assert [len(span.tags["starling:run"]) > 0 for span in spans] == [True]
    metered = picodollars_of_groups(spans, PriceBook.load(), REGION)
    spent = job.account.spent_picodollars + job.account.overrun_picodollars
    assert 0 < metered <= spent
    assert job.account.reserved_picodollars == 0
