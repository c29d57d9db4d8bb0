"""The one way by which mails of a project leave: counted, and without a mail server not at all."""

from __future__ import annotations

import smtplib

from django.core.mail import EmailMessage

from webapp.alerts import hourly_limits
from webapp.clock import SYSTEM_CLOCK, Clock


def post(project_id: int | None, mail: EmailMessage, clock: Clock = SYSTEM_CLOCK) -> None:
    """Send it. Raises hourly_limits.OverLimit before anything is sent, and what the mail server's library raises."""
    use = hourly_limits.take(project_id, "mail", len(mail.recipients()), clock=clock)
    try:
        mail.send()
    except smtplib.SMTPException:  # it was not taken; where the connection broke off, nobody can tell
        use.delete()
        raise
