"""The list of jobs: what a question finds, what columns show, that queries do not grow, and what is done from it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.factories import make_job, make_project, make_spec, make_user
from tests.members import add_member
from tests.webapp.jobs.test_pages import copies_of, text
from webapp.jobs.list import actions, run_table
from webapp.jobs.list.columns import COLUMNS, chosen_columns
from webapp.jobs.list.search_query import parse
from webapp.jobs.models import Job, SavedView
from webapp.jobs.queries import Headings, headings_of
from webapp.jobs.services import stop_job
from webapp.money.models import Account

pytestmark = pytest.mark.django_db


USUAL_HEADINGS = Headings("Return", "Least training", "Steps", "Actors", "Rounds", 1)


@pytest.fixture
def owner(client: Client) -> Any:
    user = make_user("ada@example.org")
    client.force_login(user)
    return user


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner)


@pytest.fixture
def known(project: Any) -> dict[str, Job]:
    """Three jobs that differ in everything that can be asked for."""
    cart = make_job(project, spec=make_spec(name="Cart", tags=["base", "x"], group="Seeds"))
    hop = make_job(project, spec=make_spec("hopper-simulated", name="Hop"))
    old = make_job(project, spec=make_spec(name="Old one", training__algorithm={"kind": "a2c"}))
    Job.objects.filter(pk=cart.pk).update(
        observed="running", training_score=10, best_training_score=480, total_progress=5000
    )
    Job.objects.filter(pk=hop.pk).update(
        observed="paused", reason_code="budget", training_score=-5, worst_training_score=-20, platform_s=7200
    )
    Job.objects.filter(pk=old.pk).update(
        observed="failed", created_at=timezone.now() - timedelta(days=30), note="diverged early"
    )
    Account.objects.filter(job=cart).update(spent_picodollars=10**11)
    Account.objects.filter(job=hop).update(spent_picodollars=9 * 10**11, overrun_picodollars=10**11)
    return {"cart": cart, "hop": hop, "old": old}


def _found(project: Any, question: str, order: str = run_table.FIRST) -> list[str]:
    rows = run_table.find_jobs(project, parse(question), order, timezone.now())
    return [job.name.split()[0].lower() for job in rows]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("", "hop cart old"),
        ("state:active", "cart"),
        ("state:budget", "hop"),
        ("state:failed,paused", "hop old"),
        ("-state:failed", "hop cart"),
        ("algorithm:A2C", "old"),
        ("environment:hopper", "hop"),
        ("cloud:simulated", "hop"),
        ("is:simulated", "hop"),
        ("tag:base", "cart"),
        ("-tag:base,other", "hop old"),
        ("group:seeds", "cart"),
        ("by:ada", "hop cart old"),
        ("by:bob", ""),
        ("cost>=1", "hop"),
        ("cost<0.5", "cart old"),
        ("limit=1", "hop cart old"),
        ("return>-6", "hop cart"),
        ("best>475", "cart"),
        ("least<0", "hop"),
        ("steps:5000", "cart"),
        ("time>=2h", "hop"),
        ("age>7d", "old"),
        ("age<7d", "hop cart"),
        ("hop", "hop"),
        ("diverged", "old"),
        ('"old one"', "old"),
        ("cart state:failed", ""),
        ("is:archived", ""),
    ],
)
def test_a_question_finds_what_it_asks_for(
    project: Any, known: dict[str, Job], question: str, names: str
) -> None:
    assert sorted(_found(project, question)) == sorted(names.split())


def test_orders_have_what_is_not_known_last(project: Any, known: dict[str, Job]) -> None:
    assert _found(project, "") == ["hop", "cart", "old"]
    assert _found(project, "", "-spent") == ["hop", "cart", "old"]
    assert _found(project, "", "-return") == ["cart", "hop", "old"]
    assert _found(project, "", "return") == ["hop", "cart", "old"]
    assert run_table.order_of("nonsense") == run_table.FIRST
    assert run_table.order_of("-tags") == run_table.FIRST


def test_archived_jobs_are_left_out_unless_requested(project: Any, known: dict[str, Job]) -> None:
    actions.archive(job=known["old"], user=known["old"].created_by)
    assert _found(project, "") == ["hop", "cart"]
    assert _found(project, "is:archived") == ["old"]
    assert sorted(_found(project, "-is:archived")) == ["cart", "hop"]


def test_every_column_shows_something(client: Client, project: Any, known: dict[str, Job]) -> None:
    keys = ",".join(column.key for column in COLUMNS)
    words = text(client.get(f"/p/{project.slug}/jobs/?columns={keys}&sort=-best"))
    for shown in (
        "480.0",
        "−20.0",
        "2 h 0 min",
        "A2C",
        "Hopper-v5",
        "base",
        "Seeds",
        "ada@example.org",
        "5,000",
    ):
        assert shown in words, shown
    assert [column.key for column in chosen_columns("spent,return,nonsense")] == ["return", "spent"]
    assert chosen_columns("nonsense") == chosen_columns("")


def test_reinforcement_jobs_are_headed_by_return_and_steps(
    client: Client, project: Any, known: dict[str, Job]
) -> None:
    assert headings_of([]) == headings_of(known.values()) == USUAL_HEADINGS
    page = client.get(f"/p/{project.slug}/jobs/?columns=return,best,least,evaluation,steps").content.decode()
    heads = re.findall(r'<th class="column-\w+ number"><a [^>]*>(\w[\w ]*\w)', page)
    assert heads == ["Return", "Best training", "Least training", "Evaluated", "Steps"]
    assert (
        'data-label="Return"><span class="score-basis secondary small" title="Not evaluated yet">training</span> 10.0<'
        in page
    )


def test_what_is_not_understood_is_said_and_all_jobs_stay(
    client: Client, project: Any, known: dict[str, Job]
) -> None:
    page = client.get(f"/p/{project.slug}/jobs/?q=stat:active")
    assert "mean state?" in text(page)
    assert page.content.decode().count("data-job=") == 3


def test_queries_do_not_grow_with_rows_or_columns(
    client: Client, project: Any, django_assert_max_num_queries: Any
) -> None:
    job = make_job(project, spec=make_spec(tags=["a", "b"], group="g"))
    for copy in copies_of(job, 60):
        copy.tags.set(job.tags.all())
    client.get(f"/p/{project.slug}/jobs/")
    keys = ",".join(column.key for column in COLUMNS)
    with django_assert_max_num_queries(11):
        client.get(f"/p/{project.slug}/jobs/?columns={keys}&q=tag:a -state:failed cost<1&sort=-spent")
    with django_assert_max_num_queries(8):  # which jobs, from the index alone, and then what is shown of them
        client.get(f"/p/{project.slug}/jobs/?columns={keys}&rows=1")


def test_a_row_is_drawn_again_when_anything_in_it_changes(client: Client, project: Any) -> None:
    job = make_job(project)
    address = f"/p/{project.slug}/jobs/?rows=1&columns=tags,return,spent"

    def drawn() -> str:
        return client.get(address).content.decode()

    seen = {drawn()}
    for changes in ({"name": "Renamed"}, {"training_score": 7.0}, {"reason": "It waits."}):
        Job.objects.filter(pk=job.pk).update(**changes)
        assert drawn() not in seen, changes
        seen.add(drawn())
    Account.objects.filter(job=job).update(spent_picodollars=5 * 10**10)
    assert drawn() not in seen
    seen.add(drawn())
    actions.set_tags(job=job, names=["new-tag"])
    assert drawn() not in seen
    assert "new-tag" in drawn()


def test_which_jobs_are_listed_comes_from_an_index_alone(project: Any) -> None:
    """On 10,000 jobs, anything else takes longer than all the rest of the page."""
    found = run_table.find_jobs(project, (), run_table.FIRST, timezone.now())
    for query in (found.values_list("pk", flat=True)[50:100], found.values("pk").order_by()):
        plan = query.explain()
        if connection.vendor == "sqlite":
            assert "COVERING INDEX job_listed" in plan, plan
            assert "TEMP B-TREE" not in plan, plan


def test_views_are_kept_by_name_for_the_whole_project(client: Client, project: Any) -> None:
    make_job(project)
    address = f"/p/{project.slug}/jobs/views/"
    question = "?q=state:failed&sort=-spent&page=3&evil=1"
    answer = client.post(address, {"name": " Dear failures ", "back": question})
    assert answer.headers["Location"] == f"/p/{project.slug}/jobs/{question}"
    view = SavedView.objects.get()
    assert (view.name, view.address) == ("Dear failures", "?q=state:failed&sort=-spent")
    client.post(address, {"name": "Dear failures", "back": "?q=state:active"})
    assert SavedView.objects.get().address == "?q=state:active"
    assert "Dear failures" in text(client.get(f"/p/{project.slug}/jobs/?q=state:failed"))
    client.post(address, {"name": " ", "back": ""})
    assert "at most 60 letters" in text(client.get(f"/p/{project.slug}/jobs/"))
    client.post(address, {"remove": str(view.pk)})
    assert not SavedView.objects.exists()
    assert client.post(address, {"remove": "x"}).status_code == 302


def test_a_form_cannot_send_anybody_elsewhere(client: Client, project: Any) -> None:
    for back in ("//evil.example", "https://evil.example", "?q=x"):
        where = client.post(f"/p/{project.slug}/jobs/act/", {"back": back}).headers["Location"]
        assert where.startswith(f"/p/{project.slug}/jobs/")


def test_archiving_offers_the_way_back_once(client: Client, project: Any) -> None:
    jobs = [make_job(project) for _ in range(2)]
    for job in jobs:
        stop_job(job=job, user=job.created_by)
    make_job(project)
    act = f"/p/{project.slug}/jobs/act/"
    client.post(act, {"action": "archive", "job": [job.pk for job in jobs], "back": ""})
    page = client.get(f"/p/{project.slug}/jobs/").content.decode()
    assert "2 jobs archived" in page
    assert page.count("data-job=") == 1
    undo = re.findall(r'type="hidden" name="job" value="(\w+)"', page)
    assert sorted(undo) == sorted(job.pk for job in jobs)
    assert "2 jobs archived" not in client.get(f"/p/{project.slug}/jobs/").content.decode()
    client.post(act, {"action": "unarchive", "job": undo})
    assert client.get(f"/p/{project.slug}/jobs/").content.decode().count("data-job=") == 3


def test_chosen_jobs_go_to_their_comparison(client: Client, project: Any) -> None:
    ids = [make_job(project).pk for _ in range(2)]
    answer = client.post(f"/p/{project.slug}/jobs/act/", {"action": "compare", "job": ids})
    assert answer.headers["Location"] == f"/p/{project.slug}/compare/?of={ids[0]}&of={ids[1]}"
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    client.force_login(viewer)
    page = client.get(f"/p/{project.slug}/jobs/").content.decode()
    assert f'method="get" action="/p/{project.slug}/compare/"' in page
    assert 'value="archive"' not in page


def test_labels_are_written_from_the_jobs_page(client: Client, project: Any) -> None:
    job = make_job(project)
    address = f"/p/{project.slug}/jobs/{job.pk}/labels/"
    client.post(address, {"tags": "a, b", "note": "first try"})
    job.refresh_from_db()
    assert job.note == "first try"
    assert [tag.name for tag in job.tags.all()] == ["a", "b"]
    client.post(address, {"archive": "1"})
    job.refresh_from_db()
    assert job.archived_at is None, "it is still queued"
    stop_job(job=job, user=job.created_by)
    client.post(address, {"archive": "1"})
    job.refresh_from_db()
    assert job.archived_at is not None
    client.post(address, {"unarchive": "1"})
    job.refresh_from_db()
    assert job.archived_at is None
