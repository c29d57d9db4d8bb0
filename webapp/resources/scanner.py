"""Scans accounts: compares the resources found there with the rows, and carries out what follows.

Each account is scanned by itself, so an error in one does not hold up the others. Two scans of one account at once
would do no harm, but the second is skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.models import Q
from django.views.decorators.debug import sensitive_variables

from cloud.accounts.reconciling import PATIENCE, Decision, ReconcilingPatience, compare
from cloud.accounts.register import Finder
from cloud.platforms.aws.billable_resources import AwsFinder
from cloud.platforms.aws.error_text import refusal as aws_refusal
from cloud.platforms.azure.billable_resources import AzureFinder
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.error_text import refusal as azure_refusal
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import decrypt, queries
from webapp.connections.decrypt import CannotOpen
from webapp.connections.models import CheckState, Connection
from webapp.resources import actions
from webapp.resources.actions import carry_out, registered_resource
from webapp.resources.models import LIVE, OVER, Holding, Look
from webapp.resources.register import held

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=10)
SWEEP_EVERY = timedelta(seconds=60)
"""Accounts without a known resource are scanned too, less often: the rows may be wrong."""
RECENT = timedelta(minutes=10)
_LONGEST_PAUSE = timedelta(minutes=5)
_CLAIMED_FOR = timedelta(seconds=90)
_SENTENCE_LETTERS = 300
_READ_TIMEOUT_S = 8.0

FinderOf = Callable[[Connection], Finder]


@dataclass(frozen=True)
class ScanResult:
    """The result of a scan: a decision for each resource, or the sentence that says why it failed."""

    connection: Connection
    decisions: Sequence[Decision] = ()
    sentence: str = ""


@sensitive_variables()
def finder_of(connection: Connection) -> Finder:
    """The finder of a connection. Raises CannotOpen if it cannot be decrypted."""
    if connection.cloud == "aws":
        made = queries.set_up_of(connection)
        return AwsFinder(decrypt.aws_connection(connection).open(), made.requested_mb if made else ())
    return AzureFinder(AzureClients(decrypt.azure_connection(connection), read_timeout_s=_READ_TIMEOUT_S))


def scanned_connections() -> list[Connection]:
    """Accounts that may hold resources of Starling: set up, or with holdings, or of a cloud that needs no set-up."""
    made = Q(set_up__isnull=False) & ~Q(set_up__requested_mb=[])
    azure = Q(kind="azure_principal", test_state=CheckState.DONE)
    rows = Connection.objects.filter(made | azure | Q(holdings__isnull=False)).distinct()
    return [row for row in rows.select_related("look", "project").order_by("pk") if row.has_identity]


def due(now: datetime) -> list[Connection]:
    """The scanned accounts whose next scan is due."""
    busy_rows = Holding.objects.filter(Q(state__in=LIVE) | Q(ended_at__gte=now - RECENT))
    busy = set(busy_rows.values_list("connection_id", flat=True))
    return [
        one for one in scanned_connections() if _is_due(one, now, EVERY if one.pk in busy else SWEEP_EVERY)
    ]


def _is_due(connection: Connection, now: datetime, every: timedelta) -> bool:
    look = Look.objects.filter(connection=connection).first()
    if look is None or look.tried_at is None:
        return True
    return look.tried_at + min(every * (1 << min(look.failures, 8)), max(every, _LONGEST_PAUSE)) <= now


def scan(
    connection: Connection,
    *,
    clock: Clock = SYSTEM_CLOCK,
    find: FinderOf | None = None,
    patience: ReconcilingPatience = PATIENCE,
    dry_run: bool = False,
) -> ScanResult | None:
    """Scan an account and carry out the decisions; with `dry_run` only return them.

    None if another scan of it is running. Never raises: the result says what went wrong.
    """
    if not dry_run and not _claimed(connection, clock.now()):
        return None
    try:
        result = _compare(connection, clock, find or finder_of, patience, dry_run)
    except CannotOpen as error:
        result = ScanResult(connection, sentence=str(error))
    except Exception as error:  # whatever an SDK raises: other accounts are scanned all the same
        log.warning("%s could not be scanned: %s", connection.pk, type(error).__name__)
        result = ScanResult(connection, sentence=_in_words(connection, error))
    if not dry_run:
        _note(connection, result, clock)
    return result


def _compare(
    connection: Connection, clock: Clock, find: FinderOf, patience: ReconcilingPatience, dry_run: bool
) -> ScanResult:
    finder, began = find(connection), clock.now()
    there = finder.found()
    # Read after the listing: an intent is committed before its request, so each of our resources found has its row.
    rows = _rows(connection, began)
    wanted = set(
        Holding.objects.filter(held(clock.shared_now()), connection=connection).values_list("pk", flat=True)
    )
    beliefs = [registered_resource(row, row.pk in wanted) for row in rows.values()]
    decisions = compare(beliefs, there, now_unix_s=began.timestamp(), ours=connection.pk, patience=patience)
    trouble = "" if dry_run else _carry_out_all(decisions, rows, connection, finder, clock)
    return ScanResult(connection, decisions, trouble)


def _rows(connection: Connection, now: datetime) -> dict[str, Holding]:
    """The newest row of each name that is live or ended recently."""
    rows = Holding.objects.filter(
        Q(state__in=LIVE) | Q(state__in=OVER, ended_at__gte=now - RECENT), connection=connection
    )
    return {row.name: row for row in rows.order_by("pk")}


def _carry_out_all(
    decisions: Sequence[Decision],
    rows: dict[str, Holding],
    connection: Connection,
    finder: Finder,
    clock: Clock,
) -> str:
    """Carry out each decision, also after one has failed. Returns what went wrong in a sentence, or nothing."""
    trouble = ""
    for decision in decisions:
        try:
            carry_out(decision, rows.get(decision.name), connection, finder, clock=clock)
        except IntegrityError:
            continue  # another process wrote the row just now: the next scan sees it
        except Exception as error:
            log.warning("%s in %s could not be ended: %s", decision.name, connection.pk, type(error).__name__)
            trouble = f"{decision.name} could not be ended. {_in_words(connection, error)}"
    return trouble


def _in_words(connection: Connection, error: Exception) -> str:
    why = aws_refusal(error) if connection.cloud == "aws" else azure_refusal(error)
    return f"{why.words} {why.fix}".strip()[:_SENTENCE_LETTERS]


def _claimed(connection: Connection, now: datetime) -> bool:
    Look.objects.get_or_create(connection=connection)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    rows = Look.objects.filter(free, connection=connection)
    return bool(rows.update(claimed_until=now + _CLAIMED_FOR, tried_at=now))


def _note(connection: Connection, result: ScanResult, clock: Clock) -> None:
    now = clock.now()
    row = Look.objects.get(connection=connection)
    row.claimed_until = None
    row.sentence = result.sentence[:_SENTENCE_LETTERS]
    row.failures = row.failures + 1 if result.sentence else 0
    if result.decisions or not result.sentence:
        row.at = now
        row.others = [
            one.name for one in result.decisions if one.action == "leave" and one.registered is None
        ]
    row.save()
    actions.report_scan(connection, row.failures, row.sentence, clock)
