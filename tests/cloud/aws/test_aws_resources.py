"""Provisioned instances: registered before they are created, found by the finder, deleted whatever AWS answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from cloud.accounts.register import Holder, Kind, MemoryRegister, NameTaken
from cloud.platforms.aws.billable_resources import AwsFinder
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws.provisioned import KEPT_FOR_S, ProvisionedConcurrency
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.cloud.aws.code import create

MB = 1769
NAME = function_name("starling", MB)


@pytest.fixture
def account(aws: AwsEmulator, demo: DemoAccount) -> DemoAccount:
    """With the function there, made for a connection of ours."""
    worn = {"app": "starling", "connection": "con_ours"}
    create(demo.by_keys.open().client("lambda"), NAME, demo.actor_role, Tags=worn)
    return demo


def _kept(
    account: DemoAccount, register: MemoryRegister, instances: int = 1, **options: object
) -> ProvisionedConcurrency:
    holder = Holder(register, "con_ours", "job_a", 3, "lab")
    return ProvisionedConcurrency(account.by_keys.open().client("lambda"), instances, holder, **options)  # type: ignore[arg-type]


def _until(condition: Callable[[], object], within_s: float = 60.0) -> None:
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def _stand(aws: AwsEmulator) -> list[tuple[str, str]]:
    return [(one.name, number) for one in aws.functions.alive() for number in one.provisioned]


def test_they_are_registered_found_and_given_back(aws: AwsEmulator, account: DemoAccount) -> None:
    register = MemoryRegister()
    ready = _kept(account, register)
    began_unix_s = time.time()
    ready.begin(NAME)
    _until(lambda: ready.qualifier)
    entry = register.entries[f"{NAME}:1"]
    assert (entry.state, entry.kind, entry.facts["instances"]) == ("standing", "provisioned", 1)
    (found,) = AwsFinder(account.by_keys.open()).found()
    assert (found.name, found.deployment, found.run) == (f"{NAME}:1", "con_ours", "job_a/e3")
    assert found.provider_id == entry.provider_id
    assert found.expires_unix_s == pytest.approx(entry.expires_unix_s, abs=1.0)
    assert found.created_unix_s is not None
    assert began_unix_s - 1.0 <= found.created_unix_s <= time.time() + 1.0
    ready.close()
    assert _stand(aws) == []
    assert register.entries[f"{NAME}:1"].state == "gone"
    assert AwsFinder(account.by_keys.open()).found() == []


class _Witness(MemoryRegister):
    """Notes what stood in the account at each word that was said."""

    def __init__(self, aws: AwsEmulator) -> None:
        super().__init__()
        self._aws = aws
        self.stood: dict[str, bool] = {}

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        self.stood["intend"] = bool(_stand(self._aws))
        super().intend(name, kind, expires_unix_s, facts)

    def made(self, name: str, provider_id: str) -> None:
        self.stood["made"] = bool(_stand(self._aws))
        super().made(name, provider_id)

    def ending(self, name: str) -> None:
        self.stood["ending"] = bool(_stand(self._aws))
        super().ending(name)

    def gone(self, name: str) -> None:
        self.stood["gone"] = bool(_stand(self._aws))
        super().gone(name)


def test_the_register_hears_before_the_cloud_does(aws: AwsEmulator, account: DemoAccount) -> None:
    register = _Witness(aws)
    ready = _kept(account, register)
    ready.begin(NAME)
    _until(lambda: ready.qualifier)
    ready.close()
    assert register.stood == {"intend": False, "made": True, "ending": True, "gone": False}


def test_a_lost_reply_is_repeated_and_nothing_is_created_twice(
    aws: AwsEmulator, account: DemoAccount
) -> None:
    register = MemoryRegister()
    aws.faults.order("lost_reply")
    ready = _kept(account, register)
    ready.begin(NAME)
    _until(lambda: ready.qualifier)
    assert aws.faults.struck["lost_reply"] == 1
    assert _stand(aws) == [(NAME, "1")]
    assert len(aws.meter.provisioned) == 1
    aws.faults.order("lost_reply")
    ready.close()
    assert _stand(aws) == []
    assert register.entries[f"{NAME}:1"].state == "gone"


def test_a_delete_that_was_not_done_stays_in_the_register(aws: AwsEmulator, account: DemoAccount) -> None:
    register = MemoryRegister()
    ready = _kept(account, register)
    ready.begin(NAME)
    _until(lambda: ready.qualifier)
    aws.faults.order("zombie_delete")
    ready.close()
    assert register.entries[f"{NAME}:1"].state == "ending"
    finder = AwsFinder(account.by_keys.open())
    (found,) = finder.found()
    finder.end(found)
    assert _stand(aws) == []
    finder.end(found)


def test_who_is_refused_by_the_register_buys_nothing_until_it_is_free(
    aws: AwsEmulator, account: DemoAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.platforms.aws.provisioned._TRY_AGAIN_S", 0.05)

    class Busy(MemoryRegister):
        free = False

        def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
            if not self.free:
                raise NameTaken("job_b keeps them.")
            super().intend(name, kind, expires_unix_s, facts)

    register = Busy()
    ready = _kept(account, register)
    ready.begin(NAME)
    _until(lambda: ready.failure)
    assert ready.failure.endswith(": job_b keeps them.")
    assert _stand(aws) == []
    register.free = True
    _until(lambda: ready.qualifier)
    assert ready.failure == ""
    ready.close()


def test_instances_that_aws_cannot_start_are_reported(
    aws: AwsEmulator, account: DemoAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.platforms.aws.provisioned._TRY_AGAIN_S", 0.05)
    client = account.by_keys.open().client("lambda")
    client.update_function_configuration(FunctionName=NAME, Handler="missing.handler")
    ready = _kept(account, MemoryRegister())
    ready.begin(NAME)
    _until(lambda: ready.failure)
    assert ready.failure.endswith("AWS says: FUNCTION_ERROR_INIT_FAILURE")
    ready.close()


def test_they_are_renewed_while_they_are_wanted(account: DemoAccount) -> None:
    now = [1_000_000.0]
    register = MemoryRegister()
    ready = _kept(account, register, now_unix_s=lambda: now[0])
    ready.renew()
    assert register.entries == {}
    ready.begin(NAME)
    _until(lambda: ready.qualifier)
    for seconds, expires in ((30.0, KEPT_FOR_S), (41.0, 41.0 + KEPT_FOR_S), (60.0, 41.0 + KEPT_FOR_S)):
        now[0] = 1_000_000.0 + seconds
        ready.renew()
        assert register.entries[f"{NAME}:1"].expires_unix_s == 1_000_000.0 + expires
    ready.close()


def test_what_others_provision_is_distinguished_and_what_is_not_ours_is_not_seen(
    aws: AwsEmulator, account: DemoAccount
) -> None:
    client = account.by_keys.open().client("lambda")
    create(client, "starling-actor-512mb", account.actor_role, MemorySize=512)  # known by its size alone
    for name in (NAME, "starling-actor-512mb"):
        client.publish_version(FunctionName=name)
        client.put_provisioned_concurrency_config(
            FunctionName=name, Qualifier="1", ProvisionedConcurrentExecutions=1
        )
    found = AwsFinder(account.by_keys.open(), [512, 1024]).found()
    assert [(one.name, one.deployment) for one in found] == [
        (f"{NAME}:1", ""),
        ("starling-actor-512mb:1", ""),
    ]
    assert [one.name for one in AwsFinder(account.by_keys.open()).found()] == [f"{NAME}:1"]


def test_what_shows_late_is_found_later(aws: AwsEmulator, account: DemoAccount) -> None:
    aws.faults.visibility_delay_s = 60.0
    ready = _kept(account, MemoryRegister())
    ready.begin(NAME)
    _until(lambda: ready.qualifier)
    finder = AwsFinder(account.by_keys.open())
    assert finder.found() == []
    (function,) = aws.functions.alive()
    shown = function.provisioned["1"]
    aws.inside(lambda: setattr(shown, "visible_s", time.monotonic()))  # as if a minute had passed
    (found,) = finder.found()
    assert found.name == f"{NAME}:1"
    ready.close()
