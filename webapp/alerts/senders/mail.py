"""By mail, to the addresses of the channel; the built-in one writes to the project's owners.

Owners get mails at addresses that they confirmed, other readers once they agreed (`mail_consent`).
"""

from __future__ import annotations

import smtplib
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db.models import QuerySet

from webapp.accounts.models import Role, User
from webapp.accounts.queries import confirmed_people
from webapp.alerts import mail_consent, project_mail
from webapp.alerts.message import AlertMessage, SendingOutcome, later, postponed, refused
from webapp.alerts.models import Channel
from webapp.clock import SYSTEM_CLOCK, Clock

NO_SERVER = (
    "No mail server is set, so no mail leaves this installation. Its operator can name one"
    " in STARLING_SMTP_URL."
)
NO_OWNER_CONFIRMED = (
    "None of them has confirmed an address yet. Each can do that on the account page, under e-mail."
)
NO_ONE_AGREED = (
    "No one at these addresses has agreed to get the mails yet. Each gets one mail that asks, with a link."
)
NO_ADDRESS = "There is no address to write to. Add an address to the channel."
_FOR_GOOD = 500


def can_send() -> bool:
    """Whether mails leave this installation."""
    return bool(settings.STARLING_SMTP_URL)


def addresses(channel: Channel) -> list[str]:
    """The channel's addresses, whether or not their readers agreed."""
    return _emails(_owners(channel)) if channel.built_in else list(channel.addresses)


def recipients(channel: Channel) -> list[str]:
    if channel.built_in:
        return _emails(confirmed_people(_owners(channel)))
    return mail_consent.consenting_addresses(channel.project_id, channel.addresses)


def why_no_reader(channel: Channel) -> str:
    """Why no one gets the channel's mails now, and what to do. Empty if someone does."""
    if recipients(channel):
        return ""
    if not addresses(channel):
        return NO_ADDRESS
    return NO_OWNER_CONFIRMED if channel.built_in else NO_ONE_AGREED


def _owners(channel: Channel) -> QuerySet[User]:
    people = User.objects.filter(is_active=True).order_by("email")
    if channel.project_id is None:
        return people.filter(is_staff=True)
    return people.filter(memberships__project_id=channel.project_id, memberships__role=Role.OWNER)


def _emails(people: QuerySet[User]) -> list[str]:
    return list(people.values_list("email", flat=True))


def send(channel: Channel, message: AlertMessage, clock: Clock = SYSTEM_CLOCK) -> SendingOutcome:
    """One mail to all of them. Its Message-ID is the same at each attempt: mailboxes drop what they have."""
    if not can_send():
        return refused(NO_SERVER)
    if not channel.built_in:
        mail_consent.request_consent(channel.project_id, channel.addresses, clock=clock)
    to = recipients(channel)
    if not to:
        return refused(why_no_reader(channel))
    host = urlsplit(settings.STARLING_BASE_URL).hostname or "localhost"
    mail = EmailMultiAlternatives(
        subject=f"Starling: {' '.join(message.title.split())}",
        body=message.mail_text(),
        to=to,
        headers={
            "Message-ID": f"<{message.identity}@{host}>",
            "Starling-Delivery": message.delivery_id,
            "Auto-Submitted": "auto-generated",
        },
    )
    mail.attach_alternative(message.mail_html(), "text/html")
    try:
        project_mail.post(channel.project_id, mail, clock)
    except project_mail.OverLimit as over:
        return postponed(str(over), over.wait_s)
    except smtplib.SMTPRecipientsRefused as error:
        code = max(code for code, _ in error.recipients.values())
        words = f"The mail server takes none of the addresses ({code}). Correct them."
        return refused(words, code) if code >= _FOR_GOOD else later(words, code)
    except smtplib.SMTPAuthenticationError as error:
        return later(
            "The mail server does not take our user and password (STARLING_SMTP_URL).", error.smtp_code
        )
    except smtplib.SMTPResponseException as error:
        return later(f"The mail server answered {error.smtp_code}.", error.smtp_code)
    except (OSError, smtplib.SMTPException) as error:
        return later(f"The mail server cannot be reached: {type(error).__name__}.")
    return SendingOutcome(True)
