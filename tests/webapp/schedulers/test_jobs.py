"""Jobs that a trained scheduler decides for: chosen by its name, filled in at the launch, refused in words."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp import scheduler_rows
from tests.webapp.jobs.form.test_forms import posted
from training.scaling.learned import Learned
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.spec_documents import SpecError
from webapp.jobs.launch.forecast_panel import panel
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.models import Job, Round
from webapp.jobs.running.headless import Headless
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import SpecRefused
from webapp.schedulers import job_choice

pytestmark = pytest.mark.django_db(transaction=True)


def _spec(**changes: Any) -> Any:
    return make_spec(
        platform={"kind": "simulated", "learner": "function", "workers": 1},
        training__stop={"rounds": 3, "env_steps": None},
        **changes,
    )


def _learned(key: str, **more: Any) -> Any:
    return _spec(training__scaling={"kind": "learned", "scheduler": key, **more})


def _as(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_what_follows_from_a_scheduler_is_filled_in_at_the_launch() -> None:
    project = make_project()
    version = scheduler_rows.make_version(project)
    job = make_job(project, spec=_learned(version.key, explore=True))
    scaling = job.parsed_spec().training.scaling
    trained = version.training.parsed_spec
    assert scaling == trained.policy(version.weights, explore=True).model_copy(
        update={"scheduler": version.key}
    )
    assert (scaling.largest, scaling.target_return, scaling.rounds) == (2, 475.0, 4)
    again = make_job(project, spec=job.parsed_spec())
    assert again.spec == job.spec
    version.scheduler.delete()
    assert make_job(project, spec=job.parsed_spec()).spec == job.spec, "a spec holds its own copy"


def test_without_one_nothing_is_launched_and_the_way_to_one_is_reported() -> None:
    project = make_project()
    with pytest.raises(SpecRefused, match=r"\(training.scaling.scheduler\): none is"):
        make_job(project, spec=_learned(""))
    theirs = scheduler_rows.make_version()
    with pytest.raises(SpecRefused, match=r"\(training.scaling.scheduler\): none is"):
        make_job(project, spec=_learned(theirs.key))
    scheduler_rows.make_version(project)
    with pytest.raises(SpecRefused, match=r"\(training.scaling.scheduler\): choose one"):
        make_job(project, spec=_learned(theirs.key))
    assert not Job.objects.exists()
    with pytest.raises(SpecError, match="none was chosen"):
        Headless(_learned(""))


def test_the_form_offers_them_and_hides_what_follows() -> None:
    user = make_user()
    project = make_project(user)
    page = _as(user).get(f"/p/{project.slug}/jobs/new/?preset=hopper-minionsrl").content.decode()
    assert "No scheduler is" in page
    assert f'href="/p/{project.slug}/schedulers/"' in page
    version = scheduler_rows.make_version(project)
    form = job_form(start=_learned(version.key), schedulers=job_choice.list_options(project))
    assert form["training.scaling.learned.scheduler"].value() == version.key
    shown = [name for name in form.fields if name.startswith("training.scaling.learned.")]
    assert shown == ["training.scaling.learned.scheduler", "training.scaling.learned.explore"]
    answer = _as(user).post(f"/p/{project.slug}/jobs/new/", posted(form, name="By a scheduler"))
    job = Job.objects.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/jobs/{job.pk}/"
    assert job.spec["training"]["scaling"]["weights"] == version.weights


def test_its_page_leads_to_a_job_with_it() -> None:
    user = make_user()
    project = make_project(user)
    version = scheduler_rows.make_version(project)
    page = _as(user).get(f"/p/{project.slug}/schedulers/{version.scheduler_id}/").content.decode()
    assert f"/p/{project.slug}/jobs/new/?preset=cartpole&amp;scheduler={version.key}" in page
    form = (
        _as(user).get(f"/p/{project.slug}/jobs/new/?preset=cartpole&scheduler={version.key}").content.decode()
    )
    assert f'<option value="{version.key}" selected>Tiny, version 1</option>' in form


def test_the_forecast_of_such_a_job_says_what_it_cannot_know() -> None:
    project = make_project()
    spec = job_choice.fill_in_weights(project, _learned(scheduler_rows.make_version(project).key))
    assert any("from 1 to 2 " in one for one in forecast_of(spec).assumptions)
    assert "none was chosen" in panel(_learned(""))["refusal"]


def test_a_job_runs_by_it_and_each_round_says_why() -> None:
    project = make_project()
    job = make_job(project, spec=_learned(scheduler_rows.make_version(project).key))
    assert run_job(job.pk, owner=uuid.uuid4().hex, hand_over=threading.Event()) == 0
    reports = [one.report for one in Round.objects.filter(job=job).order_by("round_no")]
    assert len(reports) == 3
    for one in reports:
        assert 1 <= one["actors"] <= 2
        assert one["plan_reason"].startswith(f"the scheduler gives {one['actors']} ")


def test_the_models_defaults_hold_no_weights() -> None:
    assert Learned().weights == ""


def test_a_training_is_requested_from_the_form() -> None:
    user = make_user()
    project = make_project(user)
    address = f"/p/{project.slug}/schedulers/new/"
    wrong = {"name": "Mine", "workload": "cartpole", "rounds": "1", "budget_usd": "x"}
    answer = _as(user).post(address, wrong)
    assert answer.status_code == 422
    assert "(rounds) must be" in answer.content.decode().replace("&#x27;", "'")
    from webapp.schedulers.forms import training_form

    answer = _as(user).post(address, posted(training_form(project, None, {}), name="Mine", rounds="5"))
    training = project.scheduler_trainings.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/schedulers/trainings/{training.pk}/"
    assert (training.name, training.spec["rounds"], training.parsed_spec.target) == ("Mine", 5, 475.0)
    version = scheduler_rows.make_version(project)
    page = _as(user).get(f"{address}?begin_with={version.key}").content.decode()
    assert 'value="Tiny, fine-tuned"' in page
    assert 'name="scheduling.episodes" value="10"' in page
