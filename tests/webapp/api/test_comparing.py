"""Groups, comparisons, sweeps, labels, bounds and alerts by the API: the same as on the pages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import (
    make_alert,
    make_job,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.figures import figures_in
from tests.webapp.api_callers import ApiCaller
from webapp.comparing.curves import WEAKEST_SIDE
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.running.recorder import Recorder
from webapp.money.models import Budget

pytestmark = pytest.mark.django_db

RATE = "training.algorithm.learning_rate"
MANY = (
    RATE,
    *(f"training.algorithm.{name}" for name in ("discount", "clip", "trace_decay", "entropy_coefficient")),
)


class Scene:
    """Someone with a token, and a project with two groups of four runs, of which one is better."""

    def __init__(self) -> None:
        self.user = make_user()
        self.project = make_project(self.user)
        self.call = ApiCaller(self.user)
        self.base = f"/projects/{self.project.slug}"

    def runs(self, group: str, returns: list[float]) -> JobGroup:
        for seed, mean in enumerate(returns):
            spec = make_spec(name=f"{group} {seed}", group=group, training__seed=seed)
            job, epoch = make_running_job(project=self.project, user=self.user, spec=spec)
            Recorder(job.pk, epoch, keep_checkpoints=3).record(round_finished(1, mean=mean, spent=10**11))
        return JobGroup.objects.get(project=self.project, name=group)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_groups_are_compared_with_intervals_and_what_would_tell_them_apart(scene: Scene) -> None:
    good, poor = scene.runs("Good", [10, 11, 12, 13]), scene.runs("Poor", [1, 2, 3, 4])
    close = scene.runs("Close", [9.5, 10, 11])
    listed = scene.call.get(f"{scene.base}/groups").json()
    assert [(one["key"], one["runs"]) for one in listed] == [
        (f"group_{close.pk}", 3),
        (f"group_{poor.pk}", 4),
        (f"group_{good.pk}", 4),
    ]
    keys = "&".join(f"of=group_{one.pk}" for one in (good, poor, close))
    found = scene.call.get(f"{scene.base}/comparison?{keys}").json()
    sides = {one["name"]: one for one in found["sides"]}
    best = sides["Good"]
    assert best["best"]
    assert best["against_best"] is None
    assert best["scores"] == pytest.approx([10, 11, 12, 13])
    assert best["iqm"]["value"] == pytest.approx(11.5)
    assert best["iqm"]["low"] < 11.5 < best["iqm"]["high"]
    assert len(best["jobs"]) == 4
    assert sides["Poor"]["against_best"]["told_apart"]
    against = sides["Poor"]["against_best"]
    assert (against["won"], against["pairs"]) == (16, 16)
    assert against["better"] == {"value": 1.0, "low": None, "high": None}, "not certain: all of 16 pairs"
    assert not sides["Close"]["against_best"]["told_apart"]
    assert sides["Close"]["against_best"]["more_seeds"] >= 1
    assert found["goal"] == {"value": pytest.approx(2.5), "words": WEAKEST_SIDE}
    assert sides["Good"]["getting"] == {"usd": 0.1, "time_s": 1.0, "reached": 4, "runs": 4}
    assert any(sentence.startswith("Good is better") for sentence in found["verdicts"])


def test_what_is_no_comparison_is_refused_in_words(scene: Scene) -> None:
    assert scene.call.get(f"{scene.base}/comparison").status_code == 422
    stranger = make_job()
    empty = scene.call.get(f"{scene.base}/comparison?of={stranger.pk}").json()
    assert empty["sides"] == []
    (left_out,) = empty["left_out"]
    assert figures_in(left_out) == ["1"]


def test_a_sweep_and_more_seeds_are_launched_once_a_key(scene: Scene) -> None:
    sweep = {
        "base": make_spec().model_dump(mode="json"),
        "name": "Rates",
        "fields": {RATE: "0.001, 0.0003"},
        "seeds": 2,
        "limit_usd": "2",
    }
    made = [scene.call.post(f"{scene.base}/sweeps", sweep, Idempotency_Key="k1") for _ in range(2)]
    assert [one.status_code for one in made] == [201, 201]
    assert made[0].json() == made[1].json()
    assert made[0].json()["runs"] == 4
    assert Budget.objects.get(group_id=made[0].json()["id"]).limit_picodollars == 2 * 10**12
    job = Job.objects.filter(groups=made[0].json()["id"]).first()
    assert job is not None
    grown = [
        scene.call.post(f"{scene.base}/jobs/{job.pk}/seeds", {"count": 1}, Idempotency_Key="k2")
        for _ in range(2)
    ]
    assert [one.status_code for one in grown] == [201, 201], grown[0].content
    assert Job.objects.filter(project=scene.project).count() == 5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"fields": {"training.nothing": "1, 2"}}, "training.nothing is not a"),
        ({"fields": {RATE: "1.2.3 .. 5"}}, "is no number"),
        ({"fields": {RATE: f"0 .. {'9' * 290}e99"}, "way": "random"}, "is no number"),
        (
            {"fields": {path: ",".join(str(n / 100) for n in range(1, 90)) for path in MANY}},
            "5,584,059,449 points",
        ),
        ({"fields": {RATE: ",".join(f"0.{n}" for n in range(1, 70))}, "seeds": 2}, "138 runs are"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(scene: Scene, changes: dict[str, Any], why: str) -> None:
    sweep = {"base": make_spec().model_dump(mode="json"), "name": "S", "limit_usd": "2", **changes}
    refused = scene.call.post(f"{scene.base}/sweeps", sweep)
    assert refused.status_code == 422, refused.content
    assert why in refused.json()["why"]
    assert not Job.objects.filter(project=scene.project).exists()


def test_labels_change_only_what_is_given(scene: Scene) -> None:
    job = make_job(scene.project, scene.user, spec=make_spec(tags=["first"]))
    address = f"{scene.base}/jobs/{job.pk}/labels"
    noted = scene.call("PUT", address, {"note": "Look at round 7."}).json()
    assert (noted["note"], noted["tags"], noted["archived_at"]) == ("Look at round 7.", ["first"], None)
    tagged = scene.call("PUT", address, {"tags": ["b", "a"]}).json()
    assert (tagged["note"], tagged["tags"]) == ("Look at round 7.", ["a", "b"])
    refused = scene.call("PUT", address, {"archived": True, "note": "gone"})
    assert refused.status_code == 409
    assert "Stop it first" in refused.json()["why"]
    Job.objects.filter(pk=job.pk).update(observed="cancelled")
    assert scene.call("PUT", address, {"archived": True}).json()["archived_at"]
    assert scene.call("PUT", address, {"archived": False}).json()["archived_at"] is None


def test_bounds_of_a_running_job(scene: Scene) -> None:
    job, _ = make_running_job(project=scene.project, user=scene.user)
    address = f"{scene.base}/jobs/{job.pk}/actors"
    assert scene.call("PUT", address, {"most": 2}).json()["actors_most"] == 2
    refused = scene.call("PUT", address, {"least": 5, "most": 2})
    assert refused.status_code == 409, refused.content
    job.refresh_from_db()
    assert (job.actors_least, job.actors_most) == (None, 2)


def test_alerts_are_reported_and_looked_after(scene: Scene) -> None:
    alert = make_alert(scene.project)
    (body,) = scene.call.get(f"{scene.base}/alerts").json()["results"]
    assert (body["id"], body["state"], body["sentence"]) == (alert.pk, "open", alert.sentence)
    for do, state in (("acknowledge", "acknowledged"), ("snooze", "snoozed"), ("settle", "resolved")):
        assert scene.call.post(f"{scene.base}/alerts/{alert.pk}", {"do": do}).json()["state"] == state
    assert scene.call.get(f"{scene.base}/alerts").json() == {"results": [], "next": None}
    assert len(scene.call.get(f"{scene.base}/alerts?state=over").json()["results"]) == 1
    assert scene.call.get(f"{scene.base}/alerts?state=odd").status_code == 422


def test_alerts_come_page_by_page(scene: Scene) -> None:
    made = [make_alert(scene.project).pk for _ in range(5)]
    seen: list[int] = []
    following: str | None = ""
    while following is not None:
        page = scene.call.get(f"{scene.base}/alerts?limit=2&cursor={following}").json()
        assert len(page["results"]) <= 2
        seen += [one["id"] for one in page["results"]]
        following = page["next"]
    assert seen == made[::-1]


def test_a_budget_is_made_changed_and_closed(scene: Scene) -> None:
    scene.runs("Good", [1.0])
    made = scene.call.post(f"{scene.base}/budgets", {"name": "B", "counts": "group:Good", "limit_usd": "5"})
    assert made.status_code == 201, made.content
    budget = made.json()
    assert (budget["scope"], budget["limit_usd"], budget["period"]) == ("group", "5", "monthly")
    assert Budget.objects.get(pk=budget["id"]).accounts.count() == 1
    address = f"{scene.base}/budgets/{budget['id']}"
    assert made.headers["Location"].endswith(address)
    changed = scene.call("PUT", address, {"limit_usd": "7.5", "thresholds": [90, 50, 90]}).json()
    assert (changed["limit_usd"], changed["name"]) == ("7.5", "B")
    assert Budget.objects.get(pk=budget["id"]).thresholds == [50, 90]
    refused = scene.call.post(
        f"{scene.base}/budgets", {"name": "C", "counts": "group:none", "limit_usd": "5"}
    )
    assert refused.status_code == 422
    assert "“group:none”" in refused.json()["why"]
    assert ApiCaller(scene.user, ("jobs",))("DELETE", address).status_code == 403, "it lets more be spent"
    assert scene.call("DELETE", address).json()["closed"]
    assert scene.call("DELETE", address).json()["closed"]
