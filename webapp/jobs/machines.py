"""Machines of the user's own, in words: for a job's page, and before a launch."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from cloud.hosts import HostsOptions
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.gateway import queries
from webapp.gateway.queries import Machines
from webapp.job_states import TERMINAL
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.models import Job

LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}
_KIND = "platform.kind"


def panel(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """What the job's page shows of them; nothing for a job on anything else."""
    if job.spec["platform"]["kind"] != "hosts":
        return {"machines": None}
    options = HostsOptions.model_validate(job.spec["platform"])
    found = queries.machines(job.pk, clock.now().timestamp())
    over = job.observed in TERMINAL
    return {
        "job": job,
        "machines": found,
        "machines_over": over,
        "machines_words": "" if over else words(found, options),
        "only_here": only_here(),
    }


def words(found: Machines, options: HostsOptions) -> str:
    if not found.called:
        return f"Waiting for machines: 0 of {options.machines} have called."
    if not found.present:
        return (
            f"None of your machines is here now; {found.called} of {options.machines} have called."
            f" Calls wait {options.wait_min:g} min for one."
        )
    here = _count(found.present, "machine is", "machines are")
    at_work = f"{_count(found.actors, 'actor', 'actors')}, {found.working} at work"
    if found.present >= options.machines:
        return f"{here} here: {at_work}."
    return f"{here} here, {options.machines} are expected: {at_work}."


def command(token: str, options: HostsOptions) -> str:
    """What a machine runs, for a POSIX shell."""
    processes = f" --processes {options.processes}" if options.processes > 1 else ""
    address = shlex.quote(settings.STARLING_BASE_URL)
    return f"STARLING_RUN_TOKEN={token} \\\n  python -m cloud.actor.puller --gateway {address}{processes}"


def only_here() -> bool:
    """Whether this site's address leads nowhere from other machines."""
    return urlsplit(settings.STARLING_BASE_URL).hostname in LOOPBACK_HOSTS


def obstacles() -> list[Problem]:
    """Why no machine could reach this site."""
    base = urlsplit(settings.STARLING_BASE_URL)
    if base.scheme == "https" or base.hostname in LOOPBACK_HOSTS:
        return []
    sentence = (
        f"Platform ({_KIND}): machines call at {settings.STARLING_BASE_URL}, which is not encrypted, and their token"
        " would be readable on the way. Whoever runs this site puts it behind https and sets STARLING_BASE_URL to that."
    )
    return [Problem(_KIND, sentence)]


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
