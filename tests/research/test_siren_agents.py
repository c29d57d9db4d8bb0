"""Siren's simulation run again: its arithmetic gives the slides' grid, and its arms meet the same chance."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from research import siren_agents
from research.siren_agents import (
    EPOCHS,
    GRID_MB,
    AgentSetting,
    FunctionsPlan,
    chances,
    cloud_of,
    counted_s,
    drawn_clouds,
    judge_agent,
    judged_normals,
    play,
    recipe_of,
    row_of,
    rows,
    search,
    spec_of,
)
from research.siren_tables import GRID
from training.engine.seeds import derive
from training.scheduling.trainer import initial_state

SETTING = AgentSetting(100, 0.37)


@pytest.mark.parametrize("load", [0.0, 0.37])
@pytest.mark.parametrize("budget", [300, 200, 100])
def test_the_arithmetic_gives_the_slides_grid(budget: int, load: float) -> None:
    """Within a thousandth of its times, and of the dollars as far as the rows' own price differs."""
    functions, none = GRID[budget].most, np.zeros((1, EPOCHS))
    for cloud in (
        cloud_of(load, spread=0.0),
        cloud_of(load, parallel_share=0.7, fetch_share=0.3, spread=0.0),
    ):
        played = play(cloud, FunctionsPlan(functions, GRID_MB, functions), 1000.0, none)
        assert played.seconds[0] == pytest.approx(GRID[budget].seconds, rel=0.001)
        assert played.usd[0] == pytest.approx(GRID[budget].usd, rel=0.02)


def test_the_search_keeps_to_the_budget_and_counts_what_it_costs() -> None:
    found = search(SETTING, [GRID_MB])
    assert found is not None
    plan, tried_usd = found
    played = play(SETTING.cloud, plan, SETTING.budget, chances(-1))
    assert played.kept.mean() >= 0.95
    more = FunctionsPlan(plan.functions + 12, plan.memory_mb, plan.first + 12)
    assert play(SETTING.cloud, more, SETTING.budget, chances(-1)).kept.mean() < 0.95
    assert tried_usd > 20 * SETTING.budget
    assert search(AgentSetting(50, 0.0), [GRID_MB]) is None


def test_with_a_load_the_first_epoch_is_worth_more_functions() -> None:
    fixed, first = search(SETTING, [512]), search(SETTING, [512], own_first=True)
    assert fixed is not None
    assert first is not None
    assert first[0].first > first[0].functions
    taken = [play(SETTING.cloud, one[0], 100.0, chances(-1)).seconds.mean() for one in (fixed, first)]
    assert taken[1] < taken[0]


def test_an_agent_and_fixed_numbers_are_judged_with_the_same_chance() -> None:
    """Oracle: an agent that may choose one thing only is fixed numbers."""
    spec = spec_of(3).model_copy(
        update={"actors_min": 100, "actors_max": 100, "memory_min_mb": 1024, "memory_max_mb": 1024}
    )
    weights = initial_state(spec).actor_weights(spec.network)
    seeds = [derive(3, "judged", one) for one in range(100)]
    own, actors = judge_agent(weights, SETTING.cloud, SETTING, spec, seeds)
    fixed = play(SETTING.cloud, FunctionsPlan(100, 1024, 100), SETTING.budget, judged_normals(3))
    assert set(actors) == {100}
    assert own.seconds == pytest.approx(fixed.seconds)
    assert own.usd == pytest.approx(fixed.usd, rel=1e-6)
    assert own.kept.tolist() == fixed.kept.tolist()
    assert counted_s(own, 1e9) == pytest.approx(counted_s(fixed, 1e9))


def test_drawn_clouds_are_always_the_same_and_differ_from_one_another() -> None:
    first, again = list(drawn_clouds(0.37)), list(drawn_clouds(0.37))
    assert first == again
    assert len(set(first)) == siren_agents.DRAWS


def test_rows_are_kept_by_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siren_agents, "DRAWS", 8)
    spec = spec_of(0, rehearsals=800)
    row = row_of(SETTING, 0, FunctionsPlan(600, 1024, 600), spec)
    assert (row["budget"], row["load"], row["seed"], len(row["seconds"])) == (100, 0.37, 0, 100)
    assert 0 <= row["faster_in"] <= 8
    path = tmp_path / "agents.jsonl"
    whole = {**row, "recipe": recipe_of(spec_of(0))}
    path.write_text(f"{json.dumps(row)}\n{json.dumps(whole)}\n")
    assert rows(path) == {(100, 0.37, 0): whole}
    assert rows(tmp_path / "none") == {}
    assert recipe_of(spec_of(0)) == recipe_of(spec_of(5)) != recipe_of(spec)
