"""What may be said of two arms' costs: which claims hold, which do not, and which are not decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.claims import Cheaper
from research.reports.cost_comparison import CostComparisons
from research.reports.judging import Judgement, corrected, judge, judge_alike, undecided
from research.reports.run_cost import PricedRun
from tests.research.tiny_experiment import CART, CLAIM
from tests.research.tiny_runs import run_of
from training.statistics.few_seeds import Interval, interquartile_mean


def test_a_claim_is_judged_without_start_ups_without_rebuilding_and_by_the_other_stop_rule(
    folder: Path,
) -> None:
    soon, late = run_of(folder, "boosted", [10, 60, 70, 80, 90]), run_of(folder, "few", [60, 10, 55, 50, 51])
    runs = {("boosted", CART): {0: soon}, ("few", CART): {0: late}}
    claim = Cheaper(**{**CLAIM, "against_at": "cluster_paper", "measure": "seconds"})
    found = CostComparisons(runs, {CART: 50.0}).cheaper(claim)
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
    formula = CostComparisons(runs, {CART: 50.0}).cheaper(claim.model_copy(update={"accounting": "paper"}))
    assert [one["name"] for one in formula.more["variants"]] == ["no_rebuild", "begin"]


def test_a_verdict_whose_sign_turns_without_start_ups_says_so_first(folder: Path) -> None:
    """Functions of one machine's worth of start against a cluster that boots: few rounds make the boot decide."""
    at_once = run_of(folder, "few", [60.0] * 5)
    runs = {("few", CART): dict.fromkeys(range(6), at_once)}
    claim = Cheaper(
        **{
            **CLAIM,
            "arm": "few",
            "at": "functions_paper",
            "against_at": "machine",
            "measure": "seconds",
        }
    )
    found = CostComparisons(runs, {CART: 50.0}).cheaper(claim)
    assert found.interval is not None
    turned = [one for one in found.more["variants"] if one["turned"]]
    for one in found.more["variants"]:
        assert one["turned"] == ((one["interval"]["value"] < 1) != (found.interval.value < 1))
    assert found.reason.startswith("Its sign turns") == bool(turned)


def test_neither_side_at_the_target_decides_nothing(folder: Path) -> None:
    low = [1.0, 2.0, 3.0, 4.0, 5.0]
    seeds = range(6)
    runs = {
        (arm, CART): dict.fromkeys(seeds, run_of(folder, name, low))
        for arm, name in (("boosted", "boosted"), ("few", "few"))
    }
    found = CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**CLAIM))
    assert found.word == undecided(6)
    # Nor by any other account, which was judged without this once.
    assert {one["word"] for one in found.more["variants"]} == {found.word}
    assert "Alone it would" not in found.reason


def test_an_arm_that_rarely_reached_its_target_is_never_called_cheaper(folder: Path) -> None:
    """The oracle: one machine is so much cheaper than functions that twice what it spent in vain is less than what they
    spent until they were there; what it would have spent is still not known, whichever side it is on.
    """
    never, late = [1.0] * 5, [1.0, 1.0, 60.0, 60.0, 60.0]
    vain, there, elsewhere = (
        run_of(folder, "few", never),
        run_of(folder, "few", late),
        run_of(folder, "boosted", late),
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
    assert found.word == undecided(12)
    assert f"On {CART} ours " in found.reason
    found = judgement(seldom, **theirs)
    assert found.interval.low > 1.0
    assert found.word == undecided(12)
    assert f"On {CART} theirs " in found.reason
    # Theirs has spent less than ours when it ends in vain: only by counting twice does that make ours the cheaper.
    assert (
        run_of(folder, "boosted", late).cost("functions_paper", 5).usd > vain.cost("functions_paper", 5).usd
    )
    found = judgement(seldom)
    assert found.interval.high < 1.0
    assert found.word == undecided(12)
    assert "not as twice that" in found.reason
    assert judgement(often, **ours).word == "holds"
    # Two who both spent all they had are alike by their limits alone.
    same = {"arm": "few", "against": ("few",), "alike": True}
    assert judgement([vain] * 12, **same).word == undecided(12)
    assert judgement([there] * 12, **same).word == "holds"
    assert judgement(often, **theirs).word == "does not hold"


def test_the_best_of_several_is_chosen_for_each_seed_on_all_others(folder: Path) -> None:
    """By hand: `like` is cheap on one seed and `few` on the other three, so that every seed but one is judged against
    `few`, and none against what was chosen on itself.
    """
    soon, late = [60.0] * 5, [1.0, 1.0, 60.0, 60.0, 60.0]
    quick, slow = run_of(folder, "few", soon), run_of(folder, "few", late)
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
    assert f"cost another ${grid:,.2f}" in found.reason
    # Seed 0 is judged against `few`, which was late there; on the others `few` was as quick.
    at = "functions_paper"
    ratio = quick.cost(at, 3).usd / interquartile_mean([slow.cost(at, 5).usd, *[quick.cost(at, 3).usd] * 3])
    assert found.interval is not None
    assert found.interval.value == pytest.approx(ratio)


def test_a_best_at_the_edge_of_its_grid_decides_nothing_in_favour(folder: Path) -> None:
    soon, late = run_of(folder, "few", [60.0] * 5), run_of(folder, "few", [1.0, 1.0, 60.0, 60.0, 60.0])
    arms = {"few": soon, "boosted": late, "like": late}
    runs = {(arm, CART): dict.fromkeys(range(6), run) for arm, run in arms.items()}

    def judged(at: str, *against: str) -> Any:
        claim = Cheaper(**{**CLAIM, "arm": "boosted", "at": at, "against": against})
        return CostComparisons(runs, {CART: 50.0}).cheaper(claim)

    inside, edge = judged("machine", "like", "few", "like"), judged("machine", "few", "like", "boosted")
    assert (inside.word, edge.word) == ("holds", undecided(6))
    assert "edge" in edge.reason


@pytest.mark.parametrize(
    ("low", "high", "seeds", "word"),
    [
        (0.5, 0.9, 5, "holds"),
        (1.1, 1.9, 5, "does not hold"),
        (0.9, 1.1, 5, undecided(5)),
        (0.5, 0.9, 3, undecided(3)),
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
        ((0.65, 1.04), (0.7, 1.0), 5, undecided(5)),
        ((1.1, 1.5), (1.15, 1.4), 5, "does not hold"),
        ((0.95, 1.05), (0.96, 1.04), 3, undecided(3)),
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
        undecided(10),
        undecided(10),
        "open",
    ]
    assert [one.more.get("p_holm") for one in found] == pytest.approx([0.03, 0.06, 0.06, None])
    assert found[1].reason.endswith(" is 0.06.")
    equal = Judgement(Interval(1.0, 0.9, 1.1), 10, "b", "holds", "", p_value=0.9, alike=True)
    assert corrected([equal]) == [equal]
