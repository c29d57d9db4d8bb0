"""Buckets by their hosts, as AWS has them: in their region, at the global host, and in a region that is not theirs."""

from __future__ import annotations

import datetime
import time
import urllib.error
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.auth
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cloud.accounts.connections import AwsConnection, AwsKeys
from cloud.actor.weights import KeptWeights, fetched
from cloud.actor.wire import ActorRequest
from cloud.platforms.aws.weights import AwsWeights
from cloud.platforms.aws_lambda import LambdaOptions
from emulator.aws.account import EVERYTHING, EmulatedAccount, Key
from emulator.aws.demo import furnish
from emulator.aws.server import AwsEmulator
from tests.cloud import calls
from tests.cloud.aws import lambdas, presigned
from tests.cloud.test_platform_contract import gather

HOME, ELSEWHERE = "us-east-1", "eu-west-1"
BUCKETS = {HOME: "starling-weights-1", ELSEWHERE: "starling-weights-2"}
OBJECT = "starling/weights/w 1.bin"


@pytest.fixture
def aws() -> Iterator[AwsEmulator]:
    with AwsEmulator(region=HOME, other_regions=(ELSEWHERE,)) as emulator:
        for region, bucket in BUCKETS.items():
            emulator.storage.add_bucket(bucket, region)
        yield emulator


@pytest.fixture
def key(aws: AwsEmulator) -> Key:
    user = aws.account.add_user("ada", EVERYTHING)
    for region, bucket in BUCKETS.items():
        s3 = _connection(user, region, aws.endpoint).open().client("s3")
        s3.put_object(Bucket=bucket, Key=OBJECT, Body=b"weights")
    return user


def _connection(key: Key, region: str, endpoint: str | None = None) -> AwsConnection:
    return AwsConnection(AwsKeys(key.access_key_id, key.secret), region, endpoint_url=endpoint)


def _address(client: Any, bucket: str) -> str:
    url: str = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": OBJECT})
    return url


def _foreign(key: Key, region: str, endpoint: str | None = None, **config: Any) -> Any:
    """A client that is set up as any program's may be."""
    access = {"aws_access_key_id": key.access_key_id, "aws_secret_access_key": key.secret}
    settings = Config(signature_version="s3v4", **config)
    return boto3.client("s3", region, endpoint_url=endpoint, config=settings, **access)


@pytest.mark.parametrize("region", [HOME, ELSEWHERE])
def test_the_address_that_actors_of_a_real_account_get_names_the_buckets_region(
    aws: AwsEmulator, key: Key, region: str
) -> None:
    """The very settings of real accounts, and what they signed, sent to the emulator."""
    url = _address(_connection(key, region).open().client("s3"), BUCKETS[region])
    assert urlsplit(url).hostname == f"{BUCKETS[region]}.s3.{region}.amazonaws.com"
    status, _, body = presigned.get(aws, url)
    assert (status, body) == (200, b"weights")


def test_the_sdks_own_default_signs_the_global_host_which_redirects(aws: AwsEmulator, key: Key) -> None:
    """Such an address works in us-east-1 alone."""
    home, elsewhere = (_address(_foreign(key, region), BUCKETS[region]) for region in (HOME, ELSEWHERE))
    assert urlsplit(elsewhere).hostname == f"{BUCKETS[ELSEWHERE]}.s3.amazonaws.com"
    assert presigned.get(aws, home)[0] == 200
    status, headers, _ = presigned.get(aws, elsewhere)
    assert (status, headers["x-amz-bucket-region"]) == (307, ELSEWHERE)
    assert urlsplit(headers["Location"]).hostname == f"{BUCKETS[ELSEWHERE]}.s3.{ELSEWHERE}.amazonaws.com"


def test_the_actor_fetches_from_the_buckets_host_and_follows_no_redirect(aws: AwsEmulator, key: Key) -> None:
    port = urlsplit(aws.endpoint).port
    good = _connection(key, ELSEWHERE, aws.endpoint).open().client("s3")
    url = _address(good, BUCKETS[ELSEWHERE])
    assert urlsplit(url).netloc == f"{BUCKETS[ELSEWHERE]}.s3.{ELSEWHERE}.localhost:{port}"
    assert fetched(url, 100) == b"weights"
    global_host = _foreign(key, ELSEWHERE, f"http://s3.localhost:{port}", s3={"addressing_style": "virtual"})
    url = _address(global_host, BUCKETS[ELSEWHERE])
    assert urlsplit(url).netloc == f"{BUCKETS[ELSEWHERE]}.s3.localhost:{port}"
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetched(url, 100)
    with refused.value as answer:
        assert answer.code == 307


def test_published_weights_reach_the_actor_from_a_bucket_elsewhere(aws: AwsEmulator, key: Key) -> None:
    s3 = _connection(key, ELSEWHERE, aws.endpoint).open().client("s3")
    weights = AwsWeights(s3, BUCKETS[ELSEWHERE], "run", inline_limit_bytes=100)
    call = calls.rollout("a", weights.publish(0, calls.weights()))
    inline, address = weights.of(call)
    assert inline is None
    request = ActorRequest(run="r", call=call, not_after_unix_s=0.0, weights=None, weights_url=address)
    assert KeptWeights().of(request) == calls.weights()
    weights.close()
    assert list(aws.storage.buckets[BUCKETS[ELSEWHERE]]) == [OBJECT]


def test_a_function_elsewhere_runs_with_weights_from_its_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.platforms.aws.weights.AwsWeights.__init__.__defaults__", (100,))
    with AwsEmulator(account=EmulatedAccount(concurrency=1), region=ELSEWHERE) as aws:
        demo = furnish(aws)
        lambdas.set_up(demo)
        options = LambdaOptions(region=ELSEWHERE, function_timeout_s=120, at_once=1)
        platform = options.open(demo.by_role)
        try:
            ref = platform.publish(0, calls.weights())
            platform.submit(calls.rollout("a", ref))
            assert gather(platform, 1)["a"].status == "done"
            assert aws.storage.reads == 1
        finally:
            platform.close()


def test_a_host_of_another_region_answers_with_the_buckets_region(aws: AwsEmulator, key: Key) -> None:
    url = _address(_connection(key, HOME).open().client("s3"), BUCKETS[ELSEWHERE])
    status, headers, body = presigned.get(aws, url)
    assert (status, headers["x-amz-bucket-region"]) == (301, ELSEWHERE)
    assert b"<Code>PermanentRedirect</Code>" in body
    assert f"<Endpoint>{BUCKETS[ELSEWHERE]}.s3.{ELSEWHERE}.amazonaws.com</Endpoint>".encode() in body
    port = urlsplit(aws.endpoint).port
    strict = _foreign(key, HOME, f"http://s3.{HOME}.localhost:{port}", proxies={"http": aws.endpoint})
    with pytest.raises(ClientError) as error:
        strict.put_object(Bucket=BUCKETS[ELSEWHERE], Key="a", Body=b"x")
    assert error.value.response["Error"]["Code"] == "PermanentRedirect"


def test_a_signature_holds_for_one_region_and_one_host(aws: AwsEmulator, key: Key) -> None:
    port = urlsplit(aws.endpoint).port
    endpoint = f"http://s3.{ELSEWHERE}.localhost:{port}"
    config: dict[str, Any] = {"s3": {"addressing_style": "virtual"}, "proxies": {"http": aws.endpoint}}
    other_region = _foreign(key, HOME, endpoint, **config)
    status, _, body = presigned.get(aws, _address(other_region, BUCKETS[ELSEWHERE]))
    assert status == 400
    assert b"AuthorizationQueryParametersError" in body
    assert f"<Region>{ELSEWHERE}</Region>".encode() in body
    # The SDK signs again for the region that the refusal names.
    assert other_region.get_object(Bucket=BUCKETS[ELSEWHERE], Key=OBJECT)["Body"].read() == b"weights"
    url = _address(_foreign(key, ELSEWHERE, endpoint, **config), BUCKETS[ELSEWHERE])
    assert presigned.get(aws, url)[0] == 200
    for host in (f"starling-weights-3.s3.{ELSEWHERE}.", f"{BUCKETS[ELSEWHERE]}.s3."):
        moved = url.replace(f"{BUCKETS[ELSEWHERE]}.s3.{ELSEWHERE}.", host)
        status, _, body = presigned.get(aws, moved)
        assert (status, b"SignatureDoesNotMatch" in body) == (403, True)


def test_the_sdk_with_any_addressing_stores_lists_and_deletes(aws: AwsEmulator, key: Key) -> None:
    for style in ("virtual", "path"):
        endpoint = f"http://s3.{ELSEWHERE}.localhost:{urlsplit(aws.endpoint).port}"
        s3 = _foreign(
            key, ELSEWHERE, endpoint, s3={"addressing_style": style}, proxies={"http": aws.endpoint}
        )
        name = f"starling-{style}"
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": ELSEWHERE})
        s3.put_object(Bucket=name, Key="a/b c", Body=b"x")
        assert [one["Key"] for one in s3.list_objects_v2(Bucket=name, Prefix="a/")["Contents"]] == ["a/b c"]
        assert s3.get_object(Bucket=name, Key="a/b c")["Body"].read() == b"x"
        s3.delete_object(Bucket=name, Key="a/b c")
        s3.delete_bucket(Bucket=name)
        assert name not in aws.storage.regions


def test_a_call_that_is_sent_hours_after_its_weights_were_published_can_fetch_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As calls of a long round that waited for a free function. The session that published has ended by then."""
    with AwsEmulator(region=ELSEWHERE) as aws:
        demo = furnish(aws)
        s3 = demo.by_role.open().client("s3")
        weights = AwsWeights(s3, demo.by_role.bucket, "run", inline_limit_bytes=100)
        call = calls.rollout("a", weights.publish(0, calls.weights()))
        _, address = weights.of(call)
        later = datetime.timedelta(hours=2)
        aws.account.now_unix_s = lambda: time.time() + later.total_seconds()
        signs_at = botocore.auth.get_current_datetime
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *given: signs_at(*given) + later)
        session = s3._request_signer._credentials
        lasts_until = session._time_fetcher
        session._time_fetcher = lambda: lasts_until() + later
        assert address is not None
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetched(address, 10**6)
        refused.value.close()
        _, address = weights.of(call)
        assert address is not None
        assert fetched(address, 10**6) == calls.weights()
