"""The pages of every day are no wider than their window. test_browser_axe.py looks at all pages, but takes minutes."""

from typing import TYPE_CHECKING

import pytest

from tests.factories import make_project, make_user
from tests.journeys import comparing_scenes, scenes
from tests.journeys.signed_in import sign_in
from webapp.money.budgets import create_budget

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_its_window(live_site: str, page: "Page", width: int) -> None:
    user = make_user("a.person.with.a.rather.long.address@department.example.org")
    project = make_project(user, "A project with a name as long as people sometimes give to their projects")
    scenes.jobs_in_every_state(project, user)
    running = project.jobs.get(observed="running")
    sign_in(page, live_site, user)
    page.set_viewport_size({"width": width, "height": 800})
    for path in (
        "",
        "jobs/",
        "jobs/new/",
        f"jobs/{running.pk}/",
        f"jobs/{running.pk}/cost/",
        "members/",
        "reports/",
    ):
        page.goto(f"{live_site}/p/{project.slug}/{path}")
        page.wait_for_timeout(200)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, path
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, f"{path}, with everything opened"


def test_no_comparison_is_wider_than_its_window(live_site: str, page: "Page") -> None:
    user = make_user()
    project = make_project(user)
    group = comparing_scenes.seeds_of(
        project, user, "Hopper, 32 actors", peak=2300, pace=35, usd=0.6, count=2
    )
    base, alone = f"{live_site}/p/{project.slug}", project.jobs.order_by("pk").first()
    sign_in(page, live_site, user)
    for path in (
        "jobs/",
        "jobs/?q=stat:active",
        f"jobs/{alone.pk}/",
        "compare/",
        f"compare/?of=group_{group.pk}&of={alone.pk}",
        f"groups/{group.pk}/",
        "sweeps/new/",
    ):
        page.goto(f"{base}/{path}")
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(100)
            over = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, (path, width)


UNBROKEN = "W" * 100


def test_an_unbroken_name_widens_no_page(live_site: str, page: "Page") -> None:
    """Of a job, its group and tag, a budget, a project: each as long as it may be, without a place to break it."""
    user = make_user(f"{'w' * 60}@example.org")
    project = make_project(user, UNBROKEN[:80])
    group = comparing_scenes.seeds_of(project, user, UNBROKEN, peak=2300, pace=35, usd=0.6, count=2)
    project.jobs.update(name=UNBROKEN)
    scenes.jobs_in_every_state(project, user)
    running = project.jobs.filter(observed="running").first()
    project.jobs.update(name=UNBROKEN)
    budget = create_budget(project=project, name=UNBROKEN[:80], limit_picodollars=10**12, user=user)
    sign_in(page, live_site, user)
    wide = []
    for path in (
        "",
        "jobs/",
        f"jobs/new/?clone={running.pk}",
        *(f"jobs/{running.pk}/{tab}" for tab in ("", "cost/", "events/", "checkpoints/", "spec/")),
        "groups/",
        f"groups/{group.pk}/",
        f"compare/?of=group_{group.pk}&of={running.pk}",
        "budgets/",
        f"budgets/{budget.pk}/",
        "reports/",
        "alerts/",
        "members/",
        "links/",
        "settings/",
        f"find/?q={UNBROKEN[:20]}",
    ):
        page.goto(f"{live_site}/p/{project.slug}/{path}")
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(100)
            over = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            if over > 0:
                wide.append((path, width, over))
    assert wide == []
