"""Policies against hand-worked decisions. Pure: the same history, bounds and seed give the same plan."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.factories import changed_report
from tests.training.specs import tiny
from training.rl.figures import CurvatureReport, NoiseScaleReport
from training.rl.measures.curvature import RATIO_LIMIT
from training.scaling import AnyScaling
from training.scaling.agent_weights import as_text
from training.scaling.boosting import Boosting
from training.scaling.chance import Chance
from training.scaling.doubling import Doubling
from training.scaling.fixed import Fixed
from training.scaling.noise_scale import NoiseScale
from training.scaling.plan import Bounds
from training.scaling.ramp import Ramp
from training.scaling.reward_ratio import RewardRatio
from training.scaling.scale_in import ScaleIn
from training.scaling.schedule import ActorSchedule
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.siren.model import SirenSpec
from training.scheduling.trainer import initial_state
from training.spec import RETURN
from training.tasks.supervised_spec import Supervised

BOUNDS = Bounds()
_SCHEDULING = SchedulingSpec(workload=tiny(), target_return=100.0)
A_SCHEDULER = _SCHEDULING.policy(
    as_text(initial_state(_SCHEDULING).actor_weights(_SCHEDULING.network)), explore=True
)
_SIREN = SirenSpec(target_loss=0.1)
AN_AGENT = _SIREN.policy(as_text(initial_state(_SIREN).actor_weights(_SIREN.network)), explore=True)
POLICIES = [
    Fixed(),
    Ramp(),
    Boosting(),
    Boosting(rule="released"),
    Boosting(signal="flipped"),
    Boosting(signal="shuffled"),
    Boosting(signal="constant"),
    Boosting(rule="released", signal="shuffled"),
    A_SCHEDULER,
    AN_AGENT,
    NoiseScale(),
    NoiseScale(rule="released"),
    Doubling(),
    ActorSchedule(actors=(5, 9, 2)),
    Chance(),
    RewardRatio(),
    ScaleIn(actors_max=9),
]


def a_report(round_no=1, **changes):
    return changed_report(round_no, **changes)


def after(*ratios, first_round=1, note=""):
    """A history whose rounds measured these R; None where it could not be told. `note` is the last one's."""
    return [
        a_report(
            round_no=first_round + i,
            curvature=CurvatureReport(
                largest=1.0,
                smallest=-1.0,
                ratio=ratio,
                note=note if i + 1 == len(ratios) else "",
                products=9,
                samples=256,
            ),
        )
        for i, ratio in enumerate(ratios)
    ]


def with_noise(*scales, actors=8):
    return [
        a_report(round_no=i + 1, actors=actors, noise_scale=NoiseScaleReport(scale=scale, slices=8))
        for i, scale in enumerate(scales)
    ]


def test_boosting_by_hand():
    """I = clip(64 · (R_max − R) / (R_max − R_min) · 0.96^k, 8, 64)."""
    boosting = Boosting()
    assert boosting.decide([], BOUNDS, 0, RETURN).actors == 16
    assert boosting.decide(after(2.0), BOUNDS, 0, RETURN).actors == 61  # 64 · 0.96
    lowest = boosting.decide(after(2.16, 3.43, 1.5, 2.0, 1.9, 0.78), BOUNDS, 0, RETURN)
    assert lowest.actors == 50  # 64 · 0.96^6 = 50.09
    highest = boosting.decide(after(2.16, 0.78, 1.5, 2.0, 1.9, 3.43), BOUNDS, 0, RETURN)
    assert highest.actors == 8
    assert "the highest" in highest.why
    middle = boosting.decide(after(1.0, 3.0, 2.0), BOUNDS, 0, RETURN)
    assert middle.actors == int(64 * 0.5 * 0.96**3)  # 28


def test_only_the_window_counts_and_the_cap_falls_with_the_rounds():
    boosting = Boosting()
    old_low = [0.1, 5.0, 4.0, 3.0, 2.0, 2.5, 1.0]
    assert "the lowest" in boosting.decide(after(*old_low), BOUNDS, 0, RETURN).why
    for k, cap in ((10, 42), (20, 28), (30, 18), (40, 12), (49, 8), (51, 8), (60, 8)):
        ratios = [2.0] * 5 + [1.0]
        assert boosting.decide(after(*ratios, first_round=k - 5), BOUNDS, 0, RETURN).actors == cap


def test_an_r_at_its_bound_scores_nothing_and_nothing_is_compared_with_it():
    """Beside a million, every other R of the window would be the lowest, and be boosted."""
    convex = Boosting().decide(after(2.0, 1.0, RATIO_LIMIT, note="convex"), BOUNDS, 0, RETURN)
    assert convex.actors == 8
    assert "upper bound" in convex.why
    beside = Boosting().decide(after(2.0, 1.0, RATIO_LIMIT, 3.0), BOUNDS, 0, RETURN)
    assert (beside.actors, "the highest" in beside.why) == (8, True)
    assert beside.actors == Boosting().decide(after(2.0, 1.0, 2.5, 3.0), BOUNDS, 0, RETURN).actors
    assert Boosting(signal="flipped").decide(after(2.0, 1.0, RATIO_LIMIT), BOUNDS, 0, RETURN).actors == int(
        64 * 0.96**3
    )
    for signal in ("shuffled", "constant"):
        alone = Boosting(signal=signal).decide(after(RATIO_LIMIT, RATIO_LIMIT), BOUNDS, 0, RETURN)
        assert alone.actors == int(64 * 0.5 * 0.96**2)


def test_a_noise_scale_that_cannot_be_told_says_why():
    lost = NoiseScaleReport(scale=None, note="the gradients are not finite numbers", slices=8)
    history = [*with_noise(100.0, 200.0, actors=16), a_report(round_no=3, actors=16, noise_scale=lost)]
    assert "the gradients are not finite numbers" in NoiseScale().decide(history, BOUNDS, 0, RETURN).why


def test_controls_of_the_released_rule_ignore_what_curvature_says():
    """Held constant, only its floor is left; flipped, what scored 1 scores 0."""
    floors = {1: 61, 2: 54, 3: 44, 4: 33, 5: 23, 6: 14, 7: 8, 20: 8}
    floor_only = Boosting(rule="released", signal="constant")
    for k, floor in floors.items():
        for ratios in ([1.0] * (k - 1) + [50.0], [50.0] * (k - 1) + [1.0]):
            assert floor_only.decide(after(*ratios), BOUNDS, 0, RETURN).actors == floor
    rising = after(*[4.0] * 8, 0.5)
    assert Boosting(rule="released").decide(rising, BOUNDS, 0, RETURN).actors == 64
    flipped = Boosting(rule="released", signal="flipped").decide(rising, BOUNDS, 0, RETURN)
    assert flipped.actors == 8
    assert "flipped" in flipped.why
    mixed = after(2.0, 1.0, 4.0, 0.5, 3.0, 1.0, 2.0, 5.0, 1.5)
    shuffled = Boosting(rule="released", signal="shuffled")
    assert len({shuffled.decide(mixed, BOUNDS, seed, RETURN).actors for seed in range(40)}) > 3


def test_controls_ignore_what_curvature_says():
    history = after(2.16, 3.43, 1.5, 2.0, 1.9, 0.78)
    assert Boosting(signal="flipped").decide(history, BOUNDS, 0, RETURN).actors == 8
    constant = Boosting(signal="constant").decide(history, BOUNDS, 0, RETURN)
    assert constant.actors == 25
    shuffled = {
        Boosting(signal="shuffled").decide(history, BOUNDS, seed, RETURN).actors for seed in range(40)
    }
    assert len(shuffled) > 3
    assert all(Boosting(signal=signal).measures for signal in ("flipped", "shuffled", "constant"))


def test_the_released_rule_by_hand():
    """R' = 0.96^k / R beside plain 1/R, no decay of the score, and a floor of 64 · 0.96^(k²)."""
    released = Boosting(rule="released")
    assert released.decide(after(2.0), BOUNDS, 0, RETURN).actors == 64
    # k = 2: window [R'_1, 1/R_1, R'_2] = [.48, .5, .9216 / 1] → the newest is the highest.
    assert released.decide(after(2.0, 1.0), BOUNDS, 0, RETURN).actors == 64
    # k = 2: [.48, .5, .2304] → lowest, and the floor is 64 · 0.96^4 = 54.4
    assert released.decide(after(2.0, 4.0), BOUNDS, 0, RETURN).actors == 54
    floors = {3: 44, 4: 33, 5: 23, 6: 14, 7: 8, 8: 8}
    for k, floor in floors.items():
        falling = [1.0] * (k - 1) + [50.0]
        assert released.decide(after(*falling), BOUNDS, 0, RETURN).actors == floor
    # k = 9: window of six: 1/R_6, R'_7, 1/R_7, R'_8, 1/R_8, R'_9
    ratios = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 4.0, 1.6]
    values = [1 / 2.0, 0.96**7, 1.0, 0.96**8 / 4, 1 / 4, 0.96**9 / 1.6]
    score = (values[-1] - min(values)) / (max(values) - min(values))
    assert released.decide(after(*ratios), BOUNDS, 0, RETURN).actors == int(64 * score)
    assert released.decide(after(1.0, None), BOUNDS, 0, RETURN).actors == 54
    assert released.decide(after(1.0, 0.0), BOUNDS, 0, RETURN).actors == 54
    assert released.decide(after(5e-324, 5e-324), BOUNDS, 0, RETURN).actors == 54, (
        "1/R is not a finite number"
    )


def test_noise_scale_grows_with_the_noise_and_never_shrinks():
    proportional = NoiseScale()
    assert proportional.decide([], BOUNDS, 0, RETURN).actors == 8
    assert proportional.decide(with_noise(100.0), BOUNDS, 0, RETURN).actors == 8
    assert proportional.decide(with_noise(100.0, 250.0), BOUNDS, 0, RETURN).actors == 20
    assert proportional.decide(with_noise(100.0, 50.0, actors=20), BOUNDS, 0, RETURN).actors == 20
    assert proportional.decide(with_noise(100.0, 10_000.0), BOUNDS, 0, RETURN).actors == 64
    assert proportional.decide(with_noise(100.0, 200.0, None, actors=16), BOUNDS, 0, RETURN).actors == 16
    released = NoiseScale(rule="released")
    assert released.decide(with_noise(100.0, 150.0, actors=16), BOUNDS, 0, RETURN).actors == 24
    assert released.decide(with_noise(100.0, 90.0, actors=16), BOUNDS, 0, RETURN).actors == 16


@pytest.mark.parametrize("rule", ["proportional", "released"])
def test_noise_that_grew_beyond_all_measure_asks_for_the_most(rule):
    assert NoiseScale(rule=rule).decide(with_noise(5e-324, 1e9), BOUNDS, 0, RETURN).actors == 64


def test_doubling_as_hydrozoa_was_run():
    doubling = Doubling()
    actors = [
        doubling.decide(after(1.0, first_round=k) if k else [], BOUNDS, 0, RETURN).actors for k in range(60)
    ]
    assert actors[:10] == [8] * 10
    assert actors[10:20] == [16] * 10
    assert actors[20:30] == [32] * 10
    assert actors[30:] == [64] * 30


def test_a_schedule_is_followed_and_its_last_number_stands():
    schedule = ActorSchedule(actors=(5, 9, 2))
    assert [
        schedule.decide(after(1.0, first_round=k) if k else [], BOUNDS, 0, RETURN).actors for k in range(5)
    ] == [
        5,
        9,
        2,
        2,
        2,
    ]


def test_more_actors_the_nearer_the_target():
    policy = RewardRatio(target_return=400.0)

    def reports_of(*returns):
        return [a_report(round_no=i + 1, episode_return_mean=value) for i, value in enumerate(returns)]

    assert policy.decide([], BOUNDS, 0, RETURN).actors == 1
    assert policy.decide(reports_of(None), BOUNDS, 0, RETURN).actors == 1
    assert policy.decide(reports_of(100.0, 300.0), BOUNDS, 0, RETURN).actors == 16
    assert policy.decide(reports_of(0.0, *[400.0] * 5), BOUNDS, 0, RETURN).actors == 32
    assert policy.decide(reports_of(-50.0), BOUNDS, 0, RETURN).actors == 1
    assert (
        RewardRatio(target_return=0.0, floor_return=-400.0)
        .decide(reports_of(-200.0), BOUNDS, 0, RETURN)
        .actors
        == 16
    )


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "boosting", "actors_max": 0},
        {"kind": "boosting", "decay": 0.0},
        {"kind": "boosting", "window": 1},
        {"kind": "noise_scale", "actors_min": 0},
        {"kind": "chance", "actors_max": "many"},
        {"kind": "reward_ratio", "target_return": -200.0},
        {"kind": "reward_ratio", "target_return": 10.0, "floor_return": 10.0},
        {"kind": "schedule", "actors": []},
        {"kind": "schedule", "actors": [3, 0]},
    ],
)
def test_settings_that_cannot_be(document):
    with pytest.raises(ValidationError):
        TypeAdapter(AnyScaling).validate_python(document)


_reports = st.lists(
    st.builds(
        a_report,
        round_no=st.integers(1, 500),
        actors=st.integers(1, 64),
        episode_return_mean=st.none() | st.floats(-1e6, 1e6),
        curvature=st.none()
        | st.builds(
            CurvatureReport,
            largest=st.floats(-10, 10),
            smallest=st.floats(-10, 10),
            ratio=st.none() | st.floats(0, 1e6),
            products=st.just(3),
            samples=st.just(16),
        ),
        noise_scale=st.none()
        | st.builds(NoiseScaleReport, scale=st.none() | st.floats(0, 1e9), slices=st.just(2)),
    ),
    max_size=64,
)


def test_every_kind_of_policy_is_among_those_that_are_tried() -> None:
    tried = {policy.kind for policy in POLICIES}
    assert {one.model_fields["kind"].default for one in get_args(get_args(AnyScaling)[0])} == tried


@given(history=_reports, seed=st.integers(0, 2**63), low=st.integers(1, 20), more=st.integers(0, 100))
def test_every_policy_is_pure_and_stays_inside_its_bounds(history, seed, low, more):
    bounds = Bounds(actors_min=low, actors_max=low + more)
    for policy in POLICIES:
        plan = policy.decide(history, bounds, seed, RETURN)
        assert plan == policy.decide(list(history), bounds, seed, RETURN), policy.kind
        assert bounds.actors_min <= plan.actors <= bounds.actors_max, policy.kind
        assert plan.why, policy.kind
        assert policy.decide(history, BOUNDS, seed, RETURN).actors <= policy.largest, policy.kind


@given(policy=st.sampled_from(POLICIES), means=st.lists(st.floats(-50.0, 90.0), min_size=1, max_size=6))
def test_only_who_says_so_decides_by_how_long_rounds_took(policy, means):
    """Runs timed again elsewhere keep the actors of a policy that reads no times, and say so of one that does."""
    history = [
        changed_report(
            at,
            episode_return_mean=mean,
            curvature=CurvatureReport(largest=2.0, smallest=-1.0, ratio=2.0, products=4, samples=64),
            noise_scale=NoiseScaleReport(scale=900.0, slices=2),
        )
        for at, mean in enumerate(means, start=1)
    ]
    slower = [
        report.model_copy(
            update={
                name: 10.0 * getattr(report, name)
                for name in ("started_s", "collect_s", "update_s", "total_s")
            }
        )
        for report in history
    ]
    assert policy.reads_times or policy.decide(history, BOUNDS, 0, RETURN) == policy.decide(
        slower, BOUNDS, 0, RETURN
    )


def test_scale_in_by_hand():
    """A dollar gains 4, 4, then 3, 1: the mean of the last two is half of the first two's. Then it begins again."""
    policy = ScaleIn(actors_max=5, actors_min=4, window=2, share=0.8)
    losses = [20.0, 16.0, 12.0, 9.0, 8.0]

    def rounds(losses, actors=5, first=1):
        return [
            a_report(k, actors=actors, episode_return_mean=loss, cost_picodollars=10**12)
            for k, loss in enumerate(losses, start=first)
        ]

    history = rounds(losses)
    decided = [policy.decide(history[:count], BOUNDS, 0, Supervised.score).actors for count in range(6)]
    assert decided == [5, 5, 5, 5, 5, 4]
    assert policy.decide(history, BOUNDS, 0, Supervised.score).why.startswith("one fewer")
    after = [*history, *rounds([7.0, 6.0, 5.9, 5.8], actors=4, first=6)]
    assert [policy.decide(after[:count], BOUNDS, 0, Supervised.score).actors for count in (6, 7, 8, 9)] == [
        4,
        4,
        4,
        4,
    ]
    assert "as before" in policy.decide(after, BOUNDS, 0, Supervised.score).why
    rising = ScaleIn(actors_max=5, window=1, share=1.0)
    assert rising.decide(rounds([0.0, 5.0, 9.0]), BOUNDS, 0, RETURN).actors == 4
    assert rising.decide(rounds([0.0, 4.0, 9.0]), BOUNDS, 0, RETURN).actors == 5


def test_scale_in_keeps_its_actors_while_returns_rise_and_losses_fall():
    """At default settings, in both kinds of training."""
    policy = ScaleIn(actors_max=4)
    for score, step in ((RETURN, 10.0), (Supervised.score, -10.0)):
        history = [
            a_report(k, actors=4, episode_return_mean=step * k, cost_picodollars=10**12) for k in range(1, 20)
        ]
        assert {policy.decide(history[:count], BOUNDS, 0, score).actors for count in range(20)} == {4}
        assert f"of {score.name}, " in policy.decide(history, BOUNDS, 0, score).why


@pytest.mark.parametrize("model", [Boosting, NoiseScale, Doubling, Chance, RewardRatio, ScaleIn])
@pytest.mark.parametrize("most", [1, 4])
def test_the_most_actors_are_enough_to_say(model, most):
    """The short form shows no other number of actors. Whatever else a policy has follows."""
    for others in ({}, {"actors_min": 9, "actors_first": 9}):
        given = {name: value for name, value in others.items() if name in model.model_fields}
        kind = model.model_fields["kind"].default
        small = TypeAdapter(AnyScaling).validate_python({"kind": kind, "actors_max": most, **given})
        assert small.largest == most
        assert small.decide([], BOUNDS, 0, RETURN).actors <= most
        assert max(small.actor_range(1)) <= most
        assert small == TypeAdapter(AnyScaling).validate_json(small.model_dump_json())
