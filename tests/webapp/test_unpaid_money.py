"""Money that no one pays is never taken for real: each object that shows some says which kind it is."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_job, make_project, make_spec, make_user
from tests.journeys import scenes
from tests.webapp.ab_test_rows import make_ab_test
from webapp.formatting import mark_unpaid
from webapp.job_states import Observed
from webapp.jobs.models import Job
from webapp.money.budgets import create_budget
from webapp.money.models import BudgetScope

pytestmark = pytest.mark.django_db

USD = 10**12
_VOID = frozenset({"meta", "link", "img", "input", "br", "hr", "source", "wbr"})
_OBJECTS = frozenset({"tr", "li", "figure"})
"""An object is a row, an item, a chart or a card."""
_SAYS = re.compile(r"simulat|\bsim\.|emulat|\bemul\.")
_MONEY = re.compile(r"\$(?!0\.00\b)\d")
"""An amount; nothing is nothing in any kind of money."""


class Node:
    def __init__(self, tag: str, attributes: dict[str, str], above: Node | None) -> None:
        self.tag, self.attributes, self.above = tag, attributes, above
        self.words: list[str] = []

    def is_object(self) -> bool:
        return self.tag in _OBJECTS or "card" in self.attributes.get("class", "").split()


class Reader(HTMLParser):
    """Reads what a page shows, and to which objects each text belongs."""

    def __init__(self) -> None:
        super().__init__()
        self.here = Node("", {}, None)
        self.money: list[tuple[str, Node]] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "template", "dialog"):
            self.hidden += 1
        if tag not in _VOID:
            self.here = Node(tag, {key: value or "" for key, value in attrs}, self.here)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "template", "dialog"):
            self.hidden -= 1
        if tag not in _VOID and self.here.above is not None:
            self.here = self.here.above

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        for node in _upwards(self.here):
            node.words.append(data)
        if _MONEY.search(data):
            self.money.append((data.strip(), self.here))


def _upwards(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.above


def _unmarked(page: str, title: str) -> list[str]:
    """Return amounts whose object does not say that no one pays them. A page's title may say it for all of it."""
    reader = Reader()
    reader.feed(page[page.index("<main") : page.index("</main>")])
    if _SAYS.search(title):
        return []
    found = []
    for words, node in reader.money:
        objects = [one for one in _upwards(node) if one.is_object()]
        said = [words, *(" ".join(one.words) for one in objects[:2])]
        if not any(map(_SAYS.search, said)):
            found.append(words)
    return found


def _title(page: str) -> str:
    """Return the head of a page: what stands beside its title."""
    head = re.search(r"<h1.*?(?=<p class=.sentence|<section|<form|<dl|<p class=.group)", page, re.DOTALL)
    return head.group(0) if head else ""


@pytest.fixture
def shown(client: Client) -> tuple[Any, dict[str, str]]:
    """A project whose money is all simulated: a running job with rounds, a finished one, and a budget."""
    owner = make_user()
    project = make_project(owner)
    client.force_login(owner)
    running = scenes.running_job(project, owner)
    seeds = [
        make_job(project, owner, spec=make_spec("hopper-simulated", name=f"Hop, seed {seed}", group="Hops"))
        for seed in range(2)
    ]
    for job in seeds:
        scenes.history(job, 3)
        scenes.put(job, Observed.SUCCEEDED, "Reached 6,144 steps.", round_no=3, total_progress=6_144)
        scenes.spend(job, 0.2)
    create_budget(
        project=project,
        name="Everything",
        limit_picodollars=10 * USD,
        scope=BudgetScope.PROJECT,
        user=owner,
    )
    group = Job.objects.get(pk=seeds[0].pk).groups.get()
    base = f"/p/{project.slug}/"
    return project, {
        "overview": base,
        "jobs": f"{base}jobs/",
        "job": f"{base}jobs/{running.pk}/",
        "cost": f"{base}jobs/{running.pk}/cost/",
        "actors": f"{base}jobs/{running.pk}/actors/",
        "group": f"{base}groups/{group.pk}/",
        "groups": f"{base}groups/",
        "compare": f"{base}compare/?of=group_{group.pk}&of={running.pk}",
        "budgets": f"{base}budgets/",
        "what if": f"{base}jobs/{running.pk}/what-if/",
        "goals": f"{base}goals/",
        "new A/B test": f"{base}ab-tests/new/?job={seeds[0].pk}",
    }


def test_every_object_with_such_money_says_so(client: Client, shown: tuple[Any, dict[str, str]]) -> None:
    _, addresses = shown
    for name, address in addresses.items():
        page = client.get(address).content.decode()
        assert _MONEY.search(page), name
        assert _unmarked(page, _title(page)) == [], name


def test_an_ab_test_of_a_simulated_job_says_so(client: Client, shown: tuple[Any, dict[str, str]]) -> None:
    project, _ = shown
    test = make_ab_test(project.jobs.order_by("pk")[0])
    page = client.get(f"/p/{project.slug}/ab-tests/{test.pk}/").content.decode()
    assert _MONEY.search(page)
    assert _unmarked(page, _title(page)) == []


def test_titles_of_a_job_and_of_its_group_say_so(client: Client, shown: tuple[Any, dict[str, str]]) -> None:
    _, addresses = shown
    for name in ("job", "cost", "actors", "group"):
        assert _SAYS.search(_title(client.get(addresses[name]).content.decode())), name


def test_few_marks_of_dashes_are_on_a_jobs_page(client: Client, shown: tuple[Any, dict[str, str]]) -> None:
    """At its title; a card of money has a dashed edge by its stylesheet."""
    _, addresses = shown
    page = client.get(addresses["job"]).content.decode()
    assert page.count("simulated-word") == 1
    assert "simulated-money" not in page


@pytest.mark.parametrize("form", ["csv", "json"])
def test_report_files_say_so(client: Client, shown: tuple[Any, dict[str, str]], form: str) -> None:
    project, _ = shown
    address = reverse("reports:file", args=[project.slug])
    answer = client.get(address, {"range": "last-30-days", "prices": "simulated", "format": form})
    text = b"".join(answer).decode() if answer.streaming else answer.content.decode()
    assert "simulated" in text


def test_a_jobs_file_of_costs_says_so_in_every_row(client: Client, shown: tuple[Any, dict[str, str]]) -> None:
    _, addresses = shown
    answer = client.get(f"{addresses['job']}cost.csv", {"by": "round"})
    text = b"".join(answer).decode() if answer.streaming else answer.content.decode()
    head, *rows = csv.reader(io.StringIO(text))
    assert rows
    assert {row[head.index("prices")] for row in rows} == {"simulated"}


def test_an_amount_is_marked_with_its_kind() -> None:
    assert mark_unpaid("$1.00", "") == "$1.00"
    assert ">$1.00 sim.<" in mark_unpaid("$1.00", "simulated")
    assert ">$1.00 emul.<" in mark_unpaid("$1.00", "emulated")
    assert 'title="Simulated: ' in mark_unpaid("$1.00", "simulated")
