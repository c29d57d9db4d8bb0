"""A table of 200 MB: the web process keeps none of it in memory, and the process that reads it little."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from client.request_bodies import FileForm
from tests.factories import make_project
from tests.memory import most_memory_mb, process_with, web_process
from tests.signed_in import signed_in
from training.data.readers.choice import Choice
from webapp.api.tokens import make_token
from webapp.datasets import reading, services
from webapp.datasets.models import DataSet, DataState

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.slow]
_MEGABYTES = 199


def write_table(path: Path, texts: bool) -> None:
    """Twenty columns of numbers, and two of texts if they are wanted."""
    draw = np.random.default_rng(3)
    names = [f"x{at}" for at in range(20)] + (["carrier", "place"] if texts else []) + ["y"]
    lines = []
    for row in draw.normal(size=(2000, 20)):
        cells = [f"{number:.6f}" for number in row]
        cells += [f"c{draw.integers(20)}", f"place {draw.integers(500)}"] if texts else []
        lines.append(",".join([*cells, str(draw.integers(2))]))
    block = "\n".join(lines) + "\n"
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for _ in range(_MEGABYTES * 10**6 // len(block)):
            file.write(block)


class Watched:
    """The most memory that the process that reads has held, and its processor time."""

    most_mb = 0.0


@contextmanager
def reader_watched(words: bytes) -> Iterator[Watched]:
    found, over = Watched(), threading.Event()

    def look() -> None:
        process: Path | None = None
        while not over.wait(0.02):
            process = process or process_with(b"training.data.readers", words)
            with suppress(OSError, ValueError):
                found.most_mb = max(found.most_mb, most_memory_mb(process) if process else 0.0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(False, id="numbers"),
        pytest.param(True, id="numbers and texts", marks=pytest.mark.endurance),
    ],
)
def test_a_table_of_200_megabytes(texts: bool, live_site: str, tmp_path: Path) -> None:
    project = make_project()
    user = project.people.get()
    _, key = make_token(user=user, name="t", scopes=("jobs",))
    write_table(tmp_path / "table.csv", texts)
    process = web_process(int(urlsplit(live_site).port or 0))
    small = tmp_path / "small.csv"
    small.write_text("x,y\n1,0\n")
    _send(live_site, project.slug, key, small)  # what is loaded with the first upload is not of the table
    before_mb = most_memory_mb(process)
    began_s = time.monotonic()
    sent = _send(live_site, project.slug, key, tmp_path / "table.csv")
    sent_s = time.monotonic() - began_s
    web_mb = most_memory_mb(process) - before_mb
    assert sent["bytes_uploaded"] > 190_000_000

    survey_mb, survey_s, survey_cpu_s = _read(sent["id"], b"survey")
    made = DataSet.objects.get(pk=sent["id"])
    assert (made.state, made.reason) == (DataState.CHOOSING, "")
    client = signed_in(user)
    client.get(reverse("datasets:list", args=[project.slug]))  # what is loaded with the first page
    page_s = _opened_s(client, project.slug, made.pk)
    services.choose(data_set=made, choice=Choice(target="y"))
    prepare_mb, prepare_s, prepare_cpu_s = _read(made.pk, b"prepare")
    made.refresh_from_db()
    assert (made.state, made.reason) == (DataState.READY, "")
    ready_s = _opened_s(client, project.slug, made.pk)
    print(
        f"sent in {sent_s:.1f} s, web process +{web_mb:.1f} MB; columns read in {survey_s:.1f} s (processor"
        f" {survey_cpu_s:.1f} s), {survey_mb:.0f} MB; page {page_s:.2f} s; shards in {prepare_s:.1f} s (processor"
        f" {prepare_cpu_s:.1f} s), {prepare_mb:.0f} MB; page {ready_s:.2f} s"
    )
    assert web_mb <= 50
    assert 10 < survey_mb <= 500
    assert 10 < prepare_mb <= 500
    assert survey_cpu_s <= 60
    assert prepare_cpu_s <= 60
    assert max(page_s, ready_s) <= 2


def _send(site: str, slug: str, key: str, path: Path) -> dict[str, object]:
    form = FileForm(path, {"name": "Large"})
    headers = {"Authorization": f"Bearer {key}", **form.headers}
    request = urllib.request.Request(f"{site}/api/v1/projects/{slug}/datasets", form, headers, method="POST")
    with urllib.request.urlopen(request, timeout=300) as answer:
        found: dict[str, object] = json.loads(answer.read())
    return found


def _read(data_set_id: object, words: bytes) -> tuple[float, float, float]:
    """The most memory in MB, the seconds, and the seconds of processor time that reading took."""
    before, began_s = os.times(), time.monotonic()
    with reader_watched(words) as watched:
        reading.READING.run(int(str(data_set_id)))
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return watched.most_mb, time.monotonic() - began_s, cpu_s


def _opened_s(client: Client, slug: str, data_set_id: int) -> float:
    """How much of this thread's time the page takes."""
    began_s = time.thread_time()
    assert client.get(reverse("datasets:detail", args=[slug, data_set_id])).status_code == 200
    return time.thread_time() - began_s
