"""A data folder on a disk that is full or read-only: uploads and requests say so, nothing half-written stays, and what
waits for the worker is done once the disk can be written.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth import get_user
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from rig.servers import server_process, wait_until
from tests.factories import make_job, make_project, round_finished
from tests.signed_in import signed_in
from tests.webapp.api_callers import ApiCaller, Upload
from tests.webapp.data_tables import table_of_numbers, upload, worker_reads
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from tests.webapp.reports.test_report_schedules import Scene
from training.data.readers.choice import Choice
from training.engine.checkpoints import CheckpointError
from training.rl.policies.film import still_of
from webapp import private_files
from webapp.accounts.models import Project
from webapp.database import storage_faults
from webapp.datasets import services
from webapp.datasets.models import DataSet, DataState
from webapp.jobs.lineage import Source, remember
from webapp.jobs.models import FilmState, OriginKind
from webapp.jobs.policies import films
from webapp.jobs.policies.downloads import checkpoint_path, list_checkpoints
from webapp.jobs.policies.film_process import film_path
from webapp.jobs.running.run_log import RunLog
from webapp.processes.embedded_valkey import embedded_valkey
from webapp.reports import report_builds
from webapp.reports.models import CloudBill, FileState, ReportFile, Sending, SendingState
from webapp.reports.report_query import Question

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]
FULL = storage_faults.FULL.why
_BYTES = 4 * 2**20


class Disk:
    """A file system of four megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, free: int = 0) -> None:
        with self._filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(4096))
        os.truncate(self._filler, self._filler.stat().st_size - free)

    def empty(self) -> None:
        self._filler.unlink()

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True)

    def make_writable(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw", str(self.folder)], check=True)

    def files(self) -> set[str]:
        found = (one for one in self.folder.rglob("*") if one.is_file() and one != self._filler)
        return {str(one.relative_to(self.folder)) for one in found}


@pytest.fixture
def disk(tmp_path: Path, settings: Any) -> Iterator[Disk]:
    """The data folder, on a disk of its own. The test's database is elsewhere."""
    folder = tmp_path / "data"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_BYTES}", "tmpfs", str(folder)], check=True)
    settings.STARLING_DATA = folder
    yield Disk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


_FULL = pytest.param(lambda disk: disk.fill(8192), 507, "is full", id="full")
_READ_ONLY = pytest.param(Disk.make_read_only, 503, "cannot be written", id="read-only")
_TABLE = table_of_numbers(2000)


@pytest.fixture
def browser() -> Client:
    """Of a visitor, who sees the page for an error."""
    client = signed_in(make_project().people.first())
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize(("spoil", "status", "words"), [_FULL, _READ_ONLY])
@pytest.mark.parametrize("what", ["datasets:upload", "reports:hand_over_bill"])
def test_a_page_says_that_an_upload_found_no_room_and_keeps_nothing_of_it(
    what: str, spoil: Callable[[Disk], None], status: int, words: str, disk: Disk, browser: Client
) -> None:
    project = Project.objects.get()
    spoil(disk)
    answer = browser.post(
        reverse(what, args=[project.slug]), {"file": SimpleUploadedFile("a.csv", _TABLE.encode())}
    )
    assert answer.status_code == status
    page = answer.content.decode()
    assert words in page
    assert "Try again" in page
    assert disk.files() == set()
    assert not DataSet.objects.exists()
    assert not CloudBill.objects.exists()


@pytest.mark.parametrize(("spoil", "status", "words"), [_FULL, _READ_ONLY])
@pytest.mark.parametrize("what", ["datasets", "bills"])
def test_the_api_says_that_an_upload_found_no_room_and_keeps_nothing_of_it(
    what: str, spoil: Callable[[Disk], None], status: int, words: str, disk: Disk
) -> None:
    project = make_project()
    spoil(disk)
    answer = ApiCaller(project.people.first()).post(
        f"/projects/{project.slug}/{what}", Upload("a.csv", _TABLE.encode())
    )
    assert (answer.status_code, answer.json()["type"]) == (status, "urn:starling:storage")
    assert words in answer.json()["why"]
    assert disk.files() == set()
    assert not DataSet.objects.exists()
    assert not CloudBill.objects.exists()


def test_a_table_whose_shards_find_no_room_is_read_again_once_there_is_room(disk: Disk) -> None:
    made = worker_reads(upload(make_project(), _TABLE))
    services.choose(data_set=made, choice=Choice(target="ill"))
    before = disk.files()
    disk.fill(8192)
    made = worker_reads(made)
    assert made.state == DataState.QUEUED
    assert FULL in made.reason
    assert disk.files() == before
    disk.empty()
    made = worker_reads(made)
    assert (made.state, made.reason) == (DataState.READY, "")


def test_a_film_that_finds_no_room_is_made_once_there_is_room(disk: Disk) -> None:
    job = job_with_checkpoints(make_project(), rounds=1)
    chosen = list_checkpoints(job)[0]
    film = films.ask_for_film(job=job, chosen=chosen, user=job.created_by)
    before = disk.files()
    disk.fill()
    films.FILMING.run(film.pk)
    film.refresh_from_db()
    assert film.state == FilmState.QUEUED
    assert FULL in film.reason
    assert disk.files() == before
    disk.empty()
    films.FILMING.run(film.pk)
    film.refresh_from_db()
    assert (film.state, film.reason) == (FilmState.READY, "")
    assert film_path(film).is_file()
    assert still_of(film_path(film)).is_file()


def test_a_report_that_finds_no_room_says_so_and_leaves_no_file(disk: Disk) -> None:
    project = make_project()
    day = date(2026, 11, 1)
    question = Question(project=project.pk, first_day=day, last_day=day, by="service")
    report = report_builds.request_file(question=question, format_key="pdf", user=project.people.first())
    report_builds.folder()
    disk.fill()
    report_builds.BUILDING.run(report.pk)
    report.refresh_from_db()
    assert report.state == FileState.FAILED
    assert report.reason.startswith(FULL)
    assert disk.files() == set()
    disk.empty()
    again = report_builds.request_file(question=question, format_key="pdf", user=report.requested_by)
    report_builds.BUILDING.run(again.pk)
    again.refresh_from_db()
    assert (again.state, disk.files()) == (FileState.READY, {f"reports/{again.file}"})
    assert ReportFile.objects.exclude(pk=again.pk).get().file == ""


def test_a_scheduled_report_that_finds_no_room_is_sent_once_there_is_room(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    scene.to_monday()
    disk.fill()
    monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
    assert scene.send() == 0
    sending = Sending.objects.get()
    assert sending.state == SendingState.WAITING
    assert sending.reason.startswith(FULL)
    disk.empty()
    scene.clock.forward(601)
    assert scene.send() == 1


@pytest.mark.parametrize("spoil", [Disk.fill, Disk.make_read_only])
def test_people_sign_up_and_reset_passwords_where_letters_find_no_room(
    spoil: Callable[[Disk], None], disk: Disk, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = disk.folder / "mail"
    spoil(disk)
    client = Client()
    password = "a long enough phrase"
    form = {"email": "new@example.org", "password1": password, "password2": password}
    assert client.post(reverse("account_signup"), form).status_code == 302
    assert get_user(client).email == "new@example.org"
    answers = [
        Client().post(reverse("account_reset_password"), {"email": email})
        for email in ("new@example.org", "unknown@example.org")
    ]
    assert [answer.status_code for answer in answers] == [302, 302]


def test_a_fork_whose_checkpoint_cannot_be_copied_is_refused_and_leaves_no_file(disk: Disk) -> None:
    job = job_with_checkpoints(make_project(), rounds=1)
    chosen = list_checkpoints(job)[0]
    source = Source(job, OriginKind.FORK, chosen.name, 1, chosen.sha256, checkpoint_path(job.pk, chosen.name))
    before = disk.files()
    fork = make_job(job.project)
    disk.fill()
    with pytest.raises(CheckpointError, match="No space left"):
        remember(fork, source)
    assert disk.files() == before


@pytest.mark.parametrize("spoil", [Disk.fill, Disk.make_read_only])
def test_a_run_goes_on_without_its_log(spoil: Callable[[Disk], None], disk: Disk) -> None:
    spoil(disk)
    with RunLog("job_x") as log:
        log.tell(round_finished(1))
        logging.getLogger("tests").warning("%s", "x" * 10_000)


def test_a_key_that_finds_no_room_leaves_the_old_one_and_no_part_of_the_new(disk: Disk) -> None:
    key = disk.folder / "key"
    private_files.create_once(key, "old")
    disk.fill()
    with pytest.raises(OSError, match="No space"):
        private_files.replace(key, "new" * 10_000)
    assert (key.read_text(), disk.files()) == ("old", {"key"})


def test_the_valkey_that_comes_with_starling_takes_messages_on_a_full_disk(disk: Disk) -> None:
    valkey = embedded_valkey(disk.folder / "valkey")
    disk.fill()
    with server_process(valkey.command):
        wait_until(valkey.answers, within_s=30, what="Valkey answers")
        with redis.Redis.from_url(valkey.url) as client:
            for number in range(2000):
                client.lpush("queue", f"message {number}")
            assert client.lastsave() is not None
            assert client.info("persistence")["rdb_last_bgsave_status"] == "ok"
            assert client.llen("queue") == 2000
