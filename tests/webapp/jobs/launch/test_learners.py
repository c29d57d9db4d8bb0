"""Learners that compute gradients: what the check-list says of their place and price, and what functions cannot do."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from client.main import main
from tests.factories import make_project, make_spec, make_user
from tests.figures import figures_in
from tests.webapp.api_callers import ApiCaller, use_client_here
from tests.webapp.jobs.form.test_forms import posted
from tests.webapp.jobs.launch.test_sentences import NO_GPU
from training.rl.environments.catalogue import ENTRIES
from training.rl.message_sizes import sizes_of
from webapp.api.tokens import make_token
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_documents import SpecError
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.launch.aws_functions import gradient_too_large, slice_too_large
from webapp.jobs.launch.checklist import checklist
from webapp.jobs.models import Job
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec


def on_platform(kind: str, **changes: Any) -> JobSpec:
    document = make_spec("hopper-stellaris-lambda", **changes).model_dump(mode="json")
    return JobSpec.model_validate({**document, "platform": {"kind": kind}})


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["aws_lambda", "azure_container", "hosts"])
def test_gradients_of_pictures_are_refused_where_actors_have_no_torch(kind: str) -> None:
    pictures = {
        "training__environment__id": "ALE/SpaceInvaders-v5",
        "training__network": {"kind": "cnn"},
    }
    project = make_project()
    (problem,) = cloud_requirements.obstacles(project, on_platform(kind, **pictures))
    assert problem.path == "training.loop.where"
    assert "need torch" in problem.sentence
    allowed = cloud_requirements.obstacles(
        project, on_platform(kind, **pictures, training__loop__where="learner")
    )
    assert all(one.path != problem.path for one in allowed)
    assert cloud_requirements.obstacles(project, make_spec("hopper-stellaris", **pictures)) == []


@pytest.mark.django_db
def test_more_learners_than_a_clouds_actors_have_room_for_are_refused() -> None:
    project = make_project()
    changes: dict[str, Any] = {
        "platform__profile": "stellaris-cluster",
        "training__loop__actors_wait": False,
        "training__loop__learners": 17,
    }
    on_actors = make_spec("hopper-stellaris", **changes, training__loop__where="actor")
    (problem,) = cloud_requirements.obstacles(project, on_actors)
    assert problem.path == "training.loop.learners"
    assert figures_in(problem.sentence)[-2:] == ["16", "16"]
    rows = {row.title: row for row in checklist(project, make_user(), on_actors)}
    assert (rows["Learner"].tone, rows["Learner"].words) == ("failed", problem.sentence)
    assert rows["Quota"].tone == "ok"
    assert cloud_requirements.obstacles(project, make_spec("hopper-stellaris", **changes)) == []


@pytest.mark.django_db
def test_learners_share_a_gpu_only_where_there_is_one() -> None:
    project = make_project()

    def found(**changes: Any) -> list[str]:
        spec = make_spec("hopper-stellaris", **changes)
        return [one.sentence for one in cloud_requirements.obstacles(project, spec)]

    plain = {"platform__learner_sku": "c5.4xlarge"}
    functions = plain | {"platform__learner": "function"}
    assert found() == found(**plain, training__loop__learners=1) == []
    assert found(**plain, training__loop__where="actor") == found(**functions) == []
    assert found(**plain) == [NO_GPU]
    (shared,) = found(**functions, platform__learners_per_gpu=4)
    assert "c5.4xlarge has no GPU" in shared
    assert shared != NO_GPU


@pytest.mark.django_db(transaction=True)
def test_a_gpu_that_is_not_there_is_refused_with_one_sentence_wherever_a_job_is_asked_for(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project(user := make_user())
    client.force_login(user)
    form = job_form(start=presets()["hopper-stellaris"].spec)
    answer = client.post(
        f"/p/{project.slug}/jobs/new/", posted(form, platform__simulated__learner_sku="c5.4xlarge")
    )
    assert answer.status_code == 422
    assert NO_GPU in unescape(answer.content.decode())
    spec = make_spec("hopper-stellaris", platform__learner_sku="c5.4xlarge").model_dump(mode="json")
    refused = ApiCaller(user).post(f"/projects/{project.slug}/jobs", spec)
    assert refused.status_code == 422
    assert refused.json()["errors"] == [{"path": "platform.learner_sku", "sentence": NO_GPU}]
    _, key = make_token(user=user, name="CLI", scopes=("jobs", "budget"))
    use_client_here(monkeypatch, key, project)
    words = ["jobs", "run", "hopper-stellaris", "--set", "platform.learner_sku=c5.4xlarge"]
    assert main(words) == 1
    assert NO_GPU in capsys.readouterr().err
    assert not Job.objects.exists()


def test_a_run_without_the_dashboard_is_refused_for_the_same_reasons() -> None:
    with pytest.raises(SpecError) as refused:
        Headless(make_spec("hopper-stellaris", platform__learner_sku="c5.4xlarge"))
    assert str(refused.value) == NO_GPU
    many: dict[str, Any] = {"where": "actor", "learners": 17, "actors_wait": False}
    loop = {f"training__loop__{name}": value for name, value in many.items()}
    with pytest.raises(SpecError, match=r"\(training.loop.learners\): .*17, .* 16 actors"):
        Headless(make_spec("hopper-stellaris", platform__profile="stellaris-cluster", **loop))
    assert Headless(make_spec("hopper-stellaris"))


# What is asked for, and what the one sentence about it says.
REFUSED = (
    ("ratio_limit", 0.99, "1"),
    ("staleness_decay", 0.0, "0"),
    ("staleness_decay", 1.01, "1"),
    ("learners", 0, "1"),
    ("learners", 9, "16 actors that wait fill 4 slices of 4 trajectories, so no more than 4 of 9 learners"),
)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_numbers_that_learners_cannot_have_are_refused_with_one_sentence_wherever_a_job_is_asked_for(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project(user := make_user())
    client.force_login(user)
    form = job_form(start=presets()["hopper-stellaris"].spec)
    document = make_spec("hopper-stellaris").model_dump(mode="json")
    _, key = make_token(user=user, name="CLI", scopes=("jobs", "budget"))
    use_client_here(monkeypatch, key, project)
    for field, value, words in REFUSED:
        drawn = posted(form, **{f"training__loop__staleness_aware__{field}": str(value)})
        answer = client.post(f"/p/{project.slug}/jobs/new/", drawn)
        assert answer.status_code == 422
        shown = unescape(answer.content.decode())
        loop = {**document["training"]["loop"], field: value}
        wrong = {**document, "training": {**document["training"], "loop": loop}}
        refused = ApiCaller(user).post(f"/projects/{project.slug}/jobs", wrong)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert words in error["sentence"]
        assert main(["jobs", "run", "hopper-stellaris", "--set", f"training.loop.{field}={value}"]) != 0
        sentence = error["sentence"].partition(": ")[2]
        assert sentence.lower() in shown.lower()
        assert sentence in capsys.readouterr().err
    assert not Job.objects.exists()


def problems(has_bucket: bool = False, **changes: Any) -> list[Any]:
    training = make_spec("hopper-stellaris-lambda", **changes).training
    sizes = sizes_of(training, ENTRIES[training.environment.id].spaces(4))
    return list(slice_too_large(training, sizes, has_bucket=has_bucket))


def test_a_slice_that_exceeds_a_call_is_refused_with_the_number_that_would_fit() -> None:
    assert problems() == []
    long = {"training__rollout__steps_per_call": 16_384}
    (problem,) = problems(**long)
    assert problem.path == "training.loop.trajectories_per_gradient"
    assert problem.sentence.endswith("Take 2 at most.")
    assert problems(**long, training__loop__trajectories_per_gradient=2) == []
    wide: dict[str, Any] = {"training__network__hidden": [1024, 1024]}
    (problem,) = problems(**wide)
    assert problem.sentence.endswith("fewer learners.")
    alone = {"training__loop__learners": 1, "training__algorithm__kl_coefficient": 0.0}
    whole: dict[str, Any] = {"training__network__hidden": [700, 700], **alone}
    assert problems(has_bucket=True, **whole) == []
    assert problems(**wide, training__loop__where="learner") == []


def answer_problems(**changes: Any) -> list[Any]:
    training = make_spec("hopper-stellaris-lambda", **changes).training
    return list(gradient_too_large(training, sizes_of(training, ENTRIES[training.environment.id].spaces(4))))


def test_a_gradient_that_exceeds_a_functions_answer_is_refused_with_what_would_fit() -> None:
    assert answer_problems() == []
    wide: dict[str, Any] = {"training__network__hidden": [1024, 1024]}
    (problem,) = answer_problems(**wide)
    assert problem.path == "training.network"
    assert re.search(r"a gradient of 8\.1 MiB .* 4\.5 MiB\. .*\(training\.loop\.where\)", problem.sentence)
    assert answer_problems(**wide, training__loop__where="learner") == []
    assert answer_problems(training__network__hidden=[700, 700]) == []
    long: dict[str, Any] = {
        "training__network__hidden": [730, 730],
        "training__rollout__steps_per_call": 16_384,
    }
    (problem,) = answer_problems(**long)
    assert problem.path == "training.loop.trajectories_per_gradient"
    assert problem.sentence.endswith("holds 4.5 MiB. Take 2 at most.")
    assert answer_problems(**long, training__loop__trajectories_per_gradient=2) == []
    assert answer_problems(**long, training__algorithm__epochs=1) == []
