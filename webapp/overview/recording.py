"""The demo on the first page of a project: a recorded run, and the points of the demo job over it as they come.

`manage.py record-demo static/demo` made the recording by running the demo's preset: its curve, and short films of its
first and its best evaluated policy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from django.conf import settings
from django.templatetags.static import static
from django.urls import reverse

from webapp.accounts.models import Project
from webapp.formatting import (
    AxisTicks,
    axis_of,
    format_count,
    format_day,
    format_score,
    percent_ticks,
    svg_points,
)
from webapp.jobs.charts.figures import SCORE
from webapp.jobs.charts.sparklines import sampled
from webapp.jobs.form.presets import Preset, presets
from webapp.jobs.models import Film, FilmState, Job, Round

PRESET = "hopper-simulated"
RECORDING = "recording.json"
FILMS = ("first.webp", "best.webp")
WIDTH, HEIGHT = 640, 220
_FOLDER = "demo"
_STEPS = "payload__report__total_env_steps"

Points = Sequence[tuple[float, float]]
"""Steps and return."""


@dataclass(frozen=True)
class DemoFilm:
    """`words` say which policy it shows."""

    film: str
    still: str
    words: str


@dataclass(frozen=True)
class DemoCard:
    """`job` is the demo job, once there is one; `recorded` and `live` are drawn lines, empty without points."""

    job: Job | None
    recorded_on: str
    recorded_steps: str
    recorded: str
    live: str
    across: AxisTicks
    up: AxisTicks
    words: str
    films: tuple[DemoFilm, ...]
    presets: tuple[Preset, ...]


@cache
def recording() -> dict[str, Any]:
    """Return the recording as it was written."""
    path = settings.BASE_DIR / "static" / _FOLDER / RECORDING
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def demo_card(project: Project) -> DemoCard | None:
    """Return the card of a project that has no job yet, or the demo job alone; None for others."""
    jobs = list(Job.objects.filter(project=project).select_related("project")[:2])
    job = jobs[0] if jobs else None
    if len(jobs) > 1 or (job is not None and not _is_demo(job)):
        return None
    recorded: Points = recording()["curve"]
    live = _points_of(job) if job is not None else []
    if live and live[-1][0] > recorded[-1][0]:
        recorded = []
    right, top = (max(point[at] for point in (*recorded, *live)) for at in (0, 1))
    return DemoCard(
        job=job,
        recorded_on=format_day(date.fromisoformat(recording()["recorded_on"])),
        recorded_steps=format_count(recording()["env_steps"]),
        recorded=_line(recorded, right, top),
        live=_line(live, right, top),
        across=percent_ticks(right, axis_of(0, right, 0, 100), format_count),
        up=percent_ticks(top, axis_of(0, 1.08 * top, 100, 0), format_count),
        words=_in_words(recorded, live),
        films=_films_of(job) or _recorded_films(),
        presets=tuple(preset for preset in presets().values() if preset.first),
    )


def _is_demo(job: Job) -> bool:
    return job.simulated and job.training_facts.subject == presets()[PRESET].spec.training.subject


def _points_of(job: Job) -> Points:
    rows = Round.objects.filter(job=job, round_no__in=sampled(job.round_no) if job.round_no else [])
    points = rows.order_by("round_no").values_list(_STEPS, SCORE)
    # A round without a score stores a JSON null, which `isnull` takes for a value.
    return [(steps, score) for steps, score in points if score is not None]


def _line(points: Points, right: float, top: float) -> str:
    if len(points) < 2:
        return ""
    return svg_points((WIDTH * x / right, HEIGHT * (1 - y / (1.08 * top))) for x, y in points)


def _in_words(recorded: Points, live: Points) -> str:
    sentences = [
        f"{name}: return from {format_score(line[0][1])} to {format_score(line[-1][1])}"
        f" in {format_count(int(line[-1][0]))} steps."
        for name, line in (("Recorded run", recorded), ("Your demo job", live))
        if line
    ]
    return " ".join(sentences)


def _recorded_films() -> tuple[DemoFilm, ...]:
    return tuple(
        DemoFilm(
            static(f"{_FOLDER}/{file}"),
            static(f"{_FOLDER}/{still_name}"),
            f"After {format_count(facts['env_steps'])} steps: return {format_score(facts['return'])}",
        )
        for file, facts in zip(FILMS, recording()["films"], strict=True)
        for still_name in (file.replace(".webp", "-still.webp"),)
    )


def _films_of(job: Job | None) -> tuple[DemoFilm, ...]:
    """Return the first and the newest film of the demo job, once it has one."""
    if job is None:
        return ()
    rows = list(job.films.filter(state=FilmState.READY).order_by("round_no", "pk"))
    return tuple(_film_of(job, row) for row in ([rows[0], rows[-1]] if len(rows) > 1 else rows))


def _film_of(job: Job, film: Film) -> DemoFilm:
    moving, still = (
        reverse("jobs:film", args=[job.project.slug, job.pk, film.pk, part]) for part in ("film", "still")
    )
    words = f"Round {format_count(film.round_no)}: return {format_score(film.returned)}"
    return DemoFilm(moving, still, words)
