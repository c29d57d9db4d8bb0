"""A/B tests: what they launch, when they end, what they may spend, and what they answer."""

from __future__ import annotations

import re
import threading
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_job, make_project, make_spec, make_user
from tests.figures import figures_in
from tests.members import add_member
from tests.webapp.spoiled_database import failing_at
from training.engine.ports import PriceLine, Reservation, Settlement
from webapp.accounts.models import Membership
from webapp.clock import SYSTEM_CLOCK
from webapp.comparing.abtests import services, text
from webapp.comparing.abtests.changes import ChangeRefused, changed, choices, describe_change
from webapp.comparing.abtests.engine import advance, advance_tests
from webapp.comparing.abtests.models import ABTest, AbTestState, Pair
from webapp.comparing.abtests.results import results_of
from webapp.comparing.abtests.services import ABTestRefused, start_test, stop_test
from webapp.comparing.groups import different_paths, flattened
from webapp.database.leases import NOT_HELD
from webapp.jobs.models import Job
from webapp.jobs.reasons import Reason, ReasonCode
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.runner import run_job
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Budget
from webapp.money.services import close_books
from webapp.overview.projects.services import archive_project, unarchive_project

pytestmark = pytest.mark.django_db
A2C = "training.algorithm.kind=a2c"


def _small(rounds: int, evaluated_every: int, **changes: Any) -> Any:
    return make_spec(
        "cartpole",
        training__scaling__actors=2,
        training__rollout__steps_per_call=128,
        training__stop={"rounds": rounds, "env_steps": None},
        training__evaluation={"every_rounds": evaluated_every, "episodes": 10},
        platform={"kind": "simulated"},
        **changes,
    )


def _base(project: Any = None, **changes: Any) -> Job:
    """A job that has succeeded, for a cent."""
    job = make_job(project, spec=_small(3, 3, budget_usd="0.50", **changes))
    _ended(job, 100.0)
    return job


def _ended(job: Job, score: float, usd: str = "0.01") -> None:
    """The job succeeds with this score, for so much."""
    amount = int(Decimal(usd) * 10**12)
    epoch = take_lease(job_id=job.pk, owner="test")
    assert epoch is not None
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([Reservation("r1-s0-a1", "rollout", 1, amount)]) == [True]
    lines = (PriceLine("lambda.request", "1", "request", amount),)
    ledger.settle([Settlement("r1-s0-a1", amount, "metered", lines, {})])
    _over(job, "succeeded", evaluated_score=score)


def _over(job: Job, state: str, code: str = "", **facts: Any) -> None:
    close_books(job_id=job.pk, before_epoch=job.lease_epoch + 1, clock=SYSTEM_CLOCK)
    Job.objects.filter(pk=job.pk).update(observed=state, reason_code=code, **NOT_HELD, **facts)
    job.refresh_from_db()


def _start(job: Job, change: str = A2C, effect: float = 2.0, usd: str = "5", **given: Any) -> ABTest:
    user = given.pop("user", None) or job.created_by
    test = start_test(job=job, user=user, change=change, effect=effect, budget_usd=Decimal(usd), **given)
    advance(test.pk)
    return test


def _pairs_end(test: ABTest, *differences: float) -> None:
    """The pairs that run end with these differences, in the order of their seeds."""
    running = [pair for pair in Pair.objects.filter(test=test) if pair.a.observed == "queued"]
    assert len(running) == len(differences)
    for pair, difference in zip(running, differences, strict=True):
        _ended(pair.a, 100.0 + pair.number)
        _ended(pair.b, 100.0 + pair.number + difference)
    advance(test.pk)
    test.refresh_from_db()


def test_it_launches_pairs_of_one_seed_that_differ_in_the_change_alone() -> None:
    test = _start(_base())
    pairs = list(Pair.objects.filter(test=test))
    assert len(pairs) == 6, "as many as the first look needs"
    assert test.most_pairs == 8
    assert Job.objects.filter(groups=test.group).count() == 12
    for pair in pairs:
        a, b = pair.a.spec, pair.b.spec
        assert a["training"]["seed"] == b["training"]["seed"] == test.first_seed + pair.number - 1
        assert a["platform"] == b["platform"]
        assert pair.a.account.budgets.get() == pair.b.account.budgets.get() == test.budget
        paths = different_paths([flattened({**one, "name": ""}) for one in (a, b)])
        assert paths
        assert all(path.startswith("training.algorithm.") for path in paths)
    assert test.first_seed == test.job.spec["training"]["seed"] + 1, "the finished job may have been lucky"


def test_a_clear_difference_ends_it_early_and_launches_no_more() -> None:
    test = _start(_base())
    _pairs_end(test, 50, 40, 60, 50, 55, 45)
    assert (test.state, test.pairs, test.difference) == (AbTestState.BETTER, 6, 50.0)
    assert Pair.objects.filter(test=test).count() == 6
    said = text.answer(test, results_of(test))
    assert said.startswith("Yes: ")
    assert "A2C" in said
    assert figures_in(said.replace("A2C", "")) == ["50.0", "6"]
    advance_tests()
    assert Pair.objects.filter(test=test).count() == 6


def test_a_change_for_the_worse_is_called_worse() -> None:
    test = _start(_base())
    _pairs_end(test, -50, -40, -60, -50, -55, -45)
    assert test.state == AbTestState.WORSE
    assert text.answer(test, results_of(test)).startswith("No, it is")


def test_without_a_difference_all_pairs_run_and_the_answer_says_what_would_have_been_found() -> None:
    test = _start(_base())
    _pairs_end(test, 5, -4, 6, -5, 4, -6)
    assert test.state == AbTestState.RUNNING
    assert Pair.objects.filter(test=test).count() == 8
    assert text.progress(test, results_of(test)).startswith("6 of at most 8")
    _pairs_end(test, 5, -5)
    assert test.state == AbTestState.NO_DIFFERENCE
    assert re.search(r"2 standard deviations .* 80 %", text.answer(test, results_of(test)))


def test_a_pair_counts_only_when_all_earlier_ones_have_ended() -> None:
    test = _start(_base())
    for pair in Pair.objects.filter(test=test)[1:]:
        _ended(pair.a, 100.0)
        _ended(pair.b, 200.0)
    results = results_of(test)
    assert results.differences == []
    advance(test.pk)
    test.refresh_from_db()
    assert test.state == AbTestState.RUNNING


def test_an_interrupted_engine_goes_on_where_it_was() -> None:
    job = _base()
    test = start_test(job=job, user=job.created_by, change=A2C, effect=2.0, budget_usd=Decimal("5"))
    with failing_at('INSERT INTO "jobs_job"', SystemError(), time=4), pytest.raises(SystemError):
        advance(test.pk)
    assert Pair.objects.filter(test=test).count() == 1
    assert test.group.jobs.count() == 2, "no run without its pair"
    advance(test.pk)
    advance(test.pk)
    seeds = [pair.a.spec["training"]["seed"] for pair in Pair.objects.filter(test=test)]
    assert seeds == list(range(test.first_seed, test.first_seed + 6))
    assert test.group.jobs.count() == 12


def test_one_budget_holds_all_runs_and_its_end_ends_the_test() -> None:
    test = _start(_base(), usd="0.15")
    budget = Budget.objects.get(pk=test.budget_id)
    assert budget.limit_picodollars == 150_000_000_000
    assert budget.reserved_picodollars <= budget.limit_picodollars
    pairs = list(Pair.objects.filter(test=test))
    assert 0 < len(pairs) < 6
    advance(test.pk)
    test.refresh_from_db()
    assert test.state == AbTestState.RUNNING, "what runs may leave something over"
    for pair in pairs:
        for job in (pair.a, pair.b):
            Job.objects.filter(pk=job.pk).update(reason="No room for the next round.")
            _over(job, Reason.BUDGET_SPENT.state, ReasonCode.BUDGET)
    advance(test.pk)
    test.refresh_from_db()
    assert test.state == AbTestState.OUT_OF_MONEY
    assert re.match(r"Unanswered: .* 0 pairs of .* 8", text.answer(test, results_of(test)))
    assert not test.group.jobs.exclude(observed="cancelled").exists(), "nothing is left that could go on"
    budget.refresh_from_db()
    assert budget.spent_picodollars + budget.reserved_picodollars <= budget.limit_picodollars


def test_a_run_without_a_result_ends_the_test_and_stops_the_others() -> None:
    test = _start(_base())
    first = Pair.objects.filter(test=test)[0]
    _over(first.b, "failed", reason="The learner's process died.")
    advance(test.pk)
    test.refresh_from_db()
    assert test.state == AbTestState.FAILED
    assert "The learner's process died." in test.reason
    assert set(test.group.jobs.values_list("observed", flat=True)) == {"failed", "cancelled"}


def test_it_launches_nothing_for_people_who_may_no_longer() -> None:
    job = _base()
    eve = add_member(job.project, make_user().email, "editor").user
    test = start_test(job=job, user=eve, change=A2C, effect=2.0, budget_usd=Decimal("5"))
    Membership.objects.filter(user=eve, project=job.project).update(role="viewer")
    advance(test.pk)
    test.refresh_from_db()
    assert test.state == AbTestState.FAILED
    assert not test.group.jobs.exists()


def test_it_ends_with_its_project_and_launches_nothing_once_that_is_open_again() -> None:
    job = _base()
    test = start_test(job=job, user=job.created_by, change=A2C, effect=2.0, budget_usd=Decimal("5"))
    archive_project(project=job.project, user=job.created_by)
    advance(test.pk)
    unarchive_project(project=job.project)
    advance(test.pk)
    test.refresh_from_db()
    assert test.state == AbTestState.FAILED
    assert test.reason.startswith("The project was")
    assert not test.group.jobs.exists()


def test_a_stopped_test_stops_its_runs_and_launches_no_more() -> None:
    test = _start(_base())
    stop_test(test=test, user=test.created_by)
    advance(test.pk)
    assert set(test.group.jobs.values_list("observed", flat=True)) == {"cancelled"}
    assert test.group.jobs.count() == 12


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("training.algorithm.kind=ppo", "changes nothing"),
        ("training.seed=9", "changes nothing"),
        ("training.algorithm.learning_rate=fast", "Learning rate"),
        ("training.nothing=1", "nothing"),
        ("platform.region=us-east-1", "where the job"),
        ("budget_usd=9", "changes nothing"),
        ("a2c", "path=value"),
    ],
)
def test_what_is_no_single_change_of_the_training_is_refused(change: str, said: str) -> None:
    with pytest.raises(ChangeRefused, match=said):
        changed(make_spec("hopper-simulated"), change)


def test_changes_are_offered_by_the_titles_of_the_form() -> None:
    spec = make_spec("hopper-simulated")
    offered = dict(choices(spec))
    assert "A2C" in [one.title for one in offered["Algorithm"]]
    assert describe_change(spec, A2C) == ("Algorithm", "PPO", "A2C")
    assert describe_change(spec, "training.algorithm.learning_rate=0.01")[::2] == ("Learning rate", "0.01")
    assert all(
        changed(spec, one.value) for title, rows in offered.items() if title != "One value" for one in rows
    )


def test_what_cannot_begin_says_why_and_leaves_nothing_behind() -> None:
    queued = make_job(spec=make_spec("hopper-simulated"))
    with pytest.raises(ABTestRefused, match="has succeeded"):
        _start(queued)
    base = _base()
    with pytest.raises(ABTestRefused, match="at least"):
        _start(base, usd="0.0001")
    with pytest.raises(ABTestRefused, match="larger difference"):
        _start(base, effect=0.1)
    with pytest.raises(ABTestRefused, match="only Box observations"):
        _start(base, change="training.environment.id=Blackjack-v1")
    with pytest.raises(ABTestRefused, match="smaller hidden layers"):
        _start(base, change="training.network.hidden=[4096, 4096, 4096, 4096, 4096, 4096]")
    assert not ABTest.objects.exists()
    assert not base.project.job_groups.exists()


def test_the_same_key_gives_the_same_test() -> None:
    base = _base()
    assert _start(base, key="k") == _start(base, key="k")
    assert ABTest.objects.count() == 1


def test_the_budget_that_is_suggested_has_room_for_all_pairs() -> None:
    base = _base()
    plan = services.plan_of(base, 2.0)
    assert (plan.pairs, plan.runs, plan.expected) == (8, 16, 16 * 10_000_000_000)
    assert services.suggested_budget(plan, base.parsed_spec()) == Decimal("0.24")


# Pages


def _page(client: Client, name: str, project: Any, *args: Any) -> str:
    return client.get(reverse(f"abtests:{name}", args=[project.slug, *args])).content.decode()


def test_the_form_starts_a_test_and_the_page_gives_the_answer_as_a_sentence(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    project = make_project(user)
    base = _base(project)
    address = f"{reverse('abtests:new', args=[project.slug])}?job={base.pk}"
    assert "8 pairs, about $0.16" in client.get(address).content.decode()
    sent = {"change": A2C, "effect": "2", "budget_usd": "1", "idempotency_key": "k"}
    refused = client.post(address, {**sent, "change": "training.algorithm.learning_rate"})
    assert refused.status_code == 422
    assert "of Algorithm: Learning" in refused.content.decode()
    assert "Algorithm: Learning rate." in refused.content.decode()
    answer = client.post(address, sent)
    test = ABTest.objects.get()
    assert answer["Location"] == reverse("abtests:detail", args=[project.slug, test.pk])
    advance(test.pk)
    page = _page(client, "detail", project, test.pk)
    assert "Algorithm: is A2C better than PPO?" in page
    assert "Not known yet." in page
    assert "data-waiting" in page
    _pairs_end(test, 50, 40, 60, 50, 55, 45)
    page = _page(client, "progress", project, test.pk)
    assert "algorithm A2C" in page
    assert re.search(r"wrong .* 5 %", page)
    assert "data-waiting" not in page
    assert "simulated-word" in _page(client, "detail", project, test.pk)
    assert "Algorithm: is A2C" in _page(client, "list", project)


def test_a_test_of_a_job_that_has_not_succeeded_says_what_is_missing(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    job = make_job(make_project(user))
    answer = client.get(f"{reverse('abtests:new', args=[job.project.slug])}?job={job.pk}")
    assert answer.status_code == 409
    assert "has succeeded" in answer.content.decode()


def test_tests_of_other_projects_are_not_found(client: Client) -> None:
    test = _start(_base())
    user = make_user()
    client.force_login(user)
    mine = make_project(user)
    for name in ("detail", "progress"):
        assert client.get(reverse(f"abtests:{name}", args=[mine.slug, test.pk])).status_code == 404
    assert client.post(reverse("abtests:stop", args=[mine.slug, test.pk])).status_code == 404
    foreign = f"{reverse('abtests:new', args=[mine.slug])}?job={test.job_id}"
    assert client.get(foreign).status_code == 404


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_real_runs_are_launched_stopped_and_answered_within_the_budget(valkey: str) -> None:
    """A learning rate of nothing learns nothing: found from real runs on the simulated cloud."""
    spec = _small(12, 12, budget_usd="0.05")

    def run(job: Job) -> None:
        assert run_job(job.pk, owner=f"test-{job.pk}", hand_over=threading.Event()) == 0

    base = make_job(spec=spec)
    run(base)
    base.refresh_from_db()
    test = _start(base, "training.algorithm.learning_rate=0.0000001", usd="0.40")
    while test.state == AbTestState.RUNNING:
        for job in test.group.jobs.filter(observed="queued"):
            run(job)
        advance(test.pk)
        test.refresh_from_db()
    assert test.state == AbTestState.WORSE
    budget = Budget.objects.get(pk=test.budget_id)
    assert 0 < budget.spent_picodollars <= budget.limit_picodollars
    assert budget.overrun_picodollars == 0
