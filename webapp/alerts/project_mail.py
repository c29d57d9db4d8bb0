"""A project's mails, and how many mails and test messages it may send in an hour. All processes count in the database.

The hour is any hour, not one of the clock: what was used is a row that stops counting 3,600 s later.
"""

from __future__ import annotations

import math
import smtplib
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q

from webapp.alerts import services
from webapp.alerts.models import Channel, HourlyUse
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import plural

LIMITS: dict[str, int] = {HourlyUse.What.MAIL: 100, HourlyUse.What.TEST: 5}
"""A mail to three people counts as three."""
_HOUR = timedelta(hours=1)
_WORDS = {HourlyUse.What.MAIL: "mails", HourlyUse.What.TEST: "test messages"}


class OverLimit(Exception):
    """The project used up its hour; the text says of what, `wait_s` when it has room again."""

    def __init__(self, what: str, wait_s: float) -> None:
        minutes = max(1, math.ceil(wait_s / 60))
        self.wait_s = wait_s
        super().__init__(
            f"A project sends {LIMITS[what]} {_WORDS[HourlyUse.What(what)]} an hour at most."
            f" There is room again in {plural(minutes, 'minute')}."
        )


@transaction.atomic
def take(project_id: int | None, what: str, count: int = 1, *, clock: Clock = SYSTEM_CLOCK) -> HourlyUse:
    """Use that much of the project's hourly limit, at most the whole limit. Raises OverLimit."""
    # One row of the project is the lock: two senders at once must not both take what is left.
    services.built_in_channel(project_id, clock)
    Channel.objects.select_for_update(no_key=True).get(Q(project_id=project_id), built_in=True)
    now = clock.now()
    mine = HourlyUse.objects.filter(Q(project_id=project_id), what=what)
    mine.filter(at__lte=now - _HOUR).delete()
    count = min(count, LIMITS[what])
    used = list(mine.order_by("at").values_list("at", "count"))
    room_at = _room_at(used, count, LIMITS[what])
    if room_at is not None:
        raise OverLimit(what, (room_at - now).total_seconds())
    return HourlyUse.objects.create(project_id=project_id, what=what, at=now, count=count)


def _room_at(used: Sequence[tuple[datetime, int]], count: int, limit: int) -> datetime | None:
    """When `count` more fit within the limit, given the uses, oldest first. None: now."""
    too_many, room_at = sum(many for _, many in used) + count - limit, None
    for at, many in used:
        if too_many <= 0:
            break
        too_many, room_at = too_many - many, at + _HOUR
    return room_at


def post(project_id: int | None, mail: EmailMessage, clock: Clock = SYSTEM_CLOCK) -> None:
    """Send the mail. Raises OverLimit before anything is sent, and the errors of smtplib."""
    use = take(project_id, "mail", len(mail.recipients()), clock=clock)
    try:
        mail.send()
    except smtplib.SMTPException:  # not accepted; after a broken connection it may have been
        use.delete()
        raise
