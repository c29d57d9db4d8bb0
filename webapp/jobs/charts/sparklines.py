"""Small lines of a job's score over its rounds, for rows of lists: sampled, in one query for all rows of a page.

A process keeps the lines that it read: every change of a job's rounds has an event in the same transaction, so a job's
last event names its line.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.db.models import Q

from webapp.formatting import svg_points
from webapp.jobs.charts.figures import SCORE
from webapp.jobs.models import Job, Round

WIDTH, HEIGHT = 96, 24
POINTS = 32

Scores = Sequence[tuple[int, float]]
"""Number and score of some rounds."""


def sampled(last: int) -> list[int]:
    """Numbers of rounds from the first to the last, as many as a small line has room for."""
    if last <= POINTS:
        return list(range(1, last + 1))
    return sorted({1 + round(at * (last - 1) / (POINTS - 1)) for at in range(POINTS)})


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """The points of an SVG polyline that fills the box; empty for fewer than two."""
    if len(points) < 2:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, bottom = min(xs), min(ys)
    wide, high = max(xs) - left or 1, max(ys) - bottom or 1
    inner = HEIGHT - 4
    return svg_points(
        (WIDTH * (x - left) / wide, HEIGHT - 2 - inner * (y - bottom) / high) for x, y in points
    )


_KEPT = 2_000
"""Lines of one process, some kilobytes each."""
_known: dict[tuple[str, int], Scores] = {}
_known_lock = threading.Lock()


def scores_of(jobs: Iterable[Job]) -> dict[str, Scores]:
    """Return the sampled scores by job, from its first round to its last; empty before its first round.

    One query for all those whose line is not known yet.
    """
    jobs = list(jobs)
    by_job = {job.pk: _known.get((job.pk, job.last_seq)) if job.round_no else () for job in jobs}
    unread = [job for job in jobs if by_job[job.pk] is None]
    read = _read(unread)
    with _known_lock:
        _known.update({(job.pk, job.last_seq): read[job.pk] for job in unread})
        for oldest in list(_known)[: max(0, len(_known) - _KEPT)]:
            del _known[oldest]
    return {pk: read[pk] if scores is None else scores for pk, scores in by_job.items()}


def _read(jobs: Sequence[Job]) -> dict[str, Scores]:
    by_job: dict[str, list[tuple[int, float]]] = {job.pk: [] for job in jobs}
    alike = defaultdict[int, list[str]](list)
    for job in jobs:
        alike[job.round_no].append(job.pk)
    wanted = Q()
    for last, ids in alike.items():
        wanted |= Q(job_id__in=ids, round_no__in=sampled(last))
    if wanted:
        rows = Round.objects.filter(wanted, **{f"{SCORE}__isnull": False}).order_by("round_no")
        for pk, round_no, mean in rows.values_list("job_id", "round_no", SCORE):
            if mean is not None:
                by_job[pk].append((round_no, mean))
    return dict(by_job)
