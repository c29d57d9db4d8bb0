"""Whole numbers that people send: each page answers any of them, however long."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import make_job, make_project, make_spec
from tests.signed_in import signed_in
from webapp.formatting import read_whole
from webapp.jobs import seed_groups
from webapp.jobs.services import SpecRefused

LONG = "9" * 5000
"""More digits than Python reads."""
LARGE = "9" * 19
"""More than a database stores."""


@pytest.mark.parametrize(
    ("text", "read"),
    [("0", 0), ("12", 12), ("٣", 3), (str(2**63 - 1), 2**63 - 1), (LARGE, None), (LONG, None), ("", None)]
    + [(text, None) for text in ("-1", "1.0", "1_0", " 1", "²", "x")],
)
def test_a_whole_number_is_read_or_not(text: str, read: int | None) -> None:
    assert read_whole(text) == read
    assert read_whole("11", 10) is None


@pytest.mark.django_db
@pytest.mark.parametrize("typed", [LONG, LARGE])
def test_pages_answer_numbers_of_any_length(typed: str) -> None:
    project = make_project()
    job = make_job(project)
    client = signed_in(project.people.get())

    def address(name: str) -> str:
        return reverse(name, args=[project.slug])

    posted = [
        ("comparing:add_seeds", {"like": job.pk, "count": typed}),
        ("jobs:views", {"remove": typed}),
        ("jobs:new", {"seeds": typed}),
        ("budgets:new", {"thresholds": typed}),
    ]
    for name, data in posted:
        assert client.post(address(name), data).status_code < 500, name
    addresses = [("jobs:new", f"?memory_mb={typed}&copies={typed}"), ("comparing:page", f"?of=group_{typed}")]
    for name, query in addresses:
        assert client.get(address(name) + query).status_code < 500, name


@pytest.mark.django_db
def test_no_job_is_launched_with_a_seed_that_no_spec_can_have() -> None:
    project = make_project()
    user = project.people.get()
    spec = make_spec("hopper-simulated", training__seed=2**31 - 2)
    with pytest.raises(SpecRefused, match="at most 2,147,483,647"):
        seed_groups.launch_seeds(project=project, user=user, spec=spec, count=3)
    assert not project.jobs.exists()
    group = seed_groups.launch_seeds(project=project, user=user, spec=spec, count=2)
    with pytest.raises(SpecRefused, match="at most 2,147,483,647"):
        seed_groups.more_seeds(user=user, like=group.jobs.first(), count=1)
    assert [job.readable_spec() is not None for job in group.jobs.all()] == [True, True]
