"""A run for TensorBoard: every figure of every round by environment step, under common names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webapp.api.event_records import file_version, record, scalars
from webapp.api.job_serialization import evaluations_of
from webapp.jobs.charts.figures import LINES
from webapp.jobs.models import Job, Round

_ROUNDS_AT_ONCE = 500
_PICODOLLARS = 1e12

TAGS = {
    "train/policy_gradient_loss": ("update", "policy_loss"),
    "train/learning_rate": ("update", "learning_rate"),
    "time/collect_s": ("collect_s",),
    "time/update_s": ("update_s",),
    "time/round_s": ("total_s",),
    "functions/cold_starts": ("cold_starts",),
    "functions/failed_calls": ("failed_calls",),
}
"""Tags beside those of the page's charts: the figure's path in a round's report."""


def event_file(job: Job) -> Iterator[bytes]:
    """The file in chunks. Its times are the platform's, from the job's start, so that simulated time is kept."""
    began_s = (job.started_at or job.created_at).timestamp()
    yield record(file_version(began_s))
    evaluations = {row.round_no: row.return_mean for row in evaluations_of(job)}
    cost_so_far = 0
    rows = Round.objects.filter(job=job, round_no__lte=job.round_no).order_by("round_no")
    pieces = []
    for report in rows.values_list("report", flat=True).iterator(chunk_size=_ROUNDS_AT_ONCE):
        cost_so_far += report.get("cost_picodollars") or 0
        values = dict(_values(report, cost_so_far))
        judged = evaluations.get(report["round_no"])
        if judged is not None:
            values["eval/mean_reward"] = judged
        at_s = began_s + report["started_s"] + report["total_s"]
        pieces.append(record(scalars(at_s, report["total_env_steps"], values.items())))
        if len(pieces) == _ROUNDS_AT_ONCE:
            yield b"".join(pieces)
            pieces.clear()
    yield b"".join(pieces)


def _values(report: Mapping[str, Any], cost_so_far: int) -> Iterator[tuple[str, float]]:
    found = [(line.tag, line.read(report)) for line in LINES.values()]
    found += [(tag, _at(report, path)) for tag, path in TAGS.items()]
    yield from ((tag, float(value)) for tag, value in found if value is not None and math.isfinite(value))
    spend = report.get("spend") or {}
    spent = spend.get("spent_picodollars")
    yield "cost/spent_usd", (cost_so_far if spent is None else spent) / _PICODOLLARS
    yield "rollout/round", float(report["round_no"])


def _at(report: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = report
    for part in path:
        value = value.get(part) if value is not None else None
    return value
