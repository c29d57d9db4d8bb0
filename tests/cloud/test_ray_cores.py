"""A Ray cluster with fewer cores than actors: jobs go on with what there is, share it, and pay for nothing else."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray.actor_table import ActorRow, ActorTable
from cloud.platforms.ray.core_sharing import JobCores, may_wait, must_hand_back
from tests.cloud.ray_clusters import TestJob, cluster_of, job_on

needs_ray = pytest.mark.skipif(not ray_driver.installed(), reason="Ray is not installed: make ray-setup")
GOES_ON_WITHIN_S = 15.0
FOUR = {"scaling": {"kind": "fixed", "actors": 4}}


def job(name: str, held: float, *, each: float = 1.0, waits: bool = False) -> JobCores:
    return JobCores(name, each, held, waits)


@pytest.mark.parametrize(
    ("mine", "others", "returns"),
    [
        (job("a", 2), [job("b", 0, waits=True)], True),
        (job("a", 2), [job("b", 1, waits=True)], False),
        (job("a", 1), [job("b", 0, waits=True)], False),
        (job("a", 4), [job("b", 0)], False),
        (job("a", 4), [], False),
        # Of several that could, the one with most returns an actor.
        (job("a", 3), [job("b", 4), job("c", 0, waits=True)], False),
        (job("b", 4), [job("a", 3), job("c", 0, waits=True)], True),
        (job("a", 3), [job("b", 3), job("c", 0, waits=True)], False),
        (job("b", 3), [job("a", 3), job("c", 0, waits=True)], True),
        # An actor of two cores needs two of mine.
        (job("a", 4), [job("b", 0, each=2.0, waits=True)], True),
        (job("a", 2), [job("b", 0, each=2.0, waits=True)], False),
    ],
)
def test_the_job_with_most_cores_returns_one_to_a_job_that_waits_with_fewer(
    mine: JobCores, others: list[JobCores], returns: bool
) -> None:
    assert must_hand_back(mine, others) is returns


@pytest.mark.parametrize("cores", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("jobs", [1, 2, 3, 5])
def test_cores_are_shared_evenly_whoever_came_first(cores: int, jobs: int) -> None:
    """One job has all cores; each core that becomes free goes to the first job that may wait for it."""
    held = {f"job-{number}": 0.0 for number in range(jobs)}
    held["job-0"] = float(cores)
    for _ in range(10 * cores * jobs):
        rows = [job(name, count, waits=True) for name, count in held.items()]
        others = {one.job: [other for other in rows if other is not one] for one in rows}
        giver = next((one.job for one in rows if must_hand_back(one, others[one.job])), None)
        if giver is None:
            break
        held[giver] -= 1
        rows = [job(name, count, waits=True) for name, count in held.items()]
        held[
            next(one.job for one in rows if may_wait(one, [other for other in rows if other is not one]))
        ] += 1
    assert max(held.values()) - min(held.values()) <= 1
    assert sum(held.values()) == cores


def test_an_actor_that_no_machine_can_hold_makes_no_job_return_any() -> None:
    table = ActorTable(
        (
            ActorRow("1", "a", 1.0, has_core=True),
            ActorRow("2", "a", 1.0, has_core=True),
            ActorRow("3", "b", 4.0, has_core=False),
        ),
        machines=(2.0,),
    )
    jobs = table.by_job()
    assert jobs["a"] == job("a", 2.0)
    assert not jobs["b"].waits
    assert not must_hand_back(jobs["a"], [jobs["b"]])


@needs_ray
@pytest.mark.slow
def test_four_actors_on_two_cores_make_as_many_rounds_as_two(tmp_path: Path) -> None:
    training = {**FOUR, "rollout": {"steps_per_call": 400}}
    ratios: list[float] = []
    with cluster_of(2, folder=tmp_path) as cluster:
        # Other work on this machine slows one side of a pair: more pairs are measured until they agree.
        while len(ratios) < 3 or (statistics.median(ratios) < 0.9 and len(ratios) < 12):
            rates = {}
            for actors in (2, 4) if len(ratios) % 2 else (4, 2):
                with job_on(cluster, tmp_path, actors=actors, training=training) as one:
                    one.goes_on(5)
                    rates[actors] = one.rounds_per_s(over_s=5.0)
                    said = [str(report.get("words")) for report in one.said]
                    assert actors == 2 or any(text.startswith("2 of 4 actors") for text in said)
            ratios.append(rates[4] / rates[2])
    assert statistics.median(ratios) >= 0.9, ratios


@needs_ray
@pytest.mark.slow
def test_a_machine_is_lost_in_the_middle_and_the_job_goes_on_at_default_settings(tmp_path: Path) -> None:
    with cluster_of(1, 1, folder=tmp_path) as cluster, job_on(cluster, tmp_path, training=FOUR) as one:
        one.goes_on(3)
        one.wait("an actor on each machine", lambda: cluster.machines_with_actors() == 2)
        cluster.lose_machine()
        assert one.goes_on(3, within_s=GOES_ON_WITHIN_S) < GOES_ON_WITHIN_S
        assert one.end() > 0


@needs_ray
@pytest.mark.slow
def test_two_jobs_share_two_cores_and_both_go_on(tmp_path: Path) -> None:
    with (
        cluster_of(2, folder=tmp_path) as cluster,
        job_on(cluster, tmp_path, actors=4, training=FOUR) as first,
    ):
        first.goes_on(3)
        with job_on(cluster, tmp_path, actors=4, training=FOUR) as second:
            second.goes_on(3)
            first.goes_on(3)
            second.goes_on(3)
            words = "1 of 4 actors have a core, so their calls take turns. Other jobs share the cluster's 2 cores."
            for both in (first, second):
                both.wait(words, lambda both=both: both.said[-1]["words"] == words)
        first.wait("both cores", lambda: first.said[-1]["words"].startswith("2 of 4 actors"))


@needs_ray
@pytest.mark.slow
def test_a_job_without_a_core_waits_says_so_and_pays_nothing(tmp_path: Path) -> None:
    with (
        cluster_of(1, folder=tmp_path) as cluster,
        job_on(cluster, tmp_path, actors=1, training=FOUR) as first,
    ):
        first.goes_on(1)
        with job_on(cluster, tmp_path, actors=4, training=FOUR) as second:
            words = (
                "None of 4 actors has a core. Other jobs share the cluster's 1 core. The job waits for one"
            )
            second.wait(words, lambda: _last_words(second).startswith(words))
            second.rounds_per_s(over_s=5.0)
            first.goes_on(1)
            assert {one["money"] for one in second.said} == {0}
            assert second.rounds == 0
            assert first.end() > 0
            second.goes_on(2)
            assert second.said[-1]["money"] > 0


def _last_words(one: TestJob) -> str:
    return str(one.said[-1]["words"]) if one.said else ""
