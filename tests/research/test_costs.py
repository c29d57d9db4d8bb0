"""Endpoints of cost on real, tiny runs: what they come to by hand, and what may be said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cloud.billing.retiming import retime
from research.claims import Better, Cheaper
from research.experiment import (
    Cell,
    Experiment,
)
from research.pricing_targets import PRICING_TARGETS, place_of
from research.reports.cost_comparison import CostComparisons
from research.reports.cost_report import cost_tables, draws_sentence, priced_runs
from research.reports.judging import Judgement, corrected, judge, judge_alike
from research.reports.outcomes import Outcome, read_summaries
from research.reports.report import write_report
from research.reports.run_cost import CLOUD_SEEDS, PricedRun, return_at
from research.runs import run_file
from research.runs.run_file import RunFile
from tests.research.tiny_experiment import CART, CLAIM, TINY, made_in
from training.statistics import Interval, interquartile_mean


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_in(tmp_path_factory.mktemp("data"))


def _run(folder: Path, arm: str, returns: list[float] | None = None) -> PricedRun:
    """A run of the fixture; with `returns`, as if its evaluations had scored so."""
    file = RunFile(folder, Cell(arm, CART, 0))
    found = file.rows()
    if returns is not None:
        scores = iter(returns)
        # As many steps in each round of either arm, so that both are read after every one.
        found = [{**row, "env_steps": 100 * row["round"]} if "env_steps" in row else row for row in found]
        found = [
            {**row, "return_mean": next(scores)} if row["kind"] == "evaluation" else row for row in found
        ]
    return PricedRun(Outcome(file.cell, found), file.sittings)


def test_a_run_s_cost_grows_with_its_rounds_and_leaves_out_evaluations(folder: Path) -> None:
    run = _run(folder, "few")
    costs = [run.cost("functions_paper", until) for until in range(1, 6)]
    assert run.rounds == 5
    assert [one.usd for one in costs] == sorted(one.usd for one in costs)
    assert [one.seconds for one in costs] == sorted(one.seconds for one in costs)
    (sitting,) = RunFile(folder, Cell("few", CART, 0)).sittings()
    place = place_of("functions_paper")
    with_evaluations = [work for work in sitting.works if work.kind == "evaluate"]
    (script,) = run.scripts(5)
    assert len(script.tasks) == len(sitting.works) - len(with_evaluations) == 5 * (2 + 1)
    # The mean over several seeds of the cloud.
    bills = [retime(script, place, seed=seed).bill.picodollars for seed in CLOUD_SEEDS]
    assert costs[-1].usd == pytest.approx(sum(bills) / len(bills) / 10**12)
    whole = retime(script, place, seed=0)
    assert [one.round_no for one in whole.rounds] == [1, 2, 3, 4, 5]


def test_a_cluster_costs_its_hourly_price_and_the_paper_s_formula_by_hand(folder: Path) -> None:
    """p3.2xlarge 3.06 and c5.4xlarge 0.68 an hour, 17.92 a month for each one's address and disk."""
    run = _run(folder, "boosted")
    cost = run.cost("cluster_paper", 5)
    per_second = (3.06 + 0.68 + 2 * 0.0249) / 3600
    assert cost.usd == pytest.approx(cost.seconds * per_second, rel=2e-3)
    boots = []
    for seed in CLOUD_SEEDS:
        rounds = retime(run.scripts(5)[0], place_of("cluster_paper"), seed=seed).rounds
        boots.append(rounds[0].total_s - max(one.total_s for one in rounds[1:]))
    boots_s = sum(boots) / len(boots)
    assert boots_s > 40  # the machines boot, which the papers' clocks leave out
    clocks_s = cost.seconds - boots_s
    assert cost.paper_usd == pytest.approx(clocks_s * per_second, rel=0.05)
    assert 0 < run.cost("functions_paper", 5).rollouts_share < 0.2


def test_cost_to_the_target_by_hand(folder: Path) -> None:
    """Held for three evaluations by round 4 against by round 5; the third run never got there."""
    soon, late = _run(folder, "boosted", [10, 60, 70, 80, 90]), _run(folder, "few", [60, 10, 55, 50, 51])
    never = _run(folder, "few", [60, 60, 10, 60, 60])
    assert (soon.reached(50.0).at, late.reached(50.0).at) == (4, 5)
    assert (soon.reached(50.0, begin=True).at, late.reached(50.0, begin=True).at) == (2, 3)
    assert never.reached(50.0) == (5, False)
    at = "functions_paper"

    def judgement(theirs: PricedRun, **fields: Any) -> Any:
        runs = {("boosted", CART): {0: soon}, ("few", CART): {0: theirs}}
        return CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**{**CLAIM, **fields}))

    found = judgement(late)
    assert found.interval.value == pytest.approx(soon.cost(at, 4).usd / late.cost(at, 5).usd)
    assert found.word == "not decided by 1 seed"
    assert found.reached == f"{CART}: 1 and 1 of 1"
    censored = judgement(never)
    assert censored.interval.value == pytest.approx(soon.cost(at, 4).usd / (2 * never.cost(at, 5).usd))
    assert censored.reached == f"{CART}: 1 and 0 of 1"
    seconds = judgement(late, measure="seconds", against_at="machine")
    assert seconds.interval.value == pytest.approx(soon.cost(at, 4).seconds / late.cost("machine", 5).seconds)
    formula = judgement(late, accounting="paper")
    assert formula.interval.value == pytest.approx(soon.cost(at, 4).paper_usd / late.cost(at, 5).paper_usd)
    whole = judgement(never, until="end")
    assert whole.interval.value == pytest.approx(soon.cost(at, 5).usd / never.cost(at, 5).usd)
    assert whole.reached == ""


def test_arms_are_read_at_the_same_steps(folder: Path) -> None:
    """Rounds of 100 steps against rounds of 200: the first arm's readings are means of two rounds, so that six rounds
    in a row must hold what the other holds for three.
    """
    small = _run(folder, "few", [60, 60, 60, 60, 30])
    assert small.reached(50.0) == (3, True)
    assert small.outcome.metered_every("evaluation", 200) == ([2, 4, 5], [60.0, 60.0, 30.0])
    assert small.reached(50.0, every_steps=200) == (5, False)
    assert small.reached(50.0, every_steps=100) == (3, True)
    assert small.outcome.round_steps == 100
    rows = [
        {**row, "env_steps": 2 * row["env_steps"]} if "env_steps" in row else row
        for row in small.outcome.rows
    ]
    large = PricedRun(Outcome(small.outcome.cell, rows), small._read_work)
    runs = {("boosted", CART): {0: small}, ("few", CART): {0: large}}
    found = CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**CLAIM))
    assert found.reached == f"{CART}: 0 and 1 of 1"
    assert large.reached(50.0, every_steps=200) == (3, True)


def test_a_claim_is_judged_without_start_ups_without_rebuilding_and_by_the_other_stop_rule(
    folder: Path,
) -> None:
    soon, late = _run(folder, "boosted", [10, 60, 70, 80, 90]), _run(folder, "few", [60, 10, 55, 50, 51])
    runs = {("boosted", CART): {0: soon}, ("few", CART): {0: late}}
    asked = Cheaper(**{**CLAIM, "against_at": "cluster_paper", "measure": "seconds"})
    found = CostComparisons(runs, {CART: 50.0}).cheaper(asked)
    variants = {one["name"]: one for one in found.more["variants"]}
    functions, cluster = "functions_paper", "cluster_paper"
    for account, name in (("no_startup", "no_startup"), ("no_rebuild", "no_rebuild")):
        ours, theirs = soon.cost(functions, 4, account), late.cost(cluster, 5, account)
        assert variants[name]["interval"]["value"] == pytest.approx(ours.seconds / theirs.seconds)
    begin = soon.cost(functions, 2).seconds / late.cost(cluster, 3).seconds
    assert variants["begin"]["interval"]["value"] == pytest.approx(begin)
    # Two machines boot for about a minute each, beside rounds of seconds; one number for each side.
    without = late.cost(cluster, 5, "no_startup").seconds
    assert late.cost(cluster, 5).seconds - without > 40
    assert found.more["startup_shares"][1] == pytest.approx(1 - without / late.cost(cluster, 5).seconds)
    assert 0.0 < found.more["startup_shares"][0] < 1.0
    # The paper's formula has no start in it.
    formula = CostComparisons(runs, {CART: 50.0}).cheaper(asked.model_copy(update={"accounting": "paper"}))
    assert [one["name"] for one in formula.more["variants"]] == ["no_rebuild", "begin"]


def test_a_verdict_whose_sign_turns_without_start_ups_says_so_first(folder: Path) -> None:
    """Functions of one machine's worth of start against a cluster that boots: few rounds make the boot decide."""
    at_once = _run(folder, "few", [60.0] * 5)
    runs = {("few", CART): dict.fromkeys(range(6), at_once)}
    asked = Cheaper(
        **{
            **CLAIM,
            "arm": "few",
            "at": "functions_paper",
            "against_at": "machine",
            "measure": "seconds",
        }
    )
    found = CostComparisons(runs, {CART: 50.0}).cheaper(asked)
    assert found.interval is not None
    turned = [one for one in found.more["variants"] if one["turned"]]
    for one in found.more["variants"]:
        assert one["turned"] == ((one["interval"]["value"] < 1) != (found.interval.value < 1))
    assert found.reason.startswith("Its sign turns") == bool(turned)


def _trained(folder: Path, returns: list[float | None]) -> PricedRun:
    """A run of the fixture as if its training episodes had returned so; None: no episode ended in that round."""
    file = RunFile(folder, Cell("few", CART, 0))
    scores = iter(returns)
    found: list[dict[str, Any]] = []
    for row in file.rows():
        if row["kind"] == "round":
            score = next(scores)
            row = {**row, "episodes": 0 if score is None else 4, "episode_return_mean": score}
            row["env_steps"] = 100 * row["round"]
        found.append(row)
    return PricedRun(Outcome(file.cell, found), file.sittings)


def test_the_meter_of_training_episodes_has_its_own_target(folder: Path) -> None:
    """Reached by round 5 against by round 4, by rounds in which an episode ended; evaluations say nothing."""
    late, soon = _trained(folder, [None, -30, -20, -19, -5]), _trained(folder, [-30, -20, -10, -5, -1])
    never = _trained(folder, [-20, -10, -30, -10, -10])
    found = [run.reached(-20.0, "training") for run in (late, soon, never)]
    assert found == [(5, True), (4, True), (5, False)]
    at = "functions_paper"
    runs = {("boosted", CART): {0: late}, ("few", CART): {0: soon}}
    comparisons = CostComparisons(runs, {CART: 50.0}, {CART: -20.0})
    asked = Cheaper(**CLAIM, meter="training")
    judgement = comparisons.cheaper(asked)
    assert judgement.reached == f"{CART}: 1 and 1 of 1"
    assert judgement.interval is not None
    assert judgement.interval.value == pytest.approx(late.cost(at, 5).usd / soon.cost(at, 4).usd)
    told = {name: value for name, value in CLAIM.items() if name != "label"}
    better = comparisons.better(Better(**told, meter="training"))
    # The mean of the last five readings, as a share of the evaluations' target: one below 0 would turn the sign.
    assert better.interval is not None
    assert better.interval.value == pytest.approx((-74 / 4 - -66 / 5) / 50.0)
    declared = {"training_targets": {CART: 50.0}, "targets": {}, "claims": (asked,)}
    assert Experiment(**{**TINY.model_dump(), **declared}).claims == (asked,)
    with pytest.raises(ValidationError, match="not there"):
        Experiment(**{**TINY.model_dump(), "claims": (asked,)})


def test_a_run_is_drawn_once_for_all_claims(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figures as when each claim draws for itself, from half as many draws."""
    from research.reports import cost_comparison as module

    runs = {(arm, CART): {0: _run(folder, arm, [60.0] * 5)} for arm in ("boosted", "few")}
    claim, seconds = Cheaper(**CLAIM), Cheaper(**CLAIM, measure="seconds")
    alone = [CostComparisons(runs, {CART: 50.0}).judge_over_draws(one, 2) for one in (claim, seconds)]
    asked: list[str] = []

    def counted(scripts: Any, places: Any, draws: int, seed: int) -> Any:
        asked.append(places[0].profile.title)
        return drawn(scripts, places, draws, seed)

    drawn = module.draw_outcomes
    monkeypatch.setattr(module, "draw_outcomes", counted)
    together = CostComparisons(runs, {CART: 50.0})
    assert [together.judge_over_draws(one, 2) for one in (claim, seconds)] == alone
    assert len(asked) == 2  # one for each side, not for each claim


def test_neither_side_at_the_target_decides_nothing(folder: Path) -> None:
    low = [1.0, 2.0, 3.0, 4.0, 5.0]
    seeds = range(6)
    runs = {
        (arm, CART): dict.fromkeys(seeds, _run(folder, name, low))
        for arm, name in (("boosted", "boosted"), ("few", "few"))
    }
    found = CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**CLAIM))
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

    def judgement(few: list[PricedRun], **fields: Any) -> Any:
        runs = {
            ("few", CART): dict(enumerate(few)),
            ("boosted", CART): dict.fromkeys(range(12), elsewhere),
        }
        return CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**{**CLAIM, **fields}))

    ours: dict[str, Any] = {"arm": "few", "at": "machine", "against": ("boosted",)}
    theirs: dict[str, Any] = {"against_at": "machine"}
    seldom, often = [vain] * 8 + [there] * 4, [vain] * 6 + [there] * 6
    found = judgement(seldom, **ours)
    assert found.interval.high < 1.0
    assert found.word == "not decided by 12 seeds"
    assert f"On {CART} ours reached the target in fewer than half of its runs" in found.reason
    found = judgement(seldom, **theirs)
    assert found.interval.low > 1.0
    assert found.word == "not decided by 12 seeds"
    assert f"On {CART} theirs reached the target in fewer than half of its runs" in found.reason
    # Theirs has spent less than ours when it ends in vain: only by counting twice does that make ours the cheaper.
    assert _run(folder, "boosted", late).cost("functions_paper", 5).usd > vain.cost("functions_paper", 5).usd
    found = judgement(seldom)
    assert found.interval.high < 1.0
    assert found.word == "not decided by 12 seeds"
    assert "counted as what was spent in vain, and not as twice that, it decides nothing" in found.reason
    assert judgement(often, **ours).word == "holds"
    # Two who both spent all they had are alike by their limits alone.
    same = {"arm": "few", "against": ("few",), "alike": True}
    assert judgement([vain] * 12, **same).word == "not decided by 12 seeds"
    assert judgement([there] * 12, **same).word == "holds"
    assert judgement(often, **theirs).word == "does not hold"


def test_the_best_of_several_is_chosen_for_each_seed_on_all_others(folder: Path) -> None:
    """By hand: `like` is cheap on one seed and `few` on the other three, so that every seed but one is judged against
    `few`, and none against what was chosen on itself.
    """
    soon, late = [60.0] * 5, [1.0, 1.0, 60.0, 60.0, 60.0]
    quick, slow = _run(folder, "few", soon), _run(folder, "few", late)
    runs = {
        ("boosted", CART): dict.fromkeys(range(4), quick),
        ("few", CART): {0: slow, 1: quick, 2: quick, 3: quick},
        ("like", CART): {0: quick, 1: slow, 2: slow, 3: slow},
    }
    claim = Cheaper(**{**CLAIM, "against": ("few", "like")})
    found = CostComparisons(runs, {CART: 50.0}).cheaper(claim)
    assert (found.against, found.seeds) == ("few", 4)
    grid = sum(
        runs[arm, CART][seed].cost("functions_paper", 5).usd for arm in ("few", "like") for seed in range(4)
    )
    assert f"To find the best of 2 cost another ${grid:,.2f}" in found.reason
    # Seed 0 is judged against `few`, which was late there; on the others `few` was as quick.
    at = "functions_paper"
    ratio = quick.cost(at, 3).usd / interquartile_mean([slow.cost(at, 5).usd, *[quick.cost(at, 3).usd] * 3])
    assert found.interval is not None
    assert found.interval.value == pytest.approx(ratio)


def test_a_best_at_the_edge_of_its_grid_decides_nothing_in_favour(folder: Path) -> None:
    soon, late = _run(folder, "few", [60.0] * 5), _run(folder, "few", [1.0, 1.0, 60.0, 60.0, 60.0])
    arms = {"few": soon, "boosted": late, "like": late}
    runs = {(arm, CART): dict.fromkeys(range(6), run) for arm, run in arms.items()}

    def judged(at: str, *against: str) -> Any:
        claim = Cheaper(**{**CLAIM, "arm": "boosted", "at": at, "against": against})
        return CostComparisons(runs, {CART: 50.0}).cheaper(claim)

    inside, edge = judged("machine", "like", "few", "like"), judged("machine", "few", "like", "boosted")
    assert (inside.word, edge.word) == ("holds", "not decided by 6 seeds")
    assert "at the edge of those tried" in edge.reason


def test_return_at_equal_dollars(folder: Path) -> None:
    assert return_at(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 2.5) == 20.0
    assert return_at(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 0.5) == 10.0
    runs = {
        ("boosted", CART): {0: _run(folder, "few", [50.0] * 5)},
        ("few", CART): {0: _run(folder, "few", [25.0] * 5)},
    }
    told = {name: value for name, value in CLAIM.items() if name != "label"}
    found = CostComparisons(runs, {CART: 50.0}).better(Better(**told))
    assert found.interval == Interval(0.5, 0.5, 0.5)
    assert found.word == "not decided by 1 seed"


@pytest.mark.parametrize(
    ("low", "high", "seeds", "word"),
    [
        (0.5, 0.9, 5, "holds"),
        (1.1, 1.9, 5, "does not hold"),
        (0.9, 1.1, 5, "not decided by 5 seeds"),
        (0.5, 0.9, 3, "not decided by 3 seeds"),
    ],
)
def test_the_words_of_a_verdict(low: float, high: float, seeds: int, word: str) -> None:
    found, reason = judge(Interval((low + high) / 2, low, high), 1.0, seeds, less=True)
    assert found == word
    assert reason or word == "holds"


@pytest.mark.parametrize(
    ("wide", "narrow", "seeds", "word"),
    [
        ((0.85, 1.2), (0.88, 1.15), 5, "holds"),
        # Different, but by less than the margin: equal all the same.
        ((1.05, 1.22), (1.06, 1.2), 5, "holds"),
        ((0.65, 1.04), (0.7, 1.0), 5, "not decided by 5 seeds"),
        ((1.1, 1.5), (1.15, 1.4), 5, "does not hold"),
        ((0.95, 1.05), (0.96, 1.04), 3, "not decided by 3 seeds"),
    ],
)
def test_equality_is_shown_by_two_one_sided_tests_and_not_by_a_wide_interval(
    wide: tuple[float, float], narrow: tuple[float, float], seeds: int, word: str
) -> None:
    found, reason = judge_alike(Interval(1.0, *wide), Interval(1.0, *narrow), (0.8, 1.25), 1.0, seeds)
    assert found == word
    assert "0.8 to 1.25" in reason or seeds < 5


def test_claims_beside_the_primary_one_are_corrected_for_being_many() -> None:
    """By hand: 0.01, 0.02 and 0.04 become 0.03, 0.04 and 0.04; with 0.03 for 0.02 the second becomes 0.06."""

    def family(*p_values: float) -> list[Judgement]:
        interval = Interval(0.8, 0.7, 0.9)
        return [Judgement(interval, 10, "b", "holds", "", p_value=p) for p in p_values]

    assert [one.word for one in corrected(family(0.01, 0.02, 0.04))] == ["holds"] * 3
    found = corrected([*family(0.01, 0.03, 0.04), Judgement(None, 0, "b", "open", "")])
    assert [one.word for one in found] == [
        "holds",
        "not decided by 10 seeds",
        "not decided by 10 seeds",
        "open",
    ]
    assert [one.more.get("p_holm") for one in found] == pytest.approx([0.03, 0.06, 0.06, None])
    assert "among 3 claims its p value is 0.06" in found[1].reason
    equal = Judgement(Interval(1.0, 0.9, 1.1), 10, "b", "holds", "", p_value=0.9, alike=True)
    assert corrected([equal]) == [equal]


def test_what_turns_a_verdict_is_told_in_words() -> None:
    over = {"draws": 200, "cheaper_in": 152, "turned_by": []}
    assert (
        draws_sentence(over)
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
    assert draws_sentence({**over, "turned_by": [start, speed]}).endswith(
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
    assert f"| {CART} | {PRICING_TARGETS['machine'].title} | Boosted |" in text
    summaries = read_summaries(TINY, folder, quick=False)
    before = cost_tables(TINY, priced_runs(TINY, folder, summaries))
    # Stored with the project, a run costs what it cost where it was made.
    monkeypatch.setattr(run_file, "RESULTS", tmp_path / "results")
    for cell in TINY.cells():
        assert RunFile(folder, cell).store()
    elsewhere = tmp_path / "other" / "papers" / "tiny"
    stored = read_summaries(TINY, elsewhere, quick=False)
    assert cost_tables(TINY, priced_runs(TINY, elsewhere, stored)) == before
    assert len(before) == 9
