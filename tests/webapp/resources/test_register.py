"""The register in the database: written before, guarded by the lease, and one holder for each name."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cloud.accounts.register import NameTaken, RegisterClosed
from tests.factories import FixedClock, make_connection, make_project, release_lease
from tests.webapp.held import make_lambda_job, run_of
from webapp.connections.services import ConnectionRefused, remove_connection
from webapp.database.leases import LEASE_TTL
from webapp.jobs.models import Job
from webapp.jobs.services import stop_idle, stop_job
from webapp.resources.models import Holding, ResourceState
from webapp.resources.register import TAKEN_OVER, DatabaseRegister

pytestmark = pytest.mark.django_db

SOON = time.time() + 100


class Scene:
    def __init__(self) -> None:
        self.clock = FixedClock()
        self.connection = make_connection(make_project(), region="us-east-1")
        self.job = self.new_job()

    def new_job(self) -> Job:
        return make_lambda_job(self.connection, self.clock, provisioned=2)

    def register(self, job: Job | None = None) -> DatabaseRegister:
        job = job or self.job
        epoch = run_of(job, self.clock)
        return DatabaseRegister(self.connection.pk, job.pk, epoch, clock=self.clock)

    def states(self) -> list[tuple[str, str]]:
        return list(Holding.objects.order_by("pk").values_list("name", "state"))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def _intend(register: DatabaseRegister, name: str = "f:1", **facts: Any) -> None:
    register.intend(name, "provisioned", SOON, {"resource": "provisioned", **facts})


def test_the_life_of_a_holding(scene: Scene) -> None:
    register = scene.register()
    _intend(register, instances=2)
    row = Holding.objects.get()
    assert (row.state, row.epoch, row.job, row.facts["instances"]) == (
        ResourceState.INTENDED,
        1,
        scene.job,
        2,
    )
    assert row.intended_at == scene.clock.now()
    register.made("f:1", "arn")
    register.renew("f:1", SOON + 60)
    row.refresh_from_db()
    assert (row.state, row.provider_id) == (ResourceState.EXISTS, "arn")
    assert row.expires_at.timestamp() == pytest.approx(SOON + 60)
    register.ending("f:1")
    register.renew("f:1", SOON + 999)
    row.refresh_from_db()
    assert row.state == ResourceState.ENDING
    assert row.expires_at.timestamp() == pytest.approx(SOON + 60)
    scene.clock.forward(3)
    register.gone("f:1")
    row.refresh_from_db()
    assert (row.state, row.ended_at) == (ResourceState.GONE, scene.clock.now())
    for word in (register.ending, register.gone):
        word("f:1")
    _intend(register)
    assert scene.states() == [("f:1", "gone"), ("f:1", "intended")]


def test_said_twice_is_said_once(scene: Scene) -> None:
    register = scene.register()
    for _ in range(2):
        _intend(register)
        register.made("f:1", "arn")
    assert scene.states() == [("f:1", "standing")]


def test_a_process_that_lost_the_run_may_only_end_things(scene: Scene) -> None:
    register = scene.register()
    _intend(register)
    assert release_lease(job_id=scene.job.pk, epoch=1)
    for word in (
        lambda: _intend(register, "f:2"),
        lambda: register.made("f:1", ""),
        lambda: register.renew("f:1", 1),
    ):
        with pytest.raises(RegisterClosed):
            word()
    assert scene.states() == [("f:1", "intended")]
    register.ending("f:1")
    assert scene.states() == [("f:1", "ending")]


def test_a_zombie_writes_nothing_about_what_its_successor_holds(scene: Scene) -> None:
    zombie = scene.register()
    _intend(zombie)
    scene.clock.forward(LEASE_TTL.total_seconds())
    successor = scene.register()
    _intend(successor)
    zombie.ending("f:1")
    zombie.gone("f:1")
    assert scene.states() == [("f:1", "gone"), ("f:1", "intended")]
    with pytest.raises(RegisterClosed):
        zombie.renew("f:1", SOON)


def test_one_name_has_one_holder_at_a_time(scene: Scene) -> None:
    first = scene.register()
    _intend(first)
    other = scene.new_job()
    second = scene.register(other)
    with pytest.raises(NameTaken, match=f"f:1 is held by {scene.job.name}"):
        _intend(second)
    first.ending("f:1")
    with pytest.raises(NameTaken, match="being ended"):
        _intend(second)
    first.gone("f:1")
    _intend(second)
    assert Holding.objects.get(state=ResourceState.INTENDED).job == other


def test_what_a_dead_run_holds_is_taken_over_by_the_next(scene: Scene) -> None:
    _intend(scene.register())
    scene.clock.forward(LEASE_TTL.total_seconds())
    _intend(scene.register(scene.new_job()))
    old, new = Holding.objects.order_by("pk")
    assert (old.state, old.reason) == (ResourceState.GONE, TAKEN_OVER)
    assert new.state == ResourceState.INTENDED


def test_the_same_name_may_stand_in_two_accounts(scene: Scene) -> None:
    _intend(scene.register())
    elsewhere = Scene()
    _intend(elsewhere.register())
    assert Holding.objects.filter(name="f:1", state=ResourceState.INTENDED).count() == 2


def test_a_connection_is_kept_as_long_as_something_stands_there(scene: Scene) -> None:
    register = scene.register()
    _intend(register)
    stop_job(job=scene.job, user=scene.job.created_by, clock=scene.clock)
    scene.clock.forward(LEASE_TTL.total_seconds())
    assert stop_idle(scene.job.pk, clock=scene.clock)
    with pytest.raises(ConnectionRefused, match=r"^Resources of Starling "):
        remove_connection(connection=scene.connection)
    register.gone("f:1")
    remove_connection(connection=scene.connection)
    assert Holding.objects.get().connection is None
