"""Switching a variant in the job form keeps every field that both have; the rest is marked and listed."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import make_project, make_user
from tests.webapp.jobs.form.test_forms import posted
from tests.work import repeated
from webapp.jobs.form.form_prefill import begun_with
from webapp.jobs.form.form_tree import UnionChoice
from webapp.jobs.form.forms import SpecForm, job_form
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_documents import read_spec
from webapp.jobs.form.variant_switch import switch_variant
from webapp.jobs.spec import JobSpec, Limits

_TO_A2C = {"training.algorithm.kind": "a2c"}


class _Controls(HTMLParser):
    """What a browser without JavaScript would send of a page's job form."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, str] = {}
        self._inside, self._select = False, ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name, value = found.get("name") or "", found.get("value") or ""
        if tag == "form":
            self._inside = "data-job-form" in found
        if not self._inside:
            return
        if tag == "select":
            self._select = name
        elif tag == "option" and ("selected" in found or self._select not in self.sent):
            self.sent[self._select] = value
        elif tag == "input" and found.get("type") == "checkbox":
            if "checked" in found:
                self.sent[name] = value or "on"
        elif tag == "input" and name:
            self.sent[name] = value


class _Groups(HTMLParser):
    """The variants that each control of a page is drawn in, by its name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.around: dict[str, set[str]] = {}
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "div":
            self._open.append(found.get("data-variant", "") if found.get("role") == "group" else "")
        elif tag in ("input", "select", "textarea") and "name" in found:
            self.around.setdefault(found["name"], set()).update(self._open)

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self._open.pop()


def sent_by_a_browser(form: SpecForm, **switches: str) -> dict[str, Any]:
    """All that a drawn form sends without JavaScript, with other variants chosen, by the path of their choice."""
    drawn = {choice.initial_name: choice.initial_state for choice in form.tree.choices()}
    kinds = {_choices(form)[path].selector.name: tag for path, tag in switches.items()}
    return {**posted(form).dict(), **drawn, **kinds}  # type: ignore[attr-defined]


@pytest.fixture
def address(client: Client) -> str:
    user = make_user()
    client.force_login(user)
    return f"/p/{make_project(user).slug}/jobs/new/?preset=cartpole"


def downloaded(client: Client, address: str, sent: dict[str, str]) -> Any:
    answer = client.post(address, {**sent, "download": "1"})
    assert answer.status_code == 200, answer.content.decode()
    return json.loads(answer.content)


@pytest.mark.django_db
def test_from_ppo_to_a_single_step_the_preset_s_rate_discount_and_trace_decay_stay(
    client: Client, address: str
) -> None:
    sent = _Controls(client.get(address).content.decode()).sent
    values = downloaded(client, address, {**sent, **_TO_A2C})["training"]["algorithm"]
    assert values["kind"] == "a2c"
    assert (values["learning_rate"], values["discount"], values["trace_decay"]) == (0.001, 0.98, 0.8)


@pytest.mark.django_db
def test_what_was_typed_before_the_switch_is_kept_and_what_was_typed_after_it_too(
    client: Client, address: str
) -> None:
    sent = _Controls(client.get(address).content.decode()).sent
    sent |= {"training.algorithm.ppo.discount": "0.9", "training.algorithm.a2c.trace_decay": "0.5"}
    values = downloaded(client, address, {**sent, **_TO_A2C})["training"]["algorithm"]
    assert (values["discount"], values["trace_decay"], values["learning_rate"]) == (0.9, 0.5, 0.001)


@pytest.mark.django_db
def test_the_review_lists_what_a_switch_changed_and_the_fields_are_marked(
    client: Client, address: str
) -> None:
    sent = _Controls(client.get(address).content.decode()).sent
    sent |= {
        "training.algorithm.kind": "impala",
        "training.algorithm.impala.learning_rate": "0.5",
        "training.scaling.kind": "schedule",
    }
    page = client.post(address, {**sent, "look": "1"}).content.decode()
    listed = page[page.index("data-changes") : page.index("review-acts")]
    assert "Algorithm: PPO → IMPALA" in listed
    assert re.search(r"Only in IMPALA: .*ρ limit 1, .*c limit 1, ", listed)
    assert "Only in PPO: Clip range ε 0.2," in listed
    assert "Learning rate: 0.001 → 0.5" in listed
    assert "round: 8 → 16, 8" in listed
    marked = _field(page, "training.algorithm.impala.rho_limit")
    assert "new: PPO has none" in marked
    assert "changed from 8" in _field(page, "training.scaling.schedule.actors")
    assert "changed from 0.001" in _field(page, "training.algorithm.impala.learning_rate")
    assert "changed" not in _field(page, "training.algorithm.impala.discount")


def _field(page: str, name: str) -> str:
    """The part of a page that is about one control."""
    start = page.index(f'name="{name}"')
    return page[start : page.index('<div class="field', start)]


# Every variant, there and back

_SAME_FOR_ALL = ("name", "tags", "group")
_TEXTS = {int: ("1", "7", "30"), float: ("0.5", "0.25", "1"), bool: (True, False)}


def _choices(form: SpecForm) -> dict[str, UnionChoice]:
    """By path, the choices of the kind of training that is chosen and those of every kind."""
    names = set(form.input_of_path.values())
    return {
        ".".join(one.path): one
        for one in form.tree.choices()
        if one.selector.name in names and one.path != ("training",)
    }


def _meant(form: SpecForm) -> dict[str, Any]:
    """What the form asks for by path, valid or not; what its controls hold is compared as it is typed."""
    names = set(form.input_of_path.values())
    found = {leaf.path: leaf for leaf in form.tree.leaves() if leaf.name in names}
    return {".".join(path): leaf.words for path, leaf in found.items()}


@st.composite
def forms_with_edits(draw: st.DrawFn) -> tuple[JobSpec, SpecForm]:
    """A preset's form in which some fields of the chosen variants were typed over."""
    start = presets()[draw(st.sampled_from(list(presets())))].spec
    form = job_form(start=start)
    open_to_edits = [
        leaf
        for choice in form.tree.choices()
        if choice.chosen
        for leaf in choice.chosen.leaves()
        if leaf.shape.annotation in _TEXTS
    ]
    edits: dict[str, Any] = {}
    for leaf in draw(st.lists(st.sampled_from(open_to_edits), max_size=3, unique_by=lambda one: one.name)):
        edits[leaf.name] = draw(st.sampled_from(_TEXTS[leaf.shape.annotation]))
    return start, job_form({**form.as_typed(), **edits})


def _there_and_back(data: st.DataObject) -> None:
    start, before = data.draw(forms_with_edits())
    path, choice = data.draw(st.sampled_from(list(_choices(before).items())))
    tags = [one.tag for one in choice.variants]
    there = before
    for tag in data.draw(st.lists(st.sampled_from(tags), min_size=1, max_size=2)):
        there = job_form(sent_by_a_browser(there, **{path: tag}))
    there.compare_with(start)
    _assert_all_listed(there, start)
    assert choice.chosen is not None
    tag = data.draw(st.sampled_from(tags))
    back = job_form(
        sent_by_a_browser(job_form(sent_by_a_browser(before, **{path: tag})), **{path: choice.chosen.tag})
    )
    assert _meant(back) == _meant(before)
    assert back.is_valid() == before.is_valid()
    if before.is_valid():
        assert back.spec == before.spec


def _assert_all_listed(form: SpecForm, start: JobSpec) -> None:
    """The review says the value of every field that is not as it was at the start; fields of both have a row each."""
    fresh = job_form(start=start)
    was, now, labels = _meant(fresh), _meant(form), {**_labels(fresh), **_labels(form)}
    different = {path for path in was.keys() | now.keys() if was.get(path) != now.get(path)}
    rows = [
        f"{labels[path]}: {was[path]} → {now[path]}"
        for path in different - set(_SAME_FOR_ALL)
        if path in was and path in now
    ]
    listed = form.changes
    assert sorted(rows) == sorted(one.words for one in listed)
    beside = " ".join(sentence for one in listed for sentence in one.beside)
    for path in was.keys() ^ now.keys():
        assert f"{labels[path]} {was.get(path, now.get(path))}" in beside


def _labels(form: SpecForm) -> dict[str, str]:
    names = set(form.input_of_path.values())
    return {".".join(leaf.path): str(leaf.bound.label) for leaf in form.tree.leaves() if leaf.name in names}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_there_and_back_is_the_same_spec_and_every_changed_value_is_listed(data: st.DataObject) -> None:
    _there_and_back(data)


@repeated(100, endurance=1_000)
def test_many_times_there_and_back(times: int) -> None:
    often = settings(max_examples=times, deadline=None, suppress_health_check=list(HealthCheck))
    often(given(data=st.data())(_there_and_back))()


# The same where no form is


def test_another_variant_set_by_path_keeps_what_both_have() -> None:
    changes = ["training.algorithm.kind=a2c", "training.algorithm.discount=0.9"]
    found = read_spec("cartpole", changes, Limits(64, 64)).training.algorithm
    assert (found.kind, found.learning_rate, found.trace_decay, found.discount) == ("a2c", 0.001, 0.8, 0.9)


def test_a_form_begun_by_another_page_keeps_what_both_variants_have(monkeypatch: pytest.MonkeyPatch) -> None:
    preset = presets()["hopper-simulated"]
    simulated = SimulatedOptions(provisioned=3, workers=1)
    monkeypatch.setitem(
        presets(),
        preset.name,
        preset._replace(spec=preset.spec.model_copy(update={"platform": simulated})),
    )
    _, same = begun_with({"preset": preset.name, "profile": "lambda"})
    assert same.platform == simulated
    _, other = begun_with({"preset": preset.name, "connection": "con_1"})
    assert (other.platform.kind, other.platform.connection, other.platform.provisioned) == (
        "aws_lambda",
        "con_1",
        3,
    )


def test_what_means_something_else_in_another_variant_is_not_kept() -> None:
    kept = switch_variant(
        JobSpec, "training.algorithm", {"kind": "ppo", "kl_coefficient": 0.2, "clip": 0.1}, "impact"
    )
    assert kept == {"kind": "impact", "clip": 0.1}
    azure = {"kind": "azure_container", "connection": "con_1", "start_cap_s": 300.0, "region": "eastus"}
    assert switch_variant(JobSpec, "platform", azure, "aws_lambda") == {"kind": "aws_lambda"}
    assert switch_variant(JobSpec, "training.scaling", {"kind": "fixed", "actors": 8}, "schedule") == {
        "kind": "schedule"
    }
    assert switch_variant(JobSpec, "training.scaling", {"kind": "fixed"}, "nonsense") == {"kind": "nonsense"}
    assert switch_variant(JobSpec, "training.rollout", {"attempts": 2}, "fixed") == {}


@pytest.mark.django_db
def test_a_control_of_a_variant_is_drawn_in_its_group_so_that_only_the_chosen_one_is_shown(
    client: Client, address: str
) -> None:
    around = _Groups(client.get(address).content.decode()).around
    drawn = {name: around[name] for name in job_form().fields if name in around}
    for part in ("supervised", "fixed", "boosting", "simulated"):
        assert {
            name for name, groups in drawn.items() if part in name.split(".") and part not in groups
        } == set()
        assert any(part in groups for groups in drawn.values())
