"""What every example of a loop or a network must pass, in the copy of the code that knows it."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of, forecast
from tests.cloud.test_forecast import PLENTY, fixed, spec
from tests.cloud.unlearned import really
from tests.factories import make_project, make_running_job
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from webapp.jobs.form.forms import job_form
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.spec import JobSpec

TABS = ("detail", "actors", "events", "logs", "cost", "checkpoints", "spec")


def assert_that_its_forecast_comes_true(example: dict[str, Any]) -> None:
    training = spec(**example, scaling=fixed(8), stop={"env_steps": 100_000})
    options = SimulatedOptions()
    found, place = forecast(training, options, PLENTY), configuration_of(training, options)
    came = really(training, options, place.profile, place.stack, episode_steps=lambda round_no: 300)
    assert 0.8 * found.minutes.p10 < came.minutes < 1.25 * found.minutes.p90
    assert 0.8 * found.dollars.p10 < came.usd < 1.25 * found.dollars.p90


def form_once_its_job_is_shown(client: Client, example: dict[str, Any]) -> str:
    """Return the page of the form, after the form took the example and a job's pages showed it."""
    document = {
        "name": "An example",
        "training": tiny(**example).model_dump(mode="json"),
        "platform": {"kind": "simulated"},
        "budget_usd": "1",
    }
    job_spec = JobSpec.model_validate(document)
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
        assert client.get(reverse(f"jobs:{tab}", args=[job.project.slug, job.pk])).status_code == 200
    return client.get(reverse("jobs:new", args=[job.project.slug])).content.decode()
