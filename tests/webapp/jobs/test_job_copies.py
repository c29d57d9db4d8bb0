"""Making a job: drafts, marks on what was changed, files, seeds below one budget, and the check-list beside it."""

import io
import json
from collections.abc import Iterable
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import make_connection, make_job, make_project, make_spec, make_user
from tests.figures import figures_in
from tests.webapp.jobs.form.test_forms import posted
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from webapp.jobs.form import drafts
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_documents import LARGEST_BYTES
from webapp.jobs.launch.checklist import checklist
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.launch.launch_budget import least_of, part_of
from webapp.jobs.launch.requirements import NOT_TESTED, PRICE_IT
from webapp.jobs.models import Draft, Job
from webapp.jobs.seed_groups import launch_seeds, more_seeds
from webapp.jobs.services import SpecRefused
from webapp.money.amounts import picodollars
from webapp.money.budgets import create_budget
from webapp.money.models import Budget

pytestmark = pytest.mark.django_db
CARTPOLE = presets()["cartpole"].spec
TELLING = {"cartpole", "hopper-simulated", "hopper-stellaris", "siren-digits"}
"""Presets that are unlike each other: what holds for these is quick to try."""


@pytest.fixture
def owner(client: Client) -> Any:
    user = make_user()
    client.force_login(user)
    return user


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner)


@pytest.fixture
def address(project: Any) -> str:
    return f"/p/{project.slug}/jobs/new/"


def text(answer: Any) -> str:
    return unescape(answer.content.decode())


def typed(**changes: Any) -> Any:
    return posted(job_form(start=CARTPOLE), **changes)


# Drafts


def test_a_form_is_kept_as_it_was_typed_and_comes_back_with_what_is_wrong_with_it(
    client: Client, address: str, project: Any
) -> None:
    sent = typed(name="Half done", budget_usd="abc", training__seed="7", seeds="5", save="1")
    answer = client.post(f"{address}?preset=cartpole", sent)
    draft = Draft.objects.get()
    assert answer.headers["Location"] == f"{address}?draft={draft.pk}"
    assert not Job.objects.exists()
    page = text(client.get(answer.headers["Location"]))
    assert 'value="abc"' in page
    assert 'name="seeds" value="5"' in page
    assert "cannot be launched" in page
    assert "Budget (budget_usd) must" in page
    assert "changed from 0 " in page  # the seed
    assert "“Half done”" in page
    assert not Job.objects.exists()
    assert "Half done" in text(client.get(address)), "the form's start lists it"


def test_a_draft_keeps_itself_and_says_so_to_the_page(client: Client, address: str, project: Any) -> None:
    client.post(address, typed(name="First", save="1"))
    draft = Draft.objects.get()
    sent = typed(name="Second", save="1", training__algorithm__ppo__normalise_observations="on")
    answer = client.post(f"{address}?draft={draft.pk}", sent, headers={"accept": "application/json"})
    assert answer.json()["title"] == "Second"
    draft.refresh_from_db()
    assert Draft.objects.count() == 1
    assert draft.values["training.algorithm.ppo.normalise_observations"] is True
    cleared = typed(name="Third", save="1")
    client.post(f"{address}?draft={draft.pk}", cleared)
    draft.refresh_from_db()
    assert draft.values["training.algorithm.ppo.normalise_observations"] is False, "a box without its tick"


def test_launching_a_draft_makes_the_job_and_ends_the_draft(client: Client, address: str) -> None:
    client.post(f"{address}?preset=cartpole", typed(name="Mine", save="1"))
    draft = Draft.objects.get()
    client.post(f"{address}?draft={draft.pk}", typed(name="Mine", idempotency_key="once"))
    client.post(f"{address}?draft={draft.pk}", typed(name="Mine", idempotency_key="once"))
    assert Job.objects.get().name == "Mine"
    assert not Draft.objects.exists()


def test_drafts_belong_to_a_person_in_a_project(client: Client, address: str, project: Any) -> None:
    client.post(address, typed(name="Secret plan", save="1"))
    draft = Draft.objects.get()
    other = make_user()
    elsewhere = make_project(other)
    stranger = Client()
    stranger.force_login(other)
    assert "Secret plan" not in text(stranger.get(f"/p/{elsewhere.slug}/jobs/new/?draft={draft.pk}"))
    stranger.post(f"/p/{elsewhere.slug}/jobs/new/drafts/delete/", {"draft": draft.pk})
    assert Draft.objects.filter(pk=draft.pk).exists()
    client.post(f"{address}drafts/delete/", {"draft": draft.pk})
    assert not Draft.objects.exists()


def test_a_draft_of_an_older_form_says_what_was_left_out(client: Client, address: str, project: Any) -> None:
    client.post(address, typed(name="Old", save="1"))
    draft = Draft.objects.get()
    del draft.values["training.stop.minutes"]
    draft.values["training.magic"] = "1"
    draft.save()
    page = text(client.get(f"{address}?draft={draft.pk}"))
    assert "left out: training.magic." in page
    assert "cannot be launched" not in page, "what the draft does not know yet is as in its preset"


def test_only_so_many_drafts_and_so_much_in_them_is_kept(
    client: Client, address: str, project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 1)
    client.post(address, typed(name="One", save="1"))
    assert "1 drafts here" in text(client.post(address, typed(name="Two", save="1")))
    long = client.post(
        f"{address}?draft={Draft.objects.get().pk}",
        typed(name="x" * 20_001, save="1"),
        headers={"accept": "application/json"},
    )
    assert long.status_code == 409
    assert "more than 20,000 characters" in long.json()["refused"]


# Marks


def test_what_differs_from_the_preset_is_marked_with_a_way_back(client: Client, address: str) -> None:
    assert "data-changed>" not in text(client.get(f"{address}?preset=cartpole"))
    changed = typed(
        training__scaling__fixed__actors="4", budget_usd="1.0", training__stop__env_steps="100000", look="1"
    )
    page = text(client.post(f"{address}?preset=cartpole", changed))
    assert page.count("data-changed>") == 1, "1.0 is 1.00 and 100000 is 100,000"
    assert "changed from 8" in page
    assert "preset Cart pole" in page
    assert "Actors: 8 → 4" in page
    del changed["look"]
    changed["back"] = "training.scaling.fixed.actors"
    back = client.post(f"{address}?preset=cartpole", changed)
    assert "data-changed>" not in text(back)
    assert 'name="training.scaling.fixed.actors" value="8"' in text(back)
    assert not Job.objects.exists()


def test_a_clone_is_the_same_job_to_be_changed_and_knows_where_it_comes_from(
    client: Client, address: str, project: Any
) -> None:
    job = make_job(
        project, spec=make_spec(name="Mine, seed 3", training__seed=3, training__scaling__actors=5)
    )
    page = text(client.get(f"{address}?clone={job.pk}"))
    assert 'name="name" value="Mine"' in page
    assert 'name="training.scaling.fixed.actors" value="5"' in page
    answer = client.post(f"{address}?clone={job.pk}", posted(job_form(start=job.parsed_spec()), name="Next"))
    made = Job.objects.get(name="Next")
    assert answer.headers["Location"] == f"/p/{project.slug}/jobs/{made.pk}/"
    assert (made.origin.of, made.origin.way) == (job, "clone")
    shown = text(client.get(answer.headers["Location"]))
    assert f'Cloned from <a href="/p/{project.slug}/jobs/{job.pk}/">' in shown
    assert "Next</a> (clone)" in text(client.get(f"/p/{project.slug}/jobs/{job.pk}/"))
    theirs = make_job()
    assert client.get(f"{address}?clone={theirs.pk}").status_code == 404


def test_a_fork_s_form_offers_the_checkpoints_and_keeps_what_its_weights_need(
    client: Client, address: str, project: Any
) -> None:
    job = job_with_checkpoints(project, 2)
    page = text(client.get(f"{address}?fork={job.pk}&checkpoint=round-00000001.checkpoint"))
    assert '<option value="round-00000001.checkpoint" selected>Round 1, evaluated 101.0' in page
    sent = posted(job_form(start=job.parsed_spec()), name="Fork", checkpoint="round-00000002.checkpoint")
    refused = client.post(f"{address}?fork={job.pk}", {**sent, "training.environment.id": "Acrobot-v1"})
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == ["training.environment.id"]
    assert job.name in text(refused)
    client.post(f"{address}?fork={job.pk}", sent)
    origin = Job.objects.get(name="Fork").origin
    assert (origin.of, origin.way, origin.round_no) == (job, "fork", 2)
    assert client.get(f"{address}?fork={make_job(project).pk}").status_code == 404


# Files


def test_a_spec_goes_out_and_comes_in_again(client: Client, address: str, project: Any) -> None:
    wanted = typed(name="Travels", training__seed="9", download="1")
    file = client.post(f"{address}?preset=cartpole", wanted)
    assert file.headers["Content-Disposition"] == 'attachment; filename="starling-job.json"'
    sent = client.post(f"{address}file/", {"spec": io.BytesIO(file.content)})
    page = text(client.get(sent.headers["Location"]))
    assert 'name="name" value="Travels"' in page
    assert 'name="training.seed" value="9"' in page
    assert "data-was" not in page, "there is nothing that a file is compared with"
    job = make_job(project)
    assert json.loads(client.get(f"/p/{project.slug}/jobs/{job.pk}/spec.json").content) == job.spec
    assert client.post(address, typed(budget_usd="0", download="1")).status_code == 422


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.toml", 'name = "Mine"\nbudget_usd = 0.5\n[training]\nseed = 9\n'),
        ("mine.yaml", "name: Mine\nbudget_usd: 0.5\ntraining:\n  seed: 9\n"),
        ("MINE.YML", "{name: Mine, budget_usd: 0.5, training: {seed: 9}}"),
    ],
)
def test_a_spec_comes_in_as_toml_and_yaml_too(client: Client, address: str, name: str, content: str) -> None:
    file = SimpleUploadedFile(name, content.encode())
    sent = client.post(f"{address}file/", {"spec": file})
    page = text(client.get(sent.headers["Location"]))
    assert 'name="name" value="Mine"' in page
    assert 'name="training.seed" value="9"' in page


FAULTY = [
    (b"{", "is not JSON: at line 1, column 2"),
    (b"[1]", "one table of"),
    (b"\xff\xfe", "text in UTF-8"),
    (b" " * (LARGEST_BYTES + 1), "is larger than 256 KB"),
    (b'{"a":' * 5_000, "deeper than 50 tables"),
]


@pytest.mark.parametrize(("content", "words"), FAULTY, ids=["cut", "list", "bytes", "large", "deep"])
def test_what_is_no_spec_is_explained_in_a_sentence(
    client: Client, address: str, content: bytes, words: str
) -> None:
    answer = client.post(f"{address}file/", {"spec": io.BytesIO(content)})
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Draft.objects.exists()


def test_every_fault_of_a_file_is_named_by_its_path(client: Client, address: str) -> None:
    document = {
        "budget_usd": "-1",
        "training": {"seed": "x", "stop": {"stepps": 1}},
        "platform": {"kind": "moon"},
    }
    answer = client.post(f"{address}file/", {"spec": io.BytesIO(json.dumps(document).encode())})
    for words in (
        "(budget_usd) must be",
        "(training.seed) must be",
        "training.stop.stepps is not a field",
        "platform.kind must",
    ):
        assert words in text(answer)
    assert "Choose a JSON, TOML or YAML file first." in text(client.post(f"{address}file/"))


# Seeds


def test_seeds_are_one_group_below_one_budget_that_grows_with_more_of_them(project: Any, owner: Any) -> None:
    spec = make_spec("hopper-simulated", budget_usd="1.50")
    group = launch_seeds(project=project, user=owner, spec=spec, count=3, key="k")
    assert launch_seeds(project=project, user=owner, spec=spec, count=3, key="k") == group
    (budget,) = Budget.objects.filter(group=group)
    assert budget.limit_picodollars == 15 * 10**11
    assert {budget} == {one for job in group.jobs.all() for one in job.account.budgets.all()}
    more_seeds(user=owner, like=group.jobs.first(), count=2, key="m")
    more_seeds(user=owner, like=group.jobs.first(), count=2, key="m")
    budget.refresh_from_db()
    assert (group.jobs.count(), budget.limit_picodollars) == (5, 25 * 10**11)


def test_one_budget_is_for_all_seeds_together(project: Any, owner: Any) -> None:
    """A dollar does not divide by three: what no seed can have is not spent."""
    group = launch_seeds(
        project=project, user=owner, spec=make_spec("hopper-simulated", budget_usd="1"), count=3
    )
    limits = [job.account.limit_picodollars for job in group.jobs.all()]
    assert limits == [333_333 * 10**6] * 3
    assert Budget.objects.get(group=group).limit_picodollars == 10**12


@given(st.decimals("0.000001", "1000000", places=6), st.integers(1, 50))
def test_the_parts_of_a_budget_are_never_more_than_it_and_no_seed_loses_a_unit(
    total: Decimal, runs: int
) -> None:
    parts = runs * picodollars(part_of(total, runs))
    assert 0 <= picodollars(total) - parts < runs * 10**6


def test_a_budget_too_small_for_its_seeds_is_refused_with_what_they_need(project: Any, owner: Any) -> None:
    spec = make_spec("hopper-simulated", budget_usd="1")
    least = least_of(spec)
    assert isinstance(least, int)
    enough = Decimal(-(-least // 10**6)) / 10**6
    tight = make_spec("hopper-simulated", budget_usd=str(2 * enough))
    with pytest.raises(SpecRefused, match=r"\(budget_usd\).* 3 seeds"):
        launch_seeds(project=project, user=owner, spec=tight, count=3)
    assert not Job.objects.exists()
    assert rows(project, owner, tight, count=3)["Budget"][0] == "failed"
    assert launch_seeds(project=project, user=owner, spec=tight, count=2).jobs.count() == 2


def test_seeds_that_are_no_number_are_reported_at_their_field(client: Client, address: str) -> None:
    page = client.post(address, typed(seeds="many"))
    assert page.status_code == 422
    assert 'id="seeds-problem"' in text(page)
    assert not Job.objects.exists()


# Check-list


def rows(project: Any, user: Any, spec: Any, **options: Any) -> dict[str, tuple[str, str]]:
    return {row.title: (row.tone, row.words) for row in checklist(project, user, spec, **options)}


def test_the_check_list_says_what_is_there(project: Any, owner: Any) -> None:
    found = rows(project, owner, make_spec("hopper-simulated"))
    assert {tone for tone, _ in found.values()} == {"ok"}
    assert found["Environment"][1] == "Hopper-v5 is installed (MuJoCo); reference 2,383."
    assert found["Learner"][1].startswith("On a c5.4xlarge at $0.70")
    assert "allows a job" in found["Quota"][1]
    function = rows(project, owner, make_spec("hopper-simulated", platform__learner="function"))
    assert function["Learner"][1].startswith("In a function")
    assert figures_in(function["Learner"][1]) == ["$0.68"]
    here = make_spec(platform={"kind": "local", "learner_usd_per_hour": "0.2"})
    assert rows(project, owner, here)["Learner"][1].startswith("Here, ")
    assert figures_in(rows(project, owner, here)["Learner"][1]) == ["$0.2"]


def test_the_check_list_says_what_is_missing_and_where_it_is_put_right(project: Any, owner: Any) -> None:
    connection = make_connection(project)
    lambda_ = make_spec(platform={"kind": "aws_lambda", "connection": connection.pk})
    row = checklist(project, owner, lambda_)[0]
    assert (row.tone, row.link) == ("failed", f"/p/{project.slug}/clouds/{connection.pk}/")
    assert NOT_TESTED.format(connection.name) in row.words
    nowhere = make_spec(platform={"kind": "aws_lambda"})
    assert rows(project, owner, nowhere)["Credentials"][0] == "failed"
    assert rows(project, owner, make_spec(training__scaling__actors=99))["Quota"][0] == "failed"
    tiny = make_spec("hopper-simulated", budget_usd="0.000001")
    tone, words = rows(project, owner, tiny)["Budget"]
    assert tone == "failed"
    assert "(budget_usd)" in words


def test_a_region_without_prices_is_refused_where_it_is_chosen_and_marked_with_what_to_do(
    project: Any, owner: Any, client: Client, address: str
) -> None:
    unpriced = make_spec("hopper-simulated", platform__region="eu-west-1")
    found = rows(project, owner, unpriced)
    assert {title for title, (tone, _) in found.items() if tone == "failed"} == {"Budget", "Learner"}
    words = found["Budget"][1]
    assert "'c5.4xlarge' in eu-west-1" in words
    assert "one in us-east-1" in words
    assert words.endswith(PRICE_IT)
    sent = posted(job_form(start=make_spec("hopper-simulated")), platform__simulated__region="eu-west-1")
    answer = client.post(f"{address}?preset=hopper-simulated", sent)
    assert answer.status_code == 422
    assert "Region (platform.region): without a price" in text(answer)
    assert not project.jobs.exists()


def test_budgets_above_must_have_room(project: Any, owner: Any) -> None:
    create_budget(project=project, name="March", limit_picodollars=10**12, user=owner)
    spec = make_spec("hopper-simulated", budget_usd="0.60")
    assert "“March” has $1.00 free" in rows(project, owner, spec)["Budget"][1]
    assert rows(project, owner, spec, count=5)["Budget"][0] == "ok", "the budget is for all five together"
    more = make_spec("hopper-simulated", budget_usd="3")
    tone, words = rows(project, owner, more, count=5)["Budget"]
    assert tone == "warning"
    assert "launch's $3.00" in words
    Budget.objects.update(spent_picodollars=10**12)
    assert rows(project, owner, spec)["Budget"][0] == "failed"


def test_the_list_is_live_and_names_the_first_fault_of_a_form_that_is_not_understood(
    client: Client, address: str
) -> None:
    fine = text(client.post(f"{address}checks?preset=cartpole", typed()))
    assert "None needed" in fine
    wrong = text(client.post(f"{address}checks?preset=cartpole", typed(budget_usd="0", name="")))
    assert "Name (name)" in wrong
    assert "1 more." in wrong
    forecast = client.post(f"{address}forecast?preset=cartpole", typed(budget_usd="0")).content.decode()
    assert "data-no-forecast" in forecast
    assert Decimal("1.00") == CARTPOLE.budget_usd


# Presets


def _presets(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in TELLING else pytest.mark.slow) for name in names]


def test_every_preset_says_where_it_is_from_and_what_to_expect() -> None:
    for preset in presets().values():
        assert preset.source, preset.name
        assert preset.expected, preset.name
        target = preset.spec.training.stop.target_score
        assert target is None or preset.expected_score == target, preset.name
        assert (preset.expected_usd == (0.0, 0.0)) == (
            not preset.spec.simulated
        ) or preset.expected_usd is None


@pytest.mark.parametrize(
    "name", _presets(name for name, one in presets().items() if one.spec.simulated and one.expected_usd)
)
def test_a_preset_s_expected_cost_is_what_its_forecast_says(name: str) -> None:
    preset = presets()[name]
    dollars = forecast_of(preset.spec).dollars
    assert preset.expected_usd == pytest.approx((dollars.p10, dollars.p90), rel=0.15)


def test_the_form_s_start_shows_score_cost_and_source(client: Client, address: str) -> None:
    page = text(client.get(f"{address}?preset=hopper-nitro"))
    assert "PPO · Nitro" in page
    assert "$0.028–0.043" in page
    assert "Numbers from: Nitro (VLDB 2025): boosting by curvature." in page
    assert "about 2,767" in page


@pytest.mark.parametrize("name", _presets(sorted(presets())))
def test_every_preset_has_a_form_and_a_check_list(client: Client, address: str, name: str) -> None:
    assert client.get(f"{address}?preset={name}").status_code == 200
    rows = client.post(f"{address}checks?preset={name}", posted(job_form(start=presets()[name].spec)))
    assert rows.status_code == 200
    assert ("Environment" in text(rows)) == (presets()[name].spec.training.kind == "reinforcement")
    assert "Fields" not in text(rows)
