"""Reports: every view of the same money has the same total, to the last digit, and harms no spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from openpyxl import load_workbook
from pypdf import PdfReader

from cloud.money.billing import price_book
from cloud.timing.numbers import profile as profiles
from tests.factories import make_project, make_running_job, make_spec, make_user
from tests.members import add_member
from tests.webapp.settled import DAY, booked, lambda_lines, settle
from training.engine.ports import PriceLine
from webapp.formatting import display_usd
from webapp.jobs.models import Job, Tag
from webapp.money.amounts import exact_usd
from webapp.reports import report_query
from webapp.reports.calls import calls
from webapp.reports.files import formats
from webapp.reports.job_facts import facts_of
from webapp.reports.query_params import parse_query
from webapp.reports.report_query import BY, Question
from webapp.reports.table import Costs

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning"),
]
USD = 10**12


class Scene:
    """A project with two simulated jobs, of two people, and one on this machine that costs real money."""

    def __init__(self) -> None:
        self.owner, self.other = make_user(), make_user()
        self.project = make_project(self.owner, "Robots & Müller")
        add_member(self.project, self.other.email, "editor")
        hopper = make_spec("hopper-simulated", name="=HYPERLINK(evil)")
        self.first, epoch = make_running_job(project=self.project, user=self.owner, spec=hopper)
        trimmed = make_spec("hopper-simulated", name="  -2+3")
        self.second, second_epoch = make_running_job(project=self.project, user=self.other, spec=trimmed)
        self.real, real_epoch = make_running_job(project=self.project, user=self.owner)
        for number in range(7):
            at = DAY.replace(day=3 + number)
            settle(self.first, epoch, f"r{number}-s0-a1", lambda_lines(1_000_003 + number), at=at)
        settle(self.first, epoch, "r9-s1-a1", assumed=123_456_789_013)
        rent = (PriceLine("c5.4xlarge", "0.0166666667", "h", 11_333_333_333),)
        settle(self.second, second_epoch, "rent-1", rent, at=DAY.replace(hour=23, minute=59), kind="rent")
        settle(self.real, real_epoch, "r1-s0-a1", (PriceLine("local.learner", "1", "h", USD // 3),))

    def question(self, **changes: Any) -> Question:
        wanted = {"first_day": "2026-11-01", "last_day": "2026-11-30", "prices": "simulated"}
        return Question(project=self.project.pk, **{**wanted, **changes})

    def get(self, client: Any, **query: str) -> Any:
        client.force_login(self.owner)
        known = {"from": "2026-11-01", "to": "2026-11-30", "prices": "simulated"}
        name = "reports:file" if "format" in query else "reports:page"
        return client.get(reverse(name, args=[self.project.slug]), {**known, **query})


@pytest.fixture
def scene() -> Scene:
    return Scene()


def _body(answer: Any) -> bytes:
    assert answer.status_code == 200
    return b"".join(answer) if answer.streaming else answer.content


def test_the_total_is_the_ledgers_in_the_page_and_in_every_file(
    scene: Scene, client: Any, tmp_path: Path
) -> None:
    whole = booked(scene.first, scene.second)
    exact = exact_usd(whole)
    assert "." in exact, "a total that fills the digits"
    assert len(exact.split(".")[1]) == 12

    page = scene.get(client, by="job").content.decode()
    assert re.findall(r'value="([\d.]+)" data-total', page) == [exact]
    rows = re.findall(r'<data value="([\d.]+)" title', page)
    assert rows[-1] == exact
    assert sum(map(Decimal, rows[:-1])) == Decimal(exact)

    for by in BY:
        table = list(csv.DictReader(io.StringIO(_body(scene.get(client, format="csv", by=by)).decode())))
        assert table[-1]["cost [USD]"] == exact, by
        assert sum(Decimal(row["cost [USD]"]) for row in table[:-1]) == Decimal(exact), by

        document = json.loads(_body(scene.get(client, format="json", by=by)))
        assert document["total"]["cost_usd"] == exact, by
        assert sum(Decimal(row["cost_usd"]) for row in document["rows"]) == Decimal(exact), by

    focus = list(csv.DictReader(io.StringIO(_body(scene.get(client, format="focus")).decode())))
    for column in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"):
        assert sum(Decimal(row[column]) for row in focus) == Decimal(exact), column

    (tmp_path / "report.xlsx").write_bytes(_body(scene.get(client, format="xlsx", by="call")))
    _excel_says(tmp_path / "report.xlsx", whole)

    text = "".join(
        sheet.extract_text() for sheet in PdfReader(io.BytesIO(_body(scene.get(client, format="pdf")))).pages
    )
    assert f"exactly {exact} USD" in text
    totals = re.findall(r"Total\s*100\.0 %\s*[a-z, ]+?\s*([\d.]+)", text)
    assert len(totals) >= 3, "by day, job and service"
    assert set(totals) == {exact}


def _excel_says(path: Path, whole: int) -> None:
    book = load_workbook(path)
    assert book.sheetnames == ["By job", "Calls", "About"]
    for name in ("By job", "Calls"):
        sheet = book[name]
        assert sheet.freeze_panes == "A2"
        head = [cell.value for cell in sheet[1]]
        at = head.index("cost [USD]")
        amounts = [row[at] for row in sheet.iter_rows(min_row=2)]
        assert all(cell.data_type == "n" for cell in amounts)
        assert all(cell.number_format.startswith("$#,##0.00") for cell in amounts)
        exact = [round(Decimal(repr(cell.value)) * USD) for cell in amounts]
        assert exact[-1] == whole, name
        assert sum(exact[:-1]) == whole, name
    about = {row[0].value: row[1].value for row in book["About"].iter_rows()}
    assert about["Total, exact [USD]"] == exact_usd(whole)


def test_no_cell_is_a_formula(scene: Scene, client: Any, tmp_path: Path) -> None:
    """The job's name, which people choose, begins like one."""
    for kind in ("csv", "focus"):
        text = _body(scene.get(client, format=kind, by="call")).decode()
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert {"'=HYPERLINK(evil)", "'  -2+3"} <= set(cells)
        assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "-", "@"))]
    (tmp_path / "report.xlsx").write_bytes(_body(scene.get(client, format="xlsx", by="call")))
    book = load_workbook(tmp_path / "report.xlsx")
    kinds = {cell.data_type for sheet in book for row in sheet.iter_rows() for cell in row}
    assert "f" not in kinds
    assert book["Calls"]["B2"].value in ("=HYPERLINK(evil)", "  -2+3")
    assert book["Calls"]["B2"].data_type == "s"


def test_each_grouping_tells_the_same_money_apart(scene: Scene) -> None:
    tags = [Tag.objects.create(project=scene.project, name=name) for name in ("paper", "urgent")]
    scene.first.tags.add(*tags)
    whole, first, second = booked(scene.first, scene.second), booked(scene.first), booked(scene.second)
    costs = Costs(scene.question())

    def rows(by: Any) -> dict[str, int]:
        table = (Costs(scene.question(by=by)) if by == "service" else costs).table(by)
        assert table.total.cost == whole
        return {row.key: row.cost for row in table.rows}

    assert rows("job") == {scene.first.pk: first, scene.second.pk: second}
    assert rows("user") == {scene.owner.email: first, scene.other.email: second}
    assert rows("project") == {"Robots & Müller": whole}
    assert rows("cloud") == {"AWS Lambda": whole}
    assert rows("month") == {"2026-11": whole}
    assert list(rows("day")) == [f"2026-11-0{day}" for day in range(3, 10)]
    assert rows("tag") == {"paper": first, "urgent": first, "no tag": second}
    assert costs.table("tag").overlaps
    assert rows("service") == {
        "Amazon EC2": 11_333_333_333,
        "AWS Lambda": first - 123_456_789_013,
        "Booked in full": 123_456_789_013,
    }


def test_filters_and_calls_agree(scene: Scene) -> None:
    for changes in (
        {"service": "AWS Lambda"},
        {"service": "Booked in full"},
        {"user": scene.other.email},
        {"job": scene.first.pk},
        {"cloud": "nowhere"},
        {"first_day": "2026-11-04", "last_day": "2026-11-05"},
    ):
        costs = Costs(scene.question(**changes))
        assert sum(call.picodollars for call in calls(costs)) == costs.total, changes
    assert Costs(scene.question(user=scene.other.email)).total == 11_333_333_333
    assert Costs(scene.question(cloud="nowhere")).total == 0


def test_a_day_is_a_utc_day(scene: Scene) -> None:
    """The slice of rent was settled at 23:59."""
    last_minute = Costs(scene.question(first_day="2026-11-03", last_day="2026-11-03", job=scene.second.pk))
    assert last_minute.total == 11_333_333_333
    assert Costs(scene.question(first_day="2026-11-04", job=scene.second.pk)).total == 0


def test_paid_money_and_other_money_are_never_in_one_report(scene: Scene, client: Any) -> None:
    assert Costs(scene.question(prices="actual")).total == USD // 3
    assert Costs(scene.question(prices="emulated")).total == 0
    client.force_login(scene.owner)
    unwanted = client.get(
        reverse("reports:page", args=[scene.project.slug]), {"from": "2026-11-01", "to": "2026-11-30"}
    )
    assert unwanted.context["question"].prices == "actual", "what is paid comes first, if there is any"
    assert "simulated-word" in scene.get(client).content.decode()


def test_figures_say_how_well_they_are_known(scene: Scene) -> None:
    table = Costs(scene.question()).table("job")
    by_job = {row.key: row.amounts for row in table.rows}
    assert by_job[scene.first.pk].estimated == 123_456_789_013
    assert by_job[scene.first.pk].basis == "estimated, metered"
    assert by_job[scene.second.pk].basis == "metered"
    bases = {call.name: call.basis for call in calls(Costs(scene.question(by="call")))}
    assert (bases["r9-s1-a1"], bases["r0-s0-a1"]) == ("estimated", "metered")


def test_a_simulated_cloud_is_booked_under_its_own_provider(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was measured in a region which no one listed is Microsoft's all the same."""
    monkeypatch.setattr(profiles.FILES, "_others", [tmp_path])
    text = (profiles.PROFILES / "aci-today.toml").read_text()
    bought = re.sub(r"^(core_sku|memory_sku) = .*\n", "", text, flags=re.MULTILINE)
    moved = bought.replace('"eastus"', '"westus2"').replace('"Standard_E16-8s_v5"', '"aci.vcpu.linux"')
    (tmp_path / "aci-measured.toml").write_text(moved)
    prices = tmp_path / "prices" / "ours.toml"
    prices.parent.mkdir()
    prices.write_text(
        '[[price]]\nsku = "aci.vcpu.linux"\nregion = "westus2"\nunit = "vCPU-h"\nusd = "0.04"\n'
        'as_of = 2026-11-20\nsource = "read by the operator"\nkind = "list"\n'
    )
    platform = {"kind": "simulated", "profile": "aci-measured"}
    Job.objects.filter(pk=scene.first.pk).update(spec={**scene.first.spec, "platform": platform})
    price_book.set_operator_prices(prices)
    try:
        facts = facts_of([scene.first.pk])[scene.first.pk]
    finally:
        price_book.set_operator_prices(None)
    assert (facts.provider, facts.region) == ("Microsoft", "westus2")


def test_a_learners_free_updates_are_no_calls(scene: Scene) -> None:
    """AWS bills 27 requests where 27 functions were called, however often the learner here was at work."""
    before = Costs(scene.question(by="job")).table().total.calls
    settle(scene.first, scene.first.lease_epoch, "r1-update", kind="update")
    settle(
        scene.first,
        scene.first.lease_epoch,
        "r2-update",
        (PriceLine("c5.4xlarge", "1", "h", 7),),
        kind="update",
    )
    assert before is not None
    assert Costs(scene.question(by="job")).table().total.calls == before + 1, (
        "one that costs something counts"
    )


def test_the_pdf_has_pictures_before_tables_and_other_scripts(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    whose = "project Робот Δ – Łódź"
    made_at = datetime(2026, 12, 1, tzinfo=UTC)
    formats.make(scene.question(by="user"), "pdf", path, whose=whose, made_at=made_at)
    text = "".join(page.extract_text() for page in PdfReader(path).pages)
    assert "Робот Δ – Łódź" in text
    places = [
        text.index(words)
        for words in ("Spend over time", "By job", "By service", "Cost by user", "Cost by day")
    ]
    assert places == sorted(places)
    assert "Simulated money" in text


def test_nothing_spent_is_a_report_as_well(client: Any, tmp_path: Path) -> None:
    owner = make_user()
    project = make_project(owner)
    client.force_login(owner)
    page = client.get(reverse("reports:page", args=[project.slug]))
    assert "Nothing was spent" in page.content.decode()
    for kind in formats.FORMATS:
        assert _body(client.get(reverse("reports:file", args=[project.slug]), {"format": kind}))


def test_an_address_that_is_not_understood_is_answered_in_words(scene: Scene, client: Any) -> None:
    client.force_login(scene.owner)
    address = reverse("reports:page", args=[scene.project.slug])
    for query, words in (
        ({"from": "yesterday", "to": "2026-11-01"}, "like 2026-01-31"),
        ({"from": "2026-11-02", "to": "2026-11-01"}, "The last day is before the first one"),
        ({"from": "1926-11-02", "to": "2026-11-01"}, "ten years at most"),
        ({"by": "colour", "prices": "free"}, ""),
    ):
        answer = client.get(address, query)
        assert answer.status_code == 200
        assert words in answer.content.decode()
    assert (
        client.get(reverse("reports:file", args=[scene.project.slug]), {"format": "doc"}).status_code == 404
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"first_day": "2026-11-01", "last_day": "2026-11-30"}, "take first_day, last_day"),
        ({"from": "yesterday", "to": "2026-11-01"}, "like 2026-01-31"),
        ({"by": "colour"}, "by is colour"),
        ({"prices": "free"}, "prices is free"),
        ({"range": "this-year"}, "range is this-year"),
    ],
)
def test_a_file_is_never_of_something_else_than_was_requested(
    scene: Scene, client: Any, query: dict[str, str], words: str
) -> None:
    """A page shows this month instead, and says so. A file cannot say so."""
    client.force_login(scene.owner)
    answer = client.get(reverse("reports:file", args=[scene.project.slug]), {"format": "csv", **query})
    assert answer.status_code == 400
    assert words in answer.content.decode()


def test_the_file_of_a_jobs_cost_takes_what_it_knows(scene: Scene, client: Any) -> None:
    client.force_login(scene.owner)
    file = reverse("jobs:cost_csv", args=[scene.project.slug, scene.first.pk])
    assert client.get(file, {"by": "call"}).status_code == 200
    assert "take round" in client.get(file, {"round": "1"}).content.decode()
    assert client.get(file, {"by": "week"}).status_code == 400


def test_spans_of_days() -> None:
    today = date(2026, 3, 1)
    assert str(report_query.preset("last-month", today)) == "2026-02-01 to 2026-02-28"
    assert str(report_query.preset("this-month", today)) == "2026-03-01 to 2026-03-31"
    assert str(report_query.preset("last-7-days", today)) == "2026-02-23 to 2026-03-01"
    assert str(report_query.week_before(date(2026, 11, 21))) == "2026-11-09 to 2026-11-15"
    assert report_query.month_of(date(2024, 2, 9)).day_count == 29
    assert parse_query({"range": "last-month"}, None, today).question.first_day == date(2026, 2, 1)


def test_staff_see_all_projects_and_no_one_else_does(scene: Scene, client: Any) -> None:
    names = ("page", "file", "build", "files")
    client.force_login(scene.owner)
    for name in names:
        assert client.get(reverse(f"reports:installation_{name}")).status_code == 404
    boss = make_user()
    boss.is_staff = True
    boss.save()
    client.force_login(boss)
    query = {"from": "2026-11-01", "to": "2026-11-30", "prices": "simulated", "by": "project"}
    page = client.get(reverse("reports:installation_page"), query).content.decode()
    assert "Robots &amp; Müller" in page
    files = _body(client.get(reverse("reports:installation_file"), {**query, "format": "csv"})).decode()
    assert exact_usd(booked(scene.first, scene.second)) in files


def test_the_chart_over_time_can_be_read_as_a_table(scene: Scene, client: Any) -> None:
    page = scene.get(client, by="job").content.decode()
    rows = re.findall(r'<tr><td>(\d+ Nov 2026)</td><td class="number">(\$[\d.,]+)</td></tr>', page)
    assert len(rows) == 30, "a row a day, whatever the report is broken down by"
    by_day = Costs(scene.question()).by_day()
    assert [amount for _, amount in rows] == [display_usd(amount) for amount in by_day.values()]
