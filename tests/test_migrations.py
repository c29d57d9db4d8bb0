"""Few migrations make a database, and one that has a part of what was squashed is refused with a sentence."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from rig.servers import ROOT
from webapp.database.schema import is_behind

_MOST = 3


def test_an_app_has_at_most_three_migrations() -> None:
    """That of release 0.1 (an installation of then is migrated by them), what changed since, and one to be merged."""
    found = {folder: len([*folder.glob("0*.py")]) for folder in ROOT.glob("webapp/**/migrations")}
    assert found
    assert {str(folder): count for folder, count in found.items() if count > _MOST} == {}, (
        "Merge all but 0001 into one file of a new name: its `replaces` names every migration that it is made of and "
        "those that they replace, and moves of rows stay. Then delete the merged files, and name the new one in the "
        "`dependencies` of other apps."
    )


def _squashed() -> tuple[str, str, list[tuple[str, str]]]:
    """The migration of jobs that stands for several, and which."""
    found = MigrationLoader(None).disk_migrations
    squashed = {key for key, one in found.items() if key[0] == "jobs" and one.replaces and not one.initial}
    (app, name), *_ = sorted(squashed)
    return app, name, found[app, name].replaces


@pytest.mark.django_db
def test_a_database_that_had_all_replaced_migrations_is_up_to_date() -> None:
    app, name, _ = _squashed()
    MigrationRecorder(connection).record_unapplied(app, name)
    assert not is_behind()
    call_command("migrate", check_unapplied=True, skip_checks=False, verbosity=0)


@pytest.mark.django_db
def test_a_database_that_had_some_of_the_replaced_migrations_is_refused() -> None:
    app, name, replaced = _squashed()
    for app_and_name in [(app, name), *replaced[3:]]:
        MigrationRecorder(connection).record_unapplied(*app_and_name)
    assert is_behind()
    with pytest.raises(SystemCheckError) as refused:
        call_command("migrate", skip_checks=False, verbosity=0)
    said = str(refused.value)
    assert replaced[2][1] in said.partition("but not")[0]
    assert replaced[3][1] in said.partition("but not")[2]
    assert f"commit before {name} of {app}" in said
