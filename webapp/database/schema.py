"""Whether the database has the tables of this version."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import Error, Tags, register
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


def is_behind() -> bool:
    """Whether `migrate` has something to do, or refuses."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return bool(plan or [*_half_replaced(executor.loader)])


@register(Tags.database)
def history_faults(**_: Any) -> list[Error]:
    """Refuse a database that has a part of what is one migration now: Django would leave that one out in silence."""
    return [
        Error(
            f"This database was made between two releases: {app} has the migrations {', '.join(applied)} but not "
            f"{', '.join(missing)}. Now they are one, {name}, which needs all of them or none.",
            hint=f"Check out the last commit before {name} of {app} came, run `manage.py migrate` there, then come "
            "back to this version.",
            id="starling.E001",
        )
        for app, name, applied, missing in _half_replaced(MigrationLoader(connection))
    ]


def _half_replaced(loader: MigrationLoader) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """The app and name of each such migration, with what it replaces: what is applied, and what is missing and has
    no file any more."""
    for (app, name), migration in loader.disk_migrations.items():
        applied = [key[1] for key in migration.replaces if key in loader.applied_migrations]
        missing = [
            key[1]
            for key in migration.replaces
            if key not in loader.applied_migrations and key not in loader.disk_migrations
        ]
        if applied and missing:
            yield app, name, applied, missing
