"""Jobs that learn from data sets: the form begins with one, offers the project's, and refuses what cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import NoForecast
from tests.factories import make_project, make_spec
from tests.figures import figures_in
from tests.signed_in import signed_in
from tests.webapp.data_tables import ready
from training.data import library
from training.data.readers.choice import Choice
from training.engine.messages import BlobRef, Call
from training.functions.body import WarmCache
from training.functions.run import execute
from training.tasks.kinds import task_of
from webapp.datasets import files, job_choice, queries, services
from webapp.datasets.files import shipped_manifest
from webapp.datasets.models import DataSet
from webapp.jobs.launch.forecasts import forecast_of, learned_forecast
from webapp.jobs.services import SpecRefused, submit_job
from webapp.jobs.spec import JobSpec

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_folder(settings: Any, tmp_path: Path) -> Path:
    settings.STARLING_DATA = tmp_path
    return tmp_path


def job_spec(data_set: DataSet | str, **training: Any) -> JobSpec:
    data = data_set if isinstance(data_set, str) else data_set.manifest
    document = make_spec().model_dump(mode="json")
    learned = {"kind": "supervised", "data": data, "model": {"kind": "logistic"}}
    return JobSpec.model_validate({**document, "training": {**learned, **training}})


def sentences(project: Any, spec: JobSpec) -> list[str]:
    return [one.sentence for one in job_choice.obstacles(project, spec)]


def test_the_form_begins_with_a_data_set_and_offers_the_projects() -> None:
    project = make_project()
    made, other = ready(project), ready(make_project(), name="secret.csv")
    address = reverse("jobs:new", args=[project.slug])
    client = signed_in(project.people.get())
    answer = client.get(f"{address}?data={made.manifest}")
    assert answer.status_code == 200
    form = answer.context["form"]
    assert form.initial["training.kind"] == "supervised"
    assert form.initial["training.supervised.data"] == made.manifest
    assert form.initial["training.supervised.model.kind"] == "logistic"
    assert form.initial["name"] == "flowers"
    text = answer.content.decode()
    assert f'value="{made.manifest}"' in text
    assert "Digits, 8 × 8" in text
    assert other.manifest not in text
    assert client.get(f"{address}?data={other.manifest}").status_code == 404
    assert client.get(f"{address}?data=nothing").status_code == 404


def test_a_job_names_its_data_set_which_is_in_use_from_then_on() -> None:
    project = make_project()
    made = ready(project)
    spec = job_spec(made, minibatch=4)
    assert sentences(project, spec) == []
    job = submit_job(project=project, user=project.people.get(), spec=spec)
    assert list(queries.unfinished_jobs_with(made)) == [job]
    with pytest.raises(services.DataRefused, match="use by 1 job"):
        services.delete(data_set=made)


def test_a_data_set_of_another_project_is_not_there() -> None:
    project, made = make_project(), ready(make_project())
    spec = job_spec(made)
    (sentence,) = sentences(project, spec)
    assert sentence.startswith("Data set (training.data): ")
    assert made.manifest[:12] in sentence
    with pytest.raises(SpecRefused, match=made.manifest[:12]):
        submit_job(project=project, user=project.people.get(), spec=spec)


@pytest.mark.parametrize("of_others", [True, False])
def test_a_forecast_tells_nothing_of_data_that_the_project_does_not_have(of_others: bool) -> None:
    project = make_project()
    data = ready(make_project()).manifest if of_others else "0" * 64
    with pytest.raises(NoForecast, match=f"no data set {data[:12]}"):
        learned_forecast(project, job_spec(data))
    own = ready(project)
    assert learned_forecast(project, job_spec(own, minibatch=4)).rounds.p50 > 0


def test_without_its_data_a_job_has_no_forecast() -> None:
    with pytest.raises(NoForecast, match="data set 000000000000"):
        forecast_of(job_spec("0" * 64))


def test_a_shard_that_is_gone_or_changed_is_found_before_the_launch() -> None:
    project = make_project()
    made = ready(project)
    manifest = files.read_manifest(made.manifest)
    assert manifest is not None
    path = files.shards() / manifest.shards[0].hash
    path.write_bytes(path.read_bytes()[:-1])
    (sentence,) = sentences(project, job_spec(made))
    assert "1 file of flowers" in sentence


def test_fewer_rows_than_functions_times_minibatch_are_refused() -> None:
    project = make_project()
    made = ready(project, choice=Choice(target="kind", held_out_share=0.2))
    scaling = {"kind": "fixed", "actors": 4}
    assert sentences(project, job_spec(made, minibatch=24, scaling=scaling)) == []
    (sentence,) = sentences(project, job_spec(made, minibatch=25, scaling=scaling))
    assert "(training.minibatch)" in sentence
    assert figures_in(sentence) == ["4", "25", "100", "96"]


def test_functions_with_too_little_memory_for_their_call_are_refused_before_they_are_paid() -> None:
    """The sum is that of the call's own body."""
    project = make_project()
    model = {"kind": "lenet", "hidden": (3000, 2000)}
    changes: dict[str, Any] = {"model": model, "scaling": {"kind": "fixed", "actors": 1}, "minibatch": 16}
    here = job_spec("glyphs_small", **changes, calls={"memory_mb": 128})
    spec = here.model_copy(update={"platform": SimulatedOptions()})
    needed = spec.training.needed_memory_mb
    (sentence,) = sentences(project, spec)
    assert "(training.calls.memory_mb)" in sentence
    assert figures_in(sentence) == ["16", str(needed), "128"]
    task = task_of(spec.training)
    request, weights = task.slice(0, 0), task.begin().weights
    call = Call(
        id="c-a1",
        round_no=1,
        request=request,
        where="actor",
        seed=0,
        deadline_s=30.0,
        memory_mb=128,
        weights=BlobRef(version=0, sha256="0" * 64, byte_count=len(weights)),
        inputs=task.inputs_of(request),
    )
    assert needed == pytest.approx(execute(call, weights, WarmCache()).usage.most_memory_mb, abs=1)
    enough = job_spec("glyphs_small", **changes, calls={"memory_mb": 256})
    assert sentences(project, enough.model_copy(update={"platform": SimulatedOptions()})) == []
    assert sentences(project, here) == [], "processes here have the machine's memory"


def test_a_shipped_data_set_is_made_once_by_a_process_of_its_own(data_folder: Path) -> None:
    made = shipped_manifest("digits")
    assert (made.rows + made.held_out_rows, made.picture) == (1797, (8, 8))
    assert (data_folder / "datasets" / "shipped" / "digits").read_text() == made.hash
    at_s = (files.shards() / made.shards[0].hash).stat().st_mtime_ns
    assert shipped_manifest("digits") == made
    assert (files.shards() / made.shards[0].hash).stat().st_mtime_ns == at_s
    assert sentences(make_project(), job_spec("digits", model={"kind": "logistic"})) == []


def test_shipped_data_are_found_in_whichever_folder_a_test_has(settings: Any, tmp_path: Path) -> None:
    for name in ("one", "other"):
        settings.STARLING_DATA = tmp_path / name
        manifest = library.manifest_of("breast_cancer")
        assert library.store().get(manifest.shards[0].hash)
