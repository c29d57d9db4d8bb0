"""Tags, notes and the archive, and one thing done to many jobs."""

from typing import Any

import pytest

from tests.factories import make_job, make_project, make_running_job
from tests.figures import figures_in
from webapp.jobs.list import actions
from webapp.jobs.models import Job
from webapp.jobs.services import stop_job
from webapp.money.models import Account

pytestmark = pytest.mark.django_db


def _stopped(**options: Any) -> Job:
    job = make_job(**options)
    return stop_job(job=job, user=job.created_by)


def test_tags_are_set_once_each_and_belong_to_the_project() -> None:
    job = make_job()
    actions.set_tags(job=job, names=actions.tag_names("first try, b,b ,"))
    actions.add_tags(job=job, names=["c"])
    assert [tag.name for tag in job.tags.all()] == ["b", "c", "first try"]
    other = make_job()
    actions.set_tags(job=other, names=["b"])
    assert job.tags.get(name="b") != other.tags.get()
    actions.set_tags(job=job, names=[])
    assert not job.tags.exists()


@pytest.mark.parametrize("text", [",".join(map(str, range(11))), "x" * 41])
def test_too_much_of_a_tag_is_refused(text: str) -> None:
    with pytest.raises(actions.LabelRefused, match="at most"):
        actions.tag_names(text)


def test_a_note_is_kept_and_taken_away() -> None:
    job = make_job()
    actions.set_note(job=job, text="  learning rate too high \n")
    job.refresh_from_db()
    assert job.note == "learning rate too high"
    with pytest.raises(actions.LabelRefused, match="5,000"):
        actions.set_note(job=job, text="x" * 5_001)
    actions.set_note(job=job, text=" ")
    job.refresh_from_db()
    assert job.note == ""


def test_only_a_job_that_is_over_is_put_away_and_nothing_of_it_is_lost() -> None:
    running, _ = make_running_job()
    with pytest.raises(actions.LabelRefused, match=r"is running, so .* Stop it first"):
        actions.archive(job=running, user=running.created_by)
    job = _stopped()
    money = list(Account.objects.filter(job=job).values())
    events = job.events.count()
    assert actions.archive(job=job, user=job.created_by)
    assert not actions.archive(job=job, user=job.created_by)
    job.refresh_from_db()
    assert job.archived_at is not None
    assert list(Account.objects.filter(job=job).values()) == money
    assert job.events.count() == events + 1
    assert actions.unarchive(job=job, user=job.created_by)
    assert not actions.unarchive(job=job, user=job.created_by)
    job.refresh_from_db()
    assert job.archived_at is None


def test_what_one_job_refuses_keeps_no_other_from_it() -> None:
    project = make_project()
    user = project.people.first()
    over, waits = _stopped(project=project), make_job(project=project)
    ids = [over.pk, waits.pk, make_job().pk]
    outcome = actions.act(project=project, user=user, action="pause", job_ids=ids)
    assert outcome.done == (waits.pk,)
    ((name, why),) = outcome.refused
    assert name == over.name
    assert "is over (stopped)" in why
    assert outcome.sentence.startswith("Pausing")
    assert figures_in(outcome.sentence)[:2] == ["1", "1"]
    states = dict(Job.objects.values_list("pk", "observed"))
    assert [states[pk] for pk in ids] == ["cancelled", "paused", "queued"], (
        "another project's job is left alone"
    )
    assert actions.act(project=project, user=user, action="go_on", job_ids=ids).done == (waits.pk,)
    assert actions.act(project=project, user=user, action="stop", job_ids=ids).done == (waits.pk,)
    assert set(actions.act(project=project, user=user, action="archive", job_ids=ids).done) == {
        over.pk,
        waits.pk,
    }
    assert set(actions.act(project=project, user=user, action="unarchive", job_ids=ids).done) == {
        over.pk,
        waits.pk,
    }
    actions.act(project=project, user=user, action="tag", job_ids=ids, tag="done, old")
    assert {tag.name for tag in waits.tags.all()} == {"done", "old"}


@pytest.mark.parametrize(
    ("action", "ids", "said"),
    [
        ("stop", [], "one or more"),
        ("explode", ["x"], "what to do"),
        ("tag", ["x"], "write the tag"),
        ("stop", [str(n) for n in range(201)], "at most 200"),
    ],
)
def test_a_wish_that_is_none_does_nothing(action: str, ids: list[str], said: str) -> None:
    with pytest.raises(actions.NotPossible, match=said):
        actions.act(project=make_project(), user=None, action=action, job_ids=ids)
