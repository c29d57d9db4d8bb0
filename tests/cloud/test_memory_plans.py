"""Memory in the plan: the bounds say which sizes there are, and a call has what its round's plan says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.options import PlatformOptions
from cloud.platforms.ray_cluster import RayOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud.recorded import record
from tests.training.specs import descent, tiny
from training.engine.ports import Control
from training.engine.reports import RoundReport
from training.scaling.agent_weights import as_text
from training.scaling.fixed import Fixed
from training.scaling.plan import Bounds, Plan, clip_to_bounds
from training.scheduling.siren.model import SirenSpec
from training.scheduling.trainer import initial_state
from training.tasks.score import Score

SIZES = (512, 1024, 3008)


class ByTurns(Fixed):
    """A policy that wishes for little and for much memory by turns."""

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        wished_mb = 3000 if len(history) % 2 else 500
        return clip_to_bounds(self.actors, bounds, "by turns", wished_mb)

    @property
    def memory_range_mb(self) -> tuple[int, int] | None:
        return 500, 3000


@pytest.mark.parametrize("loop", ["synchronous", "asynchronous"])
def test_calls_have_their_rounds_memory_and_are_paid_by_it(loop: str) -> None:
    changes: dict[str, Any] = {"loop": {"kind": loop}, "stop": {"rounds": 4}}
    spec = tiny(**changes).model_copy(update={"scaling": ByTurns(actors=2)})
    bounds = Bounds(memory_sizes_mb=SIZES)
    run = record(spec, control=lambda: Control(bounds=bounds))
    used = {work.memory_mb for work in run.segment.works if work.kind == "rollout"}
    assert used == {512, 3008}
    if loop == "synchronous":
        by_round = {(work.round_no, work.memory_mb) for work in run.segment.works if work.kind == "rollout"}
        assert by_round == {(1, 512), (2, 3008), (3, 512), (4, 3008)}
        again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
        assert (again.time_s, again.bill.picodollars) == (run.end_s, run.spent_picodollars)


@pytest.mark.parametrize("kind", ["rollout", "sgd"])
def test_an_agents_plans_are_paid_by_their_memory_and_repeat_to_the_picodollar(kind: str) -> None:
    """Siren's agent draws functions and memory; its bill is that of the same work, timed and priced again."""
    agent = SirenSpec(actors_max=3, memory_min_mb=512, memory_max_mb=3008, target_loss=0.1, deviation=0.5)
    weights = as_text(initial_state(agent).actor_weights(agent.network))
    make = tiny if kind == "rollout" else descent
    spec = make(scaling=agent.policy(weights, explore=True).model_dump(), stop={"rounds": 6})
    run = record(spec, control=lambda: Control(bounds=Bounds(memory_sizes_mb=SIZES)))
    reports = [event.report for event in run.events if event.kind == "round"]
    by_round = {(work.round_no, work.memory_mb) for work in run.segment.works if work.kind == kind}
    used = dict(by_round)
    assert len(used) == len(by_round) == len(reports) == 6
    assert len(set(used.values())) > 1
    for report in reports:
        assert report.drawn is not None
        within = min(max(report.drawn[1], 512.0), 3008.0)
        assert used[report.round_no] == report.memory_mb == min(SIZES, key=lambda size: abs(size - within))
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert (again.time_s, again.bill.picodollars) == (run.end_s, run.spent_picodollars)


def test_lambda_has_the_sizes_that_are_set_up_unless_functions_are_kept_ready() -> None:
    ladder = LambdaOptions(memory_ladder_mb=(3008, 512))
    assert ladder.memory_sizes_mb(1024) == [512, 1024, 3008]
    assert "memory_ladder_mb" not in LambdaOptions().model_dump()
    assert ladder.model_copy(update={"provisioned": 2}).memory_sizes_mb(1024) == (1024,)


def test_without_a_wish_every_call_has_what_the_job_asks_for() -> None:
    run = record(
        tiny(rollout={"memory_mb": 1769}), control=lambda: Control(bounds=Bounds(memory_sizes_mb=SIZES))
    )
    assert {work.memory_mb for work in run.segment.works} == {1769}


def test_a_wish_becomes_the_nearest_size_and_the_reason_says_so() -> None:
    bounds = Bounds(memory_sizes_mb=SIZES)
    assert clip_to_bounds(2, bounds, "so", 1024) == Plan(2, 1024, "so")
    nearest = clip_to_bounds(2, bounds, "so", 700)
    assert (nearest.actors, nearest.memory_mb) == (2, 512)
    assert nearest.why.endswith(" 700 MB")
    assert clip_to_bounds(2, bounds, "so", 768).memory_mb == 512
    assert clip_to_bounds(2, replace(bounds, memory_sizes_mb=()), "so", 9000).memory_mb == bounds.memory_mb


@pytest.mark.parametrize(
    "options",
    [
        LocalOptions(),
        LambdaOptions(),
        AzureContainerOptions(),
        HostsOptions(),
        RayOptions(),
        SimulatedOptions(profile="aci-today"),
        SimulatedOptions(profile="one-machine"),
        SimulatedOptions(provisioned=4),
    ],
    ids=lambda options: getattr(options, "profile", options.kind),
)
def test_memory_is_one_size_where_it_is_not_bought_by_the_call(options: PlatformOptions) -> None:
    assert list(options.memory_sizes_mb(1769)) == [1769]


def test_simulated_functions_have_every_size_of_lambda() -> None:
    sizes = SimulatedOptions().memory_sizes_mb(1769)
    assert (sizes[0], sizes[-1], 1769 in sizes) == (128, 10_240, True)
