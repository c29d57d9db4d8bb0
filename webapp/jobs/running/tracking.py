"""Sends a job's rounds to its project's trackers (MLflow, W&B) while the job runs, without holding it up."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.urls import reverse

from training.engine.messages import FAILED_ENDS, Evaluated, Event, RoundFinished, Stopped
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.charts.scalars import EVALUATION, SCORE, SPENT, scalars_of
from webapp.jobs.models import Job
from webapp.jobs.policies.downloads import checkpoint, checkpoint_path, policy_files
from webapp.jobs.running.recorder import as_json
from webapp.trackers import queries, services
from webapp.trackers.models import TrackerKind
from webapp.trackers.tracking import End, NotTracked, RunFacts, Stream, TrackedStep

log = logging.getLogger(__name__)

_EVERY_S = 2.0
_GRACE_S, _GRACE_AT_HAND_OVER_S = 15.0, 2.0


class Trackers:
    """The streams of one run of a job, one a tracker of its project that is on."""

    def __init__(self, job: Job, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._job, self._clock = job, clock
        self._streams: dict[TrackerKind, Stream] = {}
        self._noted: dict[TrackerKind, tuple[str, str]] = {}
        self._looked_s = float("-inf")
        self._began_s = (job.started_at or clock.now()).timestamp()
        self._picodollars = 0
        self._last: dict[str, float] = {}
        self._spent_name = SPENT.replace("spent", job.unreal) if job.unreal else SPENT

    def open(self) -> None:
        """Begin to send. What cannot begin is noted for the job's page."""
        for tracker in queries.trackers_of(self._job.project).filter(on=True):
            kind = TrackerKind(tracker.kind)
            try:
                run = services.open_run(tracker)
            except NotTracked as refusal:
                self._note(kind, "", str(refusal))
            else:
                self._streams[kind] = Stream(kind.label, run, self._facts())

    def tell(self, event: Event) -> None:
        """Pass on what a round or an evaluation showed. Returns at once."""
        if not self._streams:
            return
        if isinstance(event, RoundFinished):
            report = as_json(event)["report"]
            self._picodollars += report.get("cost_picodollars") or 0
            self._offer(
                event.report.total_progress, report["started_s"] + report["total_s"], self._read(report)
            )
        elif isinstance(event, Evaluated) and math.isfinite(event.score):
            self._offer(event.total_progress, event.at_s, {EVALUATION: event.score})
        self._look()

    def close(self, stopped: Stopped | None = None, *, handed_over: bool = False) -> None:
        """Send what waits, and how the run ended. Without an end, the run is left to the job's next process."""
        streams, self._streams = self._streams, {}
        files = (
            self._policy()
            if TrackerKind.MLFLOW in streams and stopped is not None and not handed_over
            else {}
        )
        ends_s = time.monotonic() + (_GRACE_AT_HAND_OVER_S if handed_over else _GRACE_S)
        for kind, stream in streams.items():
            if stopped is None:
                stream.close(0.0)
            else:
                grace_s = max(0.0, ends_s - time.monotonic())
                stream.close(grace_s, _end_of(stopped), self._final_figures(stopped), files)
                self._note(kind, stream.url, stream.problem)

    def _offer(self, step: int, platform_s: float, figures: dict[str, float]) -> None:
        self._last |= figures
        for stream in self._streams.values():
            stream.offer(TrackedStep(step, self._began_s + platform_s, figures))

    def _read(self, report: Mapping[str, Any]) -> dict[str, float]:
        figures = dict(scalars_of(report, self._picodollars))
        figures[self._spent_name] = figures.pop(SPENT)
        return figures

    def _final_figures(self, stopped: Stopped) -> dict[str, float]:
        scores = {"evaluation": stopped.evaluated_score, "training": self._last.get(SCORE)}
        figures = {f"final/{name}": score for name, score in scores.items() if score is not None}
        if self._spent_name in self._last:
            figures[f"final/{self._spent_name.rpartition('/')[2]}"] = self._last[self._spent_name]
        return {name: score for name, score in figures.items() if math.isfinite(score)}

    def _policy(self) -> dict[str, bytes]:
        """The files of the best checkpoint's policy, else of the newest; none if there is none that can be read."""
        try:
            chosen = checkpoint(self._job, "")
            if chosen is None:
                return {}
            return policy_files(self._job, checkpoint_path(self._job.pk, chosen.name), chosen.sha256)
        except Exception:  # whatever it is, the run itself has finished well
            log.exception("the policy is not sent to MLflow")
            return {}

    def _look(self) -> None:
        """Note new addresses and problems, every few seconds at most."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _EVERY_S:
            self._looked_s = now_s
            for kind, stream in self._streams.items():
                self._note(kind, stream.url, stream.problem)

    def _note(self, kind: TrackerKind, url: str, problem: str) -> None:
        if self._noted.get(kind, ("", "")) != (url, problem):
            self._noted[kind] = (url, problem)
            if problem:
                log.warning("%s: %s", kind.label, problem)
            try:
                services.note_run(job_id=self._job.pk, kind=kind, url=url, problem=problem, clock=self._clock)
            except DatabaseError:  # the run's own writes matter more
                log.exception("%s: the note for the job's page was not written", kind.label)

    def _facts(self) -> RunFacts:
        job = self._job
        page = reverse("jobs:detail", args=[job.project.slug, job.pk])
        tags = {
            "starling.url": settings.STARLING_BASE_URL + page,
            "money": job.unreal or "actual",
            "subject": job.training_facts.subject,
            "method": job.training_facts.method,
            "platform": str(job.spec["platform"]["kind"]),
        }
        return RunFacts(job.pk, job.name, dict(_parameters(job.spec)), tags)


def _parameters(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The spec's fields by path. Lists are JSON, and what is empty is left out."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _parameters(inner, f"{path}.{name}" if path else name)
    elif value not in (None, "", []):
        yield path, value if isinstance(value, str) else json.dumps(value)


def _end_of(stopped: Stopped) -> End:
    if stopped.reason_code in FAILED_ENDS:
        return "failed"
    if stopped.reason_code == "paused":
        return "paused"
    return "stopped" if stopped.reason_code == "cancelled" else "finished"
