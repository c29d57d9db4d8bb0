"""Endpoints of cost on real, tiny runs: what they come to by hand, and what may be said of them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cloud.billing.retiming import retime
from cloud.billing.work_file import read_work_file
from training.messages import RoundFinished
from webapp.jobs.running.headless import Headless
from webapp.papers import calculation
from webapp.papers import rows as row_files
from webapp.papers.claims import Better, Cheaper
from webapp.papers.contests import Contests, judged
from webapp.papers.cost_report import cost_tables, of_draws, priced_runs
from webapp.papers.experiment import (
    Arm,
    Cell,
    Experiment,
    Setting,
    experiment_names,
    find_experiment,
    merged,
    recipe_hash,
)
from webapp.papers.followed import NotThere, completed
from webapp.papers.priced import PricedRun, return_at
from webapp.papers.report import results_of, write_report
from webapp.papers.results import Outcome, read_summaries
from webapp.papers.rows import RunFile
from webapp.papers.runner import Choice, Runner
from webapp.papers.schooling import Schooling
from webapp.papers.seed_run import SeedRun
from webapp.papers.statistics import Interval
from webapp.papers.venues import VENUES, place_of

CART = "CartPole-v1"
_CLAIM: dict[str, Any] = {
    "arm": "boosted",
    "at": "functions_paper",
    "against": ("few",),
    "against_at": "functions_paper",
    "environments": (CART,),
    "label": "L",
}
TINY = Experiment(
    title="Tiny",
    question="Q?",
    oracle="O",
    can_claim="C",
    base={
        "budget_usd": "1000",
        "training": {
            "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 64},
            "network": {"kind": "mlp", "hidden": [8, 8]},
            "rollout": {"steps_per_call": 16},
            "evaluation": {"every_rounds": 1, "episodes": 1},
            "stop": {"rounds": 5, "env_steps": None},
        },
        "platform": {"kind": "simulated", "stack": "paper-stack", "workers": 1},
    },
    arms=(
        Arm(
            name="boosted",
            title="Boosted",
            changes={
                "training": {
                    "scaling": {"kind": "boosting", "actors_min": 1, "actors_max": 6, "actors_first": 3}
                }
            },
        ),
        Arm(name="few", title="Few", changes={"training": {"scaling": {"kind": "fixed", "actors": 2}}}),
        Arm(name="like", title="As much, largest first", spends_like="boosted"),
    ),
    settings=(Setting(environment=CART, seeds=(0,)),),
    targets={CART: 50.0},
    venues=("functions_paper", "cluster_paper", "machine"),
    claims=(Cheaper(**_CLAIM, primary=True),),
    final_episodes=1,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs of the tiny experiment, made in this process."""
    folder = tmp_path_factory.mktemp("data") / "papers" / "tiny"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webapp.papers.seed_run.be_nice", lambda: None)
        for cell in TINY.cells():
            assert SeedRun(TINY, cell, RunFile(folder, cell), root=folder, folder=folder).run()
    return folder


def _run(folder: Path, arm: str, returns: list[float] | None = None) -> PricedRun:
    """A run of the fixture; with `returns`, as if its evaluations had scored so."""
    file = RunFile(folder, Cell(arm, CART, 0))
    found = file.rows()
    if returns is not None:
        scores = iter(returns)
        found = [
            {**row, "return_mean": next(scores)} if row["kind"] == "evaluation" else row for row in found
        ]
    return PricedRun(Outcome(file.cell, found), file.work)


def test_a_run_s_cost_grows_with_its_rounds_and_leaves_out_evaluations(folder: Path) -> None:
    run = _run(folder, "few")
    costs = [run.cost("functions_paper", until) for until in range(1, 6)]
    assert run.rounds == 5
    assert [one.usd for one in costs] == sorted(one.usd for one in costs)
    assert [one.seconds for one in costs] == sorted(one.seconds for one in costs)
    (sitting,) = read_work_file(RunFile(folder, Cell("few", CART, 0)).work)
    place = place_of("functions_paper")
    with_evaluations = [work for work in sitting.works if work.kind == "evaluate"]
    (script,) = run.scripts(5)
    assert len(script.tasks) == len(sitting.works) - len(with_evaluations) == 5 * (2 + 1)
    whole = retime(script, place, seed=0)
    assert costs[-1].usd == whole.bill.picodollars / 10**12
    assert [one.round_no for one in whole.rounds] == [1, 2, 3, 4, 5]


def test_a_cluster_costs_its_hourly_price_and_the_paper_s_formula_by_hand(folder: Path) -> None:
    """p3.2xlarge 3.06 and c5.4xlarge 0.68 an hour, 17.92 a month for each one's address and disk."""
    run = _run(folder, "boosted")
    cost = run.cost("cluster_paper", 5)
    per_second = (3.06 + 0.68 + 2 * 0.0249) / 3600
    assert cost.usd == pytest.approx(cost.seconds * per_second, rel=2e-3)
    rounds = retime(run.scripts(5)[0], place_of("cluster_paper"), seed=0).rounds
    boots_s = rounds[0].total_s - max(one.total_s for one in rounds[1:])
    assert boots_s > 40  # the machines boot, which the papers' clocks leave out
    clocks_s = cost.seconds - boots_s
    assert cost.paper_usd == pytest.approx(clocks_s * per_second, rel=0.05)
    assert 0 < run.cost("functions_paper", 5).rollouts_share < 0.2


def test_cost_to_the_target_by_hand(folder: Path) -> None:
    """Held for three evaluations from round 2 on against from round 3 on; the third run never got there."""
    soon, late = _run(folder, "boosted", [10, 60, 70, 80, 90]), _run(folder, "few", [60, 10, 55, 50, 51])
    never = _run(folder, "few", [60, 60, 10, 60, 60])
    assert (soon.reached(50.0).at, late.reached(50.0).at) == (2, 3)
    assert never.reached(50.0) == (5, False)
    at = "functions_paper"

    def contest(theirs: PricedRun, **fields: Any) -> Any:
        runs = {("boosted", CART): {0: soon}, ("few", CART): {0: theirs}}
        return Contests(runs, {CART: 50.0}).cheaper(Cheaper(**{**_CLAIM, **fields}))

    found = contest(late)
    assert found.interval.value == pytest.approx(soon.cost(at, 2).usd / late.cost(at, 3).usd)
    assert found.word == "not decided by 1 seed"
    assert found.reached == f"{CART}: 1 and 1 of 1"
    censored = contest(never)
    assert censored.interval.value == pytest.approx(soon.cost(at, 2).usd / (2 * never.cost(at, 5).usd))
    assert censored.reached == f"{CART}: 1 and 0 of 1"
    seconds = contest(late, measure="seconds", against_at="machine")
    assert seconds.interval.value == pytest.approx(soon.cost(at, 2).seconds / late.cost("machine", 3).seconds)
    formula = contest(late, accounting="paper")
    assert formula.interval.value == pytest.approx(soon.cost(at, 2).paper_usd / late.cost(at, 3).paper_usd)


def _trained(folder: Path, returns: list[float | None]) -> PricedRun:
    """A run of the fixture as if its training episodes had returned so; None: no episode ended in that round."""
    file = RunFile(folder, Cell("few", CART, 0))
    scores = iter(returns)
    found: list[dict[str, Any]] = []
    for row in file.rows():
        if row["kind"] == "round":
            score = next(scores)
            row = {**row, "episodes": 0 if score is None else 4, "episode_return_mean": score}
        found.append(row)
    return PricedRun(Outcome(file.cell, found), file.work)


def test_the_meter_of_training_episodes_has_its_own_target(folder: Path) -> None:
    """Reached from round 3 on against from round 2 on, by rounds in which an episode ended; evaluations say nothing."""
    late, soon = _trained(folder, [None, -30, -20, -19, -5]), _trained(folder, [-30, -20, -10, -5, -1])
    never = _trained(folder, [-20, -10, -30, -10, -10])
    found = [run.reached(-20.0, "training") for run in (late, soon, never)]
    assert found == [(3, True), (2, True), (5, False)]
    at = "functions_paper"
    runs = {("boosted", CART): {0: late}, ("few", CART): {0: soon}}
    contests = Contests(runs, {CART: 50.0}, {CART: -20.0})
    asked = Cheaper(**_CLAIM, meter="training")
    contest = contests.cheaper(asked)
    assert contest.reached == f"{CART}: 1 and 1 of 1"
    assert contest.interval is not None
    assert contest.interval.value == pytest.approx(late.cost(at, 3).usd / soon.cost(at, 2).usd)
    told = {name: value for name, value in _CLAIM.items() if name != "label"}
    better = contests.better(Better(**told, meter="training"))
    # The mean of the last five readings, as a share of the evaluations' target: one below 0 would turn the sign.
    assert better.interval is not None
    assert better.interval.value == pytest.approx((-74 / 4 - -66 / 5) / 50.0)
    declared = {"training_targets": {CART: 50.0}, "targets": {}, "claims": (asked,)}
    assert Experiment(**{**TINY.model_dump(), **declared}).claims == (asked,)
    with pytest.raises(ValidationError, match="not there"):
        Experiment(**{**TINY.model_dump(), "claims": (asked,)})


def test_a_run_is_drawn_once_for_all_claims(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figures as when each claim draws for itself, from half as many draws."""
    from webapp.papers import contests as module

    runs = {(arm, CART): {0: _run(folder, arm, [60.0] * 5)} for arm in ("boosted", "few")}
    claim, seconds = Cheaper(**_CLAIM), Cheaper(**_CLAIM, measure="seconds")
    alone = [Contests(runs, {CART: 50.0}).robust(one, 2) for one in (claim, seconds)]
    asked: list[str] = []

    def counted(scripts: Any, places: Any, draws: int, seed: int) -> Any:
        asked.append(places[0].profile.title)
        return drawn(scripts, places, draws, seed)

    drawn = module.drawn
    monkeypatch.setattr(module, "drawn", counted)
    together = Contests(runs, {CART: 50.0})
    assert [together.robust(one, 2) for one in (claim, seconds)] == alone
    assert len(asked) == 2  # one for each side, not for each claim


def test_neither_side_at_the_target_decides_nothing(folder: Path) -> None:
    low = [1.0, 2.0, 3.0, 4.0, 5.0]
    seeds = range(6)
    runs = {
        (arm, CART): dict.fromkeys(seeds, _run(folder, name, low))
        for arm, name in (("boosted", "boosted"), ("few", "few"))
    }
    found = Contests(runs, {CART: 50.0}).cheaper(Cheaper(**_CLAIM))
    assert found.word == "not decided by 6 seeds"
    assert "neither side reached the target" in found.reason


def test_nobody_is_called_cheaper_who_seldom_got_there(folder: Path) -> None:
    """The oracle: one machine is so much cheaper than functions that twice what it spent in vain is less than what they
    spent until they were there; what it would have spent is still not known, whichever side it is on.
    """
    never, late = [1.0] * 5, [1.0, 1.0, 60.0, 60.0, 60.0]
    vain, there, elsewhere = (
        _run(folder, "few", never),
        _run(folder, "few", late),
        _run(folder, "boosted", late),
    )

    def contest(few: list[PricedRun], **fields: Any) -> Any:
        runs = {
            ("few", CART): dict(enumerate(few)),
            ("boosted", CART): dict.fromkeys(range(6), elsewhere),
        }
        return Contests(runs, {CART: 50.0}).cheaper(Cheaper(**{**_CLAIM, **fields}))

    ours: dict[str, Any] = {"arm": "few", "at": "machine", "against": ("boosted",)}
    theirs: dict[str, Any] = {"against_at": "machine"}
    seldom, often = [vain] * 4 + [there] * 2, [vain] * 3 + [there] * 3
    found = contest(seldom, **ours)
    assert found.interval.high < 1.0
    assert found.word == "not decided by 6 seeds"
    assert f"On {CART} ours reached the target in fewer than half of its runs" in found.reason
    found = contest(seldom, **theirs)
    assert found.interval.low > 1.0
    assert found.word == "not decided by 6 seeds"
    assert f"On {CART} theirs reached the target in fewer than half of its runs" in found.reason
    # Theirs has spent less than ours when it ends in vain: only by counting twice does that make ours the cheaper.
    assert _run(folder, "boosted", late).cost("functions_paper", 5).usd > vain.cost("functions_paper", 5).usd
    found = contest(seldom)
    assert found.interval.high < 1.0
    assert found.word == "not decided by 6 seeds"
    assert "counted as what was spent in vain, and not as twice that, it decides nothing" in found.reason
    assert contest(often, **ours).word == "holds"
    # Two who both spent all they had are alike by their limits alone.
    same = {"arm": "few", "against": ("few",), "alike": True}
    assert contest([vain] * 6, **same).word == "not decided by 6 seeds"
    assert contest([there] * 6, **same).word == "holds"
    assert contest(often, **theirs).word == "does not hold"


def test_the_best_of_several_is_chosen_on_other_seeds(folder: Path) -> None:
    """`like` wins on the first half and `few` on the second: judged is against `like`, on the second half only."""
    soon, late = [60.0] * 5, [1.0, 1.0, 60.0, 60.0, 60.0]
    runs = {
        ("boosted", CART): {seed: _run(folder, "few", soon) for seed in range(4)},
        ("few", CART): {seed: _run(folder, "few", late if seed < 2 else soon) for seed in range(4)},
        ("like", CART): {seed: _run(folder, "few", soon if seed < 2 else late) for seed in range(4)},
    }
    claim = Cheaper(**{**_CLAIM, "against": ("few", "like")})
    found = Contests(runs, {CART: 50.0}).cheaper(claim)
    assert (found.against, found.seeds) == ("like", 2)
    one = _run(folder, "few")
    grid = sum(
        runs[arm, CART][seed].cost("functions_paper", one.rounds).usd
        for arm in ("few", "like")
        for seed in (0, 1)
    )
    assert f"To find the best of 2 cost another ${grid:,.2f}" in found.reason
    assert found.interval is not None
    assert found.interval.value == pytest.approx(
        one.cost("functions_paper", 1).usd / one.cost("functions_paper", 3).usd
    )


def test_return_at_equal_dollars(folder: Path) -> None:
    assert return_at(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 2.5) == 20.0
    assert return_at(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 0.5) == 10.0
    runs = {
        ("boosted", CART): {0: _run(folder, "few", [50.0] * 5)},
        ("few", CART): {0: _run(folder, "few", [25.0] * 5)},
    }
    told = {name: value for name, value in _CLAIM.items() if name != "label"}
    found = Contests(runs, {CART: 50.0}).better(Better(**told))
    assert found.interval == Interval(0.5, 0.5, 0.5)
    assert found.word == "not decided by 1 seed"


@pytest.mark.parametrize(
    ("low", "high", "seeds", "alike", "word"),
    [
        (0.5, 0.9, 5, False, "holds"),
        (1.1, 1.9, 5, False, "does not hold"),
        (0.9, 1.1, 5, False, "not decided by 5 seeds"),
        (0.5, 0.9, 3, False, "not decided by 3 seeds"),
        (0.9, 1.1, 5, True, "holds"),
        (0.9, 1.1, 1, True, "not decided by 1 seed"),
        (1.1, 1.2, 5, True, "does not hold"),
    ],
)
def test_the_words_of_a_verdict(low: float, high: float, seeds: int, alike: bool, word: str) -> None:
    found, reason = judged(Interval((low + high) / 2, low, high), 1.0, seeds, less=True, alike=alike)
    assert found == word
    assert reason or word == "holds" or alike


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
                Arm(name="scheduler", title="S", study=Schooling(**school)),
                Arm(name="on", title="S, on", study=Schooling(**school, begin_with="scheduler")),
                Arm(name="used", title="U", scheduler="on"),
            ),
            "training_targets": {CART: 400.0},
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webapp.papers.seed_run.be_nice", lambda: None)
        for arm in ("scheduler", "on", "used"):
            cell = Cell(arm, CART, 0)
            assert SeedRun(experiment, cell, RunFile(folder, cell), root=folder, folder=folder).run()
    rows = RunFile(folder, Cell("scheduler", CART, 0)).rows()
    assert [row.get("played") for row in rows] == [None, "rehearsal", "rehearsal", "real", None]
    assert rows[-1]["cost_usd"] == rows[-2]["episode_usd"] > 0
    told = results_of("tiny", experiment, read_summaries(experiment, folder, quick=False), quick=False)
    usd = rows[-1]["cost_usd"]
    share = RunFile(folder, Cell("on", CART, 0)).rows()[-1]["cost_usd"] / usd
    grid = RunFile(folder, Cell("few", CART, 0)).rows()[-1]["cost_usd"]
    besides = f" Rehearsals cost nothing; the runs that they were put together from cost ${grid:,.2f}."
    assert told["schedulers"][0] == f"{CART}, S: ${usd:,.2f} for its 1 real episode.{besides}"
    assert (
        f"for its 1 real episode, {100 * share:.0f} % of those from scratch.{besides}"
        in told["schedulers"][1]
    )
    states = [RunFile(folder, Cell(arm, CART, 0)).scheduler.read_bytes() for arm in ("scheduler", "on")]
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
        runner = Runner("tiny", experiment, Choice(arms=[arm]), folder=folder, root=tmp_path)
        (told,) = runner.run()
        assert (told.cell, told.state) == (cell, state)
        summaries = read_summaries(experiment, folder, quick=False)
        assert [len(one.done) for one in summaries if one.arm == arm] == [runs]
    assert "is of another recipe: move it away to run it anew" in told.reason


def test_a_run_waits_for_those_it_needs(tmp_path: Path) -> None:
    cell = Cell("like", CART, 0)
    with pytest.raises(NotThere, match="like needs boosted on CartPole-v1, seed 0, first"):
        completed(TINY, tmp_path / "tiny", cell, TINY.spec(cell), quick=False)
    runner = Runner("tiny", TINY, Choice(arms=["like"]), folder=tmp_path / "tiny", root=tmp_path)
    (told,) = runner.run()
    assert (told.cell, told.state) == (cell, "waits")
    assert told.reason == f"it needs boosted · {CART} · seed 0"


def test_what_turns_a_verdict_is_told_in_words() -> None:
    over = {"draws": 200, "cheaper_in": 152, "turned_by": []}
    assert (
        of_draws(over)
        == "Ours is cheaper in 152 of 200 draws of the clouds' numbers; no single number turns that."
    )
    start = {
        "of": "AWS Lambda",
        "name": "learner.server_start_s",
        "value": 60.0,
        "at": 91.875,
        "kind": "paper",
    }
    speed = {"of": "Mine", "name": "core_ratio", "value": 1.0, "at": 0.8, "kind": "assumed"}
    assert of_draws({**over, "turned_by": [start, speed]}).endswith(
        "; turned by start of the learner 91.9 s (AWS Lambda), speed of a core 0.8 (Mine)."
    )


def test_a_report_tells_cost_verdict_and_what_turns_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write_report("tiny", TINY, folder, tmp_path, draws=3)
    assert json.loads((tmp_path / "tiny.json").read_text()) == results
    (verdict,) = results["verdicts"]
    assert verdict["verdict"] == "not decided by 1 seed"
    assert verdict["label"] == "learned"
    over = verdict["figures"]["over_draws"]
    assert over["draws"] == 3
    assert 0 <= over["cheaper_in"] <= 3
    text = (tmp_path / "tiny.md").read_text()
    assert "draws of the clouds' numbers" in text
    assert f"| {CART} | {VENUES['machine'].title} | Boosted |" in text
    summaries = read_summaries(TINY, folder, quick=False)
    before = cost_tables(TINY, priced_runs(TINY, folder, summaries))
    # Kept with the project, a run costs what it cost where it was made.
    monkeypatch.setattr(row_files, "KEPT", tmp_path / "kept")
    for cell in TINY.cells():
        assert RunFile(folder, cell).keep()
    elsewhere = tmp_path / "other" / "papers" / "tiny"
    kept = read_summaries(TINY, elsewhere, quick=False)
    assert cost_tables(TINY, priced_runs(TINY, elsewhere, kept)) == before
    assert len(before) == 9


def test_a_claim_must_name_venues_and_targets() -> None:
    for changes in ({"venues": ("machine",)}, {"targets": {}}, {"venues": (*TINY.venues, "nowhere")}):
        with pytest.raises(ValidationError, match=r"not there|no such venues"):
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
    script = calculation.rounds_of(calculation.HOPPER, 3, 2, memory_mb=2048)
    assert [task.kind for task in script.tasks] == (["rollout"] * 3 + ["update"]) * 2
    assert script.tasks[3].after == (0, 1, 2)
    assert script.tasks[4].after == (3,)
    assert script.memory_mb == 2048
    found = retime(script, place_of("functions_starling"), seed=0)
    assert [one.round_no for one in found.rounds] == [1, 2]
    assert len(found.done) == 8


def test_a_budget_smaller_than_one_actor_ends_before_the_first_round_and_says_what_it_would_take() -> None:
    asked = find_experiment("nitro_rewards").spec(Cell("nitro", "CartPole-v1", 0))
    poor = asked.model_copy(update={"budget_usd": Decimal("0.000001")})
    events = list(Headless(poor).events())
    assert not [one for one in events if isinstance(one, RoundFinished)]
    assert events[-1].reason_code == "budget"  # type: ignore[union-attr]
    assert "$0.00000100 of the budget is left" in events[-1].reason  # type: ignore[union-attr]
