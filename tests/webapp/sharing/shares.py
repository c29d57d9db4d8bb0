"""A project whose rows hold what must not leave it, and links to what may."""

from __future__ import annotations

from typing import Any

from tests.factories import (
    call_failed,
    checkpoint_saved,
    evaluated,
    make_connection,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.ledger_contract import reservation, settlement
from webapp.jobs.models import Job, Tag
from webapp.jobs.running.recorder import Recorder
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.sharing.services import make_link

SECRETS = {
    "a person's address": "ada.lovelace@example.org",
    "a connection": "Production account 4711",
    "a budget": "Grant of the ministry",
    "a note": "Ask Bob before publishing",
    "a reason": "123456789012",
    "a tag": "confidential-tag",
}
"""What no shared page, message or file may hold, by what it is."""


def make_secret_job(
    mean: float = 20.0, project: Any = None, user: Any = None, name: str = "Walker"
) -> tuple[Job, Recorder]:
    """A running job with rounds, money, and a secret in every place that people write to."""
    user = user or make_user(SECRETS["a person's address"])
    options = {"project": project} if project is not None else {}
    job, epoch = make_running_job(user=user, spec=make_spec("hopper-simulated", name=name), **options)
    if project is None:
        make_connection(job.project, user, name=SECRETS["a connection"])
        create_budget(project=job.project, name=SECRETS["a budget"], limit_picodollars=10**15)
    job.tags.add(Tag.objects.get_or_create(project=job.project, name=SECRETS["a tag"])[0])
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    record(recorder, mean)
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([reservation("a-call", 4 * 10**11)]) == [True]
    ledger.settle([settlement("a-call", 3 * 10**11)])
    reason = f"The account {SECRETS['a reason']} of {SECRETS['a connection']} allows 10 functions."
    Job.objects.filter(pk=job.pk).update(note=SECRETS["a note"], reason=reason)
    job.refresh_from_db()
    return job, recorder


def record(recorder: Recorder, mean: float = 20.0, first: int = 1) -> None:
    for round_no in range(first, first + 3):
        recorder.record(round_finished(round_no, mean=mean + round_no, spent=10**11 * round_no))
    recorder.record(evaluated(first + 2, mean))
    recorder.record(call_failed())
    recorder.record(checkpoint_saved(first + 2))
    recorder.flush()


def share(job: Job, **options: Any) -> tuple[Any, str]:
    """A link to the job and its path."""
    given = {"project": job.project, "user": job.created_by, "of": [job.pk], **options}
    return make_link(**given)


def secrets_in(text: str) -> list[str]:
    return [what for what, secret in SECRETS.items() if secret in text]
