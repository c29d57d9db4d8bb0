"""Seeds are one row in the list of jobs, and groups have a page of their own."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.jobs.test_pages import text
from webapp.jobs.list.seed_rows import Seeds, comparison_keys, fold_list, fold_seeds
from webapp.jobs.models import Job, JobGroup
from webapp.money.models import Account

pytestmark = pytest.mark.django_db

USD = 10**12


@pytest.fixture
def project(client: Client) -> Any:
    owner = make_user()
    client.force_login(owner)
    return make_project(owner)


@pytest.fixture
def seeds(project: Any) -> list[Job]:
    """Three simulated seeds with returns 10, 20 and 60, and costs of 1, 2 and 3 tenths of a dollar."""
    jobs = [
        make_job(project, spec=make_spec("hopper-simulated", name=f"Hop, seed {seed}", group="Hops"))
        for seed in range(3)
    ]
    for at, (job, mean) in enumerate(zip(jobs, (10, 20, 60), strict=True)):
        Job.objects.filter(pk=job.pk).update(training_score=mean, total_progress=100)
        Account.objects.filter(job=job).update(spent_picodollars=(at + 1) * USD // 10)
    return jobs


def test_seeds_are_one_row_with_mean_count_and_cost(client: Client, project: Any, seeds: list[Job]) -> None:
    alone = make_job(project, spec=make_spec(name="Alone"))
    page = client.get(f"/p/{project.slug}/jobs/")
    assert page.content.decode().count("data-job=") == 2
    words = text(page)
    for shown in ("Hop", "3 queued", "30.0", "300", "$0.600 sim. of $3.00", alone.name, "2 rows, 4 jobs"):
        assert shown in words, shown
    assert f'value="{" ".join(job.pk for job in reversed(seeds))}"' in page.content.decode()


def test_a_row_of_seeds_unfolds_by_its_address(client: Client, project: Any, seeds: list[Job]) -> None:
    (entry,) = fold_seeds(project, [job.pk for job in seeds]) or []
    assert isinstance(entry, Seeds)
    address = f"/p/{project.slug}/jobs/?open={entry.key}"
    folded = client.get(f"/p/{project.slug}/jobs/").content.decode()
    assert f'href="?open={entry.key}"' in folded
    assert 'aria-expanded="false"' in folded
    page = client.get(address).content.decode()
    assert page.count("data-job=") == 4
    assert 'aria-expanded="true"' in page
    for job in seeds:
        assert f'aria-label="Choose Hop, seed {seeds.index(job)}"' in page
    assert client.get(f"{address}&rows=1").content.decode().count("member-row") == 3
    assert client.get(f"/p/{project.slug}/jobs/?open=nonsense,1-2").status_code == 200


def test_seeds_stay_single_rows_where_a_search_finds_one_of_them(
    client: Client, project: Any, seeds: list[Job]
) -> None:
    page = client.get(f"/p/{project.slug}/jobs/?q=return>50").content.decode()
    assert page.count("data-job=") == 1
    assert "Choose Hop, seed 2" in page


def test_what_a_list_folds_and_hides_is_all_that_was_found(project: Any, seeds: list[Job]) -> None:
    alone = [make_job(project, spec=make_spec(name=f"Alone {number}")) for number in range(2)]
    found = Job.objects.filter(project=project).order_by("-created_at", "pk").values_list("pk", flat=True)
    for read_all in (False, True):
        folding, listed = fold_list(project, found, read_all=read_all)
        assert folding.entries(listed) == fold_seeds(project, found)
        assert len(listed) + len(folding.hidden) == len(seeds) + len(alone)


def test_what_is_done_to_a_row_of_seeds_is_done_to_each(
    client: Client, project: Any, seeds: list[Job]
) -> None:
    together = " ".join(job.pk for job in seeds)
    client.post(f"/p/{project.slug}/jobs/act/", {"action": "tag", "job": [together], "tag": "kept"})
    assert Job.objects.filter(tags__name="kept").count() == 3


def test_a_whole_group_is_compared_as_one_side(client: Client, project: Any, seeds: list[Job]) -> None:
    group, ids = JobGroup.objects.get(), [job.pk for job in seeds]
    assert comparison_keys(project, [" ".join(ids)]) == [f"group_{group.pk}"]
    assert comparison_keys(project, [" ".join(ids[:2])]) == ids[:2]
    assert comparison_keys(make_project(), [" ".join(ids)]) == ids
    answer = client.post(f"/p/{project.slug}/jobs/act/", {"action": "compare", "job": [" ".join(ids)]})
    assert answer.headers["Location"] == f"/p/{project.slug}/compare/?of=group_{group.pk}"


def test_groups_have_a_page(client: Client, project: Any, seeds: list[Job]) -> None:
    address = f"/p/{project.slug}/groups/"
    words = text(client.get(address))
    for shown in ("Hops", "simulated", "3 queued", "30.0", "$0.600 sim. of $3.00"):
        assert shown in words, shown
    assert "No groups yet" in text(client.get(f"/p/{_empty(client).slug}/groups/"))


def _empty(client: Client) -> Any:
    owner = make_user()
    client.force_login(owner)
    return make_project(owner)
