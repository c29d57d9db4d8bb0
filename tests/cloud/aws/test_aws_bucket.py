"""The bucket for networks that do not fit into a call: made, used, emptied and taken away."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from cloud.accounts.connections import AwsClients, AwsConnection, AwsKeys
from cloud.accounts.provision.aws import set_up
from cloud.accounts.provision.aws_bucket import bucket_name
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.aws_removal import remove, remove_sizes
from cloud.accounts.provision.steps import SetUpStep
from cloud.platforms.aws.weights import INLINE_LIMIT_BYTES
from cloud.timing.calibration.samples import Slot
from emulator.aws.account import Policy
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.cloud.aws import lambdas
from tests.cloud.test_platform_contract import gather
from training.rl.environments.model import EnvironmentSpec

OWNER = Owner("https://starling.example.org", "con_aaaaaaaaaa", "lab")
NAME = bucket_name("starling", OWNER.connection)


def _set_up(demo: DemoAccount) -> SetUpStep:
    *_, last = set_up(demo.by_role.open(), OWNER, (), lambdas.thin, bucket=True, patience_s=0)
    return last


def _remove(demo: DemoAccount) -> SetUpStep:
    *_, last = remove(demo.by_role.open(), OWNER, (), bucket=True, patience_s=0)
    return last


def test_it_is_made_once_with_a_short_life_and_our_tags(aws: AwsEmulator, demo: DemoAccount) -> None:
    assert _set_up(demo).state == "made"
    assert aws.storage.expiry_days[NAME] == 1
    assert aws.storage.tags[NAME] == OWNER.tags
    assert _set_up(demo).state == "done"


def test_it_goes_with_all_that_is_in_it_and_removing_may_be_repeated(
    aws: AwsEmulator, demo: DemoAccount
) -> None:
    _set_up(demo)
    s3 = demo.by_role.open().client("s3")
    for key in ("starling/weights/a", "starling/weights/b"):
        s3.put_object(Bucket=NAME, Key=key, Body=b"left by a run that died")
    gone = _remove(demo)
    assert gone.state == "gone"
    assert "2 objects" in gone.words
    assert NAME not in aws.storage.buckets
    assert _remove(demo).words.startswith("It was gone")


def test_what_lies_there_longer_than_a_day_is_gone(aws: AwsEmulator, demo: DemoAccount) -> None:
    _set_up(demo)
    s3 = demo.by_role.open().client("s3")
    for key in ("old", "new"):
        s3.put_object(Bucket=NAME, Key=key, Body=b"x")
    stored = aws.storage.buckets[NAME]
    stored["old"] = replace(stored["old"], at_unix_s=time.time() - 86_500)
    listed = s3.list_objects_v2(Bucket=NAME)["Contents"]
    assert [one["Key"] for one in listed] == ["new"]


@pytest.mark.parametrize("right", ["s3:ListBucket", "s3:CreateBucket", "s3:PutLifecycleConfiguration"])
def test_a_right_that_is_missing_is_reported(aws: AwsEmulator, demo: DemoAccount, right: str) -> None:
    role = next(one for one in aws.account.roles.values() if one.service is None)
    denied = {"Effect": "Deny", "Action": right, "Resource": "*"}
    role.policy = Policy((*role.policy.statements, denied))
    reported = _set_up(demo)
    assert reported.state == "missing"
    assert right in reported.words
    assert reported.fix.startswith(f"Add {right} ")
    assert "without a bucket" in reported.fix


def test_one_size_goes_and_the_others_stay(aws: AwsEmulator, demo: DemoAccount) -> None:
    list(set_up(demo.by_role.open(), OWNER, (1769, 3008), lambdas.thin, patience_s=0))
    (step,) = remove_sizes(demo.by_role.open(), OWNER, (3008,), patience_s=0)
    assert step.state == "gone"
    assert [one.name for one in aws.functions.alive()] == ["starling-actor-1769mb"]


def test_natures_network_reaches_a_function_by_an_address_that_is_read_once(
    aws: AwsEmulator, demo: DemoAccount
) -> None:
    _set_up(demo)
    lambdas.set_up(demo)
    slot = Slot(EnvironmentSpec(id="ALE/SpaceInvaders-v5"))
    connection = replace(demo.by_role, bucket=NAME)
    platform = lambdas.LambdaOptions(function_timeout_s=120, at_once=1).open(connection)
    try:
        for _ in range(2):
            call, weights = slot.call(8)
            assert len(weights) > 6 * INLINE_LIMIT_BYTES
            ref = platform.publish(slot.serial % 2, weights)
            platform.submit(call.model_copy(update={"weights": ref, "memory_mb": lambdas.MEMORY_MB}))
            (outcome,) = gather(platform, 1).values()
            assert outcome.status == "done", outcome.reason
            slot.slot_state = outcome.slot_state
        assert len(aws.storage.buckets[NAME]) == aws.storage.reads == 2
    finally:
        platform.close()
    assert aws.storage.buckets[NAME] == {}


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "eu-central-1", "ap-southeast-3"])
def test_weights_are_fetched_from_the_buckets_own_region(region: str) -> None:
    """From the global host, S3 redirects to another region's, and actors follow no redirect."""
    connection = AwsConnection(access=AwsKeys("AKIAEXAMPLE", "secret"), region=region)
    place = {"Bucket": "starling-weights-1", "Key": "job/hash"}
    address = AwsClients(connection).client("s3").generate_presigned_url("get_object", Params=place)
    assert urlsplit(address).hostname == f"starling-weights-1.s3.{region}.amazonaws.com"
    assert f"%2F{region}%2Fs3%2F" in address
