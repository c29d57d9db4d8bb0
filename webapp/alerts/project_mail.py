"""The only function that sends a project's mails, so that all count against its hourly limit."""

from __future__ import annotations

import smtplib

from django.core.mail import EmailMessage

from webapp.alerts import hourly_limits
from webapp.clock import SYSTEM_CLOCK, Clock


def post(project_id: int | None, mail: EmailMessage, clock: Clock = SYSTEM_CLOCK) -> None:
    """Send the mail. Raises OverLimit before anything is sent, and the errors of smtplib."""
    use = hourly_limits.take(project_id, "mail", len(mail.recipients()), clock=clock)
    try:
        mail.send()
    except smtplib.SMTPException:  # not accepted; after a broken connection it may have been
        use.delete()
        raise
