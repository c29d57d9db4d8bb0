"""Names and tags by which resources are found again, and the register that knows them first."""

from __future__ import annotations

import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cloud.accounts.register import (
    TAG_EXPIRES,
    TAG_RUN,
    MemoryRegister,
    expiry_in,
    group_name,
    is_group_name,
    is_ours,
    run_of,
    run_tag,
    tags,
)

_JOBS = st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=20).map("job_{}".format)


@given(
    prefix=st.text(string.ascii_letters + string.digits + "-_. ", max_size=80),
    job=_JOBS,
    epoch=st.integers(0, 10**9),
    number=st.integers(0, 10**6),
)
def test_names_are_taken_by_every_cloud(prefix: str, job: str, epoch: int, number: int) -> None:
    """Azure's rule is the narrowest: small letters, digits and single hyphens inside, a letter first, 63 in all."""
    name = group_name(prefix, job, epoch, number)
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)
    assert len(name) <= 63
    assert name == group_name(prefix, job, epoch, number)


@given(job=_JOBS, epoch=st.integers(0, 10**6), number=st.integers(0, 1000))
def test_a_name_belongs_to_one_run_and_one_number(job: str, epoch: int, number: int) -> None:
    name = group_name("starling", job, epoch, number)
    assert is_group_name("starling", name)
    assert not is_group_name("starlings", name)
    assert name != group_name("starling", job, epoch + 1, number)
    assert name != group_name("starling", job, epoch, number + 1)


def test_a_name_by_hand() -> None:
    assert group_name("starling", "job_ab2cd3ef4g", 3, 7) == "starling-job-ab2cd3ef4g-e3-7"
    assert not is_group_name("starling", "starling-somebodys-own")
    assert not is_group_name("starling", "other-job-ab2cd3ef4g-e3-7")


@given(job=_JOBS, epoch=st.integers(0, 10**9))
def test_a_run_is_read_back_from_its_tag(job: str, epoch: int) -> None:
    assert run_of(run_tag(job, epoch)) == (job, epoch)


def test_what_is_no_run_is_none() -> None:
    assert [run_of(text) for text in ("", "job_a", "job_a/e", "/e3", "job_a/ex", "job_a/e٣")] == [None] * 6


def test_tags_say_whose_it_is_what_for_and_until_when() -> None:
    worn = tags(deployment="con_a", run="job_a/e1", owner="the-lab", expires_unix_s=1_800_000_000.9)
    assert worn == {
        "app": "starling",
        "starling:deployment": "con_a",
        "starling:run": "job_a/e1",
        "starling:owner": "the-lab",
        "starling:expires": "1800000000",
    }
    assert is_ours(worn)
    assert expiry_in(worn) == 1_800_000_000
    assert not is_ours({TAG_RUN: "job_a/e1"})
    assert expiry_in({TAG_EXPIRES: "soon"}) is None
    assert expiry_in({}) is None


class RegisterMachine(RuleBasedStateMachine):
    """In any order of calls: an intended resource is alive until it is recorded as gone."""

    def __init__(self) -> None:
        super().__init__()
        self.register = MemoryRegister()
        self.alive: dict[str, float] = {}
        self.ending: set[str] = set()

    @rule(name=st.sampled_from("abc"), expires=st.floats(0, 100))
    def intend(self, name: str, expires: float) -> None:
        self.register.intend(name, "container_group", expires, {})
        self.alive.setdefault(name, expires)

    @rule(name=st.sampled_from("abc"))
    def made(self, name: str) -> None:
        if name in self.register.entries:
            self.register.made(name, f"id of {name}")

    @rule(name=st.sampled_from("abc"), expires=st.floats(0, 100))
    def renew(self, name: str, expires: float) -> None:
        if name in self.register.entries:
            self.register.renew(name, expires)
            if name in self.alive and name not in self.ending:
                self.alive[name] = expires

    @rule(name=st.sampled_from("abc"))
    def end(self, name: str) -> None:
        if name in self.register.entries:
            self.register.ending(name)
            if name in self.alive:
                self.ending.add(name)

    @rule(name=st.sampled_from("abc"))
    def gone(self, name: str) -> None:
        if name in self.register.entries:
            self.register.gone(name)
            self.alive.pop(name, None)
            self.ending.discard(name)

    @invariant()
    def knows_what_is_alive(self) -> None:
        assert {one.name: one.expires_unix_s for one in self.register.alive()} == self.alive
        assert {one.name for one in self.register.alive() if one.state == "ending"} == self.ending


TestRegister = RegisterMachine.TestCase
TestRegister.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
