"""Tokens to look at: used, about to end, for one project, and some that opened something once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from webapp.api.models import ApiToken
from webapp.api.tokens import make_token, record_action, revoke_token
from webapp.clock import SYSTEM_CLOCK


def tokens_in_every_state(project: Any, user: Any) -> None:
    now = SYSTEM_CLOCK.now()
    nightly, _ = make_token(user=user, name="Nightly seeds", scopes=("jobs",), project=project)
    make_token(user=user, name="Notebook in the office, under the window", scopes=(), days=365)
    ending, _ = make_token(user=user, name="CI", scopes=("jobs", "budget"), days=5)
    make_token(user=user, name="Members", scopes=("jobs", "budget", "manage"), project=project, days=30)
    old, _ = make_token(user=user, name="Laptop", scopes=("jobs",))
    ApiToken.objects.filter(pk=nightly.pk).update(last_used_at=now - timedelta(minutes=3))
    ApiToken.objects.filter(pk=ending.pk).update(last_used_at=now - timedelta(days=1))
    jobs = f"POST /api/v1/projects/{project.slug}/jobs"
    record_action(nightly, jobs, outcome="201", address="192.0.2.7")
    record_action(nightly, f"{jobs}/job_k3j5n2q7xa/stop", outcome="200", address="192.0.2.7")
    revoke_token(token=old)
