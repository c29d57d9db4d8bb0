"""A long history of made-up rounds, straight into the table: recording them one by one would take an hour."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from rig.rounds import round_finished
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.events.event_log import EventEntry, event_row
from webapp.jobs.models import Event, EventKind, Job

_NOISY = ("entropy", "approximate_kl", "clip_fraction", "explained_variance", "gradient_norm", "value_loss")


def long_history(job: Job, rounds: int) -> None:
    """Gives the job this many rounds, one a second until now, as events."""
    began = SYSTEM_CLOCK.now() - timedelta(seconds=rounds)
    first = job.last_seq + 1

    def rows() -> Iterator[Event]:
        for number in range(1, rounds + 1):
            at = began + timedelta(seconds=number)
            yield event_row(job.pk, first + number - 1, at, EventEntry(EventKind.ROUND, _payload(number)))

    Event.objects.bulk_create(rows(), batch_size=2_000)
    last = first + rounds - 1
    Job.objects.filter(pk=job.pk).update(last_seq=last, round_no=rounds, started_at=began)


def _payload(number: int) -> dict[str, Any]:
    noise = random.Random(number)
    mean = 2000 * (1 - math.exp(-number / 2e4)) * noise.random()
    report = round_finished(number, actors=8 + number % 5, mean=mean).report.model_dump(mode="json")
    for name in _NOISY:
        report["update"][name] = noise.random()
    report["spend"] = {
        "spent_picodollars": number * 10**6,
        "reserved_picodollars": 0,
        "limit_picodollars": 10**12,
    }
    return {"kind": "round", "report": report}
