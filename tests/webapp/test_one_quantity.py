"""One quantity has one value: on all pages, in the API, in files and in the command, on a site with jobs of all kinds.

What each place says is compared with what the test works out from the raw rows: reports, events and charges.
"""

from __future__ import annotations

from typing import Any

import pytest

from client.main import main
from tests.webapp import site_pages, site_programs
from tests.webapp.api_callers import project_of_client
from tests.webapp.site_reading import Site
from tests.webapp.walked_site import Walk

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning"),
]


def walk_everything(project: Any, jobs: int, capsys: Any) -> Walk:
    def printed(*words: str) -> str:
        capsys.readouterr()
        main(list(words))
        found: str = capsys.readouterr().out
        return found

    site = Site(project, jobs)
    site_pages.walk_list(site)
    site_pages.walk_order_and_search(site)
    site_pages.walk_job_pages(site)
    site_pages.walk_overview(site)
    site_pages.walk_groups(site)
    site_pages.walk_comparisons(site)
    site_pages.walk_board(site)
    site_programs.walk_api(site)
    site_programs.walk_command(site, printed)
    site_programs.walk_reports(site)
    return site.walk


@pytest.mark.parametrize(
    "jobs", [pytest.param(8, id="few"), pytest.param(40, id="many", marks=pytest.mark.slow)]
)
def test_one_quantity_is_the_same_everywhere(jobs: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    walk = walk_everything(project_of_client(monkeypatch), jobs, capsys)
    print(f"{walk.compared.total()} values of {len(walk.compared)} quantities at their places")
    assert walk.differences == []
    assert walk.compared.total() > 40 * jobs
