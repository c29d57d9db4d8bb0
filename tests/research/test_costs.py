"""The costs of real, tiny runs: what they come to by hand, and what a report says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cloud.money.billing.retiming import retime
from cloud.money.billing.waves import WaveRun
from cloud.money.billing.work_file import RunSegment
from cloud.timing.numbers.ranges import Replays, TimeAndCost
from cloud.timing.place import TimingPlace
from research.claims import Better, Cheaper
from research.experiment import Cell, Experiment, find_experiment
from research.pricing_targets import PRICING_TARGETS, Account, place_of
from research.reports.cost_comparison import CostComparisons
from research.reports.cost_report import draws_sentence, priced_runs
from research.reports.cost_tables import cost_tables
from research.reports.judging import undecided
from research.reports.outcomes import RunOutcome, read_summaries
from research.reports.report import write_report
from research.reports.run_cost import CLOUD_SEEDS, PricedRun, RunCost, return_at
from research.runs import run_file as run_files
from research.runs.run_file import RunFile, run_file
from tests.research.tiny_experiment import CART, CLAIM, TINY
from tests.research.tiny_runs import run_of, trained_run
from training.statistics.few_seeds import Interval


def test_a_run_s_cost_grows_with_its_rounds_and_leaves_out_evaluations(folder: Path) -> None:
    run = run_of(folder, "few")
    costs = [run.cost("functions_paper", until) for until in range(1, 6)]
    assert run.rounds == 5
    assert [one.usd for one in costs] == sorted(one.usd for one in costs)
    assert [one.seconds for one in costs] == sorted(one.seconds for one in costs)
    (segment,) = RunFile(folder, Cell("few", CART, 0)).segments()
    place = place_of("functions_paper")
    with_evaluations = [work for work in segment.works if work.kind == "evaluate"]
    (schedule,) = run.schedules(5)
    assert len(schedule.tasks) == len(segment.works) - len(with_evaluations) == 5 * (2 + 1)
    # The mean over several seeds of the cloud.
    bills = [retime(schedule, place, seed=seed).bill.picodollars for seed in CLOUD_SEEDS]
    assert costs[-1].usd == pytest.approx(sum(bills) / len(bills) / 10**12)
    whole = retime(schedule, place, seed=0)
    assert [one.round_no for one in whole.rounds] == [1, 2, 3, 4, 5]


def test_a_cluster_costs_its_hourly_price_and_the_paper_s_formula_by_hand(folder: Path) -> None:
    """p3.2xlarge 3.06 and c5.4xlarge 0.68 an hour, 17.92 a month for each one's address and disk."""
    run = run_of(folder, "few")  # whose rounds are alike
    cost = run.cost("cluster_paper", 5)
    per_second = (3.06 + 0.68 + 2 * 0.0249) / 3600
    assert cost.usd == pytest.approx(cost.seconds * per_second, rel=2e-3)
    clocks_s = run.cost("cluster_paper", 5, "no_startup").seconds
    assert cost.seconds - clocks_s > 40  # the machines boot, which the papers' clocks leave out
    assert cost.paper_usd == pytest.approx(clocks_s * per_second, rel=0.01)
    assert 0 < run.cost("functions_paper", 5).rollouts_share < 0.2


def test_cost_to_the_target_by_hand(folder: Path) -> None:
    """Held for three evaluations by round 4 against by round 5; the third run never got there."""
    soon, late = run_of(folder, "boosted", [10, 60, 70, 80, 90]), run_of(folder, "few", [60, 10, 55, 50, 51])
    never = run_of(folder, "few", [60, 60, 10, 60, 60])
    assert (soon.reached(50.0).at, late.reached(50.0).at) == (4, 5)
    assert (soon.reached(50.0, begin=True).at, late.reached(50.0, begin=True).at) == (2, 3)
    assert never.reached(50.0) == (5, False)
    at = "functions_paper"

    def judgement(theirs: PricedRun, **fields: Any) -> Any:
        runs = {("boosted", CART): {0: soon}, ("few", CART): {0: theirs}}
        return CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**{**CLAIM, **fields}))

    found = judgement(late)
    assert found.interval.value == pytest.approx(soon.cost(at, 4).usd / late.cost(at, 5).usd)
    assert found.word == undecided(1)
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
    small = run_of(folder, "few", [60, 60, 60, 60, 30])
    assert small.reached(50.0) == (3, True)
    assert small.outcome.metered_every("evaluation", 200) == ([2, 4, 5], [60.0, 60.0, 30.0])
    assert small.reached(50.0, every_steps=200) == (5, False)
    assert small.reached(50.0, every_steps=100) == (3, True)
    assert small.outcome.round_steps == 100
    rows = [
        {**row, "env_steps": 2 * row["env_steps"]} if "env_steps" in row else row
        for row in small.outcome.rows
    ]
    large = PricedRun(RunOutcome(small.outcome.cell, rows), small._read_work)
    runs = {("boosted", CART): {0: small}, ("few", CART): {0: large}}
    found = CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**CLAIM))
    assert found.reached == f"{CART}: 0 and 1 of 1"
    assert large.reached(50.0, every_steps=200) == (3, True)


def test_the_meter_of_training_episodes_has_its_own_target(folder: Path) -> None:
    """Reached by round 5 against by round 4, by rounds in which an episode ended; evaluations say nothing."""
    late, soon = trained_run(folder, [None, -30, -20, -19, -5]), trained_run(folder, [-30, -20, -10, -5, -1])
    never = trained_run(folder, [-20, -10, -30, -10, -10])
    found = [run.reached(-20.0, "training") for run in (late, soon, never)]
    assert found == [(5, True), (4, True), (5, False)]
    at = "functions_paper"
    runs = {("boosted", CART): {0: late}, ("few", CART): {0: soon}}
    comparisons = CostComparisons(runs, {CART: 50.0}, {CART: -20.0})
    claim = Cheaper(**CLAIM, meter="training")
    judgement = comparisons.cheaper(claim)
    assert judgement.reached == f"{CART}: 1 and 1 of 1"
    assert judgement.interval is not None
    assert judgement.interval.value == pytest.approx(late.cost(at, 5).usd / soon.cost(at, 4).usd)
    unlabelled = {name: value for name, value in CLAIM.items() if name != "label"}
    better = comparisons.better(Better(**unlabelled, meter="training"))
    # The mean of the last five readings, as a share of the evaluations' target: one below 0 would turn the sign.
    assert better.interval is not None
    assert better.interval.value == pytest.approx((-74 / 4 - -66 / 5) / 50.0)
    declared = {"training_targets": {CART: 50.0}, "targets": {}, "claims": (claim,)}
    assert Experiment(**{**TINY.model_dump(), **declared}).claims == (claim,)
    with pytest.raises(ValidationError, match="not there"):
        Experiment(**{**TINY.model_dump(), "claims": (claim,)})


def test_a_run_is_drawn_once_for_all_claims(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figures as when each claim draws for itself, from half as many draws."""
    runs = {(arm, CART): {0: run_of(folder, arm, [60.0] * 5)} for arm in ("boosted", "few")}
    claim, seconds = Cheaper(**CLAIM), Cheaper(**CLAIM, measure="seconds")
    alone = [CostComparisons(runs, {CART: 50.0}).judge_over_draws(one, 2) for one in (claim, seconds)]
    drawn_at: list[str] = []

    def counted(replays: Replays, places: Sequence[TimingPlace], seeds: Sequence[int]) -> list[TimeAndCost]:
        if seeds == range(2):
            drawn_at.append(places[0].profile.title)
        return drawn(replays, places, seeds)

    drawn = Replays.times_and_costs
    monkeypatch.setattr(Replays, "times_and_costs", counted)
    together = CostComparisons(runs, {CART: 50.0})
    assert [together.judge_over_draws(one, 2) for one in (claim, seconds)] == alone
    assert len(drawn_at) == 2  # one for each side, not for each claim


def test_a_stored_run_costs_the_same_by_waves_and_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole run of Nitro, and its first rounds: dollars, seconds, the paper's formula and the actors' share."""
    experiment = find_experiment("nitro_rewards")
    cell = Cell("nitro", CART, 3)
    file = run_file(experiment, Path("nowhere/nitro_rewards"), cell)
    accounts: tuple[tuple[str, Account], ...] = (
        ("functions_paper", "full"),
        ("cluster_paper", "no_startup"),
        ("machine", "full"),
    )

    def resumed() -> list[RunSegment]:
        """What was sampled for its first round is not sampled again: it begins with the learner."""
        (whole,) = file.segments()
        works = [work for work in whole.works if (work.kind, work.round_no) != ("rollout", 1)]
        sent = {work.name for work in works}
        works = [replace(work, after=tuple(one for one in work.after if one in sent)) for work in works]
        return [RunSegment(whole.spec, whole.settlements, works)]

    def costs() -> list[RunCost]:
        run, late = (PricedRun(RunOutcome(cell, file.rows()), one) for one in (file.segments, resumed))
        found = [run.cost(target, until, account) for target, account in accounts for until in (7, 50)]
        return [*found, *(late.cost(target, 7, account) for target, account in accounts)]

    by_waves = costs()
    monkeypatch.setattr(WaveRun, "of", lambda schedule: None)
    assert costs() == by_waves


def test_return_at_equal_dollars(folder: Path) -> None:
    assert return_at(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 2.5) == 20.0
    assert return_at(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 0.5) == 10.0
    runs = {
        ("boosted", CART): {0: run_of(folder, "few", [50.0] * 5)},
        ("few", CART): {0: run_of(folder, "few", [25.0] * 5)},
    }
    unlabelled = {name: value for name, value in CLAIM.items() if name != "label"}
    found = CostComparisons(runs, {CART: 50.0}).better(Better(**unlabelled))
    assert found.interval == Interval(0.5, 0.5, 0.5)
    assert found.word == undecided(1)


def test_what_the_same_money_buys_is_judged_without_starts_too(folder: Path) -> None:
    """Functions against a cluster that boots for longer than the functions run: all their money pays for no round of
    it. Without the boot it pays for a few, after which the cluster's policy is the better one.
    """
    ours, theirs = run_of(folder, "boosted", [30.0] * 5), run_of(folder, "few", [10.0, 100, 100, 100, 100])
    runs = {("boosted", CART): {0: ours}, ("few", CART): {0: theirs}}
    unlabelled = {name: value for name, value in CLAIM.items() if name != "label"}
    claim = Better(**{**unlabelled, "against_at": "cluster_paper"})
    found = CostComparisons(runs, {CART: 50.0}).better(claim)
    assert found.interval is not None
    assert found.interval.value == pytest.approx((30 - 10) / 50)
    variants = {one["name"]: one for one in found.more["variants"]}
    assert set(variants) == {"no_startup", "no_rebuild"}
    money = min(
        ours.cost("functions_paper", 5, "no_startup").usd, theirs.cost("cluster_paper", 5, "no_startup").usd
    )
    paid = [k for k in range(1, 6) if theirs.cost("cluster_paper", k, "no_startup").usd <= money]
    assert len(paid) > 1, "the test needs a case in which the boot decides"
    readings = [10.0, 100, 100, 100, 100][: paid[-1]]
    without = (30 - sum(readings) / len(readings)) / 50
    assert variants["no_startup"]["interval"]["value"] == pytest.approx(without)
    assert variants["no_startup"]["turned"]
    assert found.reason.startswith(f"Its sign turns {variants['no_startup']['words']}.")
    shares = [
        1 - run.cost(at, 5, "no_startup").usd / run.cost(at, 5).usd
        for run, at in ((ours, "functions_paper"), (theirs, "cluster_paper"))
    ]
    assert found.more["startup_shares"] == pytest.approx(shares)


def test_a_report_tells_cost_verdict_and_what_turns_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write_report("tiny", TINY, folder, tmp_path, draws=3)
    assert json.loads((tmp_path / "tiny.json").read_text()) == results
    (verdict,) = results["verdicts"]
    assert verdict["verdict"] == undecided(1)
    assert verdict["label"] == "learned"
    over = verdict["figures"]["over_draws"]
    assert over["draws"] == 3
    assert 0 <= over["cheaper_in"] <= 3
    text = (tmp_path / "tiny.md").read_text()
    assert draws_sentence(over) in text
    for variant in verdict["figures"]["variants"]:
        value = f"{variant['interval']['value']:.3g} ["
        row = f"| {verdict['claim']} | {variant['words']} | {value}"
        assert row in text, "other accounts are in the table too"
    assert {one["name"] for one in verdict["figures"]["variants"]} == {"no_startup", "no_rebuild", "begin"}
    assert f"| {CART} | {PRICING_TARGETS['machine'].title} | Boosted |" in text
    summaries = read_summaries(TINY, folder, quick=False)
    before = cost_tables(TINY, priced_runs(TINY, folder, summaries))
    # Stored with the project, a run costs what it cost where it was made.
    monkeypatch.setattr(run_files, "RESULTS", tmp_path / "results")
    for cell in TINY.cells():
        assert RunFile(folder, cell).store()
    elsewhere = tmp_path / "other" / "papers" / "tiny"
    stored = read_summaries(TINY, elsewhere, quick=False)
    assert cost_tables(TINY, priced_runs(TINY, elsewhere, stored)) == before
    assert len(before) == 9
