"""Siren's agents decide functions and memory: trained as MinionsRL's are, and chosen in jobs that learn from data."""

from __future__ import annotations

import re
import threading
import uuid
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp import scheduler_rows
from tests.webapp.api_callers import ApiCaller
from tests.webapp.jobs.form.test_forms import posted
from webapp.jobs.form.forms import job_form
from webapp.jobs.models import Job, Round
from webapp.jobs.running.headless import Headless
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import SpecRefused
from webapp.schedulers import job_choice
from webapp.schedulers.forms import training_form
from webapp.schedulers.models import SchedulerTraining, TrainingState, Version
from webapp.schedulers.services import TrainingRefused

pytestmark = pytest.mark.django_db(transaction=True)


def _job_spec(key: str, **changes: Any) -> Any:
    scaling = {"kind": "siren", "scheduler": key}
    return make_spec(
        "siren-digits",
        platform={"kind": "simulated", "learner": "function", "workers": 1},
        training__data="breast_cancer",
        training__stop={"rounds": 3},
        training__scaling=scaling,
        **changes,
    )


def _as(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_one_is_trained_rehearses_on_fitted_arithmetic_and_tells_all_that_it_cost() -> None:
    training = scheduler_rows.ask_of_data()
    steps: list[Any] = []
    assert scheduler_rows.run(training, on_step=steps.append) == 0
    assert (training.state, training.reason) == (TrainingState.DONE, "")
    kinds = [one.kind for one in steps]
    assert kinds == ["grid"] * 4 + ["rehearsal"] * 8 + ["real"] * 2 + ["judged"] * 2
    grid = training.episodes.filter(kind="grid")
    plans = [(one.actors[0], one.memory_mb[0]) for one in grid]
    assert plans == [(1, 512), (1, 3008), (4, 512), (4, 3008)]
    for one in training.episodes.exclude(kind="rehearsal"):
        assert len(one.memory_mb) == len(one.actors) == one.rounds == len(one.reports) <= 3
        assert all(1 <= n <= 4 for n in one.actors)
        assert all(512 <= m <= 3008 for m in one.memory_mb)
    decided = [
        (n, m)
        for one in training.episodes.filter(kind="real")
        for n, m in zip(one.actors, one.memory_mb, strict=True)
    ]
    assert len(set(decided)) > 1, "real ones are drawn"
    version = Version.objects.get()
    paid = sum(one.cost_picodollars for one in training.episodes.exclude(kind="rehearsal"))
    assert version.facts["cost_picodollars"] == paid > 0
    assert version.facts["best_return"] == min(
        one.best_return for one in training.episodes.filter(kind="real")
    )
    assert version.facts["chosen"]["agent"] in ("best", "last")


def test_what_is_recorded_already_is_not_recorded_again() -> None:
    project = make_project()
    few = {"scheduling__rehearsals": 4, "scheduling__episodes": 0}
    scheduler_rows.run(scheduler_rows.ask_of_data(project, **few))
    second = scheduler_rows.ask_of_data(project, **few)
    scheduler_rows.run(second)
    assert set(second.episodes.values_list("kind", flat=True)) == {"rehearsal"}
    wider = scheduler_rows.ask_of_data(project, **few, scheduling__actors_max=8)
    scheduler_rows.run(wider)
    assert [(one.actors[0], one.memory_mb[0]) for one in wider.episodes.filter(kind="grid")] == [
        (8, 512),
        (8, 3008),
    ]
    assert [str(one) for one in Version.objects.order_by("pk")] == [
        "Tiny Siren, version 1",
        "Tiny Siren, version 2",
        "Tiny Siren, version 3",
    ]


def test_a_job_runs_by_it_with_functions_and_memory_and_each_epoch_says_why() -> None:
    user = make_user()
    project = make_project(user)
    version = scheduler_rows.make_version(project, of_data=True)
    form = job_form(start=_job_spec(version.key), schedulers=job_choice.list_options(project))
    assert form["training.supervised.scaling.siren.scheduler"].value() == version.key
    answer = _as(user).post(f"/p/{project.slug}/jobs/new/", posted(form, name="By Siren"))
    job = Job.objects.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/jobs/{job.pk}/"
    scaling = job.parsed_spec().training.scaling
    assert (scaling.weights, scaling.actors_max, scaling.rounds) == (version.weights, 4, 3)
    assert run_job(job.pk, owner=uuid.uuid4().hex, hand_over=threading.Event()) == 0
    reports = [one.report for one in Round.objects.filter(job=job).order_by("round_no")]
    assert len(reports) == 3
    for one in reports:
        assert 1 <= one["actors"] <= 4
        assert 512 <= one["memory_mb"] <= 3008
        assert "the agent's mean" in one["plan_reason"]


def test_the_api_forecasts_and_launches_a_job_that_names_it() -> None:
    user = make_user()
    project = make_project(user)
    version = scheduler_rows.make_version(project, of_data=True)
    call, address = ApiCaller(user), f"/projects/{project.slug}/forecast"
    found = call.post(address, _job_spec(version.key).model_dump(mode="json"))
    assert found.status_code == 200
    assert found.json()["one_machine"].startswith("One plain machine")
    spec = _job_spec(version.key).model_dump(mode="json")
    launched = [
        call("POST", f"/projects/{project.slug}/jobs", spec, Idempotency_Key="once") for _ in range(2)
    ]
    assert [one.status_code for one in launched] == [201, 200]
    assert Job.objects.get().parsed_spec().training.scaling.weights == version.weights
    unknown = call.post(address, _job_spec("sch_nothing.1").model_dump(mode="json"))
    assert unknown.json()["errors"][0]["path"] == "training.scaling.scheduler"


def test_its_page_leads_to_a_job_with_it_and_to_fine_tuning() -> None:
    user = make_user()
    project = make_project(user)
    version = scheduler_rows.make_version(project, of_data=True)
    base = f"/p/{project.slug}/schedulers/"
    page = _as(user).get(f"{base}{version.scheduler_id}/").content.decode()
    assert "for Breast cancer" in page
    assert re.search(r"1 to 4 functions .*512 to 3,008 MB", page)
    assert f"?preset=siren-digits&amp;scheduler={version.key}" in page
    form = _as(user).get(f"/p/{project.slug}/jobs/new/?preset=siren-digits&scheduler={version.key}")
    assert f'<option value="{version.key}" selected>Tiny Siren, version 1</option>' in form.content.decode()
    tuning = _as(user).get(f"{base}new/?begin_with={version.key}&workload=siren-flights").content.decode()
    assert 'name="scheduling.siren.actors_max" value="4"' in tuning
    assert 'name="scheduling.siren.episodes" value="10"' in tuning
    listed = _as(user).get(base).content.decode()
    assert "Breast cancer" in listed


def test_a_training_is_requested_from_the_form_the_api_and_the_command() -> None:
    user = make_user()
    project = make_project(user)
    fields = {"name": "Mine", "rounds": "5", "target": "0.3"}
    form = training_form(project, None, {"workload": "siren-digits"})
    assert form["scheduling.kind"].value() == "siren"
    answer = _as(user).post(f"/p/{project.slug}/schedulers/new/", posted(form, **fields))
    training = project.scheduler_trainings.get()
    assert answer.headers["Location"] == f"/p/{project.slug}/schedulers/trainings/{training.pk}/"
    spec = training.parsed_spec
    assert (spec.kind, spec.workload.data, spec.target_loss, spec.rounds) == (
        "siren",
        "digits",
        0.3,
        5,
    )
    page = _as(user).get(answer.headers["Location"]).content.decode()
    assert re.search(r"0\.3000 .* 5 epochs; 1 to 32 functions .*256 to 3,008 MB", page)
    call = ApiCaller(user)
    request = {"workload": "siren-flights", "name": "By API", "scheduling": {"actors_max": 16}}
    steps = call.post(f"/projects/{project.slug}/scheduler-trainings", request)
    assert steps.status_code == 202, steps.content
    assert (steps.json()["agent"], steps.json()["subject"]) == ("siren", "Flights")
    assert steps.json()["target"] == pytest.approx(0.557)
    key = scheduler_rows.make_version(project, of_data=True).key
    scheduler_id, _, number = key.rpartition(".")
    address = f"/projects/{project.slug}/schedulers/{scheduler_id}/versions/{number}/fine-tunings"
    tuned = call.post(address, {"workload": "siren-digits", "target": 0.3}).json()
    assert (tuned["begun_with"], tuned["episodes_asked"], tuned["rehearsals_asked"]) == (key, 10, 0)
    SchedulerTraining.objects.all().update(state="stopped")
    out = StringIO()
    few = ["--set=rounds=2", "--set=scheduling.episodes=0", "--set=scheduling.rehearsals=4"]
    small = ["--set=data=breast_cancer", "--set=target=0.2", "--set=scheduling.actors_max=2"]
    call_command(
        "schedulers",
        "train",
        "siren-digits",
        *few,
        *small,
        "--set=platform.workers=1",
        stdout=out,
        stderr=out,
    )
    assert re.search(r"cancer, 1 to 2 functions .*256 to 3,008 MB, 0 real", out.getvalue())


def test_what_cannot_be_trained_is_refused_in_words() -> None:
    project = make_project()
    with pytest.raises(TrainingRefused, match="agent for siren-digits"):
        scheduler_rows.ask(project, workload="siren-digits", scheduling__kind="minionsrl")
    with pytest.raises(TrainingRefused, match="cartpole learns from"):
        scheduler_rows.ask(project, data="digits")
    with pytest.raises(TrainingRefused, match="data set nothing"):
        scheduler_rows.ask_of_data(project, data="nothing")
    with pytest.raises(TrainingRefused, match=r"Most functions .*32 functions .*16 rows .*512 rows"):
        scheduler_rows.ask_of_data(project, scheduling__actors_max=32)
    with pytest.raises(TrainingRefused, match=r"\(target\): .* for Breast cancer"):
        scheduler_rows.ask_of_data(project, target=None)
    with pytest.raises(TrainingRefused, match=r"Target \(target\): .*than 0"):
        scheduler_rows.ask_of_data(project, target=-1)
    version = scheduler_rows.make_version(project, of_data=True)
    with pytest.raises(TrainingRefused, match=r"Least memory .*1 to 4 functions .*512 to 3,008 MB"):
        scheduler_rows.ask_of_data(project, begin_with=version.key, scheduling__memory_min_mb=1024)
    with pytest.raises(TrainingRefused, match="for Breast cancer"):
        scheduler_rows.ask(project, begin_with=version.key)
    with pytest.raises(TrainingRefused, match="no such scheduler"):
        scheduler_rows.ask_of_data(make_project(), begin_with=version.key)


def test_jobs_take_the_agent_of_their_kind_alone() -> None:
    project = make_project()
    with pytest.raises(SpecRefused, match=r"\(training.scaling.scheduler\): none is"):
        make_job(project, spec=_job_spec(""))
    minions = scheduler_rows.make_version(project)
    with pytest.raises(SpecRefused, match=r"Tiny, version 1 .* 1 to 2 actors"):
        make_job(project, spec=_job_spec(minions.key))
    siren = scheduler_rows.make_version(project, of_data=True)
    theirs = scheduler_rows.make_version(make_project(), of_data=True)
    with pytest.raises(SpecRefused, match=r"\(training.scaling.scheduler\): choose one"):
        make_job(project, spec=_job_spec(theirs.key))
    options = job_choice.list_options(project)
    assert [one.value for one in options["learned"]] == [minions.key]
    assert [one.value for one in options["siren"]] == [siren.key]
    with pytest.raises(SpecRefused, match="need"):
        make_job(project, spec=_job_spec(siren.key, training__minibatch=400))
    assert not Job.objects.exists()


def test_a_job_that_is_judged_by_returns_does_not_take_it() -> None:
    """It would read a return of 500 as a loss of 500."""
    user = make_user()
    spec = make_spec(training__scaling={"kind": "siren", "scheduler": "any"})
    with pytest.raises(SpecRefused, match="Siren decides by"):
        make_job(make_project(user), user, spec=spec)


def test_a_run_without_the_dashboard_has_the_sizes_of_memory_that_there_are() -> None:
    project = make_project()
    version = scheduler_rows.make_version(project, of_data=True)
    spec = job_choice.fill_in_weights(project, _job_spec(version.key))
    reports = [event.report for event in Headless(spec).events() if event.kind == "round"]
    assert len(reports) == 3
    assert all(512 <= one.memory_mb <= 3008 for one in reports)
    assert any(one.memory_mb != spec.training.memory_mb for one in reports)
