"""Arms that need other runs first, and what is declared of an experiment."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from cloud.money.billing.retiming import retime
from research import calculation
from research.experiment import (
    Arm,
    Cell,
    Experiment,
    experiment_names,
    find_experiment,
    merged,
    recipe_hash,
)
from research.pricing_targets import place_of
from research.reports.outcomes import read_summaries
from research.reports.report import results_of
from research.reports.scheduler_cost import scheduler_cost_sentences
from research.runs.dependencies import DependencyMissing, with_dependencies
from research.runs.run_file import RunFile
from research.runs.runner import ExperimentRunner, RunChoice
from research.runs.seed_run import SeedRun
from research.scheduler_training import RehearsedTraining
from tests.research.tiny_experiment import CART, TINY, made_in
from training.engine.messages import RoundFinished
from webapp.jobs.running.headless import Headless


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this file's own, because its tests add runs."""
    return made_in(tmp_path_factory.mktemp("data"))


def test_a_control_spends_what_it_must_and_knows_nothing(folder: Path) -> None:
    spent = {
        arm: [row["actors"] for row in RunFile(folder, Cell(arm, CART, 0)).rows() if row["kind"] == "round"]
        for arm in ("boosted", "like")
    }
    assert spent["like"] == sorted(spent["boosted"], reverse=True)
    rows = RunFile(folder, Cell("like", CART, 0)).rows()
    assert all(row["ratio"] is None for row in rows if row["kind"] == "round")
    boosted = RunFile(folder, Cell("boosted", CART, 0)).rows()
    assert all(row["ratio"] is not None and row["why"] for row in boosted if row["kind"] == "round")


def test_a_scheduler_is_trained_trained_on_and_used(folder: Path) -> None:
    """From rehearsals on the runs there are and one real episode; what that cost stands with it."""
    school = {"recorded": ("few",), "actors_max": 4, "rounds": 3, "episodes": 1, "rehearsals": 2}
    experiment = TINY.model_copy(
        update={
            "arms": (
                *TINY.arms,
                Arm(name="scheduler", title="S", study=RehearsedTraining(**school)),
                Arm(name="on", title="S, on", study=RehearsedTraining(**school, begin_with="scheduler")),
                Arm(name="used", title="U", scheduler="on"),
            ),
            "training_targets": {CART: 400.0},
        }
    )
    for arm in ("scheduler", "on", "used"):
        cell = Cell(arm, CART, 0)
        assert SeedRun(experiment, cell, RunFile(folder, cell), root=folder, folder=folder).run()
    rows = RunFile(folder, Cell("scheduler", CART, 0)).rows()
    assert [row.get("played") for row in rows] == [None, "rehearsal", "rehearsal", "real", None]
    assert rows[-1]["cost_usd"] == rows[-2]["episode_usd"] > 0
    found = results_of("tiny", experiment, read_summaries(experiment, folder, quick=False), quick=False)
    usd = rows[-1]["cost_usd"]
    share = RunFile(folder, Cell("on", CART, 0)).rows()[-1]["cost_usd"] / usd
    grid = RunFile(folder, Cell("few", CART, 0)).rows()[-1]["cost_usd"]
    assert found["schedulers"] == scheduler_cost_sentences(experiment, found["arms"])
    from_scratch, trained_on = found["schedulers"]
    assert from_scratch.startswith(f"{CART}, S: ${usd:,.2f} for")
    assert f" {100 * share:.0f} % of" in trained_on
    assert all(sentence.endswith(f" ${grid:,.2f}.") for sentence in found["schedulers"])
    states = [RunFile(folder, Cell(arm, CART, 0)).scheduler() for arm in ("scheduler", "on")]
    assert states[0] != states[1]
    decided = [row for row in RunFile(folder, Cell("used", CART, 0)).rows() if row["kind"] == "round"]
    assert all("the scheduler gives" in row["why"] and 1 <= row["actors"] <= 4 for row in decided)


def test_a_scheduler_may_begin_with_another_task_s() -> None:
    experiment = find_experiment("minionsrl_finetune")
    needed = experiment.needed(Cell("scheduler_tuned", "Hopper-v5", 0))
    assert Cell("scheduler_donor", CART, 0) in needed
    assert Cell("fixed_8", "Hopper-v5", 0) in needed
    assert experiment.needed(Cell("tuned", "Hopper-v5", 7)) == [Cell("scheduler_tuned", "Hopper-v5", 0)]


@pytest.mark.parametrize("arm", ["few", "like"])
def test_a_run_of_another_recipe_is_no_evidence(folder: Path, tmp_path: Path, arm: str) -> None:
    """Whole as it is, it is neither skipped nor reported once something else is declared."""
    cell = Cell(arm, CART, 0)
    longer = TINY.model_copy(
        update={"base": merged(TINY.base, {"training": {"rollout": {"steps_per_call": 32}}})}
    )
    for experiment, state, runs in ((TINY, "skipped", 1), (longer, "failed", 0)):
        runner = ExperimentRunner("tiny", experiment, RunChoice(arms=[arm]), folder=folder, root=tmp_path)
        (found,) = runner.run()
        assert (found.cell, found.state) == (cell, state)
        summaries = read_summaries(experiment, folder, quick=False)
        assert [len(one.done) for one in summaries if one.arm == arm] == [runs]
    assert str(RunFile(folder, cell).path) in found.reason


def test_a_run_waits_for_those_it_needs(tmp_path: Path) -> None:
    cell = Cell("like", CART, 0)
    with pytest.raises(DependencyMissing, match=f"like .* boosted .* {CART}"):
        with_dependencies(TINY, tmp_path / "tiny", cell, TINY.spec(cell), quick=False)
    runner = ExperimentRunner("tiny", TINY, RunChoice(arms=["like"]), folder=tmp_path / "tiny", root=tmp_path)
    (found,) = runner.run()
    assert (found.cell, found.state) == (cell, "waits")
    assert found.reason == f"it needs boosted · {CART} · seed 0"


def test_a_claim_must_name_pricing_targets_and_targets() -> None:
    unknown = (*TINY.pricing_targets, "nowhere")
    for changes in ({"pricing_targets": ("machine",)}, {"targets": {}}, {"pricing_targets": unknown}):
        with pytest.raises(ValidationError, match=r"not there|no such pricing targets"):
            Experiment(**{**TINY.model_dump(), **changes})


@pytest.mark.parametrize("name", experiment_names())
def test_an_arm_at_home_elsewhere_is_the_same_arm(name: str) -> None:
    experiment = find_experiment(name)
    for cell in experiment.cells():
        home = experiment.arm(cell.arm).home
        if home:
            there = find_experiment(home)
            if cell in set(there.cells()):
                assert recipe_hash(there.spec(cell)) == recipe_hash(experiment.spec(cell))
                assert there.evaluation_seeds(cell) == experiment.evaluation_seeds(cell)


def test_calculations_are_found_and_tell_where_each_figure_is(tmp_path: Path) -> None:
    found = calculation.names()
    assert {"not_run", "nitro_startup", "minionsrl_latency"} <= set(found)
    results = calculation.write("not_run", tmp_path, tmp_path)
    known = {*experiment_names(), *found}
    for _, where, remark in results["tables"][0]["rows"]:
        assert remark
        for name in where.split(", "):
            assert name in known or name == "not run" or " " in name or name == "on demand"
    assert "Nitro, figure 13" in (tmp_path / "not_run.md").read_text()


def test_a_script_of_rounds_by_hand() -> None:
    """Two rounds of three actors: six rollouts and two updates, each update after its own rollouts."""
    schedule = calculation.rounds_of(calculation.HOPPER, 3, 2, memory_mb=2048)
    assert [task.kind for task in schedule.tasks] == (["rollout"] * 3 + ["update"]) * 2
    assert schedule.tasks[3].after == (0, 1, 2)
    assert schedule.tasks[4].after == (3,)
    assert schedule.memory_mb == 2048
    found = retime(schedule, place_of("functions_starling"), seed=0)
    assert [one.round_no for one in found.rounds] == [1, 2]
    assert len(found.done) == 8


def test_a_budget_smaller_than_one_actor_ends_before_the_first_round_and_says_what_it_would_take() -> None:
    spec = find_experiment("nitro_rewards").spec(Cell("nitro", "CartPole-v1", 0))
    poor = spec.model_copy(update={"budget_usd": Decimal("0.000001")})
    events = list(Headless(poor).events())
    assert not [one for one in events if isinstance(one, RoundFinished)]
    assert events[-1].reason_code == "budget"  # type: ignore[union-attr]
    assert "$0.00000100" in events[-1].reason  # type: ignore[union-attr]


def test_a_run_whose_budget_is_spent_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends before its rounds do, is judged as it is then, and costs no more than its budget."""
    short = TINY.model_copy(
        update={"base": merged(TINY.base, {"budget_usd": "0.05", "training": {"stop": {"rounds": 1000}}})}
    )
    cell = Cell("few", CART, 0)
    file = RunFile(tmp_path / "tiny", cell)
    assert SeedRun(short, cell, file, root=tmp_path, folder=tmp_path / "tiny").run()
    final, end = file.rows()[-2:]
    assert (final["kind"], end["kind"]) == ("final", "end")
    assert 1 <= end["round"] < 1000
    assert final["round"] == end["round"]
    assert 0.025 < end["cost_usd"] <= 0.05
