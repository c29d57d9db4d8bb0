"""The first page's demo: a recording that says so, the demo job's points over it, and when it makes room."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from tests.factories import make_job, make_project, make_running_job, make_spec, make_user, round_finished
from tests.members import add_member
from tests.webapp.jobs.policies.test_evaluation_films import ready
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job, Round
from webapp.jobs.running.recorder import Recorder
from webapp.overview.recording import FILMS, PRESET, RECORDING, DemoCard, demo_card, recording

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Any:
    return make_project(make_user())


def shown(project: Any) -> DemoCard:
    card = demo_card(project)
    assert card is not None
    return card


def page(client: Client, project: Any) -> str:
    return client.get(f"/p/{project.slug}/").content.decode()


def test_a_new_projects_page_shows_a_curve_and_films_said_to_be_recorded(
    client: Client, project: Any
) -> None:
    client.force_login(project.people.get())
    words = page(client, project)
    assert re.search(r"Recorded on 23 November .* 301,056 steps", words)
    assert 'class="simulated-word"' in words.partition("demo-title")[2]
    card = shown(project)
    assert (card.job, card.live) == (None, "")
    assert len(card.recorded.split()) == len(recording()["curve"])
    assert [film.film for film in card.films] == [f"/static/demo/{name}" for name in FILMS]
    assert [preset.title for preset in card.presets] == ["Cart pole", "Hopper", "Hopper, simulated cloud"]
    assert "?preset=cartpole" in words


def test_the_demo_jobs_points_and_films_come_over_it(client: Client, project: Any) -> None:
    job, epoch = make_running_job(project=project, spec=make_spec(PRESET))
    assert shown(project).job == job
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no in (1, 2, 3):
        recorder.record(round_finished(round_no, mean=100.0 * round_no))
    card = shown(project)
    assert len(card.live.split()) == 3
    assert card.recorded
    assert "return from 100.0 to 300.0" in card.words
    assert "768 steps" in card.words
    client.force_login(job.created_by)
    assert "Over it, live:" in page(client, project)
    films = [ready(job, round_no) for round_no in (1, 2, 3)]
    assert [film.words for film in shown(project).films] == [
        "Round 1: return 50.0",
        "Round 3: return 50.0",
    ]
    assert shown(project).films[1].film.endswith(f"/films/{films[2].pk}-film.webp")
    last = Round.objects.get(job=job, round_no=3)
    last.payload["report"]["total_env_steps"] = recording()["env_steps"] + 1
    last.save()
    assert not shown(project).recorded
    assert "Live: your demo" in page(client, project)


def test_a_demo_job_whose_rounds_end_no_episode_draws_nothing_and_breaks_nothing(
    client: Client, project: Any
) -> None:
    job, epoch = make_running_job(project=project, spec=make_spec(PRESET))
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    recorder.record(round_finished(1, mean=None))
    client.force_login(job.created_by)
    assert "job has begun" in page(client, project)
    for round_no, mean in ((2, None), (3, 20.0), (4, None), (5, 30.0)):
        recorder.record(round_finished(round_no, mean=mean))
    assert len(shown(project).live.split()) == 2
    assert "return from 20.0 to 30.0" in page(client, project)


def test_it_makes_room_for_jobs_of_ones_own_and_for_those_who_hid_it(client: Client, project: Any) -> None:
    owner = project.people.get()
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    client.force_login(viewer)
    assert "demo-title" not in page(client, project)
    client.force_login(owner)
    owner.memberships.filter(project=project).update(guide_put_away_at=SYSTEM_CLOCK.now())
    assert "demo-title" not in page(client, project)
    make_job(project, owner, make_spec("cartpole"))
    assert demo_card(project) is None
    Job.objects.all().delete()
    make_job(project, owner, make_spec(PRESET))
    assert demo_card(project) is not None
    make_job(project, owner, make_spec(PRESET))
    assert demo_card(project) is None


@pytest.mark.slow
def test_the_command_records_a_real_run(tmp_path: Path) -> None:
    call_command("record-demo", str(tmp_path), steps=4_096)
    made = json.loads((tmp_path / RECORDING).read_text())
    shipped = json.loads((settings.BASE_DIR / "static" / "demo" / RECORDING).read_text())
    assert made.keys() == shipped.keys()
    assert (made["env_steps"], len(made["curve"])) == (4_096, 2)
    for name in FILMS:
        assert (tmp_path / name).read_bytes().startswith(b"RIFF")
