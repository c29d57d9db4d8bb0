"""Looks at accounts: what is found is compared with what is believed, and what follows is done.

Each account for itself: whatever is wrong with one, the others are looked at. Two looks at one account at once do no
harm, but the second is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.models import Q

from cloud.aws.error_text import refusal as aws_refusal
from cloud.azure.error_text import refusal as azure_refusal
from cloud.reconciling import PATIENCE, Decision, Patience, compare
from cloud.register import Finder
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.decrypt import CannotOpen
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.models import CheckState, Connection
from webapp.connections.sealing import CannotUnseal
from webapp.resources import notices
from webapp.resources.actions import carry_out, registered_resource
from webapp.resources.listers import finder_of
from webapp.resources.models import LIVE, OVER, Holding, Look
from webapp.resources.register import held

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=10)
SWEEP_EVERY = timedelta(seconds=60)
"""Accounts in which nothing stands as far as we know are looked at as well: our rows may be what is wrong."""
RECENT = timedelta(minutes=10)
_LONGEST_PAUSE = timedelta(minutes=5)
_CLAIMED_FOR = timedelta(seconds=90)
_SENTENCE_LETTERS = 300

FinderOf = Callable[[Connection], Finder]


@dataclass(frozen=True)
class Sight:
    """What a look came to: a decision for each thing, or the sentence that says why there was none."""

    connection: Connection
    decisions: Sequence[Decision] = ()
    sentence: str = ""


def watched() -> list[Connection]:
    """Accounts in which something of ours may stand: it was set up or made there, or the cloud needs no set-up."""
    made = Q(set_up__isnull=False) & ~Q(set_up__asked_mb=[])
    azure = Q(kind="azure_principal", test_state=CheckState.DONE)
    rows = Connection.objects.filter(made | azure | Q(holdings__isnull=False)).distinct()
    return [one for one in rows.select_related("look", "project").order_by("pk") if one.has_identity]


def due(now: datetime) -> list[Connection]:
    """Those of them whose next look has come."""
    busy_rows = Holding.objects.filter(Q(state__in=LIVE) | Q(ended_at__gte=now - RECENT))
    busy = set(busy_rows.values_list("connection_id", flat=True))
    return [one for one in watched() if _is_due(one, now, EVERY if one.pk in busy else SWEEP_EVERY)]


def _is_due(there: Connection, now: datetime, every: timedelta) -> bool:
    look = Look.objects.filter(connection=there).first()
    if look is None or look.tried_at is None:
        return True
    return look.tried_at + min(every * 2 ** min(look.failures, 8), max(every, _LONGEST_PAUSE)) <= now


def look_at(
    there: Connection,
    *,
    clock: Clock = SYSTEM_CLOCK,
    find: FinderOf | None = None,
    patience: Patience = PATIENCE,
    dry_run: bool = False,
) -> Sight | None:
    """Look, and do what follows; with `dry_run` only say what would. None if somebody looks already. Never raises."""
    if not dry_run and not _claimed(there, clock.now()):
        return None
    try:
        sight = _looked(there, clock, find or finder_of, patience, dry_run)
    except (CannotOpen, CannotUnseal, KeysUnusable) as error:
        sight = Sight(there, sentence=str(error))
    except Exception as error:  # whatever an SDK raises: other accounts are looked at all the same
        log.warning("%s could not be looked at: %s", there.pk, type(error).__name__)
        sight = Sight(there, sentence=_in_words(there, error))
    if not dry_run:
        _note(there, sight, clock)
    return sight


def _looked(there: Connection, clock: Clock, find: FinderOf, patience: Patience, dry_run: bool) -> Sight:
    finder, began = find(there), clock.now()
    found = finder.found()
    # Only now: an intent is committed before its request, so what was found has its row, if it is ours.
    rows = _rows(there, began)
    wanted = set(
        Holding.objects.filter(held(clock.shared_now()), connection=there).values_list("pk", flat=True)
    )
    beliefs = [registered_resource(row, row.pk in wanted) for row in rows.values()]
    decisions = compare(beliefs, found, now_unix_s=began.timestamp(), ours=there.pk, patience=patience)
    trouble = "" if dry_run else _do(decisions, rows, there, finder, clock)
    return Sight(there, decisions, trouble)


def _rows(there: Connection, now: datetime) -> dict[str, Holding]:
    """The newest row of each name that is live or was so lately."""
    rows = Holding.objects.filter(
        Q(state__in=LIVE) | Q(state__in=OVER, ended_at__gte=now - RECENT), connection=there
    )
    return {row.name: row for row in rows.order_by("pk")}


def _do(
    decisions: Sequence[Decision], rows: dict[str, Holding], there: Connection, finder: Finder, clock: Clock
) -> str:
    """Every deed, whatever becomes of the others. What went wrong, in words."""
    trouble = ""
    for decision in decisions:
        try:
            carry_out(decision, rows.get(decision.name), there, finder, clock=clock)
        except IntegrityError:
            continue  # the row was written by somebody else just now: the next look sees it
        except Exception as error:
            log.warning("%s in %s could not be ended: %s", decision.name, there.pk, type(error).__name__)
            trouble = f"{decision.name} could not be taken away. {_in_words(there, error)}"
    return trouble


def _in_words(there: Connection, error: Exception) -> str:
    why = aws_refusal(error) if there.cloud == "aws" else azure_refusal(error)
    return f"{why.words} {why.fix}".strip()[:_SENTENCE_LETTERS]


def _claimed(there: Connection, now: datetime) -> bool:
    Look.objects.get_or_create(connection=there)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    rows = Look.objects.filter(free, connection=there)
    return bool(rows.update(claimed_until=now + _CLAIMED_FOR, tried_at=now))


def _note(there: Connection, sight: Sight, clock: Clock) -> None:
    now = clock.now()
    row = Look.objects.get(connection=there)
    row.claimed_until = None
    row.sentence = sight.sentence[:_SENTENCE_LETTERS]
    row.failures = row.failures + 1 if sight.sentence else 0
    if sight.decisions or not sight.sentence:
        row.at = now
        row.others = [one.name for one in sight.decisions if one.action == "leave" and one.registered is None]
    row.save()
    notices.account_seen(there, row.failures, row.sentence, clock)
