"""Sweeps: which points they have, what each run may spend, and that all of them together stay within the limit."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_job, make_project, make_spec, make_user
from tests.figures import figures_in
from webapp.comparing.sweeps import Axis, Sweep, SweepRefused, axes_from, fields_of, launch_sweep
from webapp.jobs.models import Job
from webapp.money.models import Budget, BudgetScope

RATE = "training.algorithm.learning_rate"
STEPS = "training.rollout.steps_per_call"


def _sweep(*axes: Axis, **changes: Any) -> Sweep:
    given = {"way": "grid", "points": 6, "seeds": 2, "limit_usd": Decimal("10"), "name": "Rates", **changes}
    return Sweep(base=given.pop("base", make_spec()), axes=axes, **given)


def test_a_grid_takes_every_combination_with_every_seed() -> None:
    sweep = _sweep(Axis.read(RATE, "0.001, 0.01"), Axis.read(STEPS, "64,128, 256"))
    assert len(sweep.changes()) == 6
    specs = sweep.specs()
    assert len(specs) == 12
    assert {spec.budget_usd for spec in specs} == {Decimal("0.833333")}
    assert sum(spec.budget_usd for spec in specs) <= 10
    assert [spec.training.seed for spec in specs[:2]] == [0, 1]
    assert specs[0].name.startswith("Rates: ")
    assert figures_in(specs[0].name) == ["0.001", "64", "0"]
    assert specs[-1].training.rollout.steps_per_call == 256


def test_random_points_are_drawn_evenly_over_the_logarithm_and_are_the_same_next_time() -> None:
    sweep = _sweep(Axis.read(RATE, "1e-4 .. 1e-2"), Axis.read(STEPS, "64..256"), way="random", points=20)
    points = sweep.changes()
    assert points == sweep.changes()
    assert len(points) == 20
    rates = [float(point[RATE]) for point in points]
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert 4 <= sum(rate < 1e-3 for rate in rates) <= 16
    assert all(point[STEPS].isdecimal() for point in points)
    few = _sweep(Axis.read(RATE, "0.1, 0.2"), way="random", points=20)
    assert len(few.changes()) == 2, "there are no more"


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        (lambda: _sweep(), "one field"),
        (lambda: _sweep(Axis.read(RATE, "1e-4..1e-2")), "a grid needs"),
        (lambda: _sweep(Axis.read(RATE, "fast")), "learning_rate"),
        (lambda: _sweep(Axis.read(RATE, "0.1"), Axis.read(RATE, "0.2")), "chosen once"),
        (lambda: _sweep(Axis.read("training.nothing", "1")), "not a field"),
        (lambda: _sweep(Axis.read(STEPS, ",".join(map(str, range(1, 60))))), "118 runs"),
        (lambda: _sweep(Axis.read(RATE, "0.1"), limit_usd=Decimal("0.000001")), "leaves nothing"),
        (lambda: _sweep(Axis.read(RATE, " , ")), "values such as"),
        (lambda: _sweep(Axis.read(RATE, "2..1")), "must be below"),
    ],
)
def test_what_cannot_be_swept_says_why(sweep: Any, said: str) -> None:
    with pytest.raises(SweepRefused, match=said):
        sweep().specs()


def test_a_refusal_calls_a_field_of_a_form_by_its_title() -> None:
    titles = {RATE: "Algorithm: Learning rate"}
    with pytest.raises(SweepRefused, match=r"^Algorithm: Learning rate: .* grid"):
        _sweep(*axes_from([(RATE, "1e-4..1e-2")], titles)).specs()
    with pytest.raises(SweepRefused, match=r"^Algorithm: Learning rate: write"):
        axes_from([(RATE, ","), ("", "")], titles)


def test_the_fields_of_a_job_are_known_by_path_and_title() -> None:
    fields = fields_of(make_spec())
    assert fields[RATE].title.endswith("Learning rate")
    assert isinstance(fields[STEPS].value, int)
    assert "training.seed" not in fields


@pytest.mark.django_db
def test_a_sweep_is_a_group_below_a_budget_of_its_limit() -> None:
    project = make_project()
    user = project.people.first()
    sweep = _sweep(
        Axis.read(RATE, "0.001, 0.01"), base=make_spec("hopper-simulated"), limit_usd=Decimal("4.10")
    )
    group = launch_sweep(project=project, user=user, sweep=sweep, key="k")
    assert launch_sweep(project=project, user=user, sweep=sweep, key="k") == group
    budget = Budget.objects.get(scope=BudgetScope.GROUP, group=group)
    assert budget.limit_picodollars == 4_100_000_000_000
    jobs = Job.objects.filter(groups=group)
    assert jobs.count() == 4
    assert {job.account.limit_picodollars for job in jobs} == {1_025_000_000_000}
    assert all(job.account.budgets.get() == budget for job in jobs)
    budget.refresh_from_db()
    assert budget.reserved_picodollars == 4_100_000_000_000


@pytest.mark.django_db
def test_a_sweep_that_does_not_fit_leaves_nothing_behind() -> None:
    project = make_project()
    sweep = _sweep(
        Axis.read(RATE, "0.001, 0.01"), base=make_spec("hopper-simulated"), limit_usd=Decimal("0.0001")
    )
    with pytest.raises(ValueError, match=r"\(budget_usd\)"):
        launch_sweep(project=project, user=project.people.first(), sweep=sweep)
    assert not project.job_groups.exists()
    assert not Budget.objects.exists()
    assert not project.jobs.exists()


@pytest.mark.django_db
def test_the_page_shows_the_runs_before_it_launches_them(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    project = make_project(user)
    job = make_job(project, user)
    address = f"/p/{project.slug}/sweeps/new/?from={job.pk}"
    assert "Cart pole sweep" in client.get(address).content.decode()
    fields = {
        "name": "Rates",
        "way": "grid",
        "points": "10",
        "seeds": "2",
        "limit": "2",
        "path_0": RATE,
        "values_0": "0.001, oops",
    }
    refused = client.post(address, {**fields, "launch": "1"})
    assert refused.status_code == 422
    assert "learning_rate" in refused.content.decode()
    fields["values_0"] = "0.001, 0.01"
    page = client.post(address, fields).content.decode()
    assert "4 runs of" in page
    assert "of at most $0.500" in page
    assert "<li>Learning rate 0.001</li>" in page
    assert f"{RATE}</code>" not in page
    assert project.jobs.count() == 1
    answer = client.post(address, {**fields, "launch": "1"})
    group = project.job_groups.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/groups/{group.pk}/"
    page = client.get(answer.headers["Location"]).content.decode()
    assert "Together they cannot" in page
    assert 'value="stop"' in page
