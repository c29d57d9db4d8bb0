"""Presets and recipes "as in the papers" against the papers' hyperparameters, and stored runs against their recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.experiment import experiment_names, find_experiment
from research.paper_tables import Paper, differences
from research.recipes import first_recipe, paper_recipe
from research.reports.preregistration import declaration
from research.runs.recipe_match import has_other_recipe
from research.runs.run_file import run_file
from webapp.jobs.form.presets import presets
from webapp.jobs.spec import JobSpec

# What a preset may not share with its paper; the reasons stand in the table and on pages.
ALLOWED = {
    "environment.id",
    "network.orthogonal",
    "evaluation.every_rounds",
    "evaluation.episodes",
}


OWN: dict[Paper, set[str]] = {
    "nitro": set(),
    "minionsrl": {"rollout.steps_per_call", "algorithm.normalise_advantages"},
    "stellaris": {"loop.aggregation"},
}


def paper_presets() -> list[tuple[str, Paper]]:
    papers: dict[str, Paper] = {"Nitro": "nitro", "MinionsRL": "minionsrl", "Stellaris": "stellaris"}
    return [(name, papers[one.paper]) for name, one in presets().items() if one.paper in papers]


@pytest.mark.parametrize(("name", "paper"), paper_presets())
def test_a_paper_s_preset_is_its_table_but_for_what_has_a_reason(name: str, paper: Paper) -> None:
    found = differences(presets()[name].spec.training.model_dump(mode="json"), paper)
    assert {one.path for one in found} <= ALLOWED | OWN[paper]
    assert all(one.reason and one.source for one in found)


def test_each_paper_has_presets_that_are_compared() -> None:
    assert {name for name, _ in paper_presets()} >= {
        "hopper-papers",
        "hopper-nitro",
        "hopper-minionsrl",
        "hopper-stellaris",
        "hopper-stellaris-lambda",
    }


def test_a_preset_with_other_numbers_of_its_loop_is_found() -> None:
    training = presets()["hopper-stellaris"].spec.training.model_dump(mode="json")
    other = {**training, "loop": {**training["loop"], "staleness_decay": 0.5, "learners": 3}}
    found = {one.path: one.reason for one in differences(other, "stellaris")}
    assert found["loop.staleness_decay"] == found["loop.learners"] == ""


def paths(document: dict[str, Any]) -> dict[str, str]:
    training = JobSpec.model_validate(document).training.model_dump(mode="json")
    return {one.path: one.ours for one in differences(training, "nitro")}


def test_the_first_recipe_differs_where_it_was_found_to_and_the_papers_does_not() -> None:
    ours = paths(first_recipe())
    assert ours["algorithm.gradient_clip"] == "joint"
    assert ours["algorithm.adam_epsilon"] == "1e-05"
    assert ours["algorithm.value_error"] == "half_square"
    assert not [path for path in paths(paper_recipe()) if path.startswith("algorithm.")]


def test_a_page_says_each_difference_once_with_its_environments() -> None:
    rows = declaration(find_experiment("nitro_rewards_fast"))["differences"]
    (clip,) = [row for row in rows if row["path"] == "algorithm.gradient_clip"]
    assert (clip["paper"], clip["ours"]) == ("none", "joint")
    assert "Hopper-v5" in clip["environments"]
    assert clip["reason"]
    assert len({row["path"] for row in rows}) == len(rows)


@pytest.mark.parametrize("name", experiment_names())
def test_stored_runs_are_of_the_recipe_that_is_declared(name: str) -> None:
    """The first run of each arm: a change of code or presets must not make evidence worthless unseen."""
    experiment = find_experiment(name)
    seen = set()
    for cell in experiment.cells():
        if (cell.arm, cell.environment) not in seen:
            rows = run_file(experiment, Path("no data") / name, cell).rows()
            seen.add((cell.arm, cell.environment))
            assert not has_other_recipe(experiment, cell, rows), cell
