"""A job that learns a model from data: its pages, its curves, its model taken away."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import make_job, make_project, make_running_job, make_spec
from tests.shipped_once import data_from
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import descent
from training.data.dataset import write_dataset
from training.data.generated import dense_table
from training.data.store import MemoryStore
from training.engine.checkpoints import FileCheckpointStore
from training.tasks.supervised import judge_model
from webapp.job_states import Observed
from webapp.jobs.actor_bounds import change_bounds
from webapp.jobs.events.event_text import describe_event
from webapp.jobs.events.job_summary import live_sentences, reference_sentence
from webapp.jobs.form.field_titles import title_at
from webapp.jobs.form.form_prefill import begun_with
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.launch.aws_functions import _too_many_rows
from webapp.jobs.launch.forecast_panel import panel
from webapp.jobs.models import Job
from webapp.jobs.policies import judgements
from webapp.jobs.policies.downloads import checkpoint_path, list_checkpoints
from webapp.jobs.policies.judgements import report_of
from webapp.jobs.reasons import reason_in_words
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import resume_point
from webapp.jobs.running.runner import run_job
from webapp.jobs.spec import JobSpec

pytestmark = pytest.mark.django_db
TABS = ("detail", "actors", "events", "logs", "cost", "checkpoints", "spec")


@pytest.fixture
def job() -> Job:
    return make_supervised_job(make_project())


def make_supervised_job(project: Any) -> Job:
    """A running job that has learned from data, all rounds of it."""
    spec = JobSpec.model_validate(
        {
            "name": "Digits by three functions",
            "training": descent().model_dump(mode="json"),
            "platform": {"kind": "simulated"},
            "budget_usd": "1",
        }
    )
    made, epoch = make_running_job(project=project, spec=spec)
    recorder = Recorder(made.pk, epoch, keep_checkpoints=3, score=spec.training.score)
    store = FileCheckpointStore(checkpoint_folder(made.pk))
    for event in events_of(spec.training, InlinePlatform(), checkpoints=store)[:-1]:
        recorder.record(event)
    return Job.objects.get(pk=made.pk)


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.content.decode())


def card_of(answer: Any) -> str:
    """The card in the zip of a model."""
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        assert sorted(packed.namelist()) == ["README.md", "model.onnx", "predict.py"]
        return packed.read("README.md").decode()


def test_its_pages_tell_of_its_loss_against_that_of_the_majority(client: Client, job: Job) -> None:
    client.force_login(job.created_by)
    slug = job.project.slug
    for tab in TABS:
        text(client.get(reverse(f"jobs:{tab}", args=[slug, job.pk])))
    page = text(client.get(reverse("jobs:detail", args=[slug, job.pk])))
    assert 'data-score="Training loss" data-decimals="4" data-better="lower"' in page
    assert 'data-reference="2.30253"' in page
    assert "Pushed by functions" in page
    assert "Oldest push" in page
    assert "Episode length" not in page
    assert "Checkpoints &amp; model" in page
    series = client.get(reverse("jobs:series", args=[slug, job.pk])).json()["columns"]
    assert min(series["compute_s"]) > 0
    assert max(series["rollout_s"]) == 0
    assert re.search(r" below .* 2\.3025, .* epoch 2\.$", live_sentences(job)["progress"])
    assert reference_sentence(job).startswith("Reference loss 2.3025: ")


def test_its_page_calls_rounds_epochs_and_actors_functions(client: Client, job: Job) -> None:
    client.force_login(job.created_by)
    page = text(client.get(reverse("jobs:detail", args=[job.project.slug, job.pk])))
    for word in ("<dt>Functions</dt>", ">Epochs</button>", "<h2>Where an epoch goes</h2>", ">Functions</a>"):
        assert word in page, word
    assert live_sentences(job)["plan"].startswith("Epoch 2 used 3 functions: ")
    assert reason_in_words(job).startswith("Epoch 3 ")
    events = text(client.get(reverse("jobs:events", args=[job.project.slug, job.pk]) + "?rounds=1"))
    assert "Epoch 2: loss " in events
    assert ", 3 functions, " in events
    assert "Evaluated after epoch 2: " in events
    end = {"reason": "Reached 2 epochs", "reason_code": "rounds", "rounds": 2, "env_steps": 2_876}
    assert describe_event("stopped", end, job.declaration).text.endswith("2 epochs, 2,876 samples.")
    failed = {"call_kind": "descend", "round_no": 2, "reason": "round trip lost", "will_retry": True}
    assert "epoch 2 failed: Round" in describe_event("call_failed", failed, job.declaration).text
    walks, _ = make_running_job(project=job.project)
    page = text(client.get(reverse("jobs:detail", args=[job.project.slug, walks.pk])))
    for word in ("<dt>Actors</dt>", ">Rounds</button>", "<h2>Where a round goes</h2>", ">Actors</a>"):
        assert word in page, word


def test_no_tab_of_its_page_says_round_or_actor(client: Client, job: Job) -> None:
    change_bounds(job=job, user=job.created_by, least=2, most=3)
    job.checkpoints.all().delete()
    resume_point(job_id=job.pk, epoch=job.lease_epoch, load=lambda row: None)
    job.refresh_from_db()
    client.force_login(job.created_by)
    for tab in TABS:
        if tab == "spec":  # the document as it is stored
            continue
        page = text(client.get(reverse(f"jobs:{tab}", args=[job.project.slug, job.pk])))
        seen = strip_tags(re.sub(r"(?s)<(script|svg)\b.*?</\1>", "", page))
        assert not re.findall(r"(?i).*\b(?:round|actor)s?\b(?! trip).*", seen), tab
        labels = " ".join(re.findall(r'(?:aria-label|title|alt)="([^"]*)"', page))
        assert not re.findall(r"(?i)\b(?:round|actor)s?\b", labels), tab
    words = [event.payload.get("text", "") for event in job.events.order_by("seq")]
    assert any(re.match("From 2 to 3 functions .*epoch", one) for one in words)
    assert any("Epochs 1 to 2" in one for one in words)


def test_lists_of_models_say_epochs_and_functions_and_mixed_ones_words_of_any_kind(
    client: Client, job: Job
) -> None:
    client.force_login(job.created_by)

    def heads() -> list[str]:
        page = text(client.get(f"/p/{job.project.slug}/jobs/?columns=rounds,actors"))
        assert [f'data-label="{word}"' in page for word in ("Actors", "Functions")] == [
            False,
            "Functions" in page,
        ]
        return re.findall(r'<th class="column-\w+ number"><a [^>]*>(\w+)', page)

    assert heads() == ["Epochs", "Functions"]
    overview = text(client.get(f"/p/{job.project.slug}/"))
    assert '<th class="number">Functions</th>' in overview
    make_running_job(project=job.project)
    assert heads() == ["Rounds", "Workers"]
    overview = text(client.get(f"/p/{job.project.slug}/"))
    assert '<th class="number">Workers</th>' in overview


def test_its_form_and_forecast_call_rounds_epochs_and_actors_functions() -> None:
    _, spec = begun_with({"preset": "siren-digits"})
    form = job_form(start=spec)
    assert form["training.supervised.scaling.fixed.actors"].label == "Functions"
    assert form["training.scaling.fixed.actors"].label == "Actors"
    chosen = job_form(start=spec, data_sets=[Named("digits", "Digits", "1,797 digits")])
    assert "hash" in form["training.supervised.data"].help_text
    assert "hash" not in chosen["training.supervised.data"].help_text
    words = panel(spec)
    assert words["until"] == "for 20 epochs"
    assert "Epochs" in dict(words["figures"])
    said = " ".join([*words["assumptions"], *(title for title, _ in words["matters"])])
    assert "epoch to epoch" in said
    assert "round trip" in said
    assert "actor" not in said
    assert title_at("training.scaling.actors", [spec.model_dump(mode="json")]) == "Functions"


def test_a_job_that_is_over_says_how_good_its_model_is(client: Client, job: Job) -> None:
    client.force_login(job.created_by)
    address = reverse("jobs:checkpoints", args=[job.project.slug, job.pk])
    assert "held-out rows</h2>" not in text(client.get(address))
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    page = text(client.get(address))
    assert "On 359 held-out rows" in page
    accuracy = judge_model(checkpoint_path(job.pk, list_checkpoints(job)[0].name)).accuracy
    assert f"{accuracy.value:.3f}" in page
    assert f"{accuracy.low:.3f}–{accuracy.high:.3f}" in page
    assert "2.3025" in page
    assert "Area under the ROC curve" in page
    assert page.count('class="number right"') == 10
    assert "Largest coefficients" not in page, "pixels have no names"


def test_a_request_judges_no_model_for_long(
    client: Client, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where judging would take long, the job's process does it at its end, and its figures are read from then on."""
    monkeypatch.setattr(judgements, "_MACS_IN_A_REQUEST", 1000)
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    client.force_login(job.created_by)
    page, model = (
        reverse(f"jobs:{one}", args=[job.project.slug, job.pk]) for one in ("checkpoints", "policy_zip")
    )
    assert "held-out rows</h2>" not in text(client.get(page))
    assert "held-out rows" in card_of(client.get(model))
    assert "359" not in card_of(client.get(model))
    judgements.judge_kept_models(job)
    assert "On 359 held-out rows" in text(client.get(page))
    card = card_of(client.get(model))
    assert "On 359 rows" in card
    for file in checkpoint_folder(job.pk).glob("*.judged.json"):
        file.write_text(file.read_text()[:40])
    assert "held-out rows</h2>" not in text(client.get(page)), "a damaged file is as none"


@pytest.mark.django_db(transaction=True)
def test_a_job_s_process_judges_its_models_at_its_end() -> None:
    spec = JobSpec.model_validate(
        {
            "training": descent(stop={"rounds": 1}).model_dump(mode="json"),
            "platform": {"kind": "local", "workers": 1},
        }
    )
    made = make_job(spec=spec)
    assert run_job(made.pk, owner="test", hand_over=threading.Event()) == 0
    judged = {file.name.split(".")[0] for file in checkpoint_folder(made.pk).glob("*.judged.json")}
    assert judged == {one.sha256 for one in list_checkpoints(Job.objects.get(pk=made.pk))}


def test_the_largest_coefficients_are_named() -> None:
    spec = JobSpec.model_validate(
        {"training": descent(data="breast_cancer").model_dump(mode="json"), "platform": {"kind": "simulated"}}
    )
    made, epoch = make_running_job(project=make_project(), spec=spec)
    recorder = Recorder(made.pk, epoch, keep_checkpoints=3, score=spec.training.score)
    store = FileCheckpointStore(checkpoint_folder(made.pk))
    for event in events_of(spec.training, InlinePlatform(), checkpoints=store)[:-1]:
        recorder.record(event)
    Job.objects.filter(pk=made.pk).update(observed=Observed.SUCCEEDED)
    over = Job.objects.get(pk=made.pk)
    report = report_of(over, list_checkpoints(over)[0])
    assert report is not None
    assert [line for line, _ in report.confusion] == list(report.classes)
    assert sum(sum(counts) for _, counts in report.confusion) == report.rows
    weights = [abs(one.weight) for one in report.coefficients]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] > 0
    assert all(one.column for one in report.coefficients)


def test_the_form_says_what_one_plain_machine_would_take() -> None:
    functions = JobSpec.model_validate(
        {"training": descent().model_dump(mode="json"), "platform": {"kind": "simulated"}, "budget_usd": "5"}
    )
    words = panel(functions)["machine"]
    assert words.startswith("One plain machine (c5.4xlarge): about $0.0")
    there = functions.model_copy(update={"platform": SimulatedOptions(profile="one-machine")})
    assert panel(there)["machine"] == ""
    assert panel(make_spec())["machine"] == ""


def test_its_model_leaves_with_a_card_and_a_script(client: Client, job: Job) -> None:
    client.force_login(job.created_by)
    page = text(client.get(reverse("jobs:checkpoints", args=[job.project.slug, job.pk])))
    assert "held-out rows" in page
    assert "Film it" not in page
    answer = client.get(reverse("jobs:policy_zip", args=[job.project.slug, job.pk]))
    card = card_of(answer)
    assert f"# {job.name}\n" in card
    assert "hybrid loop" in card
    assert "fixed scaling" in card
    assert "2,876 samples of 1,438 rows" in card


def test_an_old_release_s_specs_are_still_of_reinforcement_learning(job: Job) -> None:
    other, _ = make_running_job(project=job.project)
    document = dict(other.spec)
    document["training"] = {name: value for name, value in document["training"].items() if name != "kind"}
    assert JobSpec.model_validate(document) == other.parsed_spec()


def test_rows_that_do_not_fit_into_a_request_are_refused_with_their_field() -> None:
    store = MemoryStore()
    with data_from(store):
        large = write_dataset(dense_table(90_000, 20), store).hash
        (problem,) = _too_many_rows(descent(data=large, minibatch=60_000))
        assert problem.path == "training.minibatch"
        assert problem.sentence.endswith("fewer local steps.")
        assert list(_too_many_rows(descent(data=large))) == []
