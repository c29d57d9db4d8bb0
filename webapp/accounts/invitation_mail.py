"""The mail that brings an invitation's link to the invited address.

It names who invites and this site, and contains no text by the project: strangers must not write to strangers
through Starling. Few are sent to one address, and few by one person.
"""

from __future__ import annotations

import logging
import smtplib
from datetime import timedelta

from django.conf import settings
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.views.decorators.debug import sensitive_variables

from webapp.accounts.models import Invitation, User
from webapp.accounts.queries import is_confirmed

log = logging.getLogger(__name__)

MAILS_A_DAY_TO_ONE = 3
MAILS_A_DAY_BY_ONE = 50
_A_DAY_S = int(timedelta(days=1).total_seconds())


@sensitive_variables("link")
def send_invitation_mail(invitation: Invitation, link: str, by: User) -> str:
    """Send the link to the invited address. Returns why it was not sent; empty if it was."""
    if not settings.STARLING_SMTP_URL:
        return "No mail server is set here, so no mail was sent."
    if not is_confirmed(by):
        return f"No mail was sent: it names you, and {by.email} is not confirmed yet."
    limits = {f"to:{invitation.email}": MAILS_A_DAY_TO_ONE, f"by:{by.pk}": MAILS_A_DAY_BY_ONE}
    if not _count(limits):
        return "No mail was sent: today's limit is reached."
    context = {"invitation": invitation, "by": by.email, "site": settings.STARLING_BASE_URL, "link": link}
    mail = EmailMessage(
        subject="Starling: you are invited to a project",
        body=render_to_string("accounts/invitation_mail.txt", context),
        to=[invitation.email],
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        log.warning("an invitation could not be mailed: %s", type(error).__name__)
        return "No mail was sent: the mail server did not take it."
    return ""


def _count(limits: dict[str, int]) -> bool:
    """Count one mail more under each key. False, with nothing counted, if one of them is used up."""
    keys = {f"invitation-mails:{key}": most for key, most in limits.items()}
    sent = {key: int(cache.get(key, 0)) for key in keys}
    if any(sent[key] >= most for key, most in keys.items()):
        return False
    for key in keys:
        cache.set(key, sent[key] + 1, _A_DAY_S)
    return True
