"""A newcomer connects an AWS account in the browser: the emulated one, through the real SDK and a real worker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from emulator.aws.account import EmulatedAccount, Key, Policy
from emulator.aws.server import AwsEmulator
from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from tests.journeys.stacks import identity_of_this_installation, made_from, variables_for
from webapp.connections.models import Connection

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

REGION = "eu-central-1"
CANARY = "canary7Browser+Zq/VxW3mK9pLr2TnB8yQe5Hc4J"


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


def _begin(page: "Page", site: str, way: str) -> Any:
    user = make_user()
    project = make_project(user)
    sign_in(page, site, user)
    page.goto(f"{site}/p/{project.slug}/clouds/")
    page.click(f"text={way}")
    page.fill("[name=name]", "The lab's account")
    page.fill("[name=region]", REGION)
    page.click("text=Continue")
    page.wait_for_url("**/clouds/con_*/")
    return project


def _shown(page: "Page", key: str) -> dict[str, Any]:
    """A document as the page offers it to be copied."""
    document: dict[str, Any] = json.loads(page.locator(f"[data-copy-text='{key}']").text_content() or "")
    return document


def test_a_role_from_our_template_is_ready_at_the_first_test(
    live_site: str, live_worker: Path, page: "Page", aws: AwsEmulator, tmp_path: Path
) -> None:
    faults = watch_for_faults(page)
    _begin(page, live_site, "AWS with a role")
    assert page.is_visible("main .page-head >> text=emulated")
    arn = made_from(aws, _shown(page, "stack"))
    page.fill("[name=role_arn]", arn)
    page.click("text=Save and test")
    page.wait_for_selector(".report .pill:has-text('Ready')", timeout=60_000)
    assert page.is_visible(f".found dd:text-is('{aws.account.id}')")
    assert page.is_visible(".found >> text=10 functions")
    page.click("text=checks with nothing to do")
    assert page.is_visible(".check:has-text('lambda:InvokeFunction')")
    assert not page.is_visible(".check.tone-failed")

    # Someone takes a right away, and the next test tells which and what to do.
    role = aws.account.roles[arn]
    statements = [one for one in role.policy.statements if one["Sid"] != "PassActorRole"]
    role.policy = Policy(tuple(statements))
    page.click("text=Test again")
    page.wait_for_selector(".report .pill:has-text('Not ready')", timeout=60_000)
    assert "Add iam:PassRole" in (page.text_content(".check.tone-failed") or "")
    assert not faults
    _assert_no_session_in_logs(aws, live_worker, tmp_path / "web.log")


def _assert_no_session_in_logs(aws: AwsEmulator, *logs: Path) -> None:
    secrets = [secret for key in aws.account.keys.values() for secret in (key.secret, key.token) if secret]
    assert len(secrets) > 2
    for log in logs:
        text = log.read_text()
        assert not any(secret in text for secret in secrets), log.name


def test_keys_are_sealed_tested_and_removed_and_leave_no_trace(
    live_site: str, live_worker: Path, page: "Page", aws: AwsEmulator, tmp_path: Path
) -> None:
    faults = watch_for_faults(page)
    _begin(page, live_site, "AWS with access keys")
    arn = f"arn:aws:iam::{aws.account.id}:user/starling-dashboard"
    document = json.dumps(_shown(page, "policy")).replace("${aws:username}", "starling-dashboard")
    user = aws.account.add_user("starling-dashboard", Policy.of(json.loads(document)))
    aws.account.keys[user.access_key_id] = Key(user.access_key_id, CANARY, user.principal)
    page.fill("[name=access_key_id]", user.access_key_id)
    page.fill("[name=secret_access_key]", CANARY)
    page.click("text=Save and test")
    page.wait_for_selector(".report .pill:has-text('Ready')", timeout=60_000)
    assert page.is_visible(f".found >> text={arn}")
    page.click("summary:has-text('Add credentials')")
    assert page.is_visible(f"text=ends in ••••{CANARY[-4:]}")
    assert page.input_value("[name=secret_access_key]") == ""
    assert CANARY not in page.content()
    page.click("text=Remove this connection")
    page.click("text=Remove the connection")
    page.wait_for_url("**/clouds/")
    assert not Connection.objects.exists()
    assert not faults
    for log in (live_worker, tmp_path / "web.log"):
        assert CANARY not in log.read_text()
