"""Forecasts as people see them: beside the form, and from the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from cloud.timing.forecast import Band
from webapp.accounts import services as accounts
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.presets import presets
from webapp.jobs.launch import forecast_panel, forecasts
from webapp.jobs.spec import JobSpec


def as_posted(preset: str, **changes: str) -> dict[str, str]:
    """What a browser sends for the form of a preset."""
    form = job_form(start=presets()[preset].spec)
    posted = {}
    for name in form.fields:
        value = form[name].value()
        if value is not None and value is not False:
            posted[name] = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return posted | changes


@pytest.fixture
def ada(client: Client, db: None) -> tuple[Client, str]:
    person = accounts.create_person("ada@example.org", "correct horse battery")
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client, reverse("jobs:forecast", args=[accounts.ensure_personal_project(person).slug])


def test_the_form_has_a_forecast_in_one_sentence(ada: tuple[Client, str]) -> None:
    client, address = ada
    answer = client.post(address, as_posted("hopper-simulated"))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "for 1,000,000 steps" in page
    assert "sim." in page
    assert "unpaid" in page
    assert "What this assumes" in page
    assert re.search(r"1,000 functions .*: documented", page)


def test_on_this_machine_it_costs_nothing(ada: tuple[Client, str]) -> None:
    client, address = ada
    page = client.post(address, as_posted("hopper")).content.decode()
    assert "Costs nothing; about" in page
    assert "on this machine" in page
    assert "simulated" not in page


def test_a_form_with_a_fault_has_none(ada: tuple[Client, str]) -> None:
    client, address = ada
    answer = client.post(address, as_posted("hopper", budget_usd="0"))
    assert answer.status_code == 200
    assert "data-no-forecast" in answer.content.decode()
    assert "$" not in answer.content.decode()


def test_only_a_person_who_may_launch_sees_it(ada: tuple[Client, str], client: Client) -> None:
    _, address = ada
    bob = accounts.create_person("bob@example.org", "correct horse battery")
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post(address, as_posted("hopper")).status_code == 404


def test_a_budget_that_is_too_small_for_the_first_round_is_said(ada: tuple[Client, str]) -> None:
    client, address = ada
    few = as_posted("hopper-simulated", budget_usd="0.01")
    assert "Nothing would begin" in client.post(address, few).content.decode()


def spec(preset: str, **changes: Any) -> JobSpec:
    document = presets()[preset].spec.model_dump(mode="json")
    for path, value in changes.items():
        *tables, name = path.split("__")
        here = document
        for table in tables:
            here = here[table]
        here[name] = value
    return JobSpec.model_validate(document)


def test_what_ends_it_is_said() -> None:
    by_rounds = spec("hopper-simulated", training__stop={"env_steps": None, "rounds": 100})
    assert forecast_panel.headline(forecasts.forecast_of(by_rounds), by_rounds).endswith("for 100 rounds.")
    by_budget = spec("hopper-simulated", budget_usd="0.05")
    found = forecasts.forecast_of(by_budget)
    assert found.ends_by == "budget"
    assert forecast_panel.until(found, by_budget) in forecast_panel.headline(found, by_budget)
    assert "The whole: about $" in forecast_panel.note(found, by_budget)


@pytest.mark.parametrize(
    ("band", "shown"),
    [
        (Band(0.31, 0.42, 0.66), "$0.42 (0.31–0.66)"),
        (Band(0.058, 0.0662, 0.083), "$0.066 (0.058–0.083)"),
        (Band(6.226, 8.291, 11.818), "$8.29 (6.23–11.82)"),
        (Band(900, 1234.4, 2000), "$1,234 (900–2,000)"),
        (Band(0, 0, 0), "$0.00"),
    ],
)
def test_money_has_the_digits_that_are_worth_something(band: Band, shown: str) -> None:
    assert str(forecast_panel.money(band)) == shown


@pytest.mark.parametrize(
    ("band", "shown"),
    [
        (Band(0.42, 0.5, 0.57), "30 s (25–34)"),
        (Band(18, 21, 30), "21 min (18–30)"),
        (Band(4.14, 5.3, 6.87), "5.3 min (4.1–6.9)"),
        (Band(334, 496, 783), "8.3 h (5.6–13)"),
        (Band(4000, 5000, 6000), "3.5 days (2.8–4.2)"),
    ],
)
def test_time_has_the_unit_that_suits_it(band: Band, shown: str) -> None:
    assert str(forecast_panel.time(band)) == shown


def test_the_command_writes_json() -> None:
    out = StringIO()
    call_command("forecast", "hopper-simulated", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["minutes"]["p10"] < found["minutes"]["p50"] < found["minutes"]["p90"]
    assert found["ends_by"] == "steps"
    assert found["assumptions"]


def test_the_command_says_it_in_words_and_refuses_what_is_no_spec() -> None:
    out, err = StringIO(), StringIO()
    call_command("forecast", "cartpole", stdout=out)
    assert out.getvalue().startswith("Costs nothing; about")
    with pytest.raises(SystemExit) as left:
        call_command("forecast", "no-such-preset", stderr=err)
    assert left.value.code == 2
    assert "neither a preset" in err.getvalue()


def test_a_forecast_needs_neither_torch_nor_an_environment() -> None:
    script = (
        "import sys, cloud.timing.forecast as f; from cloud.platforms.simulated_options import SimulatedOptions;"
        " from training.spec import TrainingSpec;"
        " f.forecast(TrainingSpec(), SimulatedOptions(), 10**12);"
        " print({'torch', 'gymnasium', 'django'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
