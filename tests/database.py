"""The database under test: migrated once, then copied; emptied without Django's `flush`.

Migrating takes each test process seconds, and a flush makes all permissions and content types again after every test
with `transaction=True`. SQLite's copy is kept for the next run, PostgreSQL's is a template on the server of this run.
"""

import fcntl
import hashlib
import inspect
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader

from rig.servers import ROOT

KEPT = ROOT / "var" / "check"
_TEMPLATE = "starling_migrated"
_MADE_BY_MIGRATING = {"django_migrations", "django_content_type", "auth_permission"}


@contextmanager
def migrated_copy() -> Iterator[None]:
    """While the block runs, Django's connection is to a fresh copy of the migrated SQLite database."""
    path = str(connection.settings_dict["TEST"]["NAME"])
    before = connection.settings_dict["NAME"]
    shutil.copyfile(migrated_file(), path)
    connection.close()
    connection.settings_dict["NAME"] = path
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before


def empty_tables(_test_case: Any = None) -> None:
    """Takes away all rows but those that migrating made. Stands in for the flush of Django's TransactionTestCase."""
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    name = connection.ops.quote_name
    looks = [
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {name(table)})"
        for table in sorted(tables - _MADE_BY_MIGRATING)
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(looks))
        filled = [table for (table,) in cursor.fetchall()]
    if filled and connection.vendor == "postgresql":
        _delete_rows(filled)
    elif filled:
        from django.core.management.color import no_style

        connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), filled))


def _delete_rows(tables: list[str]) -> None:
    """What PostgreSQL's TRUNCATE does to whole files, in a fraction of its time: a test leaves few rows.

    A replica's session checks no foreign keys, as all tables that hold rows are emptied together.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in tables:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


def use_migrated_template() -> None:
    """Let PostgreSQL make test databases as copies of a migrated one, which the first process makes."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "migrated.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _has_template():
            _migrate(_TEMPLATE)
    connection.settings_dict["TEST"]["TEMPLATE"] = _TEMPLATE


def _has_template() -> bool:
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = %s)", [_TEMPLATE])
        return bool(cursor.fetchone()[0])


def migrated_file() -> Path:
    """The file of an empty, migrated database, made by the first process that needs it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"migrated-{_digest_of_migrations()}.sqlite3"
    with open(KEPT / "migrated.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in KEPT.glob("migrated-*.sqlite3"):
                old.unlink()
            # Into a file beside; the last step gives it its name.
            made = path.with_suffix(f".{os.getpid()}")
            _migrate(str(made))
            # One file: what is still in the write-ahead log goes into it.
            with sqlite3.connect(made) as file:
                file.execute("PRAGMA journal_mode=DELETE")
            file.close()
            made.rename(path)
    return path


def _migrate(name: str) -> None:
    """Make a database of that name in the way of Django's own test runner."""
    test_name = connection.settings_dict["TEST"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = name
    before = connection.settings_dict["NAME"]
    try:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        connection.close()
    finally:
        connection.settings_dict["TEST"]["NAME"] = test_name
        connection.settings_dict["NAME"] = before


def _digest_of_migrations() -> str:
    """Of all migrations there are, those of packages as well, and of this file."""
    sources = {
        f"{app}.{name}": inspect.getsource(inspect.getmodule(type(migration)) or type(migration))
        for (app, name), migration in MigrationLoader(None).disk_migrations.items()
    }
    text = "\n".join(f"{name}\n{source}" for name, source in sorted(sources.items()))
    return hashlib.sha256((text + Path(__file__).read_text(encoding="utf-8")).encode()).hexdigest()[:16]
