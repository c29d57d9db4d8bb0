"""Ray on this machine: what a real cluster does, what it costs, and what is said where there is none.

What every platform must do is in `test_platform_contract.py`, of which Ray is a row.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from cloud.money.billing.price_book import PriceBook, UnknownSku
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray.head import NoRay
from cloud.platforms.ray_cluster import RayOptions, RayPlatform
from rig.servers import wait_until
from tests.cloud import calls, processes
from tests.cloud.ray_clusters import ROOT, cluster_of, command_of
from tests.cloud.test_platform_contract import gather
from tests.training.runs import final_learner
from tests.training.specs import tiny

needs_ray = pytest.mark.skipif(not ray_driver.installed(), reason="Ray is not installed: make ray-setup")


def test_without_ray_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoRay, match="make ray-setup"):
        RayOptions().open()


def test_another_version_of_ray_is_refused_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.1.0")
    with pytest.raises(NoRay, match=r"Ray 2\.1\.0 .* 2\.60\.0"):
        RayOptions().open()


@pytest.mark.parametrize(
    "address", ["ray://head:10001", "head", "head:6379/x", "-x:1", "a b:1", "head:6379\n"]
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        RayOptions(address=address)


def test_machines_are_paid_by_the_price_book_while_the_job_is_attached() -> None:
    book = PriceBook.load()
    hourly = book.row("c5.4xlarge", "us-east-1").usd
    (nodes,) = RayOptions(nodes=3, machine="c5.4xlarge").tariff(book, 1769).rents
    assert sum(line.picodollars for line in nodes.lines(3600 * 10**9)) == 3 * int(hourly * 10**12)
    (own,) = RayOptions(nodes=2, node_usd_per_hour=Decimal("0.5")).tariff(book, 1769).rents
    assert sum(line.picodollars for line in own.lines(3600 * 10**9)) == 10**12
    assert RayOptions().tariff(book, 1769).rents == ()
    with pytest.raises(UnknownSku, match="c5"):
        RayOptions(machine="c5.9000xlarge").tariff(book, 1769)


@pytest.fixture
def platform() -> Iterator[RayPlatform]:
    opened = RayOptions(actors=2).open()
    yield opened
    opened.close()


@needs_ray
@pytest.mark.slow
def test_a_call_that_takes_too_long_is_ended_and_the_next_is_served(platform: RayPlatform) -> None:
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.rollout("long", ref, steps=5_000_000, deadline_s=1.0))
    outcome = gather(platform, 1)["long"]
    assert (outcome.status, outcome.reason_code) == ("failed", "deadline")
    assert outcome.finished_s - outcome.started_s < 30.0
    platform.submit(calls.rollout("next", ref))
    assert gather(platform, 1)["next"].status == "done"


@needs_ray
@pytest.mark.slow
def test_an_actor_that_is_killed_is_an_outcome_and_another_takes_its_place(platform: RayPlatform) -> None:
    ref = platform.publish(0, calls.weights())
    platform.submit(calls.rollout("c", ref, steps=5_000_000))
    actors = _wait_for_actors(platform)
    for pid in actors:
        os.kill(pid, signal.SIGKILL)
    outcome = gather(platform, 1)["c"]
    assert (outcome.status, outcome.reason_code) == ("failed", "function_failed")
    assert "ended before it" in outcome.reason
    platform.submit(calls.rollout("next", ref))
    assert gather(platform, 1)["next"].status == "done"


def _wait_for_actors(platform: RayPlatform) -> list[int]:
    """Those that are at work, and not only being started."""
    end_s = time.monotonic() + 30.0
    while time.monotonic() < end_s:
        found = [pid for pid in processes.below(os.getpid()) if b"RayActor.answer" in command_of(pid)]
        if found:
            return found
        assert platform.next(0.05) is None
    raise AssertionError("no actor was started")


@needs_ray
@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_as_local_workers(platform: RayPlatform, tmp_path: Path) -> None:
    spec = tiny(stop={"rounds": 3})
    ledger = MemoryLedger(10**12)
    tariff = RayOptions(nodes=2, machine="c5.4xlarge").tariff(PriceBook.load(), 1769)
    metered = MeteredPlatform(platform, ledger, tariff)
    on_ray = final_learner(spec, metered, tmp_path / "ray")
    metered.close()
    assert ledger.spend().spent_picodollars > 0
    assert not ledger.spend().reserved_picodollars
    local = LocalPlatform(LocalOptions(workers=2))
    try:
        assert on_ray == final_learner(spec, local, tmp_path / "local")
    finally:
        local.close()


@needs_ray
@pytest.mark.slow
def test_the_cluster_inherits_nothing_and_falls_with_the_process_that_started_it() -> None:
    program = (
        "import os, signal; os.environ['SECRET_KEY'] = 'hush'\n"
        "from cloud.platforms.ray_cluster import RayOptions; from tests.cloud import calls; import sys\n"
        "before = signal.signal(signal.SIGTERM, lambda *_: None); mine = signal.getsignal(signal.SIGTERM)\n"
        "platform = RayOptions(actors=1).open()\n"
        "assert signal.getsignal(signal.SIGTERM) is mine\n"
        "platform.submit(calls.rollout('c', platform.publish(0, calls.weights())))\n"
        "assert platform.next(60.0).status == 'done'\n"
        "print('stands', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"stands\n"
    pids = processes.below(process.pid)
    assert len(pids) > 3
    for pid in pids:
        assert b"hush" not in Path(f"/proc/{pid}/environ").read_bytes()
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    end_s = time.monotonic() + 30.0
    while (left := [pid for pid in pids if command_of(pid)]) and time.monotonic() < end_s:
        time.sleep(0.1)
    assert not left


@needs_ray
@pytest.mark.slow
def test_a_cluster_of_two_machines_is_used_by_its_address_and_one_of_them_may_be_lost(tmp_path: Path) -> None:
    with cluster_of(1, 1, folder=tmp_path) as cluster:
        platform = RayOptions(address=cluster.address, cpus_per_actor=1.0).open()
        try:
            assert platform.at_once == 2, "as many actors as both have cores for"
            ref = platform.publish(0, calls.weights())
            # Both are used once the first calls of two actors were answered.
            cold, number = 0, 0
            while cold < 2:
                for name in (f"{number}-a", f"{number}-b"):
                    platform.submit(calls.rollout(name, ref, steps=2_000))
                answered = gather(platform, 2).values()
                assert [one.reason for one in answered] == ["", ""]
                cold += sum(one.usage.cold_start for one in answered)
                number += 1
                assert number < 300, "only one machine is used"
            for name in ("a", "b"):
                platform.submit(calls.rollout(name, ref, steps=60_000, deadline_s=120.0))
            wait_until(
                lambda: cluster.machines_with_actors(at_work=True) == 2,
                within_s=30.0,
                what="a call at work on each machine",
            )
            cluster.lose_machine()
            outcomes = gather(platform, 2)
            assert sorted(one.status for one in outcomes.values()) == ["done", "failed"]
            assert {one.reason_code for one in outcomes.values()} == {"", "function_failed"}
            platform.submit(calls.rollout("next", ref))
            assert gather(platform, 1)["next"].status == "done"
        finally:
            platform.close()
