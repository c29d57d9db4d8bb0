"""A newcomer trains on AWS Lambda: connect, test, set up, launch, watch, pay, take away; on the emulated account."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud.accounts.provision.permissions import AWS
from cloud.money.billing.price_book import PriceBook
from cloud.platforms.aws.functions import function_name
from emulator.aws.account import EmulatedAccount, Key
from emulator.aws.server import AwsEmulator
from rig.servers import wait_until
from tests.cloud.emulated_bills import picodollars_of_calls
from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.journeys.stacks import identity_of_this_installation, made_from, variables_for
from webapp.connections.models import Connection
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.money.models import BillSheet

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

REGION = "us-east-1"


@pytest.fixture
def aws() -> Iterator[AwsEmulator]:
    """An account that is as small as new ones are."""
    with AwsEmulator(account=EmulatedAccount(concurrency=10), region=REGION) as emulator:
        yield emulator


@pytest.fixture
def ours(aws: AwsEmulator) -> Key:
    return identity_of_this_installation(aws)


@pytest.fixture
def service_environment(service_environment: dict[str, str], aws: AwsEmulator, ours: Key) -> dict[str, str]:
    return service_environment | variables_for(aws, ours)


def _connect(page: "Page", site: str, slug: str, aws: AwsEmulator) -> None:
    page.goto(f"{site}/p/{slug}/clouds/")
    page.click("text=AWS with a role")
    page.fill("[name=name]", "The lab's account")
    page.fill("[name=region]", REGION)
    page.click("text=Continue")
    page.wait_for_url("**/clouds/con_*/")
    template = json.loads(page.locator("[data-copy-text='stack']").text_content() or "")
    page.fill("[name=role_arn]", made_from(aws, template))
    page.click("text=Save and test")
    page.wait_for_selector(".report .pill:has-text('Ready')", timeout=60_000)
    rows = page.locator(".report .check-name").all_text_contents()
    assert {one.action for one in AWS} <= {row.strip() for row in rows}, "each right has a row of its own"


def _is_set_up(aws: AwsEmulator) -> bool:
    """Whether the account has the one function, with the names of the connection."""
    prefix = Connection.objects.get().prefix
    return [one.name for one in aws.functions.alive()] == [function_name(prefix, 1024)]


def _set_up(page: "Page", aws: AwsEmulator) -> None:
    page.click("text=Set up the account")
    page.wait_for_selector("#set-up .pill:has-text('Set up')", timeout=90_000)
    assert page.is_visible("#set-up .check:has-text('Role of the functions')")
    assert _is_set_up(aws)


def _profile(page: "Page", aws: AwsEmulator) -> None:
    """Two sizes, one of which is made for it; what they cost is said before, and the choice goes into the form."""
    page.click("text=Profile memory")
    page.fill("[name=environment]", "Hopper-v5")
    page.fill("[name=memory_mb]", "1024 2048")
    page.fill("[name=steps]", "256")
    page.wait_for_selector("[data-cost] :text('never more than $0.0180')")
    page.click("button:text-is('Profile')")
    page.wait_for_selector(".pill:has-text('Profiled')", timeout=90_000)
    assert page.locator(".sizes tbody tr").count() == 2
    assert _is_set_up(aws)
    chosen = (page.locator(".sizes .picked th").text_content() or "").split()[0]
    page.click("text=New job with")
    assert page.input_value("[name='training.rollout.memory_mb']") == chosen


def _fill_job(page: "Page", site: str, slug: str, **fields: str) -> None:
    page.goto(f"{site}/p/{slug}/jobs/new/?preset=hopper")
    for details in page.locator("details.more").all():
        details.evaluate("one => one.open = true")
    page.select_option("[name='platform.kind']", "aws_lambda")
    page.select_option("[name='platform.aws_lambda.connection']", label="The lab's account (emulated)")
    assert page.is_visible("[data-emulated-note]")
    for name, value in fields.items():
        page.fill(f"[name='{name.replace('__', '.')}']", value)


def test_hopper_on_emulated_lambda_from_connecting_to_taking_away(
    live_site: str, live_worker: Path, page: "Page", aws: AwsEmulator, tmp_path: Path
) -> None:
    faults = watch_for_faults(page)
    user = make_user()
    slug = make_project(user).slug
    sign_in(page, live_site, user)
    _connect(page, live_site, slug, aws)
    account_page = page.url
    _set_up(page, aws)
    _profile(page, aws)
    before = picodollars_of_calls(aws.meter, PriceBook.load(), REGION)

    # More than a new account may run is said before anything starts.
    small = {"training__stop__env_steps": "", "training__stop__rounds": "2"}
    _fill_job(page, live_site, slug, training__scaling__fixed__actors="64", **small)
    page.click("[data-launch]")
    page.wait_for_selector("text=This account runs 10 functions at once; the job asks for 64.")
    assert not Job.objects.exists()

    _fill_job(page, live_site, slug, training__scaling__fixed__actors="2", **small)
    page.click("[data-launch]")
    page.wait_for_url("**/jobs/job_*/")
    assert page.is_visible(".simulated-word:text-is('emulated')")
    page.wait_for_selector(".pill:has-text('Succeeded')", timeout=180_000)
    job = Job.objects.select_related("account").get()
    assert job.observed == Observed.SUCCEEDED
    assert job.round_no == 2
    _assert_paid_as_metered(job, aws, before)

    page.goto(account_page)
    page.click("text=Remove everything from the account")
    page.wait_for_selector("#set-up .pill:has-text('Removed')", timeout=60_000)
    assert aws.functions.alive() == []
    assert aws.logs.groups == {}
    assert not faults
    _assert_no_session_in(live_worker, tmp_path / "web.log", aws=aws)


def _assert_paid_as_metered(job: Any, aws: AwsEmulator, before: int) -> None:
    metered = picodollars_of_calls(aws.meter, PriceBook.load(), REGION) - before
    assert metered > 0
    assert job.account.spent_picodollars + job.account.overrun_picodollars == metered
    assert job.account.reserved_picodollars == 0
    wait_until(
        lambda: BillSheet.objects.filter(job=job, final=True).exists(), within_s=30, what="the bill is there"
    )
    sheet = BillSheet.objects.get(job=job)
    assert "problem" not in sheet.document
    assert sheet.document["total"] == metered


def _assert_no_session_in(*logs: Path, aws: AwsEmulator) -> None:
    secrets = [secret for key in aws.account.keys.values() for secret in (key.secret, key.token) if secret]
    for log in logs:
        text = log.read_text()
        assert not any(secret in text for secret in secrets), log.name
    document = json.dumps(
        list(Job.objects.values("spec", "reason", "summary", "events__payload")), default=str
    )
    assert not any(secret in document for secret in secrets)
