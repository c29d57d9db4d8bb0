"""Jobs of a kind of training that no page was made for, run in a copy of the code that knows quadratics."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from training.tasks.quadratic import Quadratic

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import forecast
from tests.factories import make_job, make_project, make_running_job
from tests.quadratic.in_copy import losses, quadratic
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from webapp.alerts.text import end_sentence
from webapp.api.job_serialization import evaluations_of
from webapp.api.tensorboard import event_file
from webapp.comparing.curves import curves_of, getting_to, goal_of
from webapp.comparing.figures import compared
from webapp.comparing.groups import picked
from webapp.comparing.sweeps import Axis, Sweep, launch_sweep
from webapp.job_states import Observed
from webapp.jobs.events.event_text import describe_event
from webapp.jobs.events.job_summary import live_sentences
from webapp.jobs.form.field_titles import variant_titles
from webapp.jobs.form.forms import job_form, reviewed
from webapp.jobs.launch.forecast_panel import until
from webapp.jobs.lineage import Source
from webapp.jobs.models import Job, JobGroup, OriginKind
from webapp.jobs.policies.downloads import list_checkpoints
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.spec import JobSpec
from webapp.reports.job_facts import facts_of

pytestmark = pytest.mark.django_db
TABS = ("detail", "actors", "events", "logs", "cost", "checkpoints", "spec")


def job_spec(**changes: Any) -> JobSpec:
    training = quadratic(evaluation={"every_rounds": 1}, **changes)
    return JobSpec.model_validate(
        {
            "name": f"A rate of {training.rate}",
            "training": training.model_dump(mode="json"),
            "platform": {"kind": "simulated"},
            "budget_usd": "1",
        }
    )


def ran(project: Any, **changes: Any) -> tuple[Job, list[float]]:
    """A job that has run, and the losses of its evaluations."""
    spec = job_spec(**changes)
    job, epoch = make_running_job(project=project, spec=spec)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, score=spec.training.score)
    events = events_of(spec.training, InlinePlatform())
    for event in events[:-1]:
        recorder.record(event)
    return Job.objects.get(pk=job.pk), losses(events)


def test_a_job_is_reported_in_its_own_words() -> None:
    job, found = ran(make_project())
    assert (job.subject, job.algorithm) == ("Quadratic of 4", "descent")
    assert job.total_progress == 6 * 48
    assert job.evaluated_score == found[-1]
    assert job.best_training_score == job.training_score < job.worst_training_score
    assert live_sentences(job)["progress"].startswith("Evaluated after round 6")
    texts = [describe_event(event.kind, event.payload).text for event in job.events.order_by("seq")]
    assert any(text.startswith("Round 6: loss ") for text in texts)
    assert any(text.startswith("Evaluated after round 6: ") and "6: loss " in text for text in texts)
    assert [row.return_mean for row in evaluations_of(job)] == found
    assert b"rollout/ep_rew_mean" in b"".join(event_file(job))


def test_its_pages_open_and_speak_of_its_loss(client: Client) -> None:
    job, _ = ran(make_project())
    client.force_login(job.created_by)
    slug = job.project.slug
    for tab in TABS:
        page = client.get(reverse(f"jobs:{tab}", args=[slug, job.pk]))
        assert page.status_code == 200, tab
    page = client.get(reverse("jobs:detail", args=[slug, job.pk])).content.decode()
    assert "<dt>Loss</dt>" in page
    assert "<dt>Samples</dt>" in page
    assert "<h2>Loss</h2>" in page
    assert 'data-score="Training loss" data-decimals="4" data-better="lower"' in page
    assert 'data-axis="steps" aria-pressed="true">Samples<' in page
    assert "Episode length" not in page
    assert client.get(reverse("jobs:series", args=[slug, job.pk])).status_code == 200
    listed = client.get(reverse("jobs:list", args=[slug])).content.decode()
    assert "A rate of 0.3" in listed
    assert client.get(reverse("overview:page", args=[slug])).status_code == 200


def test_lists_of_jobs_are_headed_by_what_all_of_them_declare(client: Client) -> None:
    job, found = ran(make_project())
    client.force_login(job.created_by)
    slug, loss = job.project.slug, f"{found[-1]:.4f}"
    group = JobGroup.objects.create(project=job.project, name="Rates", created_at=job.created_at)
    group.jobs.add(job)
    pages = [
        reverse("jobs:list", args=[slug]) + "?columns=return,least,steps",
        reverse("overview:page", args=[slug]),
        reverse("comparing:group", args=[slug, group.pk]),
    ]
    listed, overview, together = (client.get(page).content.decode() for page in pages)
    assert all(loss in page for page in (listed, overview, together))
    in_training = f">{job.training_score:.4f}<"
    assert not any(in_training in page for page in (listed, overview, together)), (
        "one definition on each page"
    )
    assert [
        column in listed for column in (">Loss<", ">Most training<", ">Samples<", ">Return<", ">Steps<")
    ] == [
        *(True, True, True),
        *(False, False),
    ]
    assert '<th class="number">Loss</th>' in overview
    assert "Training loss from " in overview
    assert '<th class="number">Loss</th><th class="number">Samples</th>' in together
    assert "the end: Rates 0." in together
    assert 'data-decimals="4"' in together
    make_job(job.project)
    listed = client.get(pages[0]).content.decode()
    assert [column in listed for column in (">Score<", ">Worst training<", ">Progress<")] == [
        True,
        True,
        True,
    ]
    assert '<th class="number">Score</th>' in client.get(pages[1]).content.decode()


def test_a_sweep_tries_its_fields_and_the_least_loss_leads(client: Client) -> None:
    job, _ = ran(make_project())
    client.force_login(job.created_by)
    page = client.get(
        reverse("comparing:sweep_new", args=[job.project.slug]) + f"?from={job.pk}"
    ).content.decode()
    assert "Quadratic of 4, simulated" in page
    sweep = Sweep(job_spec(), "Rates", (Axis.read("training.rate", "0.05, 0.3"),), "grid", 1, 1, Decimal(1))
    group = launch_sweep(project=job.project, user=job.created_by, sweep=sweep)
    assert [one.parsed_spec().training.rate for one in group.jobs.order_by("name")] == [0.05, 0.3]


def test_a_fork_keeps_what_its_task_says() -> None:
    job, _ = ran(make_project())
    fork = Source(job, OriginKind.FORK)
    assert fork.obstacles(job_spec()) == []
    (problem,) = fork.obstacles(job_spec(dimension=7))
    assert problem.path == "training.dimension"
    assert problem.sentence.startswith("Dimension (training.dimension): ")
    assert f" that of {job.name}, " in problem.sentence


def test_its_checkpoints_and_its_end_name_its_loss(client: Client) -> None:
    job, found = ran(make_project())
    client.force_login(job.created_by)
    page = client.get(reverse("jobs:checkpoints", args=[job.project.slug, job.pk])).content.decode()
    assert '<th class="number">Samples</th>' in page
    assert next(one.evaluated for one in list_checkpoints(job)) == min(found)
    job.observed = Observed.SUCCEEDED
    assert "after 288 samples" in end_sentence(job)
    assert f"loss of {found[-1]:.4f}." in end_sentence(job)


def test_reports_know_the_memory_of_its_functions() -> None:
    job, _ = ran(make_project())
    job.spec["platform"] = {"kind": "aws_lambda"}
    job.save()
    facts = facts_of([job.pk])[job.pk]
    assert (facts.function_memory_mb, facts.algorithm, facts.subject) == (
        1024,
        "descent",
        "Quadratic of 4",
    )


def test_compared_the_lower_loss_leads() -> None:
    project = make_project()
    slow, _ = ran(project, rate=0.05)
    fast, _ = ran(project, rate=0.3)
    chosen = picked(project, [slow.pk, fast.pk])
    curves = curves_of([slow, fast])
    whole = compared(chosen, curves)
    assert whole.score.name == "loss"
    assert whole.leader is not None
    assert whole.leader.side.key == fast.pk
    goal = goal_of(chosen.sides, curves)
    assert goal is not None
    assert goal.value == pytest.approx(curves[slow.pk].scores[-1])
    assert [getting_to(goal, side, curves).reached for side in chosen.sides] == [1, 1]


def test_a_forecast_counts_its_samples() -> None:
    spec = job_spec(stop={"samples": 960})
    found = forecast(spec.training, SimulatedOptions(), 10**12)
    assert found.ends_by == "steps"
    assert until(found, spec) == "for 960 samples"
    assert found.minutes.p50 > 0
    assert found.dollars.p50 > found.least_budget * 0.01
    assert not any("episode" in one or "nvironment" in one for one in found.assumptions)


def test_the_form_draws_one_kind_at_a_time() -> None:
    form = job_form(start=job_spec())
    assert form.initial["training.kind"] == "quadratic"
    assert form.controls_at("training.rate") == ["training.quadratic.rate"]
    assert f"training.quadratic.{Quadratic.memory_field}" in form.controls_at("training.calls.memory_mb")
    (choice,) = [one for one in form.tree.choices() if one.path == ("training",)]
    usual = [title for title in variant_titles("training.kind").values() if title != "A quadratic"]
    assert {variant.title: variant.selected for variant in choice.variants} == {
        **dict.fromkeys(usual, False),
        "A quadratic": True,
    }
    lines = [line for part in reviewed(form).values() for line in part if line.selected]
    assert [(line.word, str(form[line.control].value())) for line in lines] == [
        *(("Dimension", "4"), ("Rate", "0.3")),
        *(("Samples", ""), ("Rounds", "6"), ("Minutes", "")),
    ]
    assert all(line.control in form.fields for part in reviewed(form).values() for line in part)
    typed = {name: form[name].value() for name in form.fields} | {"training.quadratic.rate": "0.5"}
    sent = job_form({name: value for name, value in typed.items() if value is not None})
    assert sent.is_valid(), sent.errors
    assert sent.spec.training.rate == 0.5
