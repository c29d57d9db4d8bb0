"""Whether other machines can reach this site's URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from webapp.jobs.form.spec_problems import Problem

LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}
_KIND = "platform.kind"


def is_loopback() -> bool:
    """Return whether this site's URL is a loopback address."""
    return urlsplit(settings.STARLING_BASE_URL).hostname in LOOPBACK_HOSTS


def obstacles() -> list[Problem]:
    """Return why no machine may call this site."""
    base = urlsplit(settings.STARLING_BASE_URL)
    if base.scheme == "https" or base.hostname in LOOPBACK_HOSTS:
        return []
    sentence = (
        f"Platform ({_KIND}): machines call at {settings.STARLING_BASE_URL}, which is not encrypted, and their token"
        " would be readable on the way. The operator puts this site behind https and sets"
        " STARLING_BASE_URL to that address."
    )
    return [Problem(_KIND, sentence)]
