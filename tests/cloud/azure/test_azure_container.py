"""Container groups' own ways: lost replies, quotas, bad images, zombies, what comes late, crashes, going away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from cloud.accounts.register import MemoryCreateCounter, MemoryRegister, wait_s
from cloud.money.billing.price_book import PriceBook, UnknownPrice, UnknownSku
from cloud.platforms.azure.create_limit import CreateLimit
from cloud.platforms.azure_container import AzureContainerOptions, AzureContainerPlatform
from emulator.azure.server import AzureEmulator
from emulator.faults import AzureFault
from tests.cloud import calls
from tests.cloud.azure import containers
from tests.cloud.test_platform_contract import gather
from training.engine.messages import Outcome


def _one(platform: AzureContainerPlatform, name: str = "c", **changes: Any) -> Outcome:
    platform.submit(calls.rollout(name, platform.publish(0, calls.weights()), **changes))
    return gather(platform, 1)[name]


def submit(platform: Any, count: int, **changes: Any) -> None:
    ref = platform.publish(0, calls.weights())
    for number in range(count):
        platform.submit(calls.rollout(f"c{number}", ref, slot=number, **changes))


def until(true: Callable[[], bool], platform: Any = None, within_s: float = 60.0) -> None:
    end_s = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end_s
        if platform is not None:
            platform.next(0.05)
        else:
            time.sleep(0.02)


def hear(platform: AzureContainerPlatform, states: list[str]) -> None:
    """A container may have answered before the account said that its group is made; news is heard while calls run."""
    for number in range(100):
        if _states(platform) == states:
            return
        assert _one(platform, f"more-{number}").status == "done"
    assert _states(platform) == states


def _stub_groups(azure: AzureEmulator) -> None:
    azure.groups.stubs = "*"


def test_a_group_is_registered_before_it_is_requested() -> None:
    class Watchful(MemoryRegister):
        """Says what the account held at each moment."""

        def intend(self, *arguments: Any) -> None:
            seen.append(("intend", len(azure.groups.all())))
            super().intend(*arguments)

        def gone(self, name: str) -> None:
            seen.append(("gone", len(azure.groups.all())))
            super().gone(name)

    seen: list[tuple[str, int]] = []
    register = Watchful()
    with containers.subscription() as (azure, demo), containers.on(demo, register=register) as platform:
        assert _one(platform).status == "done"
        hear(platform, ["standing"])
        (entry,) = register.entries.values()
        assert entry.facts == {"actors": 1, "resource": "actor_group-1"}
        (group,) = azure.groups.all()
        assert group.path == entry.provider_id
        assert group.restart_policy == "Never"
        assert group.tags["starling:run"] == "job-1/e1"
        platform.close()
        assert seen == [("intend", 0), ("gone", 0)]
        assert register.alive() == []


def test_a_container_gets_its_token_and_nothing_of_ours() -> None:
    with containers.opened() as (platform, azure):
        assert _one(platform).status == "done"
        (group,) = azure.groups.all()
        (request,) = group.requests
        assert set(request.variables) == {"STARLING_RUN_TOKEN"}
        token = request.variables["STARLING_RUN_TOKEN"]
        assert token not in str(group.document(whole=True))
        assert token not in " ".join(request.command)


@pytest.mark.parametrize(
    "kind",
    [
        "lost_reply",
        "throttle",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("error_after", "lost_request", "service_error")
        ),
    ],
)
def test_a_create_whose_answer_is_lost_makes_one_group(kind: AzureFault) -> None:
    """Sign-in comes first, so that the fault strikes the create."""
    with containers.opened() as (platform, azure):
        _stub_groups(azure)
        submit(platform, 2)
        azure.faults.order(kind)
        until(lambda: bool(azure.groups.all()), platform)
        until(lambda: _states(platform) == ["standing"], platform)
        assert len(azure.meter.spans) == 1
        platform.close()
        assert azure.groups.all() == []
        assert azure.faults.struck[kind] == 1


def _states(platform: AzureContainerPlatform) -> list[str]:
    register = platform._holder.register
    assert isinstance(register, MemoryRegister)
    return [entry.state for entry in register.entries.values()]


def test_what_shows_late_is_not_made_twice_and_is_taken_away() -> None:
    with containers.opened() as (platform, azure):
        _stub_groups(azure)
        azure.faults.visibility_delay_s = 2.0
        azure.faults.order("lost_reply")
        submit(platform, 2)
        until(lambda: bool(azure.groups.all()), platform)
        platform.close()
        assert len(azure.meter.spans) == 1
        assert azure.groups.all() == []
        assert _states(platform) == ["gone"]


def test_a_zombie_is_paid_and_known_until_it_is_gone() -> None:
    with containers.opened() as (platform, azure):
        azure.faults.zombie_s = 1.0
        assert _one(platform).status == "done"
        azure.faults.order("zombie_delete")
        before_s = time.monotonic()
        platform.close()
        assert time.monotonic() - before_s >= 1.0
        assert azure.groups.all() == []
        assert _states(platform) == ["gone"]


def test_a_quota_that_is_used_up_leaves_the_job_with_what_it_has() -> None:
    with containers.opened(cores=1, containers_a_group=1) as (platform, azure):
        submit(platform, 3)
        assert {one.status for one in gather(platform, 3).values()} == {"done"}
        assert len(azure.meter.spans) == 1


def test_an_image_that_cannot_be_fetched_fails_the_calls_with_that_reason() -> None:
    with containers.opened(image="registry.example/nobody:1") as (platform, azure):
        submit(platform, 2)
        outcomes = gather(platform, 2)
        assert {(one.status, one.reason_code) for one in outcomes.values()} == {("failed", "no_actors")}
        assert "Azure cannot fetch" in outcomes["c0"].reason
        assert azure.meter.spans == []
        assert _states(platform) == ["gone"]


def test_a_group_that_never_comes_to_work_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.platforms.azure.fleet._BACKOFF_S", (0.1,))
    with containers.opened() as (platform, azure):
        platform.fleet._plan = replace(platform.fleet._plan, start_cap_s=1.0)
        _stub_groups(azure)
        submit(platform, 1)
        outcome = gather(platform, 1)["c0"]
        assert (outcome.status, outcome.reason_code) == ("failed", "no_actors")
        platform.close()
        assert _states(platform) == ["gone"] * 3
        assert azure.groups.all() == []


def test_a_container_that_is_killed_costs_a_start_and_no_result() -> None:
    with containers.opened(containers_a_group=1) as (platform, azure):
        azure.faults.crash_after_s = 0.5
        azure.faults.order("crash")
        submit(platform, 2, steps=30_000)
        assert {one.status for one in gather(platform, 2).values()} == {"done"}
        assert azure.faults.struck["crash"] == 1


def test_actors_without_work_are_given_up_after_a_while() -> None:
    with containers.opened(containers_a_group=1) as (platform, azure):
        submit(platform, 2)
        gather(platform, 2)
        platform.fleet._plan = replace(platform.fleet._plan, idle_s=0.2)
        submit(platform, 1, steps=10_000_000, deadline_s=600.0)
        until(lambda: sorted(_states(platform)) == ["gone", "standing"], platform)
        assert len(azure.groups.all()) == 1
        platform.cancel("c0")
        assert gather(platform, 1)["c0"].status == "cancelled"


def test_a_token_that_ran_out_is_renewed() -> None:
    with containers.opened() as (platform, azure):
        assert _one(platform).status == "done"
        azure.subscription.expire_tokens()
        platform.close()
        assert azure.groups.all() == []


def test_a_secret_that_ran_out_says_so() -> None:
    with containers.subscription() as (azure, demo):
        (app,) = azure.subscription.apps.values()
        app.secret_expired = True
        with containers.on(demo) as platform:
            outcome = _one(platform)
            assert outcome.reason_code == "no_actors"
            assert "secret has expired" in outcome.reason
            assert app.secret not in outcome.reason


def test_the_limit_on_creates_is_kept_and_reported() -> None:
    requested_at: list[float] = []
    now = 0.0

    class Count:
        def take(self, windows: Sequence[tuple[int, float]]) -> float:
            requested_at.append(now)
            return wait_s([0.0, 1.0, 2.0], windows, now)

    windows = ((2, 300.0), (3, 3600.0))
    limit = CreateLimit(Count(), windows, now_s=lambda: now)
    assert limit.words() == ""
    assert limit.take() == 5.0, "so that it asks again before long"
    assert "2 creates" in limit.words()
    assert limit.words().endswith(" 60 min")
    now = 4.0
    assert limit.take() == 1.0
    assert requested_at == [0.0], "the others that wait do not ask"
    now = 3590.0
    assert limit.take() == 5.0
    now = 3600.0
    assert limit.take() == 0.0
    assert limit.words() == ""


def test_why_azure_delays_an_order_is_reported() -> None:
    with containers.opened() as (platform, azure):
        _stub_groups(azure)
        submit(platform, 2)
        azure.faults.shares["throttle"] = 1.0
        reported: list[str] = []

        def waits() -> bool:
            reported.append(platform.throttling_reasons())
            return "1 order waits" in reported[-1]

        until(waits, platform)
        assert "Azure" in reported[-1]
        azure.faults.end()
        until(lambda: bool(azure.groups.all()), platform)
        until(lambda: platform.throttling_reasons() == "", platform)


def test_an_order_waits_while_the_registry_of_its_image_fails() -> None:
    with containers.opened() as (platform, azure):
        _stub_groups(azure)
        azure.faults.shares["registry_error"] = 1.0
        submit(platform, 2)
        heard: list[Outcome] = []
        reported = ""
        end_s = time.monotonic() + 60.0
        while "1 order waits" not in (reported := platform.throttling_reasons()):
            assert time.monotonic() < end_s
            heard += [one for one in [platform.next(0.05)] if one is not None]
        assert reported.startswith("The registry of")
        assert heard == [], "no call is given up"
        azure.faults.end()
        until(lambda: bool(azure.groups.all()), platform)
        assert azure.meter.spans


def test_moments_count_in_every_window(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = ((2, 10.0), (3, 3600.0))
    assert wait_s([], windows, 0.0) == wait_s([0.0], windows, 1.0) == 0.0
    assert wait_s([0.0, 1.0], windows, 2.0) == 8.0
    assert wait_s([0.0, 1.0], windows, 10.0) == 0.0
    assert wait_s([0.0, 1.0, 10.0], windows, 50.0) == 3550.0
    creates, moments = MemoryCreateCounter(), iter([100.0, 100.5])
    monkeypatch.setattr("cloud.accounts.register.time", SimpleNamespace(monotonic=lambda: next(moments)))
    assert creates.take(((1, 10.0),)) == 0.0
    assert creates.take(((1, 10.0),)) == 9.5


def test_a_hundred_actors_are_twenty_five_groups() -> None:
    with containers.opened(containers_a_group=4, most_actors=100) as (platform, azure):
        _stub_groups(azure)
        submit(platform, 120)
        until(lambda: len(azure.groups.all()) == 25, platform)
        assert sum(len(one.requests) for one in azure.groups.all()) == 100
        platform.close()
        assert azure.groups.all() == []


def test_without_a_price_there_is_no_tariff() -> None:
    book = PriceBook.load()
    with pytest.raises(UnknownPrice, match="spot"):
        AzureContainerOptions(spot=True).tariff(book)
    with pytest.raises(UnknownSku):
        AzureContainerOptions(region="brazilsouth").tariff(book)


def test_what_does_not_fit_into_a_group_is_refused_in_words() -> None:
    with pytest.raises(ValidationError, match="4 cores at most"):
        AzureContainerOptions(vcpu=2, containers_a_group=4)
    with pytest.raises(ValidationError, match="16 GB at most"):
        AzureContainerOptions(memory_gb=8, containers_a_group=4)
