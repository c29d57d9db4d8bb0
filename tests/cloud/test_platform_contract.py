"""What every platform must do. One suite for all: a new platform is one more row in `PLATFORMS`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pytest

from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray_cluster import RayOptions
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.workers.executor import LocalExecutor
from tests.cloud import calls, processes, pullers
from tests.cloud.aws import lambdas
from tests.cloud.azure import containers
from training.engine.codec import decode
from training.engine.messages import Outcome
from training.engine.ports import Platform


@dataclass(frozen=True)
class Opened:
    """A platform, and the processes that work for it now. Clouds' functions cannot be killed; they `end_within_s`.

    `many_steps`: more than a call has done before it is cancelled, however fast and busy this machine is.
    """

    platform: Platform
    pids: Callable[[], list[int]]
    end_within_s: float = 0.0
    many_steps: int = 10_000_000


@contextmanager
def _local() -> Iterator[Opened]:
    executor = LocalExecutor(2)
    yield Opened(LocalPlatform(LocalOptions(), executor=executor), executor.worker_pids)


@contextmanager
def _simulated() -> Iterator[Opened]:
    executor = LocalExecutor(2)
    yield Opened(SimulatedPlatform(SimulatedOptions(), executor=executor), executor.worker_pids)


@contextmanager
def _aws_lambda() -> Iterator[Opened]:
    with lambdas.opened() as (platform, aws):
        yield Opened(platform, aws.environments.busy_pids, end_within_s=90.0, many_steps=50_000)


@contextmanager
def _azure_container() -> Iterator[Opened]:
    with containers.opened() as (platform, azure):
        yield Opened(platform, azure.groups.pids)


@contextmanager
def _pulled() -> Iterator[Opened]:
    with pullers.opened(2) as (platform, machines):
        yield Opened(platform, machines.pids, end_within_s=40.0)


@contextmanager
def _ray() -> Iterator[Opened]:
    platform = RayOptions(actors=2).open()
    head = platform.head
    assert head is not None
    yield Opened(platform, lambda: [head.pid, *processes.below(head.pid)])


PLATFORMS: dict[str, Callable[[], AbstractContextManager[Opened]]] = {
    "local": _local,
    "simulated": _simulated,
    "aws_lambda": _aws_lambda,
    "pulled": _pulled,
    "azure_container": _azure_container,
    "ray": _ray,
}


# Each starts a cluster, which takes ten seconds, and needs an extra (`make ray-setup`).
_RAY = (
    pytest.mark.slow,
    pytest.mark.skipif(not ray_driver.installed(), reason="Ray is not installed: make ray-setup"),
)
# Azure's containers fetch their calls as `pulled` does. Both clouds' own quick tests run real functions and containers.
_MARKS = {"aws_lambda": pytest.mark.slow, "azure_container": pytest.mark.slow, "ray": _RAY}
_ROWS = [pytest.param(name, marks=_MARKS.get(name, ())) for name in sorted(PLATFORMS)]


@pytest.fixture(params=_ROWS)
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    with PLATFORMS[request.param]() as one:
        yield one
        one.platform.close()


@pytest.fixture
def platform(opened: Opened) -> Platform:
    return opened.platform


def gather(platform: Platform, count: int) -> dict[str, Outcome]:
    """The next `count` outcomes by call, waiting as long as the test is allowed to."""
    outcomes: dict[str, Outcome] = {}
    for _ in range(1000):
        if len(outcomes) == count:
            break
        outcome = platform.next(10.0)
        if outcome is not None:
            assert outcome.call_id not in outcomes
            outcomes[outcome.call_id] = outcome
    assert len(outcomes) == count
    return outcomes


def alive(pid: int) -> bool:
    """Runs still; one that waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_each_call_gives_exactly_one_outcome(platform: Platform) -> None:
    ref = platform.publish(0, calls.weights())
    wanted = {f"c{n}" for n in range(7)}
    for name in sorted(wanted):
        platform.submit(calls.rollout(name, ref, slot=int(name[1:])))
    assert set(gather(platform, 7)) == wanted
    assert platform.next(0.0) is None


def test_nothing_in_flight_is_none_at_once(platform: Platform) -> None:
    before_s = platform.now_s()
    assert platform.next(3600.0) is None
    assert platform.now_s() - before_s < 60.0


def test_outcomes_tell_work_and_times(platform: Platform) -> None:
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.rollout("c", ref, steps=32))
    outcome = gather(platform, 1)["c"]
    usage = outcome.usage
    assert outcome.status == "done"
    assert (usage.steps, usage.inferences) == (32, 32)
    assert usage.bytes_in == ref.byte_count
    assert usage.bytes_out == len(outcome.payload) + len(outcome.slot_state or b"")
    assert usage.cold_start
    assert usage.run_s > 0
    assert usage.billed_s is not None
    assert usage.billed_s > 0
    took_s = usage.startup_s + usage.run_s + usage.transfer_s
    assert outcome.finished_s - outcome.started_s == pytest.approx(took_s)
    assert outcome.finished_s <= platform.now_s() + 1e-9


def test_a_fragment_goes_on_from_the_state_it_brings(platform: Platform) -> None:
    """Two calls of 16 steps are one of 32, wherever they run."""
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.evaluation("e1", ref))
    platform.submit(calls.evaluation("e2", ref))
    first = gather(platform, 2)
    assert first["e1"].payload == first["e2"].payload
    platform.submit(calls.rollout("a", ref))
    state = gather(platform, 1)["a"].slot_state
    platform.submit(calls.rollout("b1", ref, slot=1, slot_state=state))
    platform.submit(calls.rollout("b2", ref, slot=2, slot_state=state))
    later = gather(platform, 2)
    seen = [decode(later[name].payload)["observations"] for name in ("b1", "b2")]
    assert (seen[0] == seen[1]).all()


def test_the_learners_work_is_a_call_too(platform: Platform) -> None:
    state = calls.learner_state()
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.rollout("r", ref))
    trajectory = gather(platform, 1)["r"].payload
    platform.submit(calls.update("u", (state.encode(), trajectory)))
    outcome = gather(platform, 1)["u"]
    assert outcome.status == "done", outcome.reason
    assert outcome.usage.minibatches == 1
    assert decode(outcome.payload)["version"] == 1


def test_a_body_that_raises_is_an_outcome(platform: Platform) -> None:
    ref = platform.publish(0, b"not weights at all")
    platform.submit(calls.rollout("actor", ref))
    platform.submit(calls.update("learner", (b"nonsense",)))
    outcomes = gather(platform, 2)
    for outcome in outcomes.values():
        assert outcome.status == "failed"
        assert outcome.reason_code == "error"
        assert outcome.reason.startswith("CodecError: ")
        assert "training/engine/codec.py:" in outcome.reason.splitlines()[0]


def test_unpublished_weights_are_an_outcome(platform: Platform) -> None:
    ref = platform.publish(3, calls.weights())
    platform.submit(calls.rollout("c", ref.model_copy(update={"sha256": "0" * 64})))
    outcome = gather(platform, 1)["c"]
    assert (outcome.status, outcome.reason_code) == ("failed", "weights")
    assert "version 3" in outcome.reason


def test_many_versions_one_after_the_other(platform: Platform) -> None:
    for version in range(12):
        ref = platform.publish(version, calls.weights(version))
        platform.submit(calls.rollout(f"c{version}", ref))
        assert gather(platform, 1)[f"c{version}"].status == "done"


def test_a_call_that_is_sent_again_finds_its_weights_however_many_versions_came_since(
    platform: Platform,
) -> None:
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.rollout("c-a1", ref))
    for version in range(1, 20):
        platform.publish(version, calls.weights(version))
    assert gather(platform, 1)["c-a1"].status == "done"
    platform.submit(calls.rollout("c-a2", ref))
    assert gather(platform, 1)["c-a2"].status == "done"


def test_cancelled_calls_still_give_their_outcome(opened: Opened) -> None:
    platform = opened.platform
    ref = platform.publish(0, calls.weights())
    names = [f"c{n}" for n in range(4)]
    for name in names:
        platform.submit(calls.rollout(name, ref, steps=opened.many_steps))
    for name in names:
        platform.cancel(name)
    platform.cancel("nobody")
    outcomes = gather(platform, 4)
    assert {outcome.status for outcome in outcomes.values()} == {"cancelled"}
    platform.submit(calls.rollout("after", ref))
    assert gather(platform, 1)["after"].status == "done"


def test_close_leaves_no_process(opened: Opened) -> None:
    platform = opened.platform
    ref = platform.publish(0, calls.weights())
    for number in range(4):
        platform.submit(calls.rollout(f"c{number}", ref, steps=opened.many_steps))
    platform.submit(calls.update("u", (b"",)))
    gather_one = platform.next(0.0)
    assert gather_one is None or gather_one.call_id == "u"
    pids = opened.pids()
    platform.close()
    platform.close()
    assert platform.next(0.0) is None
    assert os.getpid() not in pids
    end_s = time.monotonic() + opened.end_within_s
    while any(alive(pid) for pid in opened.pids()) and time.monotonic() < end_s:
        time.sleep(0.05)
    working = opened.pids() if opened.end_within_s else pids
    assert not any(alive(pid) for pid in working)
