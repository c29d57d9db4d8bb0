"""What pages and the command say of what stands, and of a server that dies now."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from cloud.accounts.register import FoundResource
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import container_parts
from cloud.money.pricing import lines_of, total
from cloud.money.unattended_cost import UnattendedCost
from tests.cloud import calls
from tests.factories import FixedClock, make_connection, make_job, make_project, make_user
from tests.members import add_member
from tests.webapp import held
from tests.webapp.held import MB, PaperCloud
from training.engine.ports import Reservation, Settlement
from webapp.alerts.models import Alert
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Aim, Connection, SetUp
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.money.ledger import DatabaseLedger
from webapp.resources import queries, scanner, text
from webapp.resources.actions import report_scan
from webapp.resources.models import Holding
from webapp.resources.scanner import scan

pytestmark = pytest.mark.django_db

NAME = "starling-actor-1024mb:1"


@pytest.fixture
def connection() -> Connection:
    made = make_connection(make_project(), name="The lab", region="us-east-1")
    SetUp.objects.create(connection=made, aim=Aim.SET_UP, since=SYSTEM_CLOCK.now(), requested_mb=[MB])
    return made


def _hold(connection: Connection, clock: Any = SYSTEM_CLOCK, instances: int = 2) -> Any:
    job = held.make_lambda_job(connection, clock, provisioned=instances)
    register = held.holder(connection, job, held.run_of(job, clock), clock).register
    facts = {"resource": "provisioned", "instances": instances}
    register.intend(NAME, "provisioned", (clock.now() + timedelta(seconds=120)).timestamp(), facts)
    register.made(NAME, "arn")
    return job


def test_the_line_of_a_project(connection: Connection) -> None:
    clock = FixedClock()
    project = connection.project
    unknown = queries.in_project(project)
    assert (unknown.clear, unknown.checked_at, unknown.accounts) == (False, None, 1)
    scan(connection, clock=clock, find=lambda there: PaperCloud())
    clear = queries.in_project(project)
    assert (clear.clear, clear.checked_at) == (True, clock.now())
    assert text.headline(clear) == "All clear: no cloud resources are running"
    job = _hold(connection, clock)
    resources = queries.in_project(project)
    assert text.headline(resources) == "2 warm functions are running"
    assert text.describe_resource(resources.things[0]) == f"2 warm functions for {job.name}"
    Holding.objects.update(facts={"instances": 1}, state="ending")
    assert text.headline(queries.in_project(project)) == "1 warm function is running"
    assert text.describe_resource(Holding.objects.get()).endswith(" · being ended")
    assert queries.in_project(make_project()).accounts == 0


def test_an_account_that_cannot_be_scanned_is_not_clear(connection: Connection) -> None:
    clock = FixedClock()
    scan(connection, clock=clock, find=lambda there: PaperCloud())
    clock.forward(60)
    scan(connection, clock=clock, find=lambda there: PaperCloud(fails=TimeoutError("late")))
    resources = queries.in_project(connection.project)
    assert not resources.clear
    assert text.headline(resources) == "It is not known which cloud resources are running"
    assert resources.checked_at == clock.now() - timedelta(seconds=60)
    assert resources.problems[0].startswith("The lab: AWS answered with TimeoutError.")


@pytest.mark.parametrize(
    ("will", "words"),
    [
        (UnattendedCost(0.0, 0, 0, 0), "If this server dies now, this job stops and costs nothing more."),
        (
            UnattendedCost(42.1, 1_230_000_000, 0, 0),
            "If this server dies now, everything stops by itself within 43 s and costs at most $0.00123 more.",
        ),
        (
            UnattendedCost(930.0, 2 * 10**12, 0, 0),
            "If this server dies now, everything stops by itself within 16 min and costs at most $2.00 more.",
        ),
        (
            UnattendedCost(0.0, 5 * 10**10, 0, 0),
            "If this server dies now, everything stops by itself at once and costs at most $0.0500 more.",
        ),
        (
            UnattendedCost(30.0, 10**12, 2, 3 * 10**10),
            "If this server dies now, its calls end by themselves within 30 s and cost at most $1.00 more."
            " 2 warm functions keep running, at $0.0300 an hour, until it is back.",
        ),
        (
            UnattendedCost(0.0, 0, 1, 10**10),
            "If this server dies now, no call of this job keeps running."
            " 1 warm function keeps running, at $0.0100 an hour, until it is back.",
        ),
    ],
)
def test_if_this_server_dies_now(will: UnattendedCost, words: str) -> None:
    assert text.unattended_cost_sentence(will) == words


def test_what_becomes_of_a_job_on_lambda_by_hand(connection: Connection) -> None:
    """Two calls of at most 20 s sent 5 s ago, start-up 30 s; one of 60 s sent 50 s ago; rent for five minutes."""
    clock = FixedClock()
    job = _hold(connection, clock)
    price = job.parsed_spec().platform.tariff(PriceBook.load(), MB).actor

    def worst(deadline_s: float) -> int:
        return price.worst_case(calls.rollout("a", None, deadline_s=deadline_s, memory_mb=MB))

    ledger = DatabaseLedger(job.account.pk, 1, clock=clock)
    ledger.reserve(
        [Reservation("old", "evaluate", 1, worst(60)), Reservation("rent-provisioned-1", "rent", 1, 9)]
    )
    clock.forward(45)
    ledger.reserve([Reservation(name, "rollout", 1, worst(20)) for name in ("a", "b")])
    ledger.reserve([Reservation("here", "update", 1, 0)])
    clock.forward(5)
    will = queries.find_unattended_cost(job, clock.now())
    assert will is not None
    assert will.within_s == pytest.approx(max(30 + 60 - 50, 30 + 20 - 5), abs=0.01)
    assert will.picodollars == worst(60) + 2 * worst(20) + 9
    # 2 x 1 GB-h at the price book's 0.0000041667 USD a GB-s
    assert (will.endless, will.endless_per_hour) == (2, 2 * 3600 * 4_166_700)
    job.observed = Observed.SUCCEEDED
    assert queries.find_unattended_cost(job, clock.now()) is None


def test_a_job_on_this_machine_ends_with_it() -> None:
    job = make_job()
    assert queries.find_unattended_cost(job, SYSTEM_CLOCK.now()) == UnattendedCost(0.0, 0, 0, 0)
    assert queries.of_job(job) is None


@pytest.fixture
def paper(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> PaperCloud:
    """The connection's cloud, in which a function kept ready is left over."""
    cloud = PaperCloud([FoundResource(NAME, "provisioned", "arn", connection.pk)])
    monkeypatch.setattr(scanner, "finder_of", lambda there: cloud)
    return cloud


def test_the_command_says_what_it_would_do(connection: Connection, paper: PaperCloud) -> None:
    job = _hold(connection)
    held.run_dies(job)
    out = StringIO()
    call_command("reconcile", "--dry-run", stdout=out)
    assert f"{NAME}: to be ended. The process that created it is gone." in out.getvalue()
    assert "Nothing was changed" in out.getvalue()
    assert paper.ended == []
    out = StringIO()
    call_command("reconcile", "--json", stdout=out)
    (document,) = json.loads(out.getvalue())
    assert document["connection"] == connection.pk
    assert document["things"][0]["deed"] == "end"
    assert document["things"][0]["orphaned"]
    assert paper.ended == [NAME]
    paper.fails = TimeoutError("late")
    out = StringIO()
    with pytest.raises(SystemExit) as exit_code:
        call_command("reconcile", stdout=out)
    assert exit_code.value.code == 1
    assert "The lab" in out.getvalue()


def test_what_was_left_over_is_ended_before_the_workers_start(
    connection: Connection, paper: PaperCloud
) -> None:
    held.run_dies(_hold(connection))
    out = StringIO()
    call_command("prepare", stdout=out)
    assert paper.ended == [NAME]
    assert "to be ended. The process that created it is gone." in out.getvalue()
    paper.fails = TimeoutError("late")
    call_command("prepare", stdout=out)
    assert "Not every account could be looked at; the next look follows in seconds." in out.getvalue()


def _page(user: Any, address: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_lines_on_the_pages(connection: Connection) -> None:
    project, owner = connection.project, connection.created_by
    clouds = f"/p/{project.slug}/clouds/"
    assert "Running cloud resources" not in _page(owner, f"/p/{make_project(owner).slug}/clouds/")
    assert "resources are running, not checked yet." in _page(owner, clouds)
    scan(connection, find=lambda there: PaperCloud())
    assert "All clear: no cloud resources are running, checked <time" in _page(owner, f"{clouds}standing")
    job = _hold(connection)
    ledger = DatabaseLedger(job.account.pk, 1)
    ledger.reserve([Reservation("a", "rollout", 1, 10**9)])
    ledger.settle([Settlement("a", 10**9, "assumed", (), {})])
    for address in (f"/p/{project.slug}/jobs/{job.pk}/", f"/p/{project.slug}/jobs/{job.pk}/standing"):
        page = _page(owner, address)
        assert "2 warm functions are running for this job, checked <time" in page
        assert "2 warm functions keep running, at $0.0300 an hour, until it is back." in page
        assert "1 call is booked at the most it can have cost, $0.00100, until the provider" in page
    assert f"2 warm functions for {job.name}" in _page(owner, clouds)
    assert "data-resources" not in _page(owner, f"/p/{project.slug}/jobs/{make_job(project, owner).pk}/")


def test_who_only_looks_does_not_see_why_an_account_lets_no_one_in(connection: Connection) -> None:
    viewer = make_user()
    add_member(connection.project, viewer.email, "viewer")
    scan(connection, find=lambda there: PaperCloud(fails=TimeoutError("late")))
    address = f"/p/{connection.project.slug}/clouds/standing"
    assert "AWS answered with TimeoutError." in _page(connection.created_by, address)
    shown = _page(viewer, address)
    assert "It is not known which cloud resources are running" in shown
    assert "TimeoutError" not in shown


def test_a_container_group_ends_at_its_dead_man_time_and_is_paid_until_then(connection: Connection) -> None:
    """One actor of 1 core and 2 GB, asked for 30 s ago, paid for 60 s, and told to live 120 s without us."""
    clock = FixedClock()
    job = held.make_lambda_job(connection, clock)
    platform = {"kind": "azure_container", "connection": connection.pk, "region": "eastus", "image": "i"}
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "platform": platform})
    job.refresh_from_db()
    register = held.holder(connection, job, held.run_of(job, clock), clock).register
    facts = {"actors": 1, "resource": "actor_group-1"}
    register.intend("g", "container_group", clock.now().timestamp() + 150, facts)
    ledger = DatabaseLedger(job.account.pk, 1, clock=clock)
    ledger.reserve([Reservation("rent-actor_group-1-1", "rent", 1, _for_an_actor(60))])
    clock.forward(30)
    will = queries.find_unattended_cost(job, clock.now())
    assert will is not None
    assert (will.within_s, will.endless) == (120.0, 0)
    # 150 s in all from the order on: the minute that is reserved, and 90 s that no one has paid.
    assert will.picodollars == _for_an_actor(60) + _for_an_actor(90)


def _for_an_actor(seconds: int) -> int:
    return total(lines_of(container_parts(PriceBook.load(), "eastus", 1, 2048), seconds * 10**9))


def test_an_account_in_which_resources_run_unseen(connection: Connection) -> None:
    clock = FixedClock()
    job = held.make_lambda_job(connection, clock, provisioned=1)
    holder = held.holder(connection, job, held.run_of(job, clock), clock)
    holder.register.intend(NAME, "provisioned", clock.now().timestamp() + 120, {"resource": "provisioned"})
    report_scan(connection, 3, "It lets no one in.", clock)
    assert Alert.objects.get().sentence == (
        f"Starling runs resources in {connection.name} and cannot check them. It lets no one in."
    )
