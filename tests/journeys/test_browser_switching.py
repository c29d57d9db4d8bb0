"""Switching variants of the job form in a browser: what both have stays, and the review lists the rest."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import make_project, make_user
from tests.journeys.signed_in import sign_in, watch_for_faults
from webapp.jobs.form.forms import SpecForm, job_form
from webapp.jobs.form.presets import presets

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.stack,
    pytest.mark.django_db(transaction=True),
]

_START = presets()["cartpole"].spec
_FIELDS = "() => Object.fromEntries(new FormData(document.querySelector('[data-job-form]')))"
_LISTED = """() => [...document.querySelectorAll("[data-changes] li")].map(
  (row) => [row.firstChild.textContent, ...[...row.children].map((one) => one.textContent)])"""
_CHOOSE = """([name, tag]) => {
  const select = document.querySelector(`[name="${name}"]`);
  select.value = tag;
  select.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def _read(page: "Page") -> SpecForm:
    """The form as the server reads it."""
    form = job_form(page.evaluate(_FIELDS))
    form.compare_with(_START)
    return form


def _values_of(form: SpecForm) -> dict[str, Any]:
    names = set(form.input_of_path.values())
    return {leaf.name: leaf.typed for leaf in form.tree.leaves() if leaf.name in names}


def test_every_variant_there_and_back_leaves_the_form_as_it_was_and_lists_what_differs(
    live_site: str, page: "Page"
) -> None:
    user = make_user()
    project = make_project(user)
    sign_in(page, live_site, user)
    faults = watch_for_faults(page)
    page.goto(f"{live_site}/p/{project.slug}/jobs/new/?preset=cartpole")
    page.click("#more > summary")
    page.fill("[name='training.algorithm.ppo.learning_rate']", "0.02")
    page.select_option("[name='training.algorithm.kind']", "a2c")
    assert page.input_value("[name='training.algorithm.a2c.learning_rate']") == "0.02"
    assert page.input_value("[name='training.algorithm.a2c.discount']") == "0.98"
    page.fill("[name='training.algorithm.a2c.trace_decay']", "0.7")
    page.select_option("[name='training.algorithm.kind']", "ppo")
    assert page.input_value("[name='training.algorithm.ppo.trace_decay']") == "0.7"
    before = _values_of(_read(page))
    for choice in _read(page).tree.choices():
        assert choice.chosen is not None
        for variant in choice.variants:
            page.evaluate(_CHOOSE, [choice.selector.name, variant.tag])
            listed = [[one.words, *one.beside] for one in _read(page).changes]
            assert sorted(page.evaluate(_LISTED)) == sorted(listed), variant.tag
            page.evaluate(_CHOOSE, [choice.selector.name, choice.chosen.tag])
            assert _values_of(_read(page)) == before, variant.tag
    assert faults == []
