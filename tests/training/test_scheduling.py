"""The scheduler: what it sees and is charged by hand, what it draws against what it learns from, and that it learns."""

import math

import numpy as np
import pytest

from tests.factories import changed_report, round_finished
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from training.engine.reports import Spend, Usage
from training.rl.learner import LearnerState
from training.rl.networks.inference import NumpyPolicy
from training.scaling.agent_weights import as_text
from training.scaling.plan import Bounds
from training.scheduling.decisions import UsualRound
from training.scheduling.episode import batch_of, episode_of
from training.scheduling.minionsrl.decisions import best_return, reached, rewards_of, score_of
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.minionsrl.rehearsal import Rehearsal
from training.scheduling.minionsrl.state import MinionsScales, state_of
from training.scheduling.trainer import initial_state, train_scheduler
from training.spec import RETURN

SCALES = MinionsScales(target_return=400.0, rounds=20)


def a_round(round_no=1, **changes):
    return changed_report(round_no, **changes)


def spec(**changes):
    document = {
        "workload": tiny(),
        "target_return": 100.0,
        "actors_max": 6,
        "rounds": 10,
        "episodes": 3,
        "rehearsals": 0,
    }
    return SchedulingSpec.model_validate({**document, **changes})


def weights_of(state, of):
    return state.actor_weights(of.network)


def samples_of(rounds, of, weights):
    return episode_of(rounds, of.decisions([]), weights, of.spaces).samples


def test_the_state_by_hand():
    last = a_round(
        4,
        actors=5,
        episode_return_mean=200.0,
        policy_shift=0.04,
        update_s=3.0,
        total_s=10.0,
        usage=Usage(startup_s=5.0, run_s=30.0, transfer_s=0.0),
        spend=Spend(spent_picodollars=15 * 10**11, reserved_picodollars=0, limit_picodollars=2 * 10**12),
    )
    loss = last.figures.update.policy_loss + last.figures.update.value_loss
    printed = state_of([last], "printed", SCALES)
    assert printed == pytest.approx([4, loss, 200.0, 0.04, 3.0, 7.0, 10.0, 0.5], rel=1e-6)
    normalised = state_of([last], "normalised", SCALES)
    by_hand = [
        0.2,
        math.copysign(math.log1p(abs(loss)), loss),
        0.5,
        2.0,
        math.log(4.0),
        math.log(8.0),
        math.log(11.0),
        0.25,
    ]
    assert normalised == pytest.approx(by_hand, rel=1e-6)


def test_a_state_is_always_finite():
    assert state_of([], "printed", SCALES).tolist() == [0.0] * 8
    assert state_of([], "normalised", SCALES).tolist() == [0.0] * 7 + [1.0]
    silent = a_round(1, episode_return_mean=None, spend=None)
    assert state_of([silent], "printed", SCALES)[2] == 0.0
    update = silent.figures.update.model_copy(update={"value_loss": math.inf, "policy_loss": math.nan})
    odd = silent.model_copy(update={"figures": silent.figures.model_copy(update={"update": update})})
    for kind in ("printed", "normalised"):
        assert np.isfinite(state_of([odd], kind, SCALES)).all()


def test_the_last_return_is_seen_until_there_is_a_newer_one():
    rounds = [a_round(1, episode_return_mean=50.0), a_round(2, episode_return_mean=None)]
    assert state_of(rounds, "printed", SCALES)[2] == 50.0


def test_rewards_by_hand():
    missed = [
        a_round(1, total_s=2.0, episode_return_mean=30.0),
        a_round(2, total_s=4.0, episode_return_mean=20.0),
    ]
    made = [
        a_round(1, total_s=2.0, episode_return_mean=30.0),
        a_round(2, total_s=4.0, episode_return_mean=120.0),
    ]
    printed = spec(reward="printed")
    usual = UsualRound(round_s=2.0, round_usd=0.5)
    assert rewards_of(missed, printed, usual).tolist() == pytest.approx([-0.2, -0.4 - 70.0])
    assert rewards_of(made, printed, usual).tolist() == pytest.approx([-0.2, -0.4])
    assert rewards_of(missed, spec(), usual).tolist() == pytest.approx([-0.1, -0.2 - 0.7])
    silent = [a_round(one.round_no, total_s=one.total_s, episode_return_mean=None) for one in missed]
    assert rewards_of(silent, printed, usual).tolist() == pytest.approx([-0.2, -0.4 - 100.0])
    below = spec(reward="printed", target_return=-100.0)
    assert rewards_of(silent, below, usual).tolist() == pytest.approx([-0.2, -0.4 - 100.0])
    dear = [one.model_copy(update={"cost_picodollars": 10**12}) for one in made]
    assert rewards_of(dear, spec(objective="cost"), usual).tolist() == pytest.approx([-0.2, -0.2])
    assert rewards_of([], spec(), usual).tolist() == []


def test_a_target_may_have_to_be_held_for_several_readings():
    """By hand: of 10, 60, 20, 50, 70 and 65 the highest pair is 65, the highest three in a row 50."""
    means = [10.0, 60.0, None, 20.0, 50.0, 70.0, 65.0]
    rounds = [round_finished(k, mean=mean).report for k, mean in enumerate(means, start=1)]
    assert [best_return(rounds, readings) for readings in (1, 2, 3, 6)] == [70.0, 65.0, 50.0, 10.0]
    assert reached(rounds, 50.0, 3)
    assert not reached(rounds, 51.0, 3)
    # Too few readings have held nothing, however high they are, and no more than their lowest is known.
    assert not reached(rounds[:2], 5.0, 3)
    assert best_return(rounds[:2], 3) == 10.0
    assert best_return([], 3) is None


def test_a_scheduler_is_rewarded_by_the_readings_that_its_trainings_are_judged_by():
    """One reading of 60 is at a target of 50; three in a row are not, and the lowest of the best three counts."""
    rounds = [round_finished(k, mean=mean).report for k, mean in enumerate([10.0, 60.0, 20.0], start=1)]
    usual = UsualRound(1.0, 1.0)
    once, thrice = (
        SchedulingSpec(workload=tiny(), target_return=50.0, readings=readings) for readings in (1, 3)
    )
    missed = score_of(rounds, once, usual) - score_of(rounds, thrice, usual)
    assert missed == pytest.approx((50.0 - 10.0) / 50.0)
    assert "readings" not in once.model_dump(mode="json")
    assert thrice.model_dump(mode="json")["readings"] == 3


def test_an_episode_that_could_not_begin_is_not_the_best_of_all():
    """Without a round nothing was paid: that is as bad as all of its rounds in vain."""
    usual = UsualRound(round_s=2.0, round_usd=0.5)
    made = [a_round(1, total_s=2.0, episode_return_mean=120.0)]
    for one in (spec(), spec(objective="cost"), spec(reward="printed")):
        assert score_of([], one, usual) < score_of(made, one, usual) <= 0.0
        assert score_of(made, one, usual) == pytest.approx(rewards_of(made, one, usual).sum())
    assert score_of([], spec(rounds=30), usual) == pytest.approx(-1.0 - spec().beta * 30)
    printed = spec(rounds=30, reward="printed", objective="cost")
    assert score_of([], printed, usual) == pytest.approx(-printed.target_return - printed.beta * 30 * 0.5)


def test_what_is_learned_from_is_what_was_drawn():
    """The probability of each decision, by the policy that took it; the oracle is the frequency over many seeds."""
    of = spec(actors_max=3)
    state = initial_state(of)
    weights = weights_of(state, of)
    policy = of.policy(as_text(weights), explore=True)
    rounds = [a_round(1, actors=2), a_round(2, actors=3)]
    batch = batch_of([samples_of(rounds, of, weights)], 0)
    assert batch.actions[:, 0].tolist() == [1, 2]
    assert batch.terminated[:, 0].tolist() == [False, True]
    drawn = np.array([policy.decide(rounds[:1], Bounds(), seed, RETURN).actors for seed in range(3000)])
    assert math.exp(batch.log_probs[1, 0]) == pytest.approx((drawn == 3).mean(), abs=0.03)


def test_the_likeliest_decision_where_nothing_is_drawn():
    of = spec()
    weights = weights_of(initial_state(of), of)
    policy = of.policy(as_text(weights), explore=False)
    logits = NumpyPolicy(weights).outputs(policy.state_after([])[None])[0]
    plan = policy.decide([], Bounds(), 1, RETURN)
    assert plan.actors == int(np.argmax(logits)) + 1
    assert plan == policy.decide([], Bounds(), 2, RETURN)
    assert "likeliest" in plan.why


def test_weights_that_are_not_finite_give_the_middle_and_say_so():
    of = spec()
    state = initial_state(of)
    broken = {name: np.full_like(array, np.nan) for name, array in state.parameters.items()}
    weights = LearnerState(**{**state.__dict__, "parameters": broken}).actor_weights(of.network)
    plan = of.policy(as_text(weights), explore=False).decide([], Bounds(), 0, RETURN)
    assert plan.actors == 3
    assert "not finite" in plan.why


def a_task(policy, seed, gain_of, seconds_of, rounds=10):
    """A make-believe training whose gain and time depend on the actors alone."""
    reports = []
    level = 0.0
    for k in range(1, rounds + 1):
        actors = policy.decide(reports, Bounds(), seed * 1000 + k, RETURN).actors
        level += gain_of(actors)
        reports.append(a_round(k, actors=actors, episode_return_mean=level, total_s=seconds_of(actors)))
        if level >= 100.0:
            break
    return reports


def test_it_learns_to_take_few_where_many_bring_nothing_and_many_where_few_do_not_do():
    """Oracle: the best number is known by hand, 1 and 6; by chance it would be 3.5 of both."""

    def learned(gain_of, seconds_of):
        of = spec(episodes=60)
        *_, last = train_scheduler(
            of, lambda policy, seed: a_task(policy, seed % 10_000, gain_of, seconds_of)
        )
        weights = weights_of(LearnerState.decode(last.state), of)
        policy = of.policy(as_text(weights), explore=False)
        return np.mean([one.actors for one in a_task(policy, 1, gain_of, seconds_of)])

    assert learned(lambda n: 12.0, lambda n: float(n)) <= 2.0
    assert learned(lambda n: 4.0 * n, lambda n: 1.0) >= 4.0


def test_episodes_learned_from_together_stay_apart():
    """The oracle: each one's batch alone, one after the other, and nothing counted across an end."""
    of = spec(actors_max=3)
    weights = weights_of(initial_state(of), of)
    lessons = [
        samples_of(
            [
                a_round(k, actors=1 + k % 3, episode_return_mean=150.0, total_s=10.0)
                for k in range(1, rounds + 1)
            ],
            of,
            weights,
        )
        for rounds in (3, 1, 2)
    ]
    alone = [batch_of([one], 0) for one in lessons]
    batch = batch_of(lessons, 0)
    for name in ("observations", "actions", "log_probs", "rewards", "terminated"):
        assert (getattr(batch, name) == np.concatenate([getattr(one, name) for one in alone])).all()
    assert batch.terminated[:, 0].tolist() == [False, False, True, True, False, True]
    assert batch.episode_returns.tolist() == [-3.0, -1.0, -2.0]
    assert of.algorithm(3).minibatch_size == 3 * of.algorithm().minibatch_size


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_rehearsals_find_the_cheap_number_whatever_the_seed(seed):
    """From 4 actors on a round gains the same, below that hardly anything. By chance it would take 16."""
    recorded = [
        [
            a_round(
                k,
                actors=n,
                episode_return_mean=(12.0 if n >= 4 else 1.0) * k,
                total_s=1.0,
                cost_picodollars=10**10 * n,
            )
            for k in range(1, 11)
        ]
        for n in (1, 2, 4, 8, 16, 32)
    ]
    of = spec(seed=seed, actors_max=32, rounds=20, objective="cost", rehearsals=600, episodes=0)
    reports = list(train_scheduler(of, lambda policy, seed: [], recorded=recorded))
    first, last = reports[:100], reports[-100:]
    assert np.mean([one.score for one in last]) > 0.6 * np.mean([one.score for one in first])
    assert np.mean([n for one in last for n in one.actors]) < 9.0
    assert np.mean([one.reached for one in last]) > 0.8


def test_rehearsals_come_first_cost_nothing_and_go_on_from_any_episode():
    recorded = [
        [
            a_round(k, actors=n, episode_return_mean=10.0 * n * k, total_s=float(n), cost_picodollars=n)
            for k in range(1, 5)
        ]
        for n in (1, 2, 4, 6)
    ]
    of = spec(rehearsals=5, together=2, episodes=2)
    played = []

    def play(policy, seed):
        played.append(seed)
        return a_task(policy, seed % 1000, lambda n: 5.0, lambda n: 1.0)

    whole = list(train_scheduler(of, play, recorded=recorded))
    assert [one.kind for one in whole] == ["rehearsal"] * 5 + ["real"] * 2
    assert len(played) == 2
    # After an update, between two of them, among the rest, and after the last rehearsal.
    for done in range(1, 7):
        again = list(train_scheduler(of, play, recorded=recorded, resume=whole[done - 1]))
        assert again == whole[done:]
    assert len({one.state for one in whole}) == 1 + 3 + 2  # the fresh one, then one for each update
    assert list(train_scheduler(of, play, recorded=recorded)) == whole


def test_a_rehearsal_stays_with_what_was_recorded_and_inside_its_budget():
    recorded = [
        [
            a_round(k, actors=n, episode_return_mean=5.0 * n * k, total_s=float(n), cost_picodollars=10 * n)
            for k in range(1, 6)
        ]
        for n in (1, 6)
    ]
    of = spec(rounds=8, target_return=60.0)
    stage = Rehearsal(recorded, of)
    policy = of.policy(as_text(weights_of(initial_state(of), of)), explore=True)
    for seed in range(20):
        rounds = stage.rounds_of(policy, seed, budget_picodollars=150)
        assert sum(one.cost_picodollars for one in rounds) <= 150
        assert {one.cost_picodollars for one in rounds} <= {10, 60}
        assert [one.round_no for one in rounds] == list(range(1, len(rounds) + 1))
        assert rounds == stage.rounds_of(policy, seed, budget_picodollars=150)
    with pytest.raises(ValueError, match="no recorded round"):
        Rehearsal([[a_round(1, episode_return_mean=None)]], of)


def test_a_scheduler_of_another_task_is_where_the_next_one_begins():
    of = spec()
    other = initial_state(spec(seed=9)).encode()
    begun = initial_state(of, begin_with=other)
    assert all((begun.parameters[n] == a).all() for n, a in LearnerState.decode(other).parameters.items())
    assert begun.optimiser_steps == 0
    with pytest.raises(ValueError, match="1 to 6 actors"):
        initial_state(spec(actors_max=8), begin_with=other)


def test_it_decides_in_a_real_training():
    of = spec(actors_max=3)
    weights = as_text(weights_of(initial_state(of), of))
    run = tiny(scaling=of.policy(weights, explore=True))
    rounds = [event.report for event in events_of(run, InlinePlatform()) if event.kind == "round"]
    assert len(rounds) == 4
    assert all(1 <= report.actors <= 3 and report.figures.policy_shift >= 0.0 for report in rounds)
    assert all("the scheduler gives" in report.plan_reason for report in rounds)
