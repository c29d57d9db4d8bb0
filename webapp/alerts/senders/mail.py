"""By mail, to the addresses of the channel; the built-in one writes to the project's owners."""

from __future__ import annotations

import smtplib
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives

from webapp.accounts.models import Role, User
from webapp.alerts.message import Message
from webapp.alerts.models import Channel
from webapp.alerts.senders.outcome import Outcome, later, refused

NO_SERVER = (
    "No mail server is set, so no mail leaves this installation. Its operator can name one"
    " in STARLING_SMTP_URL."
)
_FOR_GOOD = 500


def can_send() -> bool:
    """Whether mails leave this installation."""
    return bool(settings.STARLING_SMTP_URL)


def recipients(channel: Channel) -> list[str]:
    """Who gets it now."""
    if not channel.built_in:
        return list(channel.addresses)
    people = User.objects.filter(is_active=True)
    if channel.project_id is None:
        people = people.filter(is_staff=True)
    else:
        people = people.filter(memberships__project_id=channel.project_id, memberships__role=Role.OWNER)
    return list(people.order_by("email").values_list("email", flat=True))


def send(channel: Channel, message: Message) -> Outcome:
    """One mail to all of them. Its Message-ID is the same at each attempt: mailboxes drop what they have."""
    if not can_send():
        return refused(NO_SERVER)
    to = recipients(channel)
    if not to:
        return refused("There is nobody to write to. Add an address to the channel.")
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
        mail.send()
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
    return Outcome(True)
