"""Siren's agent: what it sees, wishes for and earns by hand, its arithmetic against records, and that it learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from training.engine.reports import RoundReport, Spend, Usage
from training.rl.learner import LearnerState
from training.scaling.agent_weights import as_text
from training.scaling.learned import Learned
from training.scaling.plan import Bounds
from training.scaling.siren import Siren
from training.scheduling.decisions import UsualRound
from training.scheduling.episode import episode_of, log_probs_of
from training.scheduling.judging import judge
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud, ArithmeticRehearsals, rounds_of
from training.scheduling.siren.choices import Choices
from training.scheduling.siren.decisions import FunctionDecisions
from training.scheduling.siren.model import SirenSpec
from training.scheduling.siren.state import SirenScales, state_of
from training.scheduling.trainer import initial_state, train_scheduler
from training.tasks.supervised_spec import Supervised

SIZES = (512, 1024, 1769, 3008)
CLOUD = ArithmeticCloud(
    losses=(0.8, 0.5, 0.3, 0.2),
    compute_s=40.0,
    fetch_s=8.0,
    load_s=20.0,
    fixed_s=1.5,
    push_s=0.25,
    idle_s=0.5,
    usd_per_mb_s=1e-8,
    parallel_share=0.4,
    sizes_mb=SIZES,
)
SCALES = SirenScales(target_loss=0.2, rounds=4)
PLANS = [(n, m) for n in (2, 8, 32) for m in SIZES]
DOLLAR = 10**12


def spec(**changes: Any) -> SirenSpec:
    document: dict[str, Any] = {
        "actors_min": 2,
        "actors_max": 64,
        "memory_min_mb": 512,
        "memory_max_mb": 3008,
        "target_loss": 0.2,
        "rounds": 4,
        "episodes": 0,
        "rehearsals": 64,
    }
    return SirenSpec.model_validate({**document, **changes})


def recorded() -> list[list[RoundReport]]:
    return [rounds_of(CLOUD, [plan] * 4) for plan in PLANS]


def weights_of(of: SirenSpec, state: LearnerState | None = None) -> bytes:
    return (state or initial_state(of)).actor_weights(of.network)


def epoch(**changes: Any) -> RoundReport:
    (one,) = rounds_of(CLOUD, [(4, 1024)])
    return one.model_copy(update=changes)


def test_the_state_by_hand() -> None:
    last = epoch(
        round_no=3,
        actors=4,
        total_s=9.0,
        memory_mb=1000,
        usage=Usage(fetch_s=36.0, compute_s=12.0, push_s=0.0, processor_s=36.0, most_memory_mb=250),
        spend=Spend(spent_picodollars=DOLLAR // 4, reserved_picodollars=0, limit_picodollars=DOLLAR),
    )
    printed = state_of([last], "printed", SCALES)
    assert printed == pytest.approx([3, 0.8, 9.0, 9.0, 3.0, 0.0, 0.25, 0.75, 0.75])
    normalised = state_of([last], "normalised", SCALES)
    by_hand = [0.75, math.log(4.0), 1.0, 1.0, math.log10(4.0), 0.0, 0.25, 0.75, 0.75]
    assert normalised == pytest.approx(by_hand)
    before = SirenScales(target_loss=0.2, rounds=4, deadline_s=36.0)
    late = last.model_copy(update={"started_s": 18.0})
    assert state_of([late], "printed", before)[-1] == 9.0
    assert state_of([late], "normalised", before)[-1] == 0.25


def test_before_the_first_epoch_nothing_was_measured_and_all_is_left() -> None:
    assert state_of([], "normalised", SCALES).tolist() == [0.0] * 8 + [1.0]
    assert state_of([], "printed", SCALES).tolist() == [0.0] * 9
    odd = epoch(total_s=math.inf, usage=Usage(), spend=None)
    for kind in ("printed", "normalised"):
        assert np.isfinite(state_of([odd], kind, SCALES)).all()  # type: ignore[arg-type]


def test_the_networks_numbers_are_the_ends_of_ranges_in_logarithms() -> None:
    choices = Choices(actors_min=2, actors_max=50, memory_min_mb=128, memory_max_mb=2048)
    wishes = choices.wishes(np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0], [3.0, -3.0]]))
    assert wishes[:3] == pytest.approx(np.array([[2.0, 128.0], [10.0, 512.0], [50.0, 2048.0]]))
    assert choices.drawn(wishes) == pytest.approx(
        np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0], [3.0, -3.0]]), abs=1e-5
    )
    functions, memory = choices.carried_out(wishes, (128, 256, 1024, 3008))
    assert functions.tolist() == [2, 10, 50, 50]
    assert memory.tolist() == [128, 256, 1024, 128]


def test_a_range_without_sizes_has_the_nearest_to_its_middle() -> None:
    one = Choices(actors_min=1, actors_max=4, memory_min_mb=900, memory_max_mb=900)
    functions, memory = one.carried_out(one.wishes(np.array([0.3, 2.0])), (512, 1024))
    assert (int(functions), int(memory)) == (2, 1024)
    assert one.drawn(one.wishes(np.array([0.3, 2.0]))) == pytest.approx([0.3, 2.0], abs=1e-4)


def test_rewards_by_hand() -> None:
    usual = UsualRound(round_s=2.0, round_usd=0.5)
    within = Spend(spent_picodollars=1, reserved_picodollars=0, limit_picodollars=2)
    made = [epoch(total_s=2.0, spend=within), epoch(total_s=4.0, spend=within)]
    made[1] = made[1].model_copy(update={"figures": rounds_of(CLOUD, [(1, 512)] * 4)[-1].figures})
    missed = [made[0], made[0].model_copy(update={"total_s": 4.0})]
    broke = [
        made[0],
        made[1].model_copy(update={"spend": within.model_copy(update={"spent_picodollars": 3})}),
    ]
    printed = FunctionDecisions(spec(reward="printed", final_reward=7.0), usual)
    assert printed.rewards(made) == pytest.approx([-0.2, -0.4 + 7.0])
    assert printed.rewards(missed) == pytest.approx([-0.2, -0.4 - 7.0])
    assert printed.rewards(broke) == pytest.approx([-0.2, -0.4 - 7.0])
    assert printed.rewards([]).tolist() == []
    normalised = FunctionDecisions(spec(final_reward=3.0), usual)
    assert normalised.rewards(made) == pytest.approx([-0.1, -0.2 + 3.0 * 0.1 * 4])
    assert normalised.rewards(missed) == pytest.approx([-0.1, -0.2 - 1.2 - 8.0 * 0.1 * 2])
    assert normalised.score([]) < normalised.score(missed) < normalised.score(made)
    dear = [one.model_copy(update={"cost_picodollars": DOLLAR}) for one in made]
    cost = FunctionDecisions(spec(objective="cost", reward="printed", deadline_s=100.0), usual)
    assert cost.rewards(dear) == pytest.approx([-0.1, -0.1 + 1.0])
    late = [dear[0], dear[1].model_copy(update={"started_s": 97.0})]
    assert cost.rewards(late) == pytest.approx([-0.1, -0.1 - 1.0])


def test_the_arithmetic_is_found_again_in_what_was_recorded() -> None:
    fitted = ArithmeticCloud.fit(recorded())
    for name in ("compute_s", "fetch_s", "load_s", "fixed_s", "push_s", "idle_s", "usd_per_mb_s"):
        assert getattr(fitted, name) == pytest.approx(getattr(CLOUD, name), rel=1e-6), name
    assert fitted.losses == pytest.approx(CLOUD.losses)
    assert (fitted.parallel_share, fitted.sizes_mb) == (pytest.approx(0.4), SIZES)
    assert fitted.spread == pytest.approx(0.0, abs=1e-9)
    for plan in PLANS:
        assert fitted.epochs(2, *plan).total_s == pytest.approx(CLOUD.epochs(2, *plan).total_s)


def test_epochs_by_hand() -> None:
    """Of 8 functions with 1,769 MB: 40 / 8 of computing, 8 / 8 of fetching, 1.5 + .25, .5 idle; first + 20 / 8."""
    later, first = CLOUD.epochs(2, 8, 1769), CLOUD.epochs(1, 8, 1769)
    assert float(later.total_s) == pytest.approx(5.0 + 1.0 + 1.75 + 0.5)
    assert float(first.total_s) == pytest.approx(float(later.total_s) + 2.5)
    assert float(later.usd) == pytest.approx(8 * 7.75 * 1769 * 1e-8)
    half = CLOUD.epochs(2, 8, 884.5)
    assert float(half.compute_s) == pytest.approx(10.0)
    double = CLOUD.epochs(2, 8, 3538)
    assert float(double.compute_s) == pytest.approx(5.0 * (0.6 + 0.4 / 2))


def test_without_times_of_functions_nothing_can_be_rehearsed() -> None:
    with pytest.raises(ValueError, match="no recorded epoch"):
        ArithmeticCloud.fit([[epoch(usage=Usage())]])


@pytest.mark.parametrize(
    "changes", [{}, {"state": "printed", "reward": "printed"}, {"objective": "cost", "deadline_s": 60.0}]
)
def test_a_rehearsal_is_what_the_same_rounds_would_tell(changes: dict[str, Any]) -> None:
    """Oracle: the same plans as reports, read by the agent's own decisions."""
    of = spec(**changes)
    decisions = of.decisions(recorded())
    weights = weights_of(of)
    budget = DOLLAR // 50
    for one in ArithmeticRehearsals(CLOUD, of, decisions).play(weights, range(12), budget):
        assert one.samples is not None
        wishes = of.choices.wishes(one.samples.actions)
        functions, memory = of.choices.carried_out(wishes, SIZES)
        plans = [(int(n), int(m)) for n, m in zip(functions, memory, strict=True)]
        rounds = [
            report.model_copy(update={"drawn": (float(wish[0]), float(wish[1]))})
            for report, wish in zip(rounds_of(CLOUD, plans, budget_picodollars=budget), wishes, strict=True)
        ]
        trained = episode_of(rounds, decisions, weights, of.spaces)
        assert trained.samples is not None
        assert trained.actors == one.actors
        assert trained.reached == one.reached
        assert trained.score == pytest.approx(one.score, rel=1e-5)
        assert trained.samples.states == pytest.approx(one.samples.states, rel=1e-4, abs=1e-5)
        assert trained.samples.actions == pytest.approx(one.samples.actions, abs=1e-4)
        assert trained.samples.log_probs == pytest.approx(one.samples.log_probs, abs=1e-3)


def test_an_episode_ends_at_its_target_or_with_the_epoch_that_breaks_its_budget() -> None:
    of = spec(rounds=9)
    stage = ArithmeticRehearsals(CLOUD, of, of.decisions(recorded()))
    for one in stage.play(weights_of(of), range(8), None):
        assert (one.rounds, one.reached) == (4, True)
    for one in stage.play(weights_of(of), range(8), 1):
        assert (one.rounds, one.reached) == (1, False)


@given(st.integers(64, 11_000), st.lists(st.integers(128, 10_240), min_size=1, unique=True))
def test_the_nearest_of_any_sizes_is_found_without_looking_at_each(wished: int, sizes: list[int]) -> None:
    for there_are in (sorted(sizes), range(128, 10_241), [1024]):
        nearest = Bounds(memory_sizes_mb=there_are).nearest_memory_mb(wished)
        assert nearest == min(there_are, key=lambda size: abs(size - wished))
        choices = Choices(actors_min=1, actors_max=8, memory_min_mb=512, memory_max_mb=3008)
        _, carried_out = choices.carried_out(np.array([2.0, float(wished)]), there_are)
        within = [size for size in there_are if 512 <= size <= 3008]
        wish = min(max(wished, 512), 3008)
        assert not within or abs(int(carried_out) - wish) == min(abs(size - wish) for size in within)


def test_a_decision_is_pure_keeps_the_drawn_pair_and_tells_its_reason() -> None:
    of = spec()
    weights = as_text(weights_of(of))
    policy, drawing = of.policy(weights, explore=False), of.policy(weights, explore=True)
    history = rounds_of(CLOUD, [(8, 1024)] * 2, budget_picodollars=DOLLAR)
    bounds = Bounds(memory_sizes_mb=(512, 2048))
    plan = policy.decide(history, bounds, 1, Supervised.score)
    assert plan == policy.decide(history, bounds, 2, Supervised.score)
    assert plan.drawn is not None
    assert plan.actors == round(plan.drawn[0])
    assert plan.memory_mb == min((512, 2048), key=lambda size: abs(size - plan.drawn[1]))  # type: ignore[index]
    assert "the agent's mean" in plan.why
    assert "at loss 0.5, with" in plan.why
    assert "% of the budget" in plan.why
    assert drawing.decide(history, bounds, 1, Supervised.score) == drawing.decide(
        history, bounds, 1, Supervised.score
    )
    drawn = [drawing.decide(history, bounds, seed, Supervised.score).drawn for seed in range(400)]
    outputs = np.array(of.choices.drawn(np.array(drawn)))
    assert outputs.std(axis=0) == pytest.approx(math.exp(of.deviation), rel=0.2)
    few = policy.decide(history, Bounds(actors_max=3, memory_sizes_mb=(512,)), 1, Supervised.score)
    assert (few.actors, few.memory_mb) == (3, 512)
    assert policy.decide([], bounds, 1, Supervised.score).why.count("the first epoch") == 1


def test_log_probabilities_are_those_of_the_normal_distribution() -> None:
    outputs = np.array([[0.5, -1.0, math.log(0.5), 0.0]], dtype=np.float32)
    found = log_probs_of(outputs, np.array([[1.0, -1.0]], dtype=np.float32), spec().spaces)
    by_hand = -0.5 * 1.0 - math.log(0.5) - 2 * 0.5 * math.log(2 * math.pi)
    assert found == pytest.approx([by_hand])


def test_weights_that_are_not_finite_give_the_middle_and_say_so() -> None:
    of = spec()
    state = initial_state(of)
    broken = {name: np.full_like(array, np.nan) for name, array in state.parameters.items()}
    weights = weights_of(of, LearnerState(**{**state.__dict__, "parameters": broken}))
    plan = of.policy(as_text(weights), explore=False).decide(
        [], Bounds(memory_sizes_mb=SIZES), 0, Supervised.score
    )
    assert plan.actors == round(math.sqrt(2 * 64))
    assert "not finite" in plan.why


def test_schedulers_of_the_other_publication_are_refused() -> None:
    of = spec()
    actors = SchedulingSpec(workload=tiny(), target_return=1.0, actors_max=6)
    theirs = initial_state(actors)
    with pytest.raises(ValidationError, match="decides only"):
        of.policy(as_text(theirs.actor_weights(actors.network)), explore=False)
    with pytest.raises(ValidationError, match="not the weights"):
        of.policy("aGVsbG8=", explore=False)
    with pytest.raises(ValidationError, match=r"not the weights|trained to choose"):
        Learned(actors_max=6, weights=as_text(weights_of(of)))
    with pytest.raises(ValueError, match="decides only"):
        initial_state(of, begin_with=theirs.encode())
    with pytest.raises(ValueError, match="no scheduler"):
        Siren().decide([], Bounds(), 0, Supervised.score)
    with pytest.raises(ValidationError, match="fewest functions"):
        spec(actors_min=65)
    with pytest.raises(ValidationError, match="least memory"):
        spec(memory_min_mb=3009)


@pytest.mark.parametrize("algorithm", ["policy_gradient", "ppo"])
def test_it_learns_to_spend_a_budget_on_time(algorithm: str) -> None:
    """Oracle: the quickest fixed numbers within the budget. Untrained, it is much slower or breaks the budget."""
    of = spec(rehearsals=1600, algorithm_kind=algorithm, learning_rate=0.003, seed=1)
    budget = DOLLAR // 40
    fixed = [rounds_of(CLOUD, [(n, m)] * 4) for n in range(2, 65) for m in SIZES]
    best_s = min(
        sum(one.total_s for one in run) for run in fixed if sum(one.cost_picodollars for one in run) <= budget
    )
    trained = list(
        train_scheduler(of, lambda policy, seed: [], recorded=recorded(), budget_picodollars=budget)
    )
    stage = of.rehearsing(recorded())
    weights = weights_of(of, LearnerState.decode(trained[-1].state))
    (played,) = stage.play(weights, [0], budget, explore=False)
    assert played.reached
    assert played.platform_s <= 1.25 * best_s
    assert np.mean([one.score for one in trained[-160:]]) > np.mean([one.score for one in trained[:160]])


def test_real_episodes_follow_rehearsals_and_go_on_from_any_of_them() -> None:
    of = spec(rehearsals=6, together=4, episodes=2)

    def play(policy: Siren, seed: int) -> list[RoundReport]:
        rounds: list[RoundReport] = []
        plans: list[tuple[int, int]] = []
        for k in range(4):
            plan = policy.decide(rounds, Bounds(memory_sizes_mb=SIZES), seed % 1000 + k, Supervised.score)
            plans.append((plan.actors, plan.memory_mb))
            latest = rounds_of(CLOUD, plans)[-1]
            rounds.append(latest.model_copy(update={"drawn": plan.drawn}))
        return rounds

    whole = list(train_scheduler(of, play, recorded=recorded()))
    assert [one.kind for one in whole] == ["rehearsal"] * 6 + ["real"] * 2
    for done in range(1, 8):
        again = list(train_scheduler(of, play, recorded=recorded(), resume=whole[done - 1]))
        assert again == whole[done:]
    judged = judge(of, whole[-1].state, play, recorded=recorded())
    assert judged.score == of.decisions(recorded()).score(judged.rounds)


def test_it_decides_in_a_real_training() -> None:
    of = spec(actors_min=1, actors_max=3)
    policy = of.policy(as_text(weights_of(of)), explore=True)
    rounds = [one.report for one in events_of(tiny(scaling=policy), InlinePlatform()) if one.kind == "round"]
    assert len(rounds) == 4
    for report in rounds:
        assert report.drawn is not None
        assert RoundReport.model_validate_json(report.model_dump_json()).drawn == pytest.approx(report.drawn)
        assert "by the agent" in report.plan_reason
