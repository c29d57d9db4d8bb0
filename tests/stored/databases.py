"""The rows and the schema of a database, read in SQL: names of models and apps do not matter."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

STORED = Path(__file__).parent
_SHOWN = 3

_COLUMNS = {
    "sqlite": "SELECT made.name, info.name FROM sqlite_master made, pragma_table_info(made.name) info"
    " WHERE made.type = 'table' AND made.name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
}
_BUILT = {
    "sqlite": "SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    " AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    "postgresql": """
        SELECT 'column', table_name, concat_ws(' ', column_name, data_type, character_maximum_length,
            'nullable', is_nullable, 'default', column_default, 'identity', identity_generation)
        FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT 'index', tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT 'constraint', conrelid::regclass::text, conname || ' ' || pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
}

# PostgreSQL casts a list of words as a whole, and one that was dumped and read back word by word.
_WORD = re.compile(r"\(('(?:[^']|'')*'::character varying)\)::text")
_LIST_OF_WORDS = re.compile(r"\((ARRAY\[[^\]]*\])\)::text\[\]")


class Table(NamedTuple):
    """The rows of a table, each as the text of its values in the order of `columns`, with how often it is there."""

    columns: tuple[str, ...]
    rows: Counter[str]


def vendor_of(database: Any) -> str:
    """What an open connection leads to: sqlite or postgresql."""
    return "sqlite" if isinstance(database, sqlite3.Connection) else "postgresql"


def fill(database: Any) -> None:
    """Write the stored installation's tables into an empty database. The connection must be in autocommit."""
    packed = (STORED / f"installation.{vendor_of(database)}.sql.zst").read_bytes()
    dump = zstandard.ZstdDecompressor().decompress(packed).decode()
    if isinstance(database, sqlite3.Connection):
        database.executescript(dump)
    else:
        database.execute(dump)
        database.execute("RESET search_path")  # pg_dump empties it


def columns_of(database: Any) -> dict[str, list[str]]:
    """The names of columns by table, sorted."""
    found: dict[str, list[str]] = {}
    for table, column in database.execute(_COLUMNS[vendor_of(database)]).fetchall():
        found.setdefault(table, []).append(column)
    return {table: sorted(columns) for table, columns in sorted(found.items())}


def content_of(database: Any, wanted: Mapping[str, Table] | None = None) -> dict[str, Table]:
    """Every table; of those that are `wanted`, only the columns that the wanted ones have."""
    found = {}
    for table, there in columns_of(database).items():
        columns = tuple(
            one for one in there if wanted is None or table not in wanted or one in wanted[table].columns
        )
        names = ", ".join(f'"{one}"' for one in columns)
        rows = database.execute(f'SELECT {names} FROM "{table}"').fetchall() if columns else []
        found[table] = Table(columns, Counter(map(repr, rows)))
    return found


def differences(before: Mapping[str, Table], database: Any, may_grow: Set[str] = frozenset()) -> list[str]:
    """A sentence for each row, column or table that was in `before` and is gone, changed or new in the database.

    New tables and new columns are no difference, and neither are new rows of tables that `may_grow`.
    """
    after, found = content_of(database, before), []
    for name, table in before.items():
        if name not in after:
            found.append(f"The table {name} is gone.")
        elif lost := set(table.columns) - set(after[name].columns):
            found.append(f"{name} has lost {', '.join(sorted(lost))}.")
        else:
            gone, new = table.rows - after[name].rows, after[name].rows - table.rows
            found += [f"{name} has lost a row: {row}" for row in list(gone)[:_SHOWN]]
            if name not in may_grow:
                found += [f"{name} has a row that was not there: {row}" for row in list(new)[:_SHOWN]]
    return found


def schema_of(database: Any) -> set[str]:
    """A line for each column, index and constraint of each table. The order of columns does not matter."""
    lines = set()
    for kind, table, definition in database.execute(_BUILT[vendor_of(database)]).fetchall():
        whole = _WORD.sub(r"\1", _LIST_OF_WORDS.sub(r"\1", " ".join(definition.split())))
        parts = _parts(whole) if kind == "table" else [whole]
        lines |= {f"{table}: {part}" for part in parts}
    return lines


def _parts(create_table: str) -> Iterator[str]:
    """The columns and constraints of a CREATE TABLE: the texts between the commas of its outermost brackets."""
    depth, part = 0, ""
    for piece in re.findall(r"'(?:[^']|'')*'|\"[^\"]*\"|[(),]|[^'\"(),]+", create_table):
        depth += (piece == "(") - (piece == ")")
        if (depth == 1 and piece in ("(", ",")) or depth == 0:
            if part:
                yield part.strip()
            part = ""
        else:
            part += piece
