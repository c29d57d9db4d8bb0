"""Comparing runs and groups: what is picked, how it is drawn, what may be said of it, and more seeds of it."""

import re
from typing import Any

import numpy as np
import pytest
from django.test import Client

from rig.stored_rounds import store_rounds
from tests.factories import make_job, make_project, make_running_job, make_spec, make_user, round_finished
from tests.figures import figures_in
from tests.members import add_member
from tests.webapp.jobs.form.test_forms import posted
from training.rl.environments import catalogue
from training.statistics.few_seeds import bootstrap
from webapp.comparing import significance
from webapp.comparing.curves import (
    WEAKEST_SIDE,
    Getting,
    Goal,
    curves_of,
    drawn,
    getting_to,
    goal_of,
    iqm_with_band,
)
from webapp.comparing.figures import JobComparison, compared, differences
from webapp.comparing.groups import picked
from webapp.comparing.pareto import plane
from webapp.comparing.text import getting_words, row
from webapp.jobs import seed_groups
from webapp.jobs.form.forms import job_form
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.services import SpecRefused
from webapp.money.models import Account

pytestmark = pytest.mark.django_db


def _ran(project: Any, means: list[float], spec: Any = None, usd: float = 0.0, **options: Any) -> Job:
    """A job whose rounds had these returns."""
    job, epoch = make_running_job(project=project, spec=spec, **options)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no, mean in enumerate(means, start=1):
        spent = round(usd * 10**12 * round_no / len(means))
        recorder.record(round_finished(round_no, mean=mean, spent=spent))
    Account.objects.filter(job=job).update(spent_picodollars=round(usd * 10**12))
    return job


def _group(project: Any, ends: list[float], name: str = "Five", **changes: Any) -> JobGroup:
    for seed, end in enumerate(ends):
        spec = make_spec(name=f"{name} {seed}", group=name, training__seed=seed, **changes)
        _ran(project, [0.0, end, end, end], spec=spec, usd=0.25)
    return JobGroup.objects.get(project=project, name=name)


def test_sides_come_in_the_order_of_the_address_and_from_this_project_only() -> None:
    project = make_project()
    one, other, foreign = make_job(project), make_job(project), make_job()
    group = _group(project, [1.0, 2.0])
    found = picked(
        project, [other.pk, f"group_{group.pk}", foreign.pk, one.pk, other.pk, "group_999", "group_x"]
    )
    assert [side.key for side in found.sides] == [other.pk, f"group_{group.pk}", one.pk]
    assert [side.place for side in found.sides] == [1, 2, 3]
    assert len(found.sides[1].jobs) == 2
    assert [figures_in(left_out) for left_out in found.left_out] == [["3"]]


def test_a_group_of_several_questions_is_as_many_sides() -> None:
    project = make_project()
    _group(project, [1.0, 2.0], training__algorithm__learning_rate=0.001)
    group = _group(project, [3.0, 4.0], training__algorithm__learning_rate=0.01)
    found = picked(project, [f"group_{group.pk}"])
    assert [side.name for side in found.sides] == ["Learning rate 0.001", "Learning rate 0.01"]
    assert [len(side.jobs) for side in found.sides] == [2, 2]
    (difference,) = differences(found.sides)
    assert difference.path == "training.algorithm.learning_rate"
    assert difference.values == ("0.001", "0.01")


def test_only_so_many_sides_are_compared() -> None:
    project = make_project()
    found = picked(project, [make_job(project).pk for _ in range(12)])
    assert len(found.sides) == 10
    assert "10 of 12 are shown" in found.left_out[0]


def test_curves_of_many_runs_take_one_query(django_assert_num_queries: Any) -> None:
    project = make_project()
    group = _group(project, [10.0, 20.0, 30.0])
    alone = _ran(project, [1.0, 2.0])
    found = picked(project, [f"group_{group.pk}", alone.pk])
    with django_assert_num_queries(1):
        curves = curves_of(found.jobs)
    first, second = drawn(found.sides, curves)
    assert set(first["lines"]) == {"steps", "rounds", "wall", "time", "usd"}
    steps = first["lines"]["steps"]
    assert steps["x"][0], steps["x"][-1] == (256.0, 1024.0)
    assert all(low <= y <= high for low, y, high in zip(steps["low"], steps["y"], steps["high"], strict=True))
    assert steps["low"][-1] < steps["high"][-1]
    assert first["lines"]["usd"]["x"][-1] == 0.25
    assert "low" not in second["lines"]["steps"], "one run has no interval"
    assert second["lines"]["time"]["x"] == [1.0, 2.0]
    assert second["lines"]["usd"]["x"] == [], "what costs nothing has no place over dollars"


def test_long_runs_are_thinned_and_keep_their_last_round() -> None:
    job = make_job()
    reports = [round_finished(n, mean=float(n)).report.model_dump(mode="json") for n in range(1, 701)]
    store_rounds(job, reports, job.created_at)
    Job.objects.filter(pk=job.pk).update(round_no=700)
    curve = curves_of([Job.objects.get(pk=job.pk)])[job.pk]
    assert len(curve.steps) <= 300
    assert curve.steps[-1] == 700 * 256


def test_the_band_is_that_of_the_statistics() -> None:
    scores = np.random.default_rng(3).normal(10.0, 3.0, 20)
    mean, low, high = iqm_with_band(scores[:, None])
    said = bootstrap(scores, repetitions=20_000)
    assert mean[0] == pytest.approx(said.value)
    assert low[0] == pytest.approx(said.low, abs=0.3)
    assert high[0] == pytest.approx(said.high, abs=0.3)


def test_figures_lead_by_return_and_one_run_each_tells_no_order() -> None:
    project = make_project()
    dear = _ran(project, [100.0] * 4, usd=0.9)
    cheap = _ran(project, [50.0] * 4, usd=0.1)
    nothing = make_job(project)
    found = picked(project, [dear.pk, cheap.pk, nothing.pk])
    whole = compared(found, curves_of(found.jobs))
    assert whole.leader is not None
    assert whole.leader.side.key == dear.pk
    assert [one.efficient for one in whole.sides] == [False] * 3
    assert whole.sides[2].iqm is None
    assert whole.scored_by == "training"
    drawn_plane = plane(whole.sides)
    assert drawn_plane is not None
    assert len(drawn_plane.dots) == 2
    assert drawn_plane.front == "", "a line would say that an order is known"
    Job.objects.update(evaluated_score=7.0)
    found = picked(project, [dear.pk, cheap.pk])
    assert compared(found, curves_of(found.jobs)).scored_by == "evaluation"


def _over(group: JobGroup, usd: list[float], time_s: list[float]) -> str:
    """The group's key, with its runs over after these costs and times."""
    for job, dollars, seconds in zip(group.jobs.order_by("pk"), usd, time_s, strict=True):
        Account.objects.filter(job=job).update(spent_picodollars=round(dollars * 10**12))
        Job.objects.filter(pk=job.pk).update(platform_s=seconds, observed="succeeded")
    return f"group_{group.pk}"


def _compared(project: Any, keys: list[str]) -> JobComparison:
    found = picked(project, keys)
    return compared(found, curves_of(found.jobs))


def test_of_two_sides_that_nothing_tells_apart_none_is_efficient() -> None:
    project = make_project()
    one = _group(project, [10.0, 11.0, 12.0, 13.0, 14.0], name="One")
    other = _group(project, [10.5, 11.5, 12.5, 13.5, 12.0], name="Other", training__algorithm__discount=0.9)
    usd, time_s = [0.20, 0.21, 0.22, 0.23, 0.24], [60.0, 61.0, 62.0, 63.0, 64.0]
    keys = [_over(one, usd, time_s), _over(other, usd[::-1], [each + 0.5 for each in time_s])]
    assert [each.efficient for each in _compared(project, keys).sides] == [False, False]


def test_efficient_is_what_is_better_than_each_other_side_in_something() -> None:
    project = make_project()
    good = _group(project, [20.0, 21.0, 22.0, 23.0, 24.0], name="Good")
    cheap = _group(project, [10.0, 11.0, 12.0, 13.0, 14.0], name="Cheap", training__algorithm__discount=0.9)
    neither = _group(project, [9.0, 10.0, 11.0, 12.0, 13.0], name="Both", training__algorithm__discount=0.8)
    dear, little = [0.9, 0.91, 0.92, 0.93, 0.94], [0.1, 0.11, 0.12, 0.13, 0.14]
    time_s = [60.0, 61.0, 62.0, 63.0, 64.0]
    keys = [_over(good, dear, time_s), _over(cheap, little, time_s), _over(neither, dear, time_s)]
    whole = _compared(project, keys)
    assert [one.efficient for one in whole.sides] == [True, True, False]
    drawn_plane = plane(whole.sides)
    assert drawn_plane is not None
    assert drawn_plane.front.count(",") == 2, "the line joins the cheap side and the good one"
    Job.objects.filter(groups=cheap).update(observed="running")
    whole = _compared(project, keys)
    assert [one.efficient for one in whole.sides] == [True, False, False], "what runs on is not cheap yet"


def test_every_pair_won_is_a_count_and_not_an_interval_of_no_width() -> None:
    project = make_project()
    good = _group(project, [20.0, 21.0, 22.0, 23.0, 24.0], name="Good")
    poor = _group(project, [10.0, 10.0, 10.0, 10.0, 10.0], name="Poor", training__algorithm__discount=0.9)
    whole = _compared(project, [f"group_{good.pk}", f"group_{poor.pk}"])
    against = whole.sides[1].against
    assert against is not None
    assert (against.won, against.pairs, against.better) == (25, 25, None)
    rows = [row(one, whole, None) for one in whole.sides]
    assert figures_in(rows[1]["against"]) == ["25", "25"]
    assert rows[1]["interval"] == "in 5 of 5 runs"
    assert "–" in rows[0]["interval"]


def test_some_pairs_won_are_a_count_with_a_share_and_its_interval() -> None:
    ours, theirs = np.array([10.0, 11.0, 12.0, 13.0, 14.0]), np.array([10.0, 10.5, 11.5, 12.5, 9.0])
    found = significance.apart(ours, theirs)
    assert (found.won, found.pairs) == (18.5, 25)
    assert found.better is not None
    assert found.better.value == pytest.approx(18.5 / 25)
    assert found.better.low < found.better.value < found.better.high
    few = significance.apart(ours[:3], theirs[:3])
    assert (few.won, few.pairs, few.better) == (5.5, 9, None), "three seeds have no interval"


def test_what_is_not_known_of_time_and_cost_is_not_nought(client: Client, owner: Any) -> None:
    project = make_project(owner)
    ran, queued = _ran(project, [100.0] * 4, usd=0.25), make_job(project)
    whole = _compared(project, [ran.pk, queued.pk])
    assert (whole.sides[1].time_s, whole.sides[1].cost_a_run) == (None, None)
    page = client.get(f"/p/{project.slug}/compare/?of={ran.pk}&of={queued.pk}").content.decode()
    assert "0.0 s" not in page
    assert page.count('<td class="number">unknown') == 2


def test_runs_that_have_not_begun_do_not_make_a_side_cheap_or_quick() -> None:
    project = make_project()
    group = _group(project, [20.0, 21.0], name="Two")
    for seed in (8, 9):
        spec = make_spec(name=f"Two {seed}", group="Two", training__seed=seed)
        group.jobs.add(make_job(project, spec=spec))
    (side,) = _compared(project, [f"group_{group.pk}"]).sides
    assert side.cost_a_run == 0.25 * 10**12
    assert side.time_s == 4.0


def test_what_it_takes_to_get_as_far_as_the_weakest_or_to_the_reference() -> None:
    project = make_project()
    quick = _ran(project, [50.0] * 4, usd=0.8)
    slow = _ran(project, [0.0] * 4 + [400.0] * 40, usd=0.44)
    found = picked(project, [quick.pk, slow.pk])
    curves = curves_of(found.jobs)
    goal = goal_of(found.sides, curves)
    assert goal == Goal(pytest.approx(50.0), WEAKEST_SIDE)
    first, second = (getting_to(goal, side, curves) for side in found.sides)
    assert (first.usd, first.reached, first.runs) == (0.2, 1, 1)
    crossed = int(np.argmax(curves[slow.pk].scores >= 50.0)) + 1
    assert second.usd == pytest.approx(crossed * 0.01)
    assert second.usd < 0.1, "it ends dearer than it got there"
    Job.objects.update(subject="CartPole-v1")
    found = picked(project, [quick.pk, slow.pk])
    reference = catalogue.ENTRIES["CartPole-v1"].reference_score
    assert reference is not None
    goal = goal_of(found.sides, curves)
    assert goal is not None
    assert goal.value != reference, "nobody got there"
    beyond = _ran(project, [2 * reference] * 3, usd=0.6)
    found = picked(project, [quick.pk, beyond.pk])
    curves = curves_of(found.jobs)
    goal = goal_of(found.sides, curves)
    assert goal == Goal(reference, "the environment's reference")
    assert getting_to(goal, found.sides[0], curves) == Getting(None, None, 0, 1)
    assert getting_to(goal, found.sides[1], curves).usd == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("ends", "reached", "usd"),
    [
        ([50.0, 50.0, 50.0, 1.0, 1.0], 3, True),
        ([50.0, 50.0, 1.0, 1.0, 1.0], 2, False),
        ([50.0, 50.0, 1.0, 1.0], 2, True),
    ],
)
def test_what_it_took_is_known_once_half_of_all_runs_got_there(
    ends: list[float], reached: int, usd: bool
) -> None:
    """Also where those that did not were stopped before the others got there: they never will."""
    project = make_project()
    for seed, end in enumerate(ends):
        spec = make_spec(name=f"Some {seed}", group="Some", training__seed=seed)
        _ran(project, [0.0, 0.0, *([end] * 40)] if end > 10 else [1.0], spec=spec, usd=0.42)
    (side,) = picked(project, [f"group_{JobGroup.objects.get(project=project).pk}"]).sides
    found = getting_to(Goal(40.0, "made up"), side, curves_of(side.jobs))
    assert (found.reached, found.runs) == (reached, len(ends))
    assert (found.usd is not None, found.time_s is not None) == (usd, usd)


def test_the_share_that_got_there_is_said_first() -> None:
    some, few = Getting(0.2, 200.0, 3, 5), Getting(None, None, 2, 5)
    assert getting_words(some) == ("3 of 5 runs", "half by", "$0.200", "3 min 20 s")
    assert getting_words(few)[0] == "2 of 5 runs"
    assert getting_words(few)[1].endswith("no median")
    assert getting_words(few)[2:] == ("", "")
    assert getting_words(Getting(0.2, 200.0, 1, 1)) == ("1 of 1 run", "by", "$0.200", "3 min 20 s")
    assert getting_words(Getting(None, None, 0, 1)) == ("0 of 1 run", "", "", "")


# Telling apart


def test_permutations_are_counted_exactly() -> None:
    far = np.array([10.0, 11.0, 12.0, 13.0])
    assert significance.permutation_p(far, far - 9) == pytest.approx(2 / 70)
    assert significance.permutation_p(far[:3], far[:3] - 9) == pytest.approx(0.1)
    assert significance.permutation_p(far, far.copy()) == 1.0
    many = np.arange(30.0)
    assert significance.permutation_p(many, many + 40) < 0.001


def test_three_seeds_tell_nothing_apart_and_four_may() -> None:
    ours = np.array([10.0, 11.0, 12.0])
    few = significance.apart(ours, ours - 9)
    assert (few.is_significant, few.more) == (False, 1)
    assert (few.won, few.pairs, few.better) == (9, 9, None)
    enough = significance.apart(np.append(ours, 13.0), np.append(ours - 9, 4.0))
    assert (enough.is_significant, enough.more) == (True, 0)
    single = significance.apart(ours[:1], ours[:1] - 9)
    assert (single.is_significant, single.more) == (False, 3)
    same = significance.apart(np.full(5, 3.0), np.full(5, 3.0))
    assert (same.is_significant, same.more) == (False, None)


def test_as_many_seeds_as_are_said_to_be_needed_do_tell_them_apart() -> None:
    difference, spread = 1.0, 1.0
    needed = significance.seeds_needed(difference, spread)
    rng = np.random.default_rng(1)
    decided = [
        significance.permutation_p(rng.normal(difference, spread, needed), rng.normal(0, spread, needed))
        <= 0.05
        for _ in range(60)
    ]
    assert 0.65 <= np.mean(decided) <= 0.95


# Seeds


def test_seeds_are_launched_together_as_a_group() -> None:
    project = make_project()
    user = project.people.first()
    spec = make_spec("hopper-simulated", name="Hop", training__seed=5)
    group = seed_groups.launch_seeds(project=project, user=user, spec=spec, count=3, key="once")
    again = seed_groups.launch_seeds(project=project, user=user, spec=spec, count=3, key="once")
    assert group == again
    jobs = list(group.jobs.order_by("name"))
    assert [job.spec["training"]["seed"] for job in jobs] == [5, 6, 7]
    assert [job.spec["platform"]["seed"] for job in jobs] == [5, 6, 7]
    assert jobs[0].name == "Hop, seed 5"
    other = seed_groups.launch_seeds(project=project, user=user, spec=spec, count=2)
    assert other.name == "Hop 2"
    with pytest.raises(SpecRefused, match="between 1 and 50"):
        seed_groups.launch_seeds(project=project, user=user, spec=spec, count=51)


def test_all_seeds_are_launched_or_none() -> None:
    project = make_project()
    spec = make_spec("hopper-simulated", budget_usd="0.000001")
    with pytest.raises(SpecRefused, match=r"\(budget_usd\)"):
        seed_groups.launch_seeds(project=project, user=project.people.first(), spec=spec, count=3)
    assert not project.jobs.exists()


def test_more_seeds_are_new_ones_and_a_single_job_founds_a_group() -> None:
    project = make_project()
    job = make_job(project, spec=make_spec(name="Alone, seed 3", training__seed=3))
    group = seed_groups.more_seeds(user=job.created_by, like=job, count=2)
    assert group.name == "Alone"
    assert sorted(one.spec["training"]["seed"] for one in group.jobs.all()) == [3, 4, 5]
    assert seed_groups.more_seeds(user=job.created_by, like=job, count=1) == group
    assert sorted(one.name for one in group.jobs.all())[-1] == "Alone, seed 6"
    found = picked(project, [f"group_{group.pk}"])
    assert [len(side.jobs) for side in found.sides] == [4], "they ask one question"


# Pages


@pytest.fixture
def owner(client: Client) -> Any:
    user = make_user()
    client.force_login(user)
    return user


def test_the_page_compares_and_offers_the_seeds_that_would_tell(client: Client, owner: Any) -> None:
    project = make_project(owner)
    one, other = _ran(project, [100.0] * 4, usd=0.25), _ran(project, [50.0] * 4, usd=0.25)
    answer = client.get(f"/p/{project.slug}/compare/?of={one.pk}&job={other.pk}")
    words = answer.content.decode()
    assert "3 more seeds each" in words
    assert re.search(r"Run 3 more .* \$1\.50, at most \$6\.00", words)
    fields = {"like": [one.pk, other.pk], "count": "3", "of": [one.pk, other.pk], "idempotency_key": "k"}
    for _ in range(2):
        answer = client.post(f"/p/{project.slug}/compare/seeds/", fields)
    assert project.jobs.count() == 8
    groups = project.job_groups.order_by("pk")
    assert answer.headers["Location"].endswith("?" + "&".join(f"of=group_{group.pk}" for group in groups))
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    client.force_login(viewer)
    assert (
        'name="idempotency_key"'
        not in client.get(f"/p/{project.slug}/compare/?of={one.pk}&of={other.pk}").content.decode()
    )


def test_the_number_of_queries_does_not_grow_with_the_runs(
    client: Client, owner: Any, django_assert_max_num_queries: Any
) -> None:
    project = make_project(owner)
    group = _group(project, [1.0, 2.0, 3.0, 4.0])
    alone = _ran(project, [3.0] * 4)
    client.get(f"/p/{project.slug}/compare/")
    with django_assert_max_num_queries(14):
        client.get(f"/p/{project.slug}/compare/?of=group_{group.pk}&of={alone.pk}")
    page = client.get(f"/p/{project.slug}/groups/{group.pk}/").content.decode()
    assert "Five 3" in page


def test_an_empty_comparison_says_what_to_do(client: Client, owner: Any) -> None:
    project = make_project(owner)
    page = client.get(f"/p/{project.slug}/compare/?of=job_nowhere&over=nonsense").content.decode()
    assert "No runs chosen" in page
    assert "1 of the chosen" in page


def test_the_form_launches_seeds_as_a_group(client: Client, owner: Any) -> None:
    project = make_project(owner)
    address = f"/p/{project.slug}/jobs/new/?preset=cartpole"
    fields = posted(job_form(None, make_spec()))
    for wrong in ("0", "51", "many"):
        refused = client.post(address, {**fields, "seeds": wrong})
        assert refused.status_code == 422
        assert "number between 1 and 50" in refused.content.decode()
    assert not project.jobs.exists()
    answer = client.post(address, {**fields, "seeds": "3"})
    group = project.job_groups.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/groups/{group.pk}/"
    assert group.jobs.count() == 3
