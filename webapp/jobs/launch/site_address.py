"""Whether other machines can call at this site's address."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from webapp.jobs.form.spec_problems import Problem

LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}
_KIND = "platform.kind"


def only_here() -> bool:
    """Whether this site's address leads nowhere from other machines."""
    return urlsplit(settings.STARLING_BASE_URL).hostname in LOOPBACK_HOSTS


def obstacles() -> list[Problem]:
    """Why no machine could reach this site."""
    base = urlsplit(settings.STARLING_BASE_URL)
    if base.scheme == "https" or base.hostname in LOOPBACK_HOSTS:
        return []
    sentence = (
        f"Platform ({_KIND}): machines call at {settings.STARLING_BASE_URL}, which is not encrypted, and their token"
        " would be readable on the way. Whoever runs this site puts it behind https and sets STARLING_BASE_URL to that."
    )
    return [Problem(_KIND, sentence)]
