"""By the API: reports that come by mail, and clouds' bills beside what was metered."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import mail

from tests.factories import FixedClock, make_project, make_user
from tests.members import add_member
from tests.webapp.api_callers import ApiCaller, Upload
from tests.webapp.reports.test_cloud_bills import Scene as Billed
from webapp.reports import schedules
from webapp.reports.bills import bill_reading
from webapp.reports.models import CloudBill, Schedule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Any:
    return make_project(make_user("ada@example.org"))


@pytest.fixture
def call(project: Any) -> ApiCaller:
    return ApiCaller(project.people.get())


def test_a_report_is_set_up_once_changed_sent_and_stopped(call: ApiCaller, project: Any) -> None:
    base = f"/projects/{project.slug}/schedules"
    add_member(project, make_user("bob@example.org").email, "viewer")
    wish = {"every": "week", "by": "job", "formats": ["csv"]}
    made = [call.post(base, wish, Idempotency_Key="once") for _ in range(2)]
    assert [one.status_code for one in made] == [201, 201]
    assert made[0].json() == made[1].json()
    assert call.post(base, {**wish, "by": "day"}, Idempotency_Key="once").status_code == 409
    body, address = made[0].json(), made[0].headers["Location"]
    assert (body["recipients"], body["prices"], body["sendings"]) == (["ada@example.org"], "actual", [])
    changed = call("PUT", address, {"recipients": ["BOB@example.org"], "by": "service"}).json()
    assert (changed["recipients"], changed["by"], changed["formats"]) == (
        ["bob@example.org"],
        "service",
        ["csv"],
    )
    Schedule.objects.update(created_at=datetime(2026, 11, 2, tzinfo=UTC))
    assert schedules.send_due(clock=FixedClock(datetime(2026, 11, 9, 6, tzinfo=UTC))) == 1
    assert mail.outbox[0].to == ["bob@example.org"]
    (sent,) = call.get(address).json()["sendings"]
    assert (sent["first_day"], sent["state"]) == ("2026-11-02", "sent")
    assert call("DELETE", address).json()["stopped_at"] is not None
    assert call("DELETE", address).json()["next_day"] is None
    assert call.get(base).json() == []
    assert "It was stopped." in call("PUT", address, {"by": "day"}).json()["why"]


def test_strangers_are_not_written_to(call: ApiCaller, project: Any) -> None:
    refused = call.post(
        f"/projects/{project.slug}/schedules", {"recipients": [make_user("eve@example.org").email]}
    )
    assert refused.status_code == 422
    assert "eve@example.org is no member" in refused.json()["why"]
    assert call.post(f"/projects/{project.slug}/schedules", {"by": "call"}).status_code == 422
    assert not Schedule.objects.exists()


def test_a_bill_is_handed_over_read_and_stands_beside_ours() -> None:
    scene = Billed()
    call, base = ApiCaller(scene.owner), f"/projects/{scene.project.slug}"
    out = io.StringIO()
    writer = csv.DictWriter(out, scene.cur())
    writer.writeheader()
    writer.writerow(scene.cur())
    handed = call.post(f"{base}/bills", Upload("november.csv", out.getvalue().encode()))
    assert (handed.status_code, handed.json()["state"]) == (202, "queued"), handed.content
    bill_reading.BILL_READING.run(CloudBill.objects.get().pk)
    body = call.get(handed.headers["Location"]).json()
    assert (body["name"], body["state"], body["layout"], body["lines_kept"]) == (
        "november.csv",
        "ready",
        "aws-cur",
        1,
    )
    again = call.post(f"{base}/bills", Upload("again.csv", out.getvalue().encode()))
    assert again.status_code == 409
    assert "read already, as november.csv" in again.json()["why"]
    assert [one["name"] for one in call.get(f"{base}/bills").json()["results"]] == ["november.csv"]
    found = call.get(f"{base}/difference?first_day=2026-11-01&last_day=2026-11-30").json()
    (row,) = found["rows"]
    assert (row["day"], row["service"], row["metered_usd"]) == ("2026-11-03", "AWS Lambda", "1.0000022")
    assert (row["billed_usd"], row["off_usd"], found["total"]["billed_usd"]) == ("1.01", "-0.0099978", "1.01")
    assert call.post(f"{base}/bills").status_code in (400, 422)
    backwards = call.get(f"{base}/difference?first_day=2026-11-30&last_day=2026-11-01")
    assert "before the first" in backwards.json()["why"]
