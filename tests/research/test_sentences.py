"""What the experiments' reports, judgements and commands say, word by word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pydantic import ValidationError

from cloud.timing.numbers.stack import UpdateNumbers
from research.calculations import boosted_rounds
from research.calculations.stellaris_turns import (
    CHANGES,
    CHANGES_FROM_PICTURES,
)
from research.claims import Cheaper, Higher, NotWorse, RanksForks
from research.experiment import (
    Cell,
    Experiment,
    find_experiment,
)
from research.pricing_targets import place_of
from research.recipes import paper_recipe
from research.reports.clock_comparison import ceiling_sentence, parts_sentence
from research.reports.cost_report import cost_verdicts, draws_sentence
from research.reports.earlier import changed_by
from research.reports.judging import (
    ClaimVariant,
    Judgement,
    corrected,
    firmness,
    judge_at_least,
    undecided,
)
from research.reports.outcomes import RunOutcome
from research.reports.repeatability import (
    is_about_r,
)
from research.reports.repeatability import (
    testable_price as price_sentence,
)
from research.reports.report import write_report
from research.skill import add_skill, first_readings, target_rows
from research.stellaris import PLACE
from tests.research.test_decline import FALLING, FALLING_FURTHER, RISING, summary, trained
from tests.research.test_stellaris_turns import _OUR_SOFTWARE, EXPECTED
from tests.research.tiny_experiment import CART, CLAIM, TINY
from training.statistics.few_seeds import Interval
from webapp.comparing.papers.verdicts import verdict


def test_what_many_claims_undecide_is_not_said_to_be_so() -> None:
    reason = "It is not decided without the start of machines. It is the other way round."
    decided, undecided_now = (
        corrected([Judgement(None, 10, "b", "does not hold", reason, p_value=p) for p in (0.001, other)])[1]
        for other in (0.01, 0.2)
    )
    assert decided.reason == reason
    assert undecided_now.reason == (
        "It is not decided, even alone, without the start of machines. What is seen is the other way round."
        " Alone it would be decided; among 2 claims its p value is 0.2."
    )


def test_what_turns_a_verdict_is_explained() -> None:
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


def test_a_verdict_says_first_what_turns_it_and_what_undoes_it() -> None:
    interval = Interval(0.9, 0.8, 0.95)
    turned = ClaimVariant("no_startup", "without starts", interval, "does not hold", turned=True)
    undone = ClaimVariant("begin", "by the first reading", interval, "not decided by 5 seeds", turned=False)
    same = ClaimVariant("no_rebuild", "without rebuilding", interval, "holds", turned=False)
    assert firmness("holds", [turned, undone, same]) == [
        "Its sign turns without starts.",
        "It is not decided by the first reading.",
    ]
    assert firmness("not decided by 5 seeds", [undone]) == []
    assert firmness("not decided by 5 seeds", [turned, undone, same]) == [
        "Its sign turns without starts.",
        "Alone it would hold without rebuilding.",
        "Alone it would not hold without starts.",
    ]


@pytest.mark.parametrize(
    ("low", "high", "seeds", "word", "why"),
    [
        (0.9, 1.3, 5, "holds", ""),
        (0.7, 1.3, 5, "not decided by 5 seeds", "The interval contains 0.8: neither is shown."),
        (0.5, 0.7, 5, "does not hold", "All of the interval is below 0.8."),
        (0.9, 1.3, 4, "not decided by 4 seeds", "Fewer than 5 seeds decide nothing at 95 %."),
    ],
)
def test_a_ratio_is_judged_by_the_margin_that_it_may_not_fall_below(
    low: float, high: float, seeds: int, word: str, why: str
) -> None:
    assert judge_at_least(Interval((low + high) / 2, low, high), 0.8, seeds) == (word, why)


def test_a_verdict_says_what_learners_that_take_no_time_would_make_of_a_synchronous_round() -> None:
    def run(kind: str, update_s: float) -> RunOutcome:
        begin = {"kind": "begin", "spec": {"training": {"loop": {"kind": kind}}}}
        rounds = [
            {"kind": "round", "round": place, "total_s": total_s, "update_s": update_s}
            for place, total_s in enumerate((60.0, 1.0, 1.0), start=1)
        ]
        return RunOutcome(Cell("synchronous_40", "Hopper-v5", 0), [begin, *rounds, {"kind": "end"}])

    words = ceiling_sentence([run("synchronous", 0.2), run("synchronous", 0.3)])
    assert words == "Learning is 25 % of theirs: with learners that take no time the ratio would be 0.75."
    assert ceiling_sentence([run("asynchronous", 0.2)]) == ""
    words = ceiling_sentence([run("synchronous", 0.25)], ratio=0.9)
    assert words.endswith("the ratio would be 0.75; it is 1.20 times that.")


def test_a_verdict_says_of_what_a_round_of_many_learners_consists() -> None:
    def run(kind: str, **figures: Any) -> RunOutcome:
        begin = {"kind": "begin", "spec": {"training": {"loop": {"kind": kind}}}}
        rounds = [
            {"kind": "round", "round": place, "total_s": 2.0, "update_s": 0.2, "minibatches": 40} | figures
            for place in (1, 2, 3)
        ]
        return RunOutcome(Cell("a", "Hopper-v5", 0), [begin, *rounds, {"kind": "end"}])

    gradients = {"learners": 4, "gradients": 40, "steps": 16, "learning_s": 1.5, "learners_busy": 1.2}
    ours, theirs = run("staleness_aware", gradients=gradients), run("synchronous")
    # 1.2 learners over 2 s are 2.4 s of gradients: 60 ms each, 1.6 at once while any learn.
    assert parts_sentence([ours], [theirs]) == (
        "In 1.50 of its round's 2.00 s learners work: 40 gradients of 60 ms, 1.6 at once, and 16 versions made of them"
        " one after another. With 4 at work all the time gradients alone would take 0.60 s. A step in their"
        " learner's own process takes 5 ms."
    )
    known = run("staleness_aware", gradients=gradients, actors=16)
    known.rows[0]["spec"]["platform"] = {"stack": "paper-stack"}
    # 16 trajectories, 40 gradients and 16 versions at 2 ms each are 144 ms of 2 s.
    assert parts_sentence([known], [theirs]).endswith(
        " The coordinator takes 7 % of a round, 72 outcomes of 2 ms, which is assumed."
    )
    assert (
        parts_sentence([theirs], [theirs]) == parts_sentence([ours], [ours]) == parts_sentence([], []) == ""
    )


def test_a_report_words_the_claim_with_and_without_start(tmp_path: Path) -> None:
    results = write_report(
        "stellaris_82k", find_experiment("stellaris_82k"), tmp_path / "runs", tmp_path, draws=0
    )
    found = {one["claim"]: verdict(one) for one in results["verdicts"]}
    words = {one.what for one in found.values()}
    assert {"Seconds for all rounds", "Seconds for all rounds, without the start of machines"} <= words
    assert (
        "Seconds for all rounds on Hopper-v5, without the start of machines: Stellaris is done sooner than PPO, one"
        " asynchronous learner (ratio below 1)."
    ) in found


def test_without_pilots_the_judged_runs_say_what_an_untrained_policy_scores(data: Path) -> None:
    def rounds(*returns: float) -> list[dict[str, Any]]:
        return [
            {"kind": "round", "round": k, "episodes": 2, "episode_return_mean": one}
            for k, one in enumerate(returns)
        ]

    readings = first_readings(
        [
            ("HalfCheetah-v5", rounds(-344.0, -200.0)),
            ("HalfCheetah-v5", rounds(-351.0)),
            ("Humanoid-v5", rounds(99.6, 120.0)),
        ]
    )
    rows = target_rows(find_experiment("minionsrl_table2"), data, readings)
    found = {row["environment"]: (row["untrained"], row["least"], row["skilled"]) for row in rows}
    assert found["HalfCheetah-v5"] == (-347.5, None, False)
    assert found["Humanoid-v5"] == (99.6, None, None)
    until = {"until": "target", "meter": "training", "environments": ["HalfCheetah-v5", "Humanoid-v5"]}
    claims = [
        {
            "verdict": "holds",
            "asked": until,
            "reason": "Not testable at this price. Its sign turns. It is so.",
        },
        {"verdict": "holds", "asked": {**until, "until": "end"}, "reason": ""},
        {"verdict": "open", "asked": until, "reason": ""},
    ]
    add_skill(claims, rows)
    assert [one["reason"] for one in claims[1:]] == ["", ""]
    assert claims[0]["reason"] == (
        "Not testable at this price. Its sign turns. The target asks for little or no skill; first readings:"
        " HalfCheetah-v5 −348 of −345. No pilots say whether the target asks for skill; first readings: Humanoid-v5 100"
        " of 115. It is so."
    )


def test_what_changed_an_earlier_verdict_is_said() -> None:
    def now(verdict: str, value: float, reason: str = "", **asked: Any) -> dict[str, Any]:
        until_first = asked.pop("until_first", value)
        interval = {"value": value, "low": value / 2, "high": value * 2}
        variants = [{"name": "begin", "interval": {**interval, "value": until_first}}]
        claim = {"kind": "cheaper", "at": "functions", "against_at": "functions", **asked}
        figures = {"interval": interval, "variants": variants}
        return {"verdict": verdict, "reason": reason, "asked": claim, "figures": figures}

    before = {"verdict": "holds", "interval": {"value": 0.7, "low": 0.6, "high": 0.9}}
    open_now = "not decided by 5 seeds"
    assert changed_by(before, now("holds", 0.7)) == ""
    assert (
        changed_by(before, now(open_now, 0.7))
        == "Repairs between the two: intervals, which are wider for few seeds."
    )
    many = changed_by(before, now(open_now, 0.7, "Alone it would be decided; among 9 claims."))
    assert many == "Repairs between the two: Holm's correction for many claims."
    assert "equality" in changed_by(before, now(open_now, 0.7, alike=True))
    stop_rule = changed_by(before, now("holds", 0.8, until_first=0.7))
    assert (
        stop_rule
        == "Repairs between the two: what is paid until: the last of three readings, no longer the first."
    )
    assert "clusters" in changed_by(before, now("holds", 0.8, against_at="Nitro's server cluster"))
    assert "0.15 s" in changed_by(before, now("holds", 0.8))


def test_the_papers_formula_of_a_cluster_moved_with_the_cluster() -> None:
    interval = {"value": 2.0, "low": 1.9, "high": 2.1}
    claim = {"kind": "cheaper", "accounting": "paper", "at": "functions", "against_at": "Nitro's cluster"}
    now = {"asked": claim, "figures": {"interval": interval}, "verdict": "holds", "reason": ""}
    before = {"interval": {**interval, "value": 1.6}, "verdict": "holds"}
    assert "clusters, whose workers persist" in changed_by(before, now)
    assert "clusters" not in changed_by(before, {**now, "asked": {**claim, "against_at": "functions"}})


def test_an_experiment_without_a_reason_for_a_difference_is_refused() -> None:
    fields = TINY.model_dump() | {"paper": "nitro", "base": paper_recipe(clip=0.1)}
    with pytest.raises(ValidationError, match=r"differs from the paper without a reason: .*algorithm\.clip"):
        Experiment(**fields)


def test_verdicts_of_what_ends_higher_say_what_training_says() -> None:
    ours, against = TINY.arms[0].name, TINY.arms[1].name
    claims = (
        Higher(arm=ours, against=(against,), environments=(CART,)),
        NotWorse(arm=ours, against=against, environment=CART, margin=0.8),
    )
    experiment = TINY.model_copy(update={"claims": claims, "targets": {}})
    summaries = [
        trained(ours, [(80.0 + n, 100.0 + n) for n in range(5)]),
        trained(against, [(100.0 + n, 100.0) for n in range(5)]),
    ]
    higher, not_worse = cost_verdicts(experiment, summaries, {}, draws=0)
    assert not_worse.verdict == "holds"
    for one in (not_worse, higher):
        assert one.reason.startswith("By the last 100 episodes of training on CartPole-v1 the ratio is 0.8")


def test_a_claim_that_was_declared_late_says_so_before_anything_else() -> None:
    ours, against = TINY.arms[0].name, TINY.arms[1].name
    claim = Higher(arm=ours, against=(against,), environments=(CART,), declared="when all had run")
    experiment = TINY.model_copy(update={"claims": (claim,), "targets": {}})
    summaries = [
        replace(trained(arm, [(100.0 + n, 100.0 + n) for n in range(5)]), planned=10)
        for arm in (ours, against)
    ]
    (found,) = cost_verdicts(experiment, summaries, {}, draws=0)
    assert found.reason.startswith(
        "It was declared when all had run. Of its 10 declared seeds 5 are complete."
    )
    assert verdict(found.as_dict()).caveats[0] == "It was declared when all had run."


@pytest.mark.parametrize(("theirs", "said"), [(FALLING_FURTHER, True), (RISING, False)])
def test_verdicts_of_what_ends_higher_say_it_first(theirs: list[tuple[float, float]], said: bool) -> None:
    ours, against = TINY.arms[0].name, TINY.arms[1].name
    claims = (
        Higher(arm=ours, against=(against,), environments=(CART,)),
        NotWorse(arm=ours, against=against, environment=CART, margin=0.8),
    )
    experiment = Experiment.model_validate({**dict(TINY), "claims": claims})
    summaries = [summary(ours, FALLING), summary(against, theirs)]
    found = cost_verdicts(experiment, summaries, {}, draws=0)
    assert len(found) == 2
    for one in found:
        assert one.reason.startswith(f"On {CART} the evaluated returns of both fell") == said, one


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("run", "nothing"),
            "There is no experiment 'nothing'; there are: asynchronous_causes, asynchronous_return,",
        ),
        (("run",), "needs the name of an experiment"),
        (("run", "same_twice", "--arms", "other"), "There is no arm other; there are: again, once."),
        (("run", "same_twice", "--seeds", "99"), "There is no seed 99"),
        (("run", "same_twice", "--jobs", "0"), "--jobs must be 1 or more."),
    ],
)
def test_wrong_words_are_refused_in_a_sentence(words: tuple[str, ...], sentence: str) -> None:

    with pytest.raises(CommandError) as refused:
        call_command("papers", *words)
    assert sentence in str(refused.value)
    assert refused.value.returncode == 2


def test_verdicts_about_r_say_first_that_it_does_not_repeat(tmp_path: Path) -> None:
    assert price_sentence(tmp_path) == ""
    claim = {"kind": "repeatable", "environments": ["Hopper-v5"]}
    for word, expected in (("holds", ""), ("does not hold", "Not testable at this price: on Hopper-v5")):
        document = {"verdicts": [{"verdict": word, "asked": claim}]}
        (tmp_path / "r_reliability.json").write_text(json.dumps(document))
        assert price_sentence(tmp_path).startswith(expected)
        assert bool(price_sentence(tmp_path)) == bool(expected)
    columns = ["samples", "to"]
    for most, whole in ((0.1, True), (0.9, False)):
        rows = [[256, 0.1], [4096, most]]
        table = {"title": "Reliability of R on Hopper-v5", "columns": columns, "rows": rows}
        document = {"verdicts": [{"verdict": "does not hold", "asked": claim}], "tables": [table]}
        (tmp_path / "r_reliability.json").write_text(json.dumps(document))
        assert price_sentence(tmp_path).endswith(", and from all of its samples.") is whole
    assert is_about_r(RanksForks(arm="forks", environment=CART))
    assert is_about_r(Cheaper(**{**CLAIM, "arm": "nitro", "against": ("nitro_constant",)}))
    whole_loss = {**CLAIM, "arm": "nitro_released", "against": ("nitro_released_loss",)}
    assert is_about_r(Cheaper(**whole_loss))
    assert not is_about_r(Cheaper(**{**CLAIM, "arm": "nitro", "against": ("fixed_16",)}))


def test_one_small_p_value_among_many_claims_decides_nothing() -> None:
    """As large as a twentieth, it comes by chance in two of three families of twenty."""
    sure, weak = (
        boosted_rounds.finding("recipe", "task", "KL, ratio", logs)
        for logs in ([-0.5, -0.52, -0.48, -0.51, -0.49], [-0.5, -0.1, -0.4, -0.3, -0.05])
    )
    assert weak.p_value < 0.05 < 20 * weak.p_value
    assert [one.verdict for one in boosted_rounds.judged([weak])] == ["holds"]
    found = boosted_rounds.judged([sure, *[weak] * 19])
    assert [one.verdict for one in found] == ["holds", *[undecided(5)] * 19]
    assert found[1].reason.startswith("The ratio is 0.76 [")
    assert "Alone it would hold; among 20 claims its p value is" in found[1].reason


@pytest.mark.parametrize("words", EXPECTED | {_OUR_SOFTWARE: ()})
def test_a_change_changes_what_it_names_and_nothing_else(words: str) -> None:
    place = place_of(PLACE, "no_startup")
    there = (CHANGES | CHANGES_FROM_PICTURES)[words](place)
    bought = {
        name
        for name in type(place.options).model_fields
        if getattr(place.options, name) != getattr(there.options, name)
    }
    assert there.profile == place.profile
    if words == _OUR_SOFTWARE:
        assert bought == {"stack"}
        return
    before, after = place.stack.update, there.stack.update
    changed = {name for name in UpdateNumbers.model_fields if getattr(before, name) != getattr(after, name)}
    assert (changed, bought) == EXPECTED[words]
    assert there.stack.model_copy(update={"update": before}) == place.stack
