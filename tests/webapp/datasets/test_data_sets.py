"""Data sets in the window: a table is uploaded, read by the worker, chosen from, learned from and deleted."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.factories import FixedClock, make_job, make_project, make_user
from tests.members import add_member
from tests.signed_in import signed_in
from tests.training.data.test_known_files import mnist, zipped
from tests.webapp.api_callers import ApiCaller
from tests.webapp.data_tables import FLOWERS, read, ready, upload, worker_reads
from training.data.manifest import Manifest
from training.data.readers.__main__ import answer
from training.data.readers.choice import Choice
from training.data.store import read_rows
from webapp import background
from webapp.clock import SYSTEM_CLOCK
from webapp.datasets import files, queries, reading, services
from webapp.datasets.models import DataSet, DataState
from webapp.job_states import Observed
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_folder(settings: Any, tmp_path: Path) -> Path:
    settings.STARLING_DATA = tmp_path
    return tmp_path


def page(client: Client, project: Any, data_set: DataSet) -> str:
    answer = client.get(reverse("datasets:detail", args=[project.slug, data_set.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def learning_from(project: Any, data_set: DataSet, **changes: Any) -> Job:
    """A job whose spec names this data set."""
    job = make_job(project)
    job.spec = {**job.spec, "training": {**job.spec["training"], "data": data_set.manifest}}
    for name, value in changes.items():
        setattr(job, name, value)
    job.save()
    return job


def test_a_table_becomes_a_data_set_in_the_window() -> None:
    project = make_project()
    client = signed_in(project.people.first())
    uploaded = SimpleUploadedFile("kept/Flowers.csv.gz", gzip.compress(FLOWERS.encode()))
    answer = client.post(reverse("datasets:upload", args=[project.slug]), {"file": uploaded})
    made = DataSet.objects.get()
    assert answer.url == reverse("datasets:detail", args=[project.slug, made.pk])
    assert (made.name, made.state) == ("Flowers", DataState.QUEUED)
    assert "data-waiting" in page(client, project, made)

    reading.READING.run(made.pk)
    text = page(client, project, made)
    assert 'name="target"' in text or "Choose the column" in text
    assert "120 rows of 4 columns" in text
    assert "red 33" in text
    assert "whole number" in text

    choose = reverse("datasets:choose", args=[project.slug, made.pk])
    fields = {
        "target": "length",
        "held_out_percent": "25",
        "seed": "3",
        "place_bits": "12",
        "leave_out": ["width"],
    }
    refused = client.post(choose, fields)
    assert refused.status_code == 422
    assert "“length” holds fractions." in refused.content.decode()
    made.refresh_from_db()
    assert (made.state, made.choice) == (DataState.CHOOSING, None)

    assert client.post(choose, {**fields, "target": "kind"}).status_code == 302
    reading.READING.run(made.pk)
    made.refresh_from_db()
    assert (made.state, made.reason) == (DataState.READY, "")
    manifest = files.read_manifest(made.manifest)
    assert manifest is not None
    assert (manifest.kind, manifest.width, manifest.held_out_share, manifest.seed) == (
        "dense",
        4,
        0.25,
        3,
    )
    assert [one.name for one in manifest.columns] == ["length", *["colour"] * 3]
    assert (manifest.class_counts, manifest.held_out_class_counts) == ((45, 45), (15, 15))
    assert len(read_rows(files.store(), manifest.ranges(0, manifest.rows))) == 90
    assert not list(files.uploads().iterdir()), "the upload is kept beside its shards"
    text = page(client, project, made)
    assert f"{reverse('jobs:new', args=[project.slug])}?data={made.manifest}" in text
    assert "50 %" in text
    listed = client.get(reverse("datasets:list", args=[project.slug])).content.decode()
    assert "Flowers" in listed
    assert "4 numbers" in listed


def test_shipped_data_sets_are_listed_and_lead_to_the_job_form() -> None:
    project = make_project()
    text = (
        signed_in(project.people.first()).get(reverse("datasets:list", args=[project.slug])).content.decode()
    )
    assert "Digits, 8 × 8" in text
    assert f"{reverse('jobs:new', args=[project.slug])}?data=digits" in text


def test_a_viewer_reads_and_changes_nothing() -> None:
    project, viewer = make_project(), make_user()
    add_member(project, viewer.email, "viewer")
    made = read(project)
    client = signed_in(viewer)
    text = page(client, project, made)
    listed = client.get(reverse("datasets:list", args=[project.slug])).content.decode()
    for words in ("Make the data set", "Delete this data set", "Upload it", "Train a model"):
        assert words not in text + listed
    assert "red 33" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1\n", "Row 2 has 1 cell"),
        ("a,a\n1,2\n", "Row 1: columns 1 and 2 "),
        (b"PK\x03\x04", "The archive cannot"),
    ],
)
def test_a_table_that_cannot_be_read_says_why_and_is_not_kept(content: str | bytes, words: str) -> None:
    project = make_project()
    made = read(project, content)
    assert made.state == DataState.FAILED
    assert made.reason.startswith(words)
    assert not list(files.uploads().iterdir())
    assert words in page(signed_in(project.people.first()), project, made)


def test_a_file_over_the_limit_and_an_empty_one_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    with pytest.raises(services.DataRefused, match="file is empty"):
        upload(project, b"")
    monkeypatch.setattr(files, "MOST_UPLOADED_BYTES", 1_000_000)
    with pytest.raises(services.DataRefused, match="more than 1 MB"):
        upload(project, b"x" * 1_000_001)
    many = io.BytesIO(b"x" * 1_000_001)
    with pytest.raises(services.DataRefused, match="more than 1 MB"):
        services.accept_file(
            project=project, user=project.people.first(), file_name="t", file=many, size=5
        )  # its size is what the request says
    assert not list(files.uploads().iterdir())
    assert not DataSet.objects.exists()


def test_a_choice_that_the_reading_refuses_waits_for_another() -> None:
    """The file is another one than the survey says, as after a mistake in the data folder."""
    made = services.choose(data_set=read(make_project()), choice=Choice(target="kind"))
    files.upload_path(made.pk).write_text(FLOWERS.replace("\n1.0,", "\nx,", 1))
    made = worker_reads(made)
    assert (made.state, made.choice) == (DataState.CHOOSING, None)
    assert made.reason.startswith("Row 4, column “length”: ")
    files.upload_path(made.pk).write_text(FLOWERS)
    services.choose(data_set=made, choice=Choice(target="kind"))
    made = worker_reads(made)
    assert made.state == DataState.READY


def test_only_what_waits_can_be_chosen() -> None:
    made = ready(make_project())
    with pytest.raises(services.DataRefused, match="nothing to choose"):
        services.choose(data_set=made, choice=Choice(target="kind"))


def test_a_file_in_a_known_format_is_ready_without_a_choice() -> None:
    project = make_project()
    client = signed_in(project.people.first())
    uploaded = SimpleUploadedFile("mnist.zip", zipped(mnist()))
    client.post(reverse("datasets:upload", args=[project.slug]), {"file": uploaded})
    made = DataSet.objects.get()
    reading.READING.run(made.pk)
    made.refresh_from_db()
    assert (made.name, made.state, made.reason) == ("mnist", DataState.READY, "")
    assert (made.facts["rows"], made.facts["picture"]) == (24, [4, 5])
    assert "Classes of “label”" in page(client, project, made)
    api = ApiCaller(project.people.first()).get(f"/projects/{project.slug}/datasets/{made.pk}").json()
    assert (api["table"], api["choice"]) == (None, None)
    assert not list(files.uploads().iterdir())


def test_deleting_removes_the_files_that_no_other_data_set_names() -> None:
    project, other = make_project(), make_project()
    of_one_day = {"clock": FixedClock()}
    first, same = ready(project, **of_one_day), ready(other, **of_one_day)
    another = ready(project, choice=Choice(target="colour"), **of_one_day)
    assert first.manifest == same.manifest != another.manifest
    kept = [files.read_manifest(one.manifest) for one in (same, another)]
    assert all(kept)

    def delete(data_set: DataSet) -> None:
        services.delete(data_set=data_set)
        assert data_set not in queries.data_sets_of(data_set.project)
        worker_reads(data_set)
        assert not DataSet.objects.filter(pk=data_set.pk).exists()

    delete(first)
    assert [_missing(one) for one in kept] == [0, 0]
    delete(same)
    assert _missing(kept[1]) == 0
    assert {path.name for path in files.shards().iterdir()} == files.names_of(kept[1])
    delete(another)
    assert not list(files.shards().iterdir())


def test_a_data_set_deleted_while_it_is_made_leaves_nothing_on_the_disk() -> None:
    made = services.choose(data_set=read(make_project()), choice=Choice(target="kind"))

    def deleting(arguments: Sequence[str], given: str) -> dict[str, Any]:
        found = answer(arguments, given)
        services.delete(data_set=made)
        return found

    reading.DataReading(deleting).run(made.pk)
    assert DataSet.objects.get().state == DataState.DELETING
    worker_reads(made)
    assert not DataSet.objects.exists()
    assert not list(files.uploads().iterdir())
    assert not list(files.shards().iterdir())


def test_a_process_that_ends_too_early_leaves_nothing_beside_the_table() -> None:
    made = services.choose(data_set=read(make_project()), choice=Choice(target="kind"))

    def ending(arguments: Sequence[str], given: str) -> dict[str, Any]:
        answer(arguments, given)
        (Path(arguments[2]) / "scratch").mkdir()
        raise OSError("killed")

    reading.DataReading(ending).run(made.pk)
    made.refresh_from_db()
    assert made.state == DataState.CHOOSING
    assert list(files.uploads().iterdir()) == [files.upload_path(made.pk)]
    assert not files.shards().exists()


def test_an_earlier_attempt_removes_nothing_that_the_last_one_needs() -> None:
    made = upload(make_project())
    earlier = reading.READING.begin(made.pk, SYSTEM_CLOCK)
    assert earlier is not None
    DataSet.objects.update(state=DataState.QUEUED)
    assert reading.READING.begin(made.pk, SYSTEM_CLOCK) is not None
    with pytest.raises(background.TakenOver):
        reading.DataReading(lambda arguments, given: {"refused": "It cannot be read."}).work(earlier)
    assert files.upload_path(made.pk).exists()
    made.refresh_from_db()
    assert made.state == DataState.READING


def test_deleting_keeps_the_files_of_data_sets_shipped_with_starling() -> None:
    made = ready(make_project())
    manifest = files.read_manifest(made.manifest)
    (files.folder() / "shipped").mkdir()
    (files.folder() / "shipped" / "digits").write_text(made.manifest)
    services.delete(data_set=made)
    worker_reads(made)
    assert not DataSet.objects.exists()
    assert _missing(manifest) == 0


def test_a_table_is_removed_from_the_disk_as_soon_as_it_is_deleted(
    django_capture_on_commit_callbacks: Any,
) -> None:
    """The worker may be busy with another for a quarter of an hour."""
    made = read(make_project())
    with django_capture_on_commit_callbacks(execute=True):
        services.delete(data_set=made)
    assert not list(files.uploads().iterdir())


def test_what_dead_processes_left_is_removed_after_an_hour() -> None:
    waiting, done = read(make_project()), ready(make_project())
    left = [files.uploads() / name for name in ("tmp1.part", f"{done.pk}.table", "999.table")]
    for path in left:
        path.write_bytes(b"a")
    (folder := files.prepared_folder(999, 1)).mkdir()
    (folder / "shard").write_bytes(b"a")
    kept = files.upload_path(waiting.pk)
    reading.READING.recover()
    assert all(path.exists() for path in (*left, folder, kept)), "they may still be in use"
    reading.READING.recover(clock=FixedClock(SYSTEM_CLOCK.now() + timedelta(hours=2)))
    assert list(files.uploads().iterdir()) == [kept]


def test_a_project_fills_the_disk_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    first, second = read(project), ready(project)
    held = first.byte_count + second.facts["byte_count"]
    monkeypatch.setattr(services, "MOST_KEPT_BYTES", held)
    words = "data sets have .* at most"
    with pytest.raises(services.DataRefused, match=words):
        upload(project)
    with pytest.raises(services.DataRefused, match=words):
        services.choose(data_set=first, choice=Choice(target="kind"))
    upload(make_project())
    services.delete(data_set=second)
    services.choose(data_set=first, choice=Choice(target="kind"))


def _missing(manifest: Manifest | None) -> int:
    assert manifest is not None
    return files.missing_shards(manifest)


def test_a_data_set_in_use_says_so_and_is_not_deleted() -> None:
    project = make_project()
    client, made = signed_in(project.people.first()), ready(project)
    job = learning_from(project, made, name="Roses or violets")
    assert "in use: 1 job" in page(client, project, made)
    answer = client.post(reverse("datasets:delete", args=[project.slug, made.pk]), follow=True)
    assert "by 1 job: “Roses" in answer.content.decode()
    made.refresh_from_db()
    assert made.state == DataState.READY

    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    client.post(reverse("datasets:delete", args=[project.slug, made.pk]))
    worker_reads(made)
    assert not DataSet.objects.exists()
    assert Job.objects.get(pk=job.pk).account.limit_picodollars == job.account.limit_picodollars
    # The card and the script of its model need the names of columns and classes.
    assert {path.name for path in files.shards().iterdir()} == {made.manifest}
    assert files.read_manifest(made.manifest) is not None


def test_a_page_says_that_shards_are_gone() -> None:
    project = make_project()
    client, made = signed_in(project.people.first()), ready(project)
    manifest = files.read_manifest(made.manifest)
    assert manifest is not None
    (files.shards() / manifest.shards[0].hash).unlink()
    assert "1 of its files" in page(client, project, made)


def test_a_worker_that_died_and_a_lost_message_delay_nothing_for_long(
    hints: dict[str, list[int]],
) -> None:
    sent = hints["datasets.dataset"]
    made = upload(make_project())
    reading.READING.recover()
    assert not sent, "its message is on its way"
    attempt = reading.READING.begin(made.pk, SYSTEM_CLOCK)
    assert attempt is not None
    assert reading.READING.begin(made.pk, SYSTEM_CLOCK) is None
    DataSet.objects.update(since=SYSTEM_CLOCK.now() - timedelta(hours=1))
    reading.READING.recover()
    assert sent == [made.pk]
    worker_reads(made)
    with pytest.raises(background.TakenOver):
        reading.DataReading(answer).work(attempt)
    made.refresh_from_db()
    assert (made.state, made.attempt) == (DataState.CHOOSING, 2)


def test_a_wide_table_shows_its_first_columns_and_folds_the_others() -> None:
    project = make_project()
    wide = ",".join(["y", *(f"x{at}" for at in range(400))]) + "\n"
    wide += "".join(
        ",".join([str(row % 2), *(str(row + at) for at in range(400))]) + "\n" for row in range(12)
    )
    text = page(signed_in(project.people.first()), project, read(project, wide))
    assert "341 more columns" in text
    assert text.count('name="leave_out"') == 401


def test_names_and_cells_are_escaped() -> None:
    project = make_project()
    nasty = "<script>alert(1)</script>"
    made = read(project, f"{nasty},y\n" + f"{nasty},1\n{nasty},0\n" * 10, name=nasty)
    assert nasty not in page(signed_in(project.people.first()), project, made)
