"""Every way to launch a spec, for tests of what is refused before a launch."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_job
from tests.webapp.api_callers import ApiCaller
from webapp.jobs.form.forms import job_form
from webapp.jobs.services import SpecRefused
from webapp.jobs.spec import JobSpec


def assert_refused(project: Any, user: Any, spec: dict[str, Any], path: str, words: str) -> None:
    """The API (one job, seeds, a sweep), the form and the service refuse it, with these words at this field."""
    place, mine = f"/projects/{project.slug}", ApiCaller(user)
    rates = {"training.algorithm.learning_rate": "0.001, 0.0003"}
    answers = {
        "job": mine.post(f"{place}/jobs", spec),
        "seeds": mine.post(f"{place}/seeds", {"spec": spec, "count": 2}),
        "sweep": mine.post(
            f"{place}/sweeps", {"base": spec, "name": "Rates", "fields": rates, "limit_usd": "1"}
        ),
    }
    for way, answer in answers.items():
        assert answer.status_code == 422, (way, answer.content)
        found = {one["path"]: one["sentence"] for one in answer.json()["errors"]}
        assert words in found[path], way
    parsed, client = JobSpec.model_validate(spec), Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    fields = job_form(start=parsed).as_typed()
    page = client.post(f"/p/{project.slug}/jobs/new/", {**fields, "seeds": "1"})
    assert words in page.content.decode()
    with pytest.raises(SpecRefused, match=re.escape(words)):
        make_job(project, user, parsed)
