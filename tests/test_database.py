"""The suite runs on the database it says it runs on, set up as in production."""

import os

import pytest
from django.db import connection


@pytest.mark.django_db
def test_the_database_is_the_one_requested() -> None:
    expected = "postgresql" if "STARLING_TEST_POSTGRES" in os.environ else "sqlite"
    if "DATABASE_URL" in os.environ and "STARLING_TEST_POSTGRES" not in os.environ:
        pytest.skip("DATABASE_URL names a database of the operator's")
    assert connection.vendor == expected
    if expected == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version_num")
            assert int(cursor.fetchone()[0]) // 10000 == 18


@pytest.mark.django_db
@pytest.mark.skipif("STARLING_TEST_POSTGRES" in os.environ, reason="about SQLite")
def test_sqlite_is_a_file_in_wal_mode_with_immediate_transactions() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone()[0] == "wal"
        cursor.execute("PRAGMA synchronous")
        assert cursor.fetchone()[0] == 1  # NORMAL
        cursor.execute("PRAGMA busy_timeout")
        assert cursor.fetchone()[0] == 20_000
    assert connection.transaction_mode == "IMMEDIATE"
    assert os.path.exists(connection.settings_dict["NAME"])
