"""Consent to alert mails by people outside a project.

An address that a member has confirmed needs no consent. Any other address gets one mail that asks for it. That mail
contains no text by the project, and no other is sent before the reader agrees.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Iterable
from datetime import timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import F, Q
from django.template.loader import render_to_string
from django.urls import reverse

from webapp import doorbell
from webapp.alerts import project_mail
from webapp.alerts.models import MailConsent
from webapp.clock import SYSTEM_CLOCK, Clock

log = logging.getLogger(__name__)

ASKS_A_DAY = 3
"""At most so many projects ask one address in a day. Others wait."""
ASK_AGAIN_AFTER = timedelta(days=30)
"""After so long without an answer, an address gets one more question, when an owner enters it again."""
_ATTEMPTS = 6
_TRY_AGAIN_AFTER = timedelta(minutes=10)
_AT_ONCE = 50
_SIGNER = signing.Signer(salt="starling.alerts.mail_consent")
_on_the_internet = EmailValidator(allowlist=[])


def is_mailable(address: str) -> bool:
    """Whether the address is at a public domain name: not localhost, a bare host name or a number in brackets."""
    try:
        _on_the_internet(address)
    except ValidationError:
        return False
    return not address.endswith("]")


def consenting_addresses(project_id: int | None, addresses: Iterable[str]) -> list[str]:
    """The addresses that the project's mails may go to."""
    wanted = list(addresses)
    free = _confirmed_by_members(project_id, wanted) | {
        consent.address for consent in consents_of(project_id) if consent.answer == MailConsent.Answer.YES
    }
    return [address for address in wanted if address.lower() in free]


def consents_of(project_id: int | None) -> list[MailConsent]:
    """All consents of the project: requested, about to be requested, and answered."""
    return list(MailConsent.objects.filter(Q(project_id=project_id)).order_by("address"))


@transaction.atomic
def request_consent(project_id: int | None, addresses: Iterable[str], *, clock: Clock = SYSTEM_CLOCK) -> int:
    """Schedule a consent mail for each address that needs one. Returns how many."""
    wanted = [address for address in addresses if is_mailable(address)]
    if project_id is None or not wanted:
        return 0
    now, free = clock.now(), _confirmed_by_members(project_id, wanted)
    foreign = {address.lower() for address in wanted} - free
    known = MailConsent.objects.filter(project_id=project_id, address__in=foreign)
    forgotten = known.filter(answer="", ask_at=None, asked_at__lte=now - ASK_AGAIN_AFTER)
    count = forgotten.update(ask_at=now, attempts=0)
    new = foreign - set(known.values_list("address", flat=True))
    rows = [MailConsent(project_id=project_id, address=address, ask_at=now) for address in sorted(new)]
    MailConsent.objects.bulk_create(rows, ignore_conflicts=True)
    if count + len(rows):
        doorbell.alerts_on_commit()
    return count + len(rows)


def send_due_requests(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Send the consent mails that are due, each once. Returns how many."""
    if not settings.STARLING_SMTP_URL:
        return 0
    due = MailConsent.objects.filter(ask_at__lte=clock.now()).order_by("ask_at", "pk")
    return sum(_send_request(consent, clock) for consent in due[:_AT_ONCE])


def _send_request(consent: MailConsent, clock: Clock) -> bool:
    now = clock.now()
    # Claimed before it is sent: a worker that dies in between sends nothing, and no mail is sent twice.
    mine = MailConsent.objects.filter(pk=consent.pk, ask_at__lte=now, answer="")
    if not mine.update(ask_at=None, asked_at=now, attempts=F("attempts") + 1):
        return False
    today = MailConsent.objects.filter(address=consent.address, asked_at__gt=now - timedelta(days=1))
    if today.exclude(pk=consent.pk).count() >= ASKS_A_DAY:
        _postpone(consent, timedelta(hours=1), clock)
        return False
    try:
        project_mail.post(consent.project_id, _request_mail(consent), clock)
    except project_mail.OverLimit as over:
        _postpone(consent, timedelta(seconds=over.wait_s), clock)
        return False
    except (OSError, smtplib.SMTPException) as error:
        log.warning("mail consent %s could not be requested: %s", consent.pk, type(error).__name__)
        if consent.attempts + 1 < _ATTEMPTS:
            _postpone(consent, _TRY_AGAIN_AFTER, clock, attempted=True)
        return False
    return True


def _postpone(consent: MailConsent, pause: timedelta, clock: Clock, attempted: bool = False) -> None:
    attempts = F("attempts") - (0 if attempted else 1)
    MailConsent.objects.filter(pk=consent.pk, answer="").update(
        ask_at=clock.now() + pause, asked_at=consent.asked_at, attempts=attempts
    )


@transaction.atomic
def answer(consent: MailConsent, *, agrees: bool, clock: Clock = SYSTEM_CLOCK) -> None:
    """Store the answer. The same link can change it later."""
    said = MailConsent.Answer.YES if agrees else MailConsent.Answer.NO
    MailConsent.objects.filter(pk=consent.pk).update(answer=said, answered_at=clock.now(), ask_at=None)
    consent.refresh_from_db()


def by_token(token: str) -> MailConsent | None:
    """The consent of this link. None if the link is invalid."""
    try:
        number = _SIGNER.unsign(token)
    except signing.BadSignature:
        return None
    return MailConsent.objects.select_related("project").filter(pk=number).first()


def path_for(consent: MailConsent) -> str:
    return reverse("alerts:mail_consent", args=[_SIGNER.sign(str(consent.pk))])


def _request_mail(consent: MailConsent) -> EmailMessage:
    link = settings.STARLING_BASE_URL + path_for(consent)
    return EmailMessage(
        subject="Starling: alerts for this address",
        body=render_to_string("alerts/consent_mail.txt", {"site": settings.STARLING_BASE_URL, "link": link}),
        to=[consent.address],
        headers={"Auto-Submitted": "auto-generated"},
    )


def _confirmed_by_members(project_id: int | None, addresses: Iterable[str]) -> set[str]:
    """The addresses that a member of the project has confirmed, in lower case."""
    confirmed = EmailAddress.objects.filter(
        verified=True, user__is_active=True, email__in={address.lower() for address in addresses}
    )
    return set(confirmed.filter(user__memberships__project_id=project_id).values_list("email", flat=True))
