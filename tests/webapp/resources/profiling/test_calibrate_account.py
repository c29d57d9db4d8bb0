"""`manage.py calibrate --account aws`: asked about first, within its limit, and a profile that jobs may then name."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cloud.money.billing.price_book import PriceBook
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers.files import NumberFiles
from cloud.timing.numbers.profile import Functions
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.cloud.emulated_bills import picodollars_of_calls
from tests.factories import make_project
from tests.webapp.held import connect_by_keys
from webapp.connections.models import CheckState, Connection, SetUp
from webapp.formatting import display_usd
from webapp.jobs.form.forms import job_form
from webapp.money.budgets import create_budget

pytestmark = pytest.mark.django_db


@pytest.fixture
def connection(account: tuple[AwsEmulator, DemoAccount], aws: AwsEmulator) -> Connection:
    made = connect_by_keys(account[1], make_project(), name="Lab")
    Connection.objects.filter(pk=made.pk).update(test_state=CheckState.DONE, test_report={"ok": True})
    made.refresh_from_db()
    return made


@pytest.fixture
def own_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NumberFiles[Any]:
    monkeypatch.setattr(profiles.FILES, "_others", [tmp_path / "profiles"])
    return profiles.FILES


def _calibrate(connection: Connection, *more: str) -> str:
    out = StringIO()
    call_command("calibrate", "--account", "aws", "--connection", connection.pk, "--quick", *more, stdout=out)
    return out.getvalue()


def test_it_measures_within_its_limit_and_writes_a_profile_that_the_form_offers(
    connection: Connection,
    account: tuple[AwsEmulator, DemoAccount],
    own_profiles: NumberFiles[Any],
    tmp_path: Path,
) -> None:
    aws = account[0]
    # The account is the whole file's, and tests come in any order: others' calls are on its meter too.
    before = picodollars_of_calls(aws.meter, PriceBook.load(), "us-east-1")
    output = _calibrate(connection, "--yes", "--memory", "1769", "3008")
    assert "never more than $1.00" in output
    spent = picodollars_of_calls(aws.meter, PriceBook.load(), "us-east-1") - before
    assert 0 < spent < 10**12
    assert f"It cost {display_usd(spent)}." in output, output
    (file,) = (tmp_path / "profiles").glob("lambda-us-east-1-con-*.toml")
    found = profiles.load(file.stem)
    assert "emulated, measured on 20" in found.title
    assert isinstance(found.actors, Functions)
    assert found.actors.cold_s.kind == found.network.round_trip_s.kind == found.core_ratio.kind == "measured"
    assert found.actors.concurrent.value == 1000
    assert "call is billed" in file.read_text()
    # Nothing is left in the account, and the form, the forecast and jobs take the name.
    assert aws.functions.alive() == []
    assert SetUp.objects.get().requested_mb == []
    assert file.stem in [one.value for one in job_form().fields["platform.simulated.profile"].named]
    assert SimulatedOptions(profile=file.stem).profile == file.stem


@pytest.mark.parametrize("answer", ["", "n", "never"])
def test_without_a_yes_nothing_is_run(
    connection: Connection,
    account: tuple[AwsEmulator, DemoAccount],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
) -> None:
    before = len(account[0].meter.invocations)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    with pytest.raises(CommandError, match="Nothing was run"):
        _calibrate(connection)
    assert len(account[0].meter.invocations) == before
    assert not SetUp.objects.exists()


def test_a_connection_that_was_not_tested_is_not_measured(connection: Connection) -> None:
    Connection.objects.filter(pk=connection.pk).update(test_report=None)
    with pytest.raises(CommandError, match="has not passed"):
        _calibrate(connection, "--yes")


def test_a_call_that_fails_ends_it_and_everything_goes(
    connection: Connection, account: tuple[AwsEmulator, DemoAccount], tmp_path: Path
) -> None:
    account[0].faults.order("crash", 1)
    with pytest.raises(CommandError, match=r"1,769 MB: .* killed"):
        _calibrate(connection, "--yes", "--memory", "1769")
    assert account[0].functions.alive() == []
    assert not list(tmp_path.glob("profiles/*"))


def test_a_budget_without_room_for_its_limit_is_reported_before_anything_is_made(
    connection: Connection,
) -> None:
    create_budget(project=connection.project, name="A term", limit_picodollars=10**12 - 1)
    with pytest.raises(CommandError, match=r"\$1\.00, .* “A term” .* \$1\.00"):
        _calibrate(connection, "--yes", "--memory", "1769")
    assert not SetUp.objects.exists()


def test_what_is_named_wrongly_is_reported(connection: Connection) -> None:
    with pytest.raises(CommandError, match=f"There are: {connection.pk}"):
        call_command("calibrate", "--account", "aws", "--connection", "con_nobody")
    with pytest.raises(CommandError, match="goes with --account"):
        call_command("calibrate", "--connection", connection.pk)
    with pytest.raises(CommandError, match=r"--memory: .*a function has from 128"):
        _calibrate(connection, "--yes", "--memory", "64")
