"""What `manage.py verify` says of rows that do not hold, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webapp.money.test_verify import job_that_ended, keep_checkpoint, reserve_more
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.invariants import findings
from webapp.jobs.models import Event, Job, Round
from webapp.money.models import Charge


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda job: Event.objects.filter(job=job, seq=2).delete(), "of its events 1 to"),
        (
            lambda job: Round.objects.filter(job=job, round_no=1).update(round_no=None),
            "keeps 1 rounds, 2 to 2",
        ),
        (lambda job: Job.objects.filter(pk=job.pk).update(total_progress=9), "its rounds made 512"),
        (lambda job: Job.objects.filter(pk=job.pk).update(observed="failed"), "its events do not say so"),
        (lambda job: Round.objects.filter(job=job).update(epoch=9), "an epoch that never was"),
        (lambda job: Charge.objects.update(basis=""), "do not go together"),
        (lambda job: Charge.objects.update(lines=[]), "its price lines do not come to that"),
        (lambda job: Charge.objects.update(settled_picodollars=6), "its charges come to 6"),
        (lambda job: reserve_more(job), "its open charges hold 0"),
        (lambda job: Job.objects.filter(pk=job.pk).update(round_no=3), "is at round 3 and keeps 2 rounds"),
        (
            lambda job: Event.objects.filter(job=job, kind="state").update(payload={"observed": "succeeded"}),
            "it went",
        ),
        (lambda job: keep_checkpoint(job), "a checkpoint of a round after its last"),
    ],
)
def test_what_was_spoilt_is_named(spoil: Any, words: str) -> None:
    job = job_that_ended()
    spoil(job)
    assert any(words in finding for finding in findings(SYSTEM_CLOCK.now()))
