"""What was sampled before a process ended is not paid again; a cache that is empty or gone changes nothing."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.money.rents.payer import RentsItsResources
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.throttling import ReportsThrottling
from cloud.platforms.trajectory_cache import KEPT_S, CachingPlatform, TrajectoryCache
from tests.cloud import calls
from tests.cloud.test_platform_contract import gather
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of, final_learner
from tests.training.specs import tiny
from training.engine.checkpoints import FileCheckpointStore
from training.engine.messages import Outcome
from training.engine.ports import Preparable

PLENTY = 2**30
SPEC = tiny(stop={"rounds": 4}, checkpoints={"every_rounds": 2, "keep": 4})


@pytest.fixture
def store(valkey: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey) as client:
        yield client


def _cache(store: redis.Redis, most_bytes: int = PLENTY) -> TrajectoryCache:
    return TrajectoryCache(store, "job", most_bytes)


def _once(platform: CachingPlatform, name: str, **changes: object) -> Outcome:
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.rollout(name, ref, **changes))
    return gather(platform, 1)[name]


@pytest.mark.parametrize("protocol", [Preparable, RentsItsResources, ReportsThrottling])
def test_a_platform_behind_the_cache_is_still_what_it_was(store: redis.Redis, protocol: type) -> None:
    """Also where Python looks at the instance alone, as it does from 3.12 on: rents are paid by this."""
    (method,) = [name for name in vars(protocol) if not name.startswith("_")]
    platform = InlinePlatform()
    with pytest.raises(AttributeError):
        inspect.getattr_static(CachingPlatform(platform, _cache(store)), method)
    setattr(platform, method, lambda *given: "")
    behind = CachingPlatform(platform, _cache(store))
    assert isinstance(behind, protocol)
    assert inspect.getattr_static(behind, method) is getattr(platform, method)


def test_what_is_asked_again_is_answered_at_once_and_for_nothing(store: redis.Redis) -> None:
    inline, cache = InlinePlatform(), _cache(store)
    ledger = MemoryLedger(10**12)
    tariff = LambdaOptions().tariff(PriceBook.load(), 1769)
    first = _once(CachingPlatform(inline, cache), "a")
    metered = MeteredPlatform(CachingPlatform(inline, cache), ledger, tariff)
    again = _once(metered, "b")  # type: ignore[arg-type]
    assert (again.payload, again.slot_state) == (first.payload, first.slot_state)
    assert again.usage.steps == first.usage.steps
    assert (again.cost_picodollars, ledger.spend().spent_picodollars) == (0, 0)
    assert [call.id for call in inline.submitted] == ["a"]
    assert (cache.hits, cache.misses) == (1, 1)
    assert 0 < store.ttl(next(store.scan_iter("starling:trajectory:job:*"))) <= KEPT_S


@pytest.mark.parametrize("other", [{"seed": 8}, {"slot": 1}, {"steps": 17}])
def test_what_differs_in_anything_is_another_call(store: redis.Redis, other: dict[str, int]) -> None:
    inline = InlinePlatform()
    platform = CachingPlatform(inline, _cache(store))
    _once(platform, "a")
    _once(platform, "b", **other)
    assert len(inline.submitted) == 2


def test_a_run_that_goes_on_from_a_checkpoint_samples_nothing_twice(
    store: redis.Redis, tmp_path: Path
) -> None:
    plain = final_learner(SPEC, InlinePlatform(), tmp_path / "plain")
    checkpoints = FileCheckpointStore(tmp_path / "died")
    events_of(SPEC, CachingPlatform(InlinePlatform(), _cache(store)), checkpoints=checkpoints)
    resume = checkpoints.load(next(name for name in checkpoints.names() if "2" in name))

    def gone_on(folder: str) -> tuple[bytes, int]:
        inline = InlinePlatform()
        platform = CachingPlatform(inline, _cache(store))
        learner = final_learner(SPEC, platform, tmp_path / folder, resume=resume, call_prefix="e2-")
        return learner, sum(call.kind == "rollout" for call in inline.submitted)

    assert gone_on("full") == (plain, 0)
    store.flushall()
    assert gone_on("flushed") == (plain, 6)


def test_it_holds_no_more_than_it_may_also_after_a_restart(store: redis.Redis) -> None:
    one = _once(CachingPlatform(InlinePlatform(), _cache(store)), "a")
    size = store.strlen(next(store.scan_iter("starling:trajectory:job:*")))
    room = 3 * size + size // 2
    for process in range(2):
        platform = CachingPlatform(InlinePlatform(), _cache(store, room))
        for number in range(4):
            _once(platform, f"c{number}", seed=100 * process + number + 10)
        held = [store.strlen(name) for name in store.scan_iter("starling:trajectory:job:*")]
        assert len(held) == 3
        assert sum(held) <= room
    assert one.payload


@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_what_is_damaged_there_is_sampled_again(store: redis.Redis, damage: bytes) -> None:
    inline, cache = InlinePlatform(), _cache(store)
    platform = CachingPlatform(inline, cache)
    good = _once(platform, "a")
    store.set(next(store.scan_iter("starling:trajectory:job:*")), damage)
    assert _once(platform, "b").payload == good.payload
    assert (cache.errors, len(inline.submitted)) == (1, 2)


def test_without_the_store_a_run_is_as_it_is_without_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone = redis.Redis(port=9, socket_connect_timeout=0.1, retry=Retry(NoBackoff(), 0))
    cache = TrajectoryCache(gone, "job", PLENTY)
    learner = final_learner(SPEC, CachingPlatform(InlinePlatform(), cache), tmp_path / "gone")
    assert learner == final_learner(SPEC, InlinePlatform(), tmp_path / "plain")
    assert cache.errors == 1, "it is left alone after that"
    assert cache.hits == 0
    monkeypatch.setattr("cloud.platforms.trajectory_cache._PAUSE_S", 0.0)
    cache._retry_at_s = 0.0
    for number in range(3):
        _once(CachingPlatform(InlinePlatform(), cache), f"c{number}")
    assert cache.errors == 7, "finding fails, and keeping"
    reported = [
        record.message for record in caplog.records if record.name == "cloud.platforms.trajectory_cache"
    ]
    assert len(reported) == 1, "one kind of error, told once"
    assert "ConnectionError" in reported[0]


def test_a_platform_that_prepares_still_does() -> None:
    class KeptActors(InlinePlatform):
        def prepare(self, actors: int) -> None:
            self.prepared = actors

    platform = KeptActors()
    cache = TrajectoryCache(redis.Redis(port=9), "job", PLENTY)
    assert isinstance(CachingPlatform(platform, cache), Preparable)
    assert not isinstance(CachingPlatform(InlinePlatform(), cache), Preparable)
