"""Each right that our policy gives, left out once: some step, note or reason names it, and says what to do."""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cloud.accounts.connections import AwsConnection
from cloud.accounts.provision.aws import set_up
from cloud.accounts.provision.aws_bucket import bucket_name
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.aws_removal import remove
from cloud.accounts.provision.permissions import AWS, Permission
from cloud.accounts.provision.policies import AwsScope, aws_policy
from cloud.actor import wire
from cloud.actor.bundle import Bundle
from cloud.actor.weights import KeptWeights
from cloud.platforms.aws import error_text, log
from cloud.platforms.aws.billable_resources import AwsFinder
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws.weights import AwsWeights
from cloud.platforms.aws_lambda import LambdaOptions
from emulator.aws.account import EmulatedAccount, Policy
from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from emulator.aws.stub_functions import StubFunction
from rig.servers import wait_until
from tests.cloud import calls
from tests.cloud.aws import lambdas
from tests.cloud.test_platform_contract import gather

OWNER = Owner("https://starling.example.org", "con_aaaaaaaaaa", "lab")
SIZES = (lambdas.MEMORY_MB,)
NAME = function_name("starling", lambdas.MEMORY_MB)
BUCKET = bucket_name("starling", OWNER.connection)
ACTION = re.compile(r"\b[a-z0-9]+:[A-Z]\w+")
ONLY_FOR_THE_TEST = {"iam:SimulatePrincipalPolicy"}
TRIED_OFTEN = {"lambda:TagResource", "lambda:GetFunction", "s3:PutObject"}
ONLY_BY_A_FUNCTION = {"s3:GetObject"}


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsEmulator]:
    """With room to keep a function ready: AWS leaves 100 to functions without a share of their own."""
    with AwsEmulator(account=EmulatedAccount(concurrency=110)) as emulator:
        emulator.invocations.stubs[NAME] = StubFunction(0.0)
        yield emulator


@pytest.fixture(scope="module")
def demo(aws: AwsEmulator) -> DemoAccount:
    return furnish(aws)


def _allow(aws: AwsEmulator, permissions: list[Permission]) -> None:
    """Give the dashboard's role the policy of these permissions. Its running sessions keep their own."""
    role = next(one for one in aws.account.roles.values() if one.service is None)
    role.policy = Policy.of(aws_policy(AwsScope(aws.region, aws.account.id), permissions))


@cache
def _later() -> Bundle:
    """Other code for another Python, as a later version of Starling has."""
    with io.BytesIO(lambdas.thin().data) as file:
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("later.txt", "")
        return replace(lambdas.thin(), data=file.getvalue(), python="3.12")


def _life(aws: AwsEmulator, connection: AwsConnection) -> Iterator[str]:
    """All that people read while they set an account up, change it, use it, look what is left, and clear it."""
    for packed in (lambdas.thin, _later):
        for step in set_up(connection.open(), OWNER, SIZES, packed, bucket=True, patience_s=0):
            yield from (step.words, step.fix)
    yield from _job(aws, replace(connection, bucket=BUCKET))
    logs = connection.open().client("logs")
    yield from _refused(lambda: log.reports_of(logs, NAME, ["c1"], time.time() - 60.0))
    finder = AwsFinder(connection.open(), SIZES)
    yield from _refused(finder.found)
    for step in remove(connection.open(), OWNER, SIZES, bucket=True, patience_s=0):
        yield from (step.words, step.fix)


def _refused(call: Any) -> Iterator[str]:
    """As the scan of the account and the reading of logs do."""
    try:
        call()
    except Exception as error:
        yield from error_text.refusal(error)[1:]


def _job(aws: AwsEmulator, connection: AwsConnection) -> Iterator[str]:
    """One call with a network of 2 MiB, and an instance that is kept ready for it."""
    platform = LambdaOptions(provisioned=1, at_once=1).open(connection)
    try:
        ref = platform.publish(0, bytes(2 * 2**20))
        platform.submit(calls.rollout("c1", ref))
        yield from (outcome.reason for outcome in gather(platform, 1).values())
        wait_until(
            lambda: _are_kept_ready(aws) or "kept ready" in platform.throttling_reasons(),
            within_s=60.0,
            what="instances, or the reason why there are none",
        )
    finally:
        platform.close()
    yield platform.throttling_reasons()


def _are_kept_ready(aws: AwsEmulator) -> bool:
    return any(function.provisioned for function in aws.functions.alive())


def _restart(aws: AwsEmulator, demo: DemoAccount) -> None:
    """Have the account as new, also after a life that could not clear it."""
    _allow(aws, list(AWS))
    list(remove(demo.by_role.open(), OWNER, SIZES, bucket=True, patience_s=0))
    assert aws.functions.alive() == []


def test_with_the_whole_policy_nothing_is_refused(aws: AwsEmulator, demo: DemoAccount) -> None:
    _allow(aws, list(AWS))
    said = list(_life(aws, demo.by_role))
    assert [sentence for sentence in said if ACTION.search(sentence)] == []
    assert [sentence for sentence in said if "refuses" in sentence] == []
    assert aws.functions.alive() == []


@pytest.mark.parametrize(
    "left_out",
    [
        one.action if one.action in TRIED_OFTEN else pytest.param(one.action, marks=pytest.mark.slow)
        for one in AWS
        if one.action not in ONLY_FOR_THE_TEST | ONLY_BY_A_FUNCTION
    ],
)
def test_the_right_that_is_missing_is_named_with_what_to_do(
    aws: AwsEmulator, demo: DemoAccount, left_out: str
) -> None:
    _allow(aws, [one for one in AWS if one.action != left_out])
    try:
        said = list(_life(aws, demo.by_role))
    finally:
        _restart(aws, demo)
    assert {action for sentence in said for action in ACTION.findall(sentence)} == {left_out}
    assert any(f"AWS refuses {left_out} " in sentence for sentence in said)
    assert any(f"Add {left_out} " in sentence for sentence in said)


def test_a_function_names_the_right_without_which_it_cannot_fetch_its_network(
    aws: AwsEmulator, demo: DemoAccount
) -> None:
    """The address is signed for our role, so it opens no more than the role may."""
    _allow(aws, [one for one in AWS if one.action != "s3:GetObject"])
    with pytest.raises(wire.MalformedMessage, match="add s3:GetObject "):
        _fetched_network(demo.by_role)
    _allow(aws, list(AWS))
    assert _fetched_network(demo.by_role) == bytes(2 * 2**20)


def _fetched_network(connection: AwsConnection) -> bytes | None:
    """What an actor fetches from the address that its call names."""
    weights = AwsWeights(connection.open().client("s3"), connection.bucket, "starling/weights/run")
    call = calls.rollout("c1", weights.publish(0, bytes(2 * 2**20)))
    _, address = weights.of(call)
    request = wire.ActorRequest(
        run="run", call=call, not_after_unix_s=time.time() + 30.0, weights_url=address
    )
    return KeptWeights().of(request)
