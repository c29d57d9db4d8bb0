"""What pages are sent to draw: a job's columns in as many points as a screen has room for, evaluations and marks."""

from __future__ import annotations

from typing import Any

from webapp.jobs.charts.buckets import bucketed
from webapp.jobs.charts.figures import LINES, PARTS
from webapp.jobs.charts.history import histories
from webapp.jobs.models import Job

_EVERY_ROUND = 2**53


def series_of(job: Job, first: int = 1, last: int = _EVERY_ROUND) -> dict[str, Any]:
    """Rounds `first` to `last` of the job, as of its row's last event or a little later."""
    lock, history = histories.of(job.pk, job.started_at, job.last_seq)
    with lock:
        drawn = bucketed(history.columns, first, last)
        evaluations = [one for one in history.evaluations if first <= one.round_no <= last]
        return {
            "per_point": drawn.per_point,
            "rounds": history.rounds,
            "lines": list(LINES),
            "parts": list(PARTS),
            "columns": drawn.columns,
            "low": drawn.low,
            "high": drawn.high,
            "evaluations": {
                "round": [one.round_no for one in evaluations],
                "steps": [one.steps for one in evaluations],
                "mean": [one.mean for one in evaluations],
            },
            "marks": {kind: list(rounds) for kind, rounds in history.marks.items()},
        }
