"""The usual case of a reservation, in as few database statements as possible: one on PostgreSQL.

It applies if all of a batch is new and fits twice within the account's grant. Otherwise nothing is written,
and the ledger takes its slower path.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction

from training.engine.ports import Reservation

# Room for this batch and another like it, under the lease: the ledger checks the same row by row.
_TAKE = (
    "UPDATE money_account SET reserved_picodollars = reserved_picodollars + %s"
    " WHERE id = %s AND NOT frozen"
    " AND granted_picodollars - spent_picodollars - overrun_picodollars - reserved_picodollars >= %s"
    " AND EXISTS (SELECT 1 FROM jobs_job WHERE jobs_job.id = money_account.job_id"
    " AND jobs_job.lease_epoch = %s AND jobs_job.lease_owner <> '')"
)
_COLUMNS = (
    "money_charge (account_id, epoch, opened_at, name, round_no, kind, reserved_picodollars,"
    " state, basis, usage, lines)"
)
_EMPTY = "'open', '', '{}', '[]'"
_INSERT = f"INSERT INTO {_COLUMNS} VALUES (%s, %s, %s, %s, %s, %s, %s, {_EMPTY})"
_TAKE_AND_INSERT = (
    f"WITH account AS ({_TAKE} RETURNING id) INSERT INTO {_COLUMNS}"
    f" SELECT account.id, %s, %s, item.*, {_EMPTY}"
    " FROM account, unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[]) AS item"
)


def take_all(account_id: int, epoch: int, batch: Sequence[Reservation], now: datetime) -> bool:
    """Reserve all of the batch; False if it is not the usual case, with nothing written."""
    amount = sum(item.picodollars for item in batch)
    if any(item.picodollars < 0 for item in batch):
        return False
    usual = [
        amount,
        account_id,
        2 * amount,
        epoch,
    ]  # computed here, because PostgreSQL's type for `amount` might overflow
    try:
        if connection.vendor == "postgresql":
            return _in_one_statement(usual, epoch, batch, now)
        return _in_one_transaction(usual, account_id, epoch, batch, now)
    except IntegrityError:  # one of them is already reserved
        return False


def _in_one_statement(usual: list[Any], epoch: int, batch: Sequence[Reservation], now: datetime) -> bool:
    """Run the statement, in a savepoint if a transaction is open, so that an error does not break it."""
    items = [
        [item.id for item in batch],
        [item.round_no for item in batch],
        [item.kind for item in batch],
        [item.picodollars for item in batch],
    ]
    if connection.in_atomic_block:
        with transaction.atomic():
            return _execute(_TAKE_AND_INSERT, [*usual, epoch, now, *items]) > 0
    return _execute(_TAKE_AND_INSERT, [*usual, epoch, now, *items]) > 0


def _in_one_transaction(
    usual: list[Any], account_id: int, epoch: int, batch: Sequence[Reservation], now: datetime
) -> bool:
    """Run both statements in a transaction. The rows are built first: a writer blocks all others on SQLite."""
    at = connection.ops.adapt_datetimefield_value(now)
    rows = [(account_id, epoch, at, item.id, item.round_no, item.kind, item.picodollars) for item in batch]
    with transaction.atomic():
        if not _execute(_TAKE, usual):
            return False
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)
        return True


def _execute(statement: str, values: list[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
