"""Walks through an AWS account: another region, a second connection, instances kept ready, and a session past its end.

Each removes whatever it made, also if it fails.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cloud.accounts.connections import AwsConnection, AwsRole
from cloud.accounts.provision.aws import set_up
from cloud.accounts.provision.aws_bucket import bucket_name
from cloud.accounts.provision.aws_inventory import Owner, described
from cloud.accounts.provision.aws_removal import remove
from cloud.accounts.provision.policies import AwsScope, actor_policy, aws_policy
from cloud.actor import bundle
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws.billable_resources import AwsFinder
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws_lambda import LambdaOptions
from emulator.aws.account import FUNCTIONS, EmulatedAccount, Policy
from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from tests.accounts.named_aws import named_connection
from tests.cloud import calls
from tests.cloud.aws import lambdas
from training.engine.messages import Outcome
from training.rl.environments.making import spaces_of
from training.spec import TrainingSpec

_MEMORY_MB = 512
_LIMIT_PICODOLLARS = 5 * 10**10
_ELSEWHERE = "eu-central-1"
_SHORT_SESSION_S = 6
_READY_WITHIN_S = 300.0
_SESSION_S = 3600
FIRST = Owner("https://tests.starling.invalid", "con_contract0", "contract-tests")
SECOND = Owner("https://tests.starling.invalid", "con_contract1", "contract-tests")
LARGE = TrainingSpec.model_validate(
    {
        "network": {"kind": "mlp", "hidden": [800, 800]},
        "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 16},
    }
)


@dataclass(frozen=True)
class Place:
    """A connection, and one beside it in another region of its account, if one is named; `emulated` is the account
    where none is named.
    """

    first: AwsConnection
    second: AwsConnection | None
    packed: Any
    emulated: EmulatedAccount | None = None


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """The account that the environment names; an emulated one where it names none."""
    named = named_connection()
    if named is not None:
        yield Place(named, named_connection("SECOND_"), bundle.light)
        return
    account = EmulatedAccount(concurrency=110)
    with AwsEmulator(account=account, other_regions=[_ELSEWHERE]) as aws:
        demo = furnish(aws)
        yield Place(demo.by_role, _beside(aws, demo), lambdas.thin, account)


def _beside(aws: AwsEmulator, demo: DemoAccount) -> AwsConnection:
    """A second connection in the account, with roles of its own that hold in another region."""
    scope = AwsScope(_ELSEWHERE, aws.account.id, "starling-contract1")
    first = demo.by_role.access
    assert isinstance(first, AwsRole)
    role = aws.account.add_role(
        scope.own_role_name, Policy.of(aws_policy(scope)), external_id="starling-second"
    )
    aws.account.add_role(scope.actor_role_name, Policy.of(actor_policy(scope)), service=FUNCTIONS)
    access = AwsRole(role.arn, "starling-second", first.ours)
    return replace(demo.by_role, access=access, region=_ELSEWHERE, prefix=scope.prefix, bucket=None)


@contextmanager
def _set_up(
    place: Place, connection: AwsConnection, owner: Owner, *, bucket: bool = False
) -> Iterator[AwsConnection]:
    """The account with one function, and with the bucket that is asked for. All of it is removed after."""
    clients = connection.open()
    try:
        steps = list(set_up(clients, owner, [_MEMORY_MB], place.packed, bucket=bucket))
        assert [step for step in steps if step.state == "missing"] == []
        name = bucket_name(connection.prefix, owner.connection) if bucket else None
        yield replace(connection, bucket=name)
    finally:
        gone = list(remove(clients, owner, [_MEMORY_MB], bucket=bucket))
    assert [step for step in gone if step.state == "missing"] == []
    assert described(clients.client("lambda"), function_name(connection.prefix, _MEMORY_MB)) is None


@contextmanager
def _platform(connection: AwsConnection, **options: Any) -> Iterator[MeteredPlatform]:
    """The connection's platform within a limit of five cents."""
    chosen = LambdaOptions(region=connection.region, **options)
    tariff = chosen.tariff(PriceBook.load(), _MEMORY_MB)
    platform = MeteredPlatform(chosen.open(connection), MemoryLedger(_LIMIT_PICODOLLARS), tariff)
    try:
        yield platform
    finally:
        platform.close()


def _call(platform: MeteredPlatform, name: str, weights: bytes) -> Outcome:
    """A short call with these weights, which has to come back done."""
    ref = platform.publish(0, weights)
    platform.submit(calls.rollout(f"{name}-{time.time_ns()}", ref, memory_mb=_MEMORY_MB))
    outcome = platform.next(120.0)
    assert outcome is not None
    assert outcome.status == "done", outcome.reason
    return outcome


def _large_weights() -> bytes:
    spaces = spaces_of(calls.CARTPOLE)
    state = LARGE.algorithm.initial_state(LARGE.network, spaces, seed=1)
    weights = state.actor_weights(LARGE.network)
    assert len(weights) > 2 * 2**20
    return weights


def _objects(connection: AwsConnection) -> Sequence[str]:
    listed = connection.open().client("s3").list_objects_v2(Bucket=connection.bucket)
    return [one["Key"] for one in listed.get("Contents", ())]


def test_a_second_connection_in_another_region_fetches_a_large_network_and_leaves_the_first_alone(
    place: Place,
) -> None:
    if place.second is None:
        pytest.skip("no second connection is named")
    with _set_up(place, place.first, FIRST) as first:
        with _set_up(place, place.second, SECOND, bucket=True) as second:
            assert second.region != first.region
            with _platform(second) as platform:
                _call(platform, "large", _large_weights())
                assert len(_objects(second)) == 1
            assert _objects(second) == []
        with _platform(first) as platform:
            _call(platform, "first", calls.weights())


def test_an_instance_that_is_kept_ready_takes_a_call_and_is_gone_after(place: Place) -> None:
    """AWS keeps some ready only in accounts that may run more than 100 functions at once."""
    with _set_up(place, place.first, FIRST) as connection:
        finder = AwsFinder(connection.open(), [_MEMORY_MB])
        with _platform(connection, provisioned=1) as platform:
            end_s = time.monotonic() + _READY_WITHIN_S
            while not _call(platform, "ready", calls.weights()).usage.provisioned:
                assert time.monotonic() < end_s, "no call came to an instance that is kept ready"
                time.sleep(0.2)
            assert [one.facts["instances"] for one in finder.found()] == [1]
        assert finder.found() == []


@pytest.fixture
def session_s(place: Place) -> Iterator[int]:
    """How long sessions of the role last that begin in the test: in an emulated account as long as a call may take
    here.
    """
    if place.emulated is None:
        yield _SESSION_S
        return
    usual, place.emulated.longest_session_s = place.emulated.longest_session_s, _SHORT_SESSION_S
    yield _SHORT_SESSION_S
    place.emulated.longest_session_s = usual


def test_calls_go_on_after_the_session_of_the_role_has_ended(place: Place, session_s: int) -> None:
    if not isinstance(place.first.access, AwsRole):
        pytest.skip("access keys have no session")
    with _set_up(place, place.first, FIRST, bucket=True) as connection, _platform(connection) as platform:
        weights = _large_weights()
        _call(platform, "before", weights)
        time.sleep(session_s + 1.0)
        _call(platform, "after", weights)
