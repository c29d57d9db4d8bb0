"""What a first visit weighs, compressed: a long job's page with all it loads and the picture it asks for, and the first
page of all with its films.
"""

from __future__ import annotations

import gzip
import posixpath
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from benchmarks.watching.rounds import long_history
from tests.factories import make_project, make_running_job, make_user
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db

AT_MOST_KB = 250
ROUNDS = 1_500
"""In 375 points of 400 at most, each with the least and the most of it: as heavy as any longer run."""
_LOADED = re.compile(r'(?:src|href|data-film)="/static/([^"]+)"')
_IMPORTED = re.compile(r'(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"')
_IN_STYLES = re.compile(r"(?:url\(|@import )[\"']?(?!data:)([^\"')]+)")


def _loaded(page: str) -> dict[str, bytes]:
    """By name, every static file that a browser fetches for the page; without fonts."""
    found: dict[str, bytes] = {}
    waiting = _LOADED.findall(page)
    while waiting:
        name = waiting.pop().partition("?")[0]
        if name in found or name.endswith(".woff2"):
            continue
        path = finders.find(name)
        assert path, f"{name} is asked for and not there"
        found[name] = Path(path).read_bytes()
        if name.endswith((".js", ".css")):
            names = (_IMPORTED if name.endswith(".js") else _IN_STYLES).findall(found[name].decode())
            waiting += [posixpath.normpath(posixpath.join(posixpath.dirname(name), one)) for one in names]
    return found


def _sent(answer: Any) -> int:
    assert answer.status_code == 200
    assert answer["Content-Encoding"] == "gzip"
    return len(answer.content)


def test_a_first_visit_weighs_at_most_250_kb(client: Client) -> None:
    job, _ = make_running_job()
    long_history(job, ROUNDS)
    job = Job.objects.get(pk=job.pk)
    client.force_login(job.created_by)
    address = f"/p/{job.project.slug}/jobs/{job.pk}/"
    browser = {"Accept-Encoding": "gzip, deflate"}
    files = _loaded(client.get(address).content.decode())
    assert "js/charts/columns.js" in files, "modules are followed to what they import"
    assert "vendor/uplot/uPlot.esm.js" in files
    weights = {name: len(gzip.compress(content)) for name, content in files.items()}
    weights["the page"] = _sent(client.get(address, headers=browser))
    weights["the picture"] = _sent(client.get(f"{address}stream?after=0", headers=browser))
    heaviest = sorted(weights.items(), key=lambda one: -one[1])[:8]
    assert sum(weights.values()) <= AT_MOST_KB * 1000, heaviest


def test_the_first_page_of_all_weighs_no_more_with_its_films(client: Client) -> None:
    user = make_user()
    address = f"/p/{make_project(user).slug}/"
    client.force_login(user)
    files = _loaded(client.get(address).content.decode())
    assert {"demo/first.webp", "demo/best.webp", "demo/best-still.webp"} <= files.keys()
    weights = {name: len(gzip.compress(content)) for name, content in files.items()}
    weights["the page"] = _sent(client.get(address, headers={"Accept-Encoding": "gzip, deflate"}))
    heaviest = sorted(weights.items(), key=lambda one: -one[1])[:8]
    assert sum(weights.values()) <= AT_MOST_KB * 1000, heaviest
