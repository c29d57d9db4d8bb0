"""What a loop must pass, run in a copy of the code that knows the one with a backup actor."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.round_times import round_times
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of, forecast
from tests.cloud.recorded import CHANCE, record
from tests.cloud.test_forecast import PLENTY, fixed, spec
from tests.cloud.unlearned import really
from tests.factories import make_project, make_running_job
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny
from webapp.jobs.form.forms import job_form
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.spec import JobSpec

BACKUP: dict[str, Any] = {"loop": {"kind": "backup"}}
TABS = ("detail", "actors", "events", "logs", "cost", "checkpoints", "spec")


def test_the_engine_runs_it_and_goes_on_from_a_checkpoint() -> None:
    store = Forgetful()
    short = tiny(**BACKUP, stop={"rounds": 2}, checkpoints={"every_rounds": 1})
    reports = [
        event.report
        for event in events_of(short, InlinePlatform(), checkpoints=store)
        if event.kind == "round"
    ]
    assert [(report.actors, report.env_steps) for report in reports] == [(3, 32)] * 2
    assert reports[1].dropped_trajectories == 1
    assert events_of(tiny(**BACKUP), InlinePlatform(), resume=store.saved[2])[-1].rounds == 4


@pytest.mark.parametrize("chance", [{}, CHANCE], ids=["without chance", "with chance"])
def test_it_is_billed_and_timed_again(chance: dict[str, float]) -> None:
    run = record(tiny(**BACKUP, rollout={"attempts": 6}), **chance)
    again = retime(ReplaySchedule.of(run.sitting), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    parts = full_bill([run.sitting], bill_context(run.place.profile, run.place.stack, 1))
    assert parts.total == run.spent_picodollars
    assert len(round_times(run.sitting)) == len(again.rounds) == 4
    assert "whose data is dropped" in " ".join(ReplaySchedule.of(run.sitting).notes)


def test_its_forecast_is_what_comes() -> None:
    training = spec(**BACKUP, scaling=fixed(8), stop={"env_steps": 100_000})
    options = SimulatedOptions()
    found, place = forecast(training, options, PLENTY), configuration_of(training, options)
    came = really(training, options, place.profile, place.stack, episode_steps=lambda round_no: 300)
    assert 0.8 * found.minutes.p10 < came.minutes < 1.25 * found.minutes.p90
    assert 0.8 * found.dollars.p10 < came.usd < 1.25 * found.dollars.p90


@pytest.mark.django_db
def test_the_form_offers_it_and_the_pages_of_a_job_show_it(client: Client) -> None:
    job_spec = JobSpec.model_validate(
        {
            "name": "With a backup",
            "training": tiny(**BACKUP).model_dump(mode="json"),
            "platform": {"kind": "simulated"},
            "budget_usd": "1",
        }
    )
    form = job_form(start=job_spec)
    typed = {name: form[name].value() for name in form.fields}
    sent = job_form({name: value for name, value in typed.items() if value is not None})
    assert sent.is_valid(), sent.errors
    assert sent.spec is not None
    assert sent.spec.training == job_spec.training
    job, epoch = make_running_job(project=make_project(), spec=job_spec)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, score=job_spec.training.score)
    for event in events_of(job_spec.training, InlinePlatform())[:-1]:
        recorder.record(event)
    client.force_login(job.created_by)
    for tab in TABS:
        page = client.get(reverse(f"jobs:{tab}", args=[job.project.slug, job.pk]))
        assert page.status_code == 200
    form = client.get(reverse("jobs:new", args=[job.project.slug])).content.decode()
    assert "Backup actor" in form
