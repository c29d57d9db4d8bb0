"""What shared pages, their JSON and their messages hold: what is allowed, and money only if the link says so."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from tests.factories import round_finished
from tests.webapp.sharing.shares import SECRETS, make_secret_job, secrets_in, share
from tests.webapp.test_unpaid_money import _title, _unmarked
from webapp.comparing.groups import flattened
from webapp.jobs import queries
from webapp.jobs.charts.figures import AXES, LINES, NAMES, PARTS, WALL, ChartLine
from webapp.jobs.models import EventKind, Job
from webapp.sharing import allowlist
from webapp.sharing.allowlist import job_message, may_show_field

pytestmark = pytest.mark.django_db

_AMOUNT = re.compile(r"\$\s?\d|usd|dollar|budget|picodollar|\bspent\b|\blimit\b", re.IGNORECASE)
_WORDS = ("no limit", "data-no-money")
_SECRET_OF_A_LINK = re.compile(r"/[\w-]{43}/")
"""Letters by chance, which may spell anything."""


@pytest.fixture
def job() -> Job:
    return make_secret_job()[0]


@pytest.fixture
def other(job: Job) -> Job:
    return make_secret_job(mean=50.0, project=job.project, user=job.created_by, name="Runner")[0]


def money_in(text: str) -> list[str]:
    """What tells of money in a page or a message: amounts, and names of fields that have some."""
    text = _SECRET_OF_A_LINK.sub("//", text)
    for words in _WORDS:
        text = text.replace(words, "")
    # Whole classes of money have names that pages use for their look: they are no amounts.
    text = re.sub(
        r"(tone-budget|\"tone\": \"budget\"|stopped by budget|\"[a-z]+:budget\"|Stopped by budget)", "", text
    )
    return _AMOUNT.findall(text)


def everything_of(path: str) -> str:
    """All that an address answers with, beside its files that are the same for everybody."""
    client = Client()
    return "\n".join(
        client.get(f"{path}{part}").content.decode() for part in ("", "stream", "series", "films.json")
    )


def test_the_scene_holds_what_must_not_be_shown(job: Job) -> None:
    inside = json.dumps(queries.snapshot(job.pk))
    assert SECRETS["a person's address"] in inside
    assert SECRETS["a reason"] in inside
    assert money_in(inside)


def test_a_links_secret_is_no_money_whatever_it_spells(monkeypatch: pytest.MonkeyPatch, job: Job) -> None:
    secret = "usd-budget-dollar".ljust(43, "x")
    monkeypatch.setattr("webapp.sharing.services.secrets.token_urlsafe", lambda _: secret)
    _, path = share(job)
    assert path == f"/s/{secret}/"
    shown = everything_of(path)
    assert secret in shown
    assert money_in(shown) == []
    assert money_in(f"{path}usd") == ["usd"]


def test_a_shared_job_names_no_one_and_holds_no_money(job: Job) -> None:
    _, path = share(job)
    shown = everything_of(path)
    assert "Walker" in shown
    assert secrets_in(shown) == []
    assert money_in(shown) == []
    assert job.pk not in shown
    assert job.project.slug not in shown


def test_with_money_a_shared_job_holds_it_and_names_no_one(job: Job) -> None:
    _, path = share(job, money=True)
    shown = everything_of(path)
    assert "$0.300" in shown
    assert '"spent_usd"' in shown
    assert secrets_in(shown) == []


def test_a_shared_comparison_names_no_one_and_holds_no_money(job: Job, other: Job) -> None:
    _, path = share(job, of=[job.pk, other.pk])
    shown = everything_of(path)
    assert '"lines"' in shown
    assert secrets_in(shown) == []
    assert money_in(shown) == []
    _, paid = share(job, of=[job.pk, other.pk], money=True)
    shown = everything_of(paid)
    assert "$0.300" in shown
    assert secrets_in(shown) == []


def test_a_comparison_shows_no_field_of_the_account(job: Job, other: Job) -> None:
    secret = {**other.spec["platform"], "connection": SECRETS["a connection"], "region": SECRETS["a reason"]}
    spec = {**other.spec, "platform": secret, "budget_usd": "77.5"}
    Job.objects.filter(pk=other.pk).update(spec=spec)
    _, path = share(job, of=[job.pk, other.pk], money=True)
    assert secrets_in(everything_of(path)) == []


def test_a_shared_report_names_no_one(job: Job) -> None:
    for by in ("day", "job", "cloud", "service", "tag"):
        report = {"range": "this-month", "by": by, "prices": "simulated", "tag": ""}
        _, path = share(job, of=(), report=report, money=True)
        shown = Client().get(path).content.decode()
        assert [what for what in secrets_in(shown) if what != "a tag"] == [], by


def test_money_that_no_one_pays_says_so_on_shared_pages(job: Job, other: Job) -> None:
    """At the title, which every amount of such a page belongs to."""
    _, one = share(job, money=True)
    _, compared = share(job, of=[job.pk, other.pk], money=True)
    _, costs = share(
        job, of=(), report={"range": "this-month", "by": "job", "prices": "simulated"}, money=True
    )
    for path in (one, compared, costs):
        page = Client().get(path).content.decode()
        assert "$" in page, path
        assert 'class="simulated-word">simulated<' in _title(page), path
        assert _unmarked(page, _title(page)) == [], path


def test_saved_pictures_and_files_say_so_too(job: Job, other: Job) -> None:
    """Scripts name them by what the page is marked with."""
    for path in (share(job)[1], share(job, of=[job.pk, other.pk])[1]):
        assert 'data-unreal="simulated"' in Client().get(path).content.decode()


def test_every_figure_is_either_shared_or_money() -> None:
    """A new one is put on one of the lists with care."""
    assert set(NAMES) == allowlist.FIGURES | allowlist.FIGURES_MONEY
    assert not allowlist.FIGURES & allowlist.FIGURES_MONEY


def _with_other_amounts(report: Any) -> Any:
    """The same report, with each amount of money in it replaced by another."""
    if isinstance(report, dict):
        return {
            key: 7 * 10**9 if key.endswith("picodollars") else _with_other_amounts(part)
            for key, part in report.items()
        }
    return report


def test_each_line_whose_figure_depends_on_money_says_so() -> None:
    gradients = {"dropped": {"nan": 1}, "wasted_picodollars": 10**9}
    report = {
        **round_finished(3, spent=10**9).report.model_dump(mode="json"),
        "gradients": gradients,
        "cost_picodollars": 10**6,
    }
    changed = _with_other_amounts(report)
    cost = ChartLine("x/cost_a_step", lambda one: one["cost_picodollars"] / one["env_steps"])
    assert cost.read(report) != cost.read(changed)
    about_money = {name for name, line in LINES.items() if line.read(report) != line.read(changed)}
    assert about_money == {name for name, line in LINES.items() if line.money}
    assert set(AXES) == {"round", "steps", "platform_s", "spent_usd"}
    assert set(PARTS) - allowlist.FIGURES == {"cost_usd"}
    assert WALL in allowlist.FIGURES
    assert not [name for name in LINES if re.search("usd|cost|spent|spend|money", name)]


def test_of_a_header_and_of_events_only_the_listed_is_left(job: Job) -> None:
    whole = queries.snapshot(job.pk)
    kept = job_message(whole, money=False)
    assert set(kept) == {"t", "seq", "job", "series", "events"}
    assert set(kept["job"]) <= allowlist.HEADER
    assert {"reason", "burn", "plan", "parts", "elsewhere", "no_news", "id"} & set(whole["job"])
    allowed = {"seq", "kind", "point", "payload"}
    assert all(set(event) <= allowed for event in kept["events"])
    assert [event["seq"] for event in kept["events"]] == [event["seq"] for event in whole["events"]]
    texts = [event for event in kept["events"] if "text" in event.get("payload", {})]
    assert texts == []


def test_an_unknown_kind_of_event_shows_only_that_it_was() -> None:
    event = {
        "seq": 3,
        "at": "now",
        "kind": "new",
        "description": {"text": "x"},
        "payload": {"email": "ada@example.org"},
    }
    message = {"t": "events", "first": 3, "last": 3, "events": [event], "job": {"surprise": 1}}
    assert job_message(message, money=True) == {
        "t": "events", "first": 3, "last": 3, "job": {}, "events": [{"seq": 3, "kind": "new", "payload": {}}],
    }  # fmt: skip
    budget = {**event, "kind": EventKind.BUDGET.value, "payload": {"limit_usd": "5"}}
    plain = job_message({**message, "events": [budget]}, money=False)["events"]
    assert plain == [{"seq": 3, "kind": "note", "payload": {}}]


def test_a_sign_of_life_says_no_reason() -> None:
    life = {"t": "hb", "at": "now", "seq": 4, "waiting": "The account 123456789012 allows 10."}
    assert job_message(life, money=True) == {"t": "hb", "at": "now", "seq": 4}


def test_of_the_spec_a_comparison_shows_what_is_learned_and_no_more(job: Job) -> None:
    shown = {path for path in flattened(job.spec) if may_show_field(path, money=False)}
    assert "training.algorithm.learning_rate" in shown
    assert not [path for path in shown if path.startswith(("training.environment.", "platform.")) and path not in {
        "training.environment.id", "platform.kind", "platform.profile"
    }]  # fmt: skip
    assert "budget_usd" not in shown
    assert may_show_field("budget_usd", money=True)
    for path in ("platform.connection", "platform.region", "name", "tags", "group", "platform.hosts"):
        assert not may_show_field(path, money=True), path
