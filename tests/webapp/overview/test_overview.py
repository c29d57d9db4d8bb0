"""A project at one look: what runs and costs, the first steps, what the palette finds."""

import re
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.test import Client

from tests.factories import (
    FixedClock,
    make_alert,
    make_connection,
    make_job,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.figures import figures_in
from tests.ledger_contract import reservation, settlement
from tests.members import add_member
from tests.webapp.spoiled_database import failing_at
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.models import Connection
from webapp.jobs.charts.sparklines import polyline, sampled
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Charge
from webapp.overview import month
from webapp.overview.first_steps import guide_for
from webapp.overview.month import Month, drawing
from webapp.overview.running_jobs import rate
from webapp.overview.search import find

pytestmark = pytest.mark.django_db
USD = 10**12


@pytest.fixture
def project() -> Any:
    return make_project(make_user("ada@example.org"))


@pytest.fixture
def browser(project: Any) -> Client:
    client = Client()
    client.force_login(project.people.get(), backend="django.contrib.auth.backends.ModelBackend")
    return client


def words(answer: Any) -> str:
    text = re.sub(r"<[^>]+>", " ", answer.content.decode()).replace("&#x27;", "'")
    return re.sub(r" ([.,])", r"\1", " ".join(text.split()))


def spending_job(
    project: Any, each: int, *, simulated: bool, rounds: int = 6, clock: Clock = SYSTEM_CLOCK
) -> Job:
    """A running job whose rounds took a second of its platform's time and cost `each`, booked at the clock's time."""
    spec = make_spec("hopper-simulated" if simulated else "cartpole")
    job, epoch = make_running_job(project=project, spec=spec)
    ledger = DatabaseLedger(job.account.pk, epoch, clock=clock)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no in range(1, rounds + 1):
        ledger.reserve([reservation(f"r{round_no}", each)])
        ledger.settle([settlement(f"r{round_no}", each)])
        recorder.record(round_finished(round_no, spent=each * round_no, mean=20.0 + round_no))
    return Job.objects.get(pk=job.pk)


def test_home_is_the_overview_of_the_last_project(browser: Client, project: Any) -> None:
    page = browser.get("/", follow=True)
    assert page.redirect_chain[-1][0] == f"/p/{project.slug}/"
    said = words(page)
    assert "costs nothing now" in said
    assert "All clear." in said
    assert "Nothing was spent" in said


def test_real_and_simulated_money_are_never_added(browser: Client, project: Any) -> None:
    noon = FixedClock()
    spending_job(project, USD // 10_000, simulated=False, clock=noon)
    spending_job(project, USD // 1_000, simulated=True, clock=noon)
    spending = rate(project)
    assert (spending.real.hourly, spending.unreal["simulated"].hourly) == (36 * USD // 100, 36 * USD // 10)
    said = words(browser.get(f"/p/{project.slug}/"))
    assert re.search(r"2 jobs .*: 1 costs money \(\$0\.360 [^)]*\) and 1 is simulated \(\$3\.60 ", said)
    real, unreal = month.months(project, noon.now())
    assert (real.unreal, real.spent, real.spent_today) == ("", 6 * USD // 10_000, 6 * USD // 10_000)
    assert (unreal.unreal, unreal.spent) == ("simulated", 6 * USD // 1_000)
    assert words(browser.get(f"/p/{project.slug}/spending")) == "$0.360/h · 1 real · 1 simulated"


def test_a_job_in_a_cloud_is_not_called_simulated_because_its_rate_is_not_known_yet(
    browser: Client, project: Any
) -> None:
    """Eight jobs, one of them on Lambda, two on this machine for nothing."""
    for _ in range(5):
        spending_job(project, USD // 1_000, simulated=True)
    for _ in range(2):
        make_running_job(project=project)
    real, _ = make_running_job(project=project)
    platform = {"kind": "aws_lambda", "connection": "", "region": "us-east-1"}
    Job.objects.filter(pk=real.pk).update(spec={**real.spec, "platform": platform})
    said = words(browser.get(f"/p/{project.slug}/"))
    assert re.search(r"8 jobs .*: 1 costs money \([^$)]*\), 5 are simulated", said)
    assert "2 cost nothing." in said
    assert words(browser.get(f"/p/{project.slug}/spending")).endswith(" 1 real, 5 simulated, 2 free")


def test_a_simulated_job_whose_rate_is_not_known_yet_is_one_that_no_one_pays_for(
    browser: Client, project: Any
) -> None:
    make_running_job(project=project, spec=make_spec("hopper-simulated"))
    said = words(browser.get(f"/p/{project.slug}/"))
    assert "It is simulated" in said
    assert "1 job " in said


def test_a_machine_with_a_price_is_not_free(browser: Client, project: Any) -> None:
    make_running_job(project=project, spec=make_spec(platform__worker_usd_per_hour="0.1"))
    assert "not known yet" in words(browser.get(f"/p/{project.slug}/"))
    other = make_project(project.people.get())
    make_running_job(project=other)
    assert "It costs nothing." in words(browser.get(f"/p/{other.slug}/"))


def test_queued_jobs_are_not_counted_as_running(browser: Client, project: Any) -> None:
    for _ in range(2):
        make_job(project)
    said = words(browser.get(f"/p/{project.slug}/"))
    assert "costs nothing now" in said
    assert "2 jobs are queued" in said
    assert "Running and queued" in said
    assert words(browser.get(f"/p/{project.slug}/spending")) == "Nothing runs · 2 queued"
    make_running_job(project=project)
    said = words(browser.get(f"/p/{project.slug}/"))
    assert "1 job is running" in said
    assert "2 jobs are queued" in said
    assert words(browser.get(f"/p/{project.slug}/spending")) == "1 job running · 2 queued"


def test_a_row_shows_how_a_job_learns_and_what_it_may_cost(browser: Client, project: Any) -> None:
    job = spending_job(project, USD // 1_000, simulated=True)
    page = browser.get(f"/p/{project.slug}/?now=1")
    assert 'aria-label="Training return from 21.0 to 26.0"' in page.content.decode()
    for shown in (job.name, "simulated", "Running", "26.0", "$0.00600 sim. of $1.00"):
        assert shown in words(page)


def test_what_ended_says_what_can_be_done(browser: Client, project: Any) -> None:
    for observed, code in (("failed", ""), ("paused", "budget"), ("succeeded", "")):
        Job.objects.filter(pk=make_job(project).pk).update(observed=observed, reason_code=code)
    make_alert(project, sentence="A function was left over.")
    said = words(browser.get(f"/p/{project.slug}/"))
    for shown in ("Read log", "Raise budget", "Download policy", "A function was left over."):
        assert shown in said


def test_as_many_queries_for_many_jobs_as_for_one(
    browser: Client, project: Any, django_assert_max_num_queries: Any
) -> None:
    spending_job(project, USD // 1_000, simulated=True)
    browser.get(f"/p/{project.slug}/")  # the session remembers the project now
    with django_assert_max_num_queries(25) as one:
        browser.get(f"/p/{project.slug}/?now=1")
    for _ in range(4):
        spending_job(project, USD // 1_000, simulated=True)
    with django_assert_max_num_queries(len(one)):
        browser.get(f"/p/{project.slug}/?now=1")


def test_a_month_is_forecast_from_its_last_days() -> None:
    even = Month(date(2026, 11, 11), "", (USD,) * 10 + (0,))
    assert even.spent == 10 * USD
    assert even.expected() == (29 * USD, 29 * USD, 29 * USD)
    assert figures_in(month.pace_sentence(even)) == ["$29.00", "30", "$29.00", "$29.00"]
    assert Month(date(2026, 11, 3), "", (USD, USD, 0)).expected() is None, "two days tell nothing"
    assert Month(date(2026, 11, 30), "", (USD,) * 30).expected() is None, "nothing is left to foretell"
    low, middle, high = Month(date(2026, 11, 11), "", (0, 2 * USD) * 5 + (0,)).expected() or (0, 0, 0)
    assert 10 * USD <= low < middle < high


def test_the_month_is_drawn_from_zero_to_its_line() -> None:
    drawn = drawing(Month(date(2026, 11, 15), "", (USD,) * 15), 20 * USD)
    first, *_, last = drawn.line.split()
    assert first == "0.0,120.0"
    assert last.split(",")[0] == "320.0"
    assert drawn.limit_y is not None
    assert 0 < drawn.limit_y < float(last.split(",")[1])


def test_charges_of_other_months_and_projects_do_not_count(project: Any) -> None:
    noon = FixedClock()
    job = spending_job(project, USD // 1_000, simulated=False, clock=noon)
    spending_job(make_project(), USD, simulated=False, rounds=1, clock=noon)
    old = Charge.objects.filter(account__job=job).first()
    assert old is not None
    Charge.objects.filter(pk=old.pk).update(resolved_at=datetime(2020, 1, 1, tzinfo=UTC))
    (only,) = month.months(project, noon.now())
    assert only.spent == 5 * USD // 1_000


def test_small_lines_keep_their_first_and_last_round() -> None:
    assert sampled(3) == [1, 2, 3]
    many = sampled(100_000)
    assert (many[0], many[-1]) == (1, 100_000)
    assert len(many) <= 32
    assert polyline([(1, 5.0)]) == ""
    assert polyline([(1, 0.0), (2, 10.0)]) == "0.0,22.0 96.0,2.0"


def test_first_steps_tick_themselves(browser: Client, project: Any) -> None:
    membership = project.memberships.get()
    done = lambda: [step.done for step in guide_for(membership).steps]  # noqa: E731
    assert done() == [False] * 5
    assert "0 of 5 taken" in words(browser.get(f"/p/{project.slug}/"))
    spending_job(project, USD // 1_000, simulated=True, rounds=1)
    connection = make_connection(project)
    assert done() == [True, True, False, False, False]
    Connection.objects.filter(pk=connection.pk).update(test_report={"ok": True})
    create_budget(project=project, name="Month", limit_picodollars=100 * USD)
    assert done() == [True, True, True, True, False]
    Job.objects.filter(pk=make_job(project).pk).update(cloud="aws_lambda")
    assert guide_for(membership).over
    assert "First steps" not in words(browser.get(f"/p/{project.slug}/"))


def test_first_steps_can_be_put_away_and_brought_back(browser: Client, project: Any) -> None:
    address = f"/p/{project.slug}/guide/"
    browser.post(address)
    said = words(browser.get(f"/p/{project.slug}/"))
    assert "first steps again" in said
    assert "0 of 5 taken" not in said
    browser.post(address, {"again": ""})
    assert "0 of 5 taken" in words(browser.get(f"/p/{project.slug}/"))


def test_the_palette_finds_only_what_is_in_the_project(browser: Client, project: Any) -> None:
    mine = make_job(project, spec=make_spec(name="Cart pole, wide"))
    make_job(spec=make_spec(name="Cart pole, someone's"))
    membership = project.memberships.get()
    jobs, *_ = find(membership, "POLE cart")
    assert [one.title for one in jobs.found] == [mine.name]
    assert find(membership, mine.pk)[0].found[0].url == f"/p/{project.slug}/jobs/{mine.pk}/"
    titles = {kind.title: [one.title for one in kind.found] for kind in find(membership, "budget")}
    assert titles == {"To do": ["Set a budget", "New sweep"], "Places": ["Budgets"]}
    assert find(membership, "Jobs")[0].found[0].title == "Jobs", "what is called so, before what speaks of it"
    assert find(membership, "nothing like this") == []
    options = browser.get(f"/p/{project.slug}/find/?options=1&q=wide").content.decode()
    assert options.count('role="option"') == 1
    assert "Nothing matches" in words(browser.get(f"/p/{project.slug}/find/?q=zzz"))


def test_a_fault_of_ours_has_a_reference_that_the_log_knows(
    browser: Client, project: Any, caplog: pytest.LogCaptureFixture
) -> None:
    browser.raise_request_exception = False
    with failing_at('SELECT "jobs_job"', RuntimeError("a secret of the machine")):
        page = browser.get(f"/p/{project.slug}/")
    assert page.status_code == 500
    found = re.search(r"Reference ([0-9A-F]{8})", words(page))
    assert found is not None
    assert f"Reference {found[1]}: GET /p/{project.slug}/ failed" in caplog.text
    assert "secret" not in page.content.decode()


def test_a_person_who_only_looks_is_offered_nothing_to_do(project: Any) -> None:
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    membership = project.memberships.get(user=viewer)
    assert [kind.title for kind in find(membership, "")] == ["Places"]
