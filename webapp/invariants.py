"""All invariants at once: for `manage.py verify`, and after tests in which processes die."""

from __future__ import annotations

from datetime import datetime

from webapp.jobs.invariants import job_findings
from webapp.money.invariants import money_findings


def findings(now: datetime) -> list[str]:
    """What is wrong in the database, a sentence each."""
    return [*money_findings(), *job_findings(now)]
