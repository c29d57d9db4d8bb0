"""`manage.py schedulers`: the window's tables from the command line, in words and as JSON."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.factories import make_project
from tests.webapp import scheduler_rows
from webapp.schedulers.models import SchedulerTraining, Version

pytestmark = pytest.mark.django_db(transaction=True)

TINY = [
    "--set=rounds=4",
    "--set=scheduling.actors_max=2",
    "--set=scheduling.passes=1",
    "--set=platform.workers=1",
]


def _said(*words: str) -> str:
    out = StringIO()
    call_command("schedulers", *words, stdout=out, stderr=out)
    return out.getvalue()


def _refused(*words: str) -> str:
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("schedulers", *words, stdout=out, stderr=out)
    assert ended.value.code == 2
    return out.getvalue()


def test_one_is_trained_told_of_and_written_to_a_file(tmp_path: Path) -> None:
    make_project(name="Lab")
    few = ["--set=scheduling.episodes=1", "--set=scheduling.rehearsals=2"]
    lines = [json.loads(one) for one in _said("train", "cartpole", "--json", *TINY, *few).splitlines()]
    kinds = [one.get("episode_kind") or one["kind"] for one in lines]
    assert kinds == ["training", "grid", "grid", "rehearsal", "rehearsal", "real", "version"]
    assert all("reports" not in one and "state" not in one for one in lines)
    key = lines[-1]["id"]
    assert lines[-1]["cost_picodollars"] == sum(one.get("cost_picodollars", 0) for one in lines[:-1])
    assert key in _said("list")
    assert "1 real episodes" in _said("show", key)
    _said("export", key, str(tmp_path / "one.json"))
    document = json.loads((tmp_path / "one.json").read_text())
    assert document["scaling"]["weights"] == Version.objects.get().weights
    assert document["scaling"]["actors_max"] == 2


def test_a_search_ranks_settings_and_does_none_twice() -> None:
    make_project()
    words = ("search", "cartpole", "--settings=2", "--json", *TINY, "--set=scheduling.rehearsals=3")
    rows = [one for one in map(json.loads, _said(*words).splitlines()) if one["kind"] == "row"]
    assert [one["state"] for one in rows] == ["done", "done"]
    assert rows[0]["score"] >= rows[1]["score"]
    assert rows[0]["setting"] != rows[1]["setting"]
    assert [json.loads(one)["kind"] for one in _said(*words).splitlines()] == ["row", "row"]
    assert SchedulerTraining.objects.count() == 2
    assert not Version.objects.exists()


def test_what_is_wrong_is_said() -> None:
    assert "no project yet" in _refused("list")
    project = make_project()
    assert "project 'nowhere'" in _refused("list", "--project=nowhere")
    assert "No scheduler" in _said("list")
    assert "preset 'chess'" in _refused("train", "chess")
    assert "(rounds) must be" in _refused("train", "--set=rounds=1")
    assert "scheduler sch_x.1" in _refused("show", "sch_x.1")
    before: Any = scheduler_rows.make_rows(project)
    many = "--set=scheduling.actors_max=3"
    assert "Set it to 2" in _refused("train", f"--begin-with={before.version.key}", many)
    make_project()
    assert "Name one with --project" in _refused("list")
